"""One owner of the protocol: nothing but the transaction locks a table to change it, or recovers it."""

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
