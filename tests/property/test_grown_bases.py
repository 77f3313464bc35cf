"""Base files of one file group by writers whose clocks and looks differ: what is said to be in no view is in none.

A model of the group, without a table: each base file holds the rows of the one that it was made of, and its own. The
newest is the one of the greatest instant, as readers see it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hudi_assets.engine.model import Action, BaseFile, Instant, State
from hudi_assets.engine.table.files.grown import unseen_bases
from hudi_assets.engine.table.slices.parts import Told
from hudi_assets.engine.timeline.commit_metadata import WriteStat

_INSTANTS = 40


@dataclass
class Base:
    action: Action
    made_of: int | None
    rows: frozenset[int]


@dataclass
class Group:
    """`seen`: what a look sees, after each step since the last rollback: base files by instant.

    `given`: no instant is given twice, also if the first one was rolled back.
    """

    bases: dict[int, Base] = field(default_factory=dict)
    seen: list[dict[int, Base]] = field(default_factory=lambda: [{}])
    active: set[int] = field(default_factory=set)
    given: set[int] = field(default_factory=set)

    def write(self, action: Action, at: int, looks_back: int) -> None:
        look = self.seen[-1 - min(looks_back, len(self.seen) - 1)]
        newest = max(look, default=None)
        if at in self.given or (newest is None and self.bases):
            return
        if action is not Action.DELTA_COMMIT and (newest is None or at < newest):
            return  # a compaction or clustering of something, above it
        before: frozenset[int] = look[newest].rows if newest is not None else frozenset()
        own = {at} if action is Action.DELTA_COMMIT else set()
        made_of = None if action is Action.REPLACE_COMMIT else newest
        self.bases[at] = Base(action, made_of, before | own)
        self.active.add(at)
        self.given.add(at)
        self.seen.append(dict(self.bases))

    def roll_back_newest(self) -> None:
        """Writers look again: what was made of it is not tried."""
        if self.bases and max(self.bases) in self.active:
            self.active.discard(max(self.bases))
            del self.bases[max(self.bases)]
            self.seen = [dict(self.bases)]

    def archive(self, below: int, saved: int) -> None:
        """A savepoint may keep one of them on the timeline."""
        self.active = {at for at in self.active if at >= below or at == saved}

    @property
    def lost(self) -> set[int]:
        """Rows that the newest lacks, of writes on the timeline."""
        written = {at for at in self.active if self.bases[at].action is Action.DELTA_COMMIT}
        return written - (self.bases[max(self.bases)].rows if self.bases else frozenset())

    @property
    def told(self) -> list[int]:
        return [int(written.instant.timestamp) for written, _ in unseen_bases(self._state())]

    def _state(self) -> Any:
        bases = {f"{at:017d}": base for at, base in self.bases.items()}
        active = sorted(f"{at:017d}" for at in self.active)
        instants = [Instant(at, bases[at].action, State.COMPLETED, at) for at in active]

        def stat(instant: Instant) -> WriteStat:
            made_of = bases[instant.timestamp].made_of
            return WriteStat(instant.timestamp, "", "g", "null" if made_of is None else f"{made_of:017d}", 1)

        return SimpleNamespace(
            timeline=SimpleNamespace(
                completed=lambda *actions: tuple(i for i in instants if i.action in actions),
                is_committed=lambda instant: True,
            ),
            commit=lambda instant: SimpleNamespace(stats=(stat(instant),)),
            reading=SimpleNamespace(told=Told()),
            data_files={"": [BaseFile(at, "", "g", at, "0-0-0", 1) for at in bases]},
        )


_AT = st.integers(1, _INSTANTS)
_WRITES = st.tuples(st.just("write"), st.just(Action.DELTA_COMMIT), _AT, st.integers(0, 3))
_STEPS = st.one_of(
    _WRITES,
    _WRITES,
    st.tuples(st.just("write"), st.sampled_from([Action.COMMIT, Action.REPLACE_COMMIT]), _AT, st.integers(0, 3)),
    st.tuples(st.just("roll_back_newest")),
    st.tuples(st.just("archive"), _AT, _AT),
)


@given(st.lists(_STEPS, max_size=12))
def test_what_is_told_is_in_no_view(steps: list[tuple[Any, ...]]) -> None:
    group = Group()
    for name, *given_ in steps:
        getattr(group, name)(*given_)
        told = group.told
        assert len(told) == len(set(told))
        assert set(told) <= group.lost


@given(st.lists(_WRITES, max_size=10))
def test_all_that_writers_lose_is_told(steps: list[tuple[Any, ...]]) -> None:
    group = Group()
    for name, *given_ in steps:
        getattr(group, name)(*given_)
        assert set(group.told) == group.lost
