"""Random lives of a table that is looked at after each step: what was kept of the last look tells the truth.

Once where the folders tell of each change, as they do. And once where they never do: then a promise may not be greater
than the table keeps, and each commit is seen all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from hudi_assets.engine.storage.folders import Stamp
from tests.in_buckets import IN_BUCKETS
from tests.machine.table_under_test import Variant
from tests.machine.test_machine import EXAMPLES, SEED, SHRINK, STEPS, VARIANTS, TableMachine
from tests.tables.kept_looks import assert_kept_is_true, looks_keep, settle
from tests.tables.local_session import LocalSession


class LookedAt(TableMachine):
    """A life that is looked at after each step."""

    @invariant()
    def answers(self) -> None:
        settle()
        if self.table.oracle.states:
            assert_kept_is_true(self.table.open())


class LookedAtBlindly(TableMachine):
    """The same, where no folder tells of a change: only the timeline does."""

    @invariant()
    def answers(self) -> None:
        if self.table.oracle.states:
            self._freshness(self.table.open())


KINDS = [
    "event time",
    "copies, unpartitioned",
    "symbolic links",
    "residue log",
    "version 9",
    "version 8, unpartitioned",
]


@pytest.fixture
def _keeping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """By the seed, every other kind of table is kept as columns."""
    number = KINDS.index(request.getfixturevalue("name"))
    with looks_keep(monkeypatch, columns=bool((SEED + number) % 2)):
        yield


def _lives(kind: type[TableMachine], variant: Variant) -> None:
    options: dict[str, Any] = {"derandomize": False, "database": None}
    run_state_machine_as_test(
        seed(SEED)(type("Life", (kind,), {"variant": variant})),
        settings=settings(
            max_examples=max(1, EXAMPLES // 3),
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if SHRINK else [])],
            **options,
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(IN_BUCKETS, reason="no folder tells of changes there")
@pytest.mark.usefixtures("_keeping")
@pytest.mark.parametrize("name", KINDS)
def test_lives_looked_at(session: LocalSession, name: str) -> None:
    del session
    _lives(LookedAt, VARIANTS[name])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(IN_BUCKETS, reason="no folder tells of changes there")
@pytest.mark.usefixtures("_keeping")
@pytest.mark.parametrize("name", KINDS)
def test_lives_where_no_folder_tells(session: LocalSession, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del session
    monkeypatch.setattr(Stamp, "of", classmethod(lambda cls, folder: cls(0, 0, 0, 0)))
    _lives(LookedAtBlindly, VARIANTS[name])
