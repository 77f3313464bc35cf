"""One owner of the protocol: nothing but the transaction locks a table to change it, or recovers it.

And whoever opens a transaction asks it, before it writes, whether the lock is still its own.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "hudi_assets/engine"
OWNER = ENGINE / "transaction"
STEPS = {"write_lock", "recover_dead_work", "check_writable", "refuse_unstated_writers"}
# Each for a reason: it checks before it packs rows, before it waits for a lock, before Spark starts, or there is no
# table yet.
ALSO = {
    "create.py": {"check_writable"},
    "hudi_table/opened.py": {"check_writable"},
    "actions/writing/delta_commit.py": {"check_writable"},
    "actions/compaction/executor.py": {"check_writable"},
    "actions/compaction/hudi_executor.py": {"check_writable"},
    "actions/compaction/planning.py": {"check_writable", "refuse_unstated_writers"},
}

# Those who do not ask: what they finish was published under a lock already, or nothing is written under this one.
UNASKED = {"actions/recover.py: recover", "actions/compaction/hudi_executor.py: execute"}


def steps_in(source: str) -> set[str]:
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    names = (call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls)
    return STEPS.intersection(names)


def test_the_transaction_alone_takes_the_steps() -> None:
    modules = [path for path in ENGINE.rglob("*.py") if OWNER not in path.parents and path.parent != ENGINE / "storage"]
    found = {str(path.relative_to(ENGINE)): steps_in(path.read_text("utf-8")) for path in modules}
    assert {name: steps for name, steps in found.items() if steps} == ALSO


@pytest.mark.parametrize("call", ["write_lock(s, c, wait_s=1)", "lock.write_lock(s, c)", "recover_dead_work(t, s)"])
def test_a_step_elsewhere_is_noticed(call: str) -> None:
    assert steps_in(f"with {call}:\n    pass")


def called(node: ast.AST) -> set[str]:
    calls = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    return {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}


def who_never_checks(source: str) -> set[str]:
    """The functions that open a transaction, and neither they nor what they call in this module has a `check()`."""
    tree = ast.parse(source)
    functions = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    calls = {name: called(one) for name, one in functions.items()}

    def checks(name: str, seen: frozenset[str]) -> bool:
        inner = (calls[name] & functions.keys()) - seen
        return "check" in calls[name] or any(checks(one, seen | {one}) for one in sorted(inner))

    openers = {name for name, found in calls.items() if found & {"transaction", "_transaction"}} - {"_transaction"}
    return {name for name in openers if not checks(name, frozenset({name}))}


def test_whoever_opens_a_transaction_asks_whether_it_has_the_lock_yet() -> None:
    modules = {
        path.relative_to(ENGINE).as_posix(): who_never_checks(path.read_text("utf-8"))
        for path in ENGINE.rglob("*.py")
        if OWNER not in path.parents
    }
    assert {f"{module}: {name}" for module, found in modules.items() for name in found} == UNASKED


def test_an_action_that_does_not_ask_is_noticed() -> None:
    acting = "def act():\n    with transaction(t, 'acts') as tx:\n        {}\ndef write(tx):\n    {}\n"
    assert who_never_checks(acting.format("publish()", "tx.check()")) == {"act"}
    assert who_never_checks(acting.format("write(tx)", "publish()")) == {"act"}
    assert who_never_checks(acting.format("write(tx)", "tx.check()")) == set()
    assert who_never_checks(acting.format("tx.check()", "publish()")) == set()
