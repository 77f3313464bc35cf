"""Archiving leaves the commits from which Hudi Streamer and Spark's streaming sink go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.actions.archiving.checkpoints import last_checkpoints
from hudi_assets.engine.actions.archiving.plan import Bounds, Keep, plan_archive
from hudi_assets.engine.model import Action, NothingToDo
from hudi_assets.engine.table.settings.config import ARCHIVE_BEYOND_CHECKPOINT
from tests.tables.life import Life
from tests.tables.local_session import LocalSession
from tests.tables.steps import with_properties
from tests.unit.test_archive_plan import t, timeline

KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
V1, V2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"
SINK = "_hudi_streaming_sink_checkpoint"


@pytest.fixture(params=[6, 8, 9])
def life(request: pytest.FixtureRequest, tmp_path: Path, session: LocalSession) -> Life:
    return Life(tmp_path / "t", session, request.param, **KEEP)


def note(life: Life, instant: str, extra: Mapping[str, str]) -> None:
    """As if a streaming writer of Hudi's had made the commit."""
    state = life.table.state()
    [one] = [i for i in state.timeline.completed(Action.DELTA_COMMIT, Action.COMMIT) if i.timestamp == instant]
    commit = state.commit(one)
    body = state.layout.encode_commit(replace(commit, extra={**commit.extra, **extra}))
    state.storage.replace(f"{state.layout.timeline_folder}/{one.file_name}", body)


def archive(life: Life) -> ArchiveResult | NothingToDo:
    return life.table.archive()


@pytest.mark.parametrize("key", [V1, V2, "deltastreamer.checkpoint.reset_key", "streamer.checkpoint.reset.key.v2"])
def test_the_streamers_last_checkpoint_stays(life: Life, key: str) -> None:
    commits = [life.upsert() for _ in range(7)]
    for commit in commits[:3]:
        note(life, commit, {key: "17"})
    assert isinstance(archive(life), ArchiveResult)
    assert life.instants() == commits[2:]
    life.upsert()
    held = archive(life)
    assert isinstance(held, NothingToDo)
    assert commits[2] in held.reason
    assert "checkpoint of Hudi Streamer" in held.reason
    assert ARCHIVE_BEYOND_CHECKPOINT in held.reason


def test_a_newer_checkpoint_lets_the_older_ones_go(life: Life) -> None:
    commits = [life.upsert() for _ in range(7)]
    for commit in commits:
        note(life, commit, {V1: "17"})
    assert isinstance(archive(life), ArchiveResult)
    assert life.instants() == commits[-2:]


def test_the_owner_lets_a_stream_that_has_ended_go(life: Life) -> None:
    commits = [life.upsert() for _ in range(7)]
    note(life, commits[0], {V1: "17"})
    assert isinstance(archive(life), NothingToDo)
    with_properties(life.table, {ARCHIVE_BEYOND_CHECKPOINT: "true"})
    assert isinstance(archive(life), ArchiveResult)
    assert life.instants() == commits[-2:]


def test_each_query_of_the_sink_has_a_checkpoint_of_its_own(life: Life) -> None:
    commits = [life.upsert() for _ in range(7)]
    for commit, noted in zip(commits, ('{"a":"0"}', '{"a":"1"}', '{"b":"7"}', '{"b":"8"}'), strict=False):
        note(life, commit, {SINK: noted})
    state = life.table.state()
    sink = "Spark's streaming sink"
    assert last_checkpoints(state) == {commits[1]: f"{sink} a", commits[3]: f"{sink} b"}
    archive(life)
    assert life.instants() == commits[1:]


def test_what_cannot_be_read_as_the_sinks_is_kept_all_the_same(life: Life) -> None:
    commits = [life.upsert() for _ in range(5)]
    note(life, commits[1], {SINK: "{"})
    note(life, commits[2], {SINK: "[1]"})
    assert last_checkpoints(life.table.state()) == {commits[2]: "Spark's streaming sink"}


def test_the_streamer_passes_over_a_compaction_that_has_its_checkpoint(life: Life) -> None:
    """As long as there is a delta commit it looks at those alone: the older one stays too."""
    commits = [life.upsert(), life.upsert()]
    note(life, commits[0], {V1: "17"})
    commits += [life.compact(), *(life.upsert() for _ in range(4))]
    note(life, commits[2], {V1: "17"})
    assert set(last_checkpoints(life.table.state())) == {commits[0], commits[2]}


def test_an_empty_key_is_no_checkpoint(life: Life) -> None:
    note(life, life.upsert(), {V1: "", SINK: ""})
    assert not last_checkpoints(life.table.state())


def test_nothing_of_it_where_nobody_streams(life: Life) -> None:
    life.turns(3)
    table = HudiTable.open(str(life.path))
    assert not last_checkpoints(table.state())


def test_the_plan_archives_up_to_the_checkpoint() -> None:
    bounds = Bounds(checkpoints={t(3): "Hudi Streamer"})
    chosen = plan_archive(timeline("ddddddd"), Keep(2, 3), bounds)
    assert not isinstance(chosen, NothingToDo)
    assert [i.timestamp for i in chosen] == [t(1), t(2)]
