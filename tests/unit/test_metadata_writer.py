"""Changes to the metadata table: what is written, what is refused, and what is taken out of use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable, NoPlan, Plan
from hudi_assets.engine.errors import Conflict, InvalidInput, LockLost, UnsupportedTable
from hudi_assets.engine.model import Action, NothingToDo, State
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.metadata import compaction
from hudi_assets.engine.table.metadata.own_timeline import ROOT, OwnTimeline, own_path
from hudi_assets.engine.table.metadata.partitions import has_metadata_table, named, table_properties
from hudi_assets.engine.table.metadata.policy import switch_off, untrue_after
from hudi_assets.engine.table.metadata.writer import MetadataTable
from tests.crash.faulty import Crash
from tests.crash.tables import SCHEMA, THRESHOLD, write
from tests.crash.test_metadata_table import create
from tests.tables.metadata import INDEX_DEFS, in_metadata_table, on_disk, switch_on
from tests.tables.steps import compact

FIRST, SECOND, THIRD = "20260101000000000", "20260101000001000", "20260101000002000"


@pytest.fixture
def table(session: Any, tmp_path: Path) -> HudiTable:
    return create(tmp_path / "table")


def metadata_table(table: HudiTable) -> MetadataTable:
    found = table._table.publisher.metadata_table
    assert found is not None
    return found


def own(table: HudiTable) -> OwnTimeline:
    state = table.state()
    return OwnTimeline.read(state.storage, state.layout)


def test_a_table_without_one(session: Any, tmp_path: Path) -> None:
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts")
    assert table._table.publisher.metadata_table is None
    assert not has_metadata_table(table.state().storage)


def test_files_come_and_go(table: HudiTable) -> None:
    one = metadata_table(table)
    one.record(FIRST, {"p=a": {"x": 10, "y": 20}, "p=b": {"z": 5}})
    assert in_metadata_table(table) == {"p=a": {"x": 10, "y": 20}, "p=b": {"z": 5}}
    one.record(SECOND, {"p=a": {"w": 1}}, {"p=a": ["x"], "p=b": ["z", "never there"]})
    assert in_metadata_table(table) == {"p=a": {"w": 1, "y": 20}}
    one.forget(["p=a/y", "p=c/q"])
    assert in_metadata_table(table) == {"p=a": {"w": 1}}


def test_done_again_it_is_the_same(table: HudiTable) -> None:
    one = metadata_table(table)
    one.record(FIRST, {"": {"x": 10}})
    one.record(FIRST, {"": {"x": 10, "y": 1}})
    assert in_metadata_table(table) == {"": {"x": 10, "y": 1}}
    one.take_back(FIRST)
    assert in_metadata_table(table) == {}
    assert own(table).of(FIRST, Action.DELTA_COMMIT) == ()
    one.take_back(FIRST)


def test_no_name_of_a_log_file_is_made_again(session: Any, tmp_path: Path) -> None:
    """A delete that arrives late on a store deletes nothing of the next attempt."""
    table = create(tmp_path / "table", 9)
    one, logs = metadata_table(table), []
    for _ in range(2):
        one.record(FIRST, {"": {"x": 10}})
        logs.append({path.name for path in Path(table.path, ROOT, "files").glob(".*.log.*") if FIRST in path.name})
    assert len(logs[0]) == len(logs[1]) == 1
    assert logs[0] != logs[1]


def test_no_name_of_a_base_file_is_made_again(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one of a dead execution stay."""
    table = create(tmp_path / "table", 9)
    one = metadata_table(table)
    one.record(FIRST, {"": {"x": 10}})
    really, names = LocalStorage.create, []

    def dying(storage: LocalStorage, path: str, data: bytes) -> None:
        if path.startswith(f"{ROOT}/.hoodie/timeline/") and path.endswith(".commit"):
            raise Crash
        really(storage, path, data)

    for work in (one._compaction.compact, one._compaction.keep_up):
        with monkeypatch.context() as patch:
            patch.setattr(LocalStorage, "create", dying)
            with pytest.raises(Crash):
                work()
        (pending,) = (i.timestamp for i in own(table).unfinished)
        names.append({path.name for path in Path(table.path, ROOT, "files").glob(f"*_{pending}.hfile")})
    assert len(names[0]) == len(names[1]) == 1
    assert names[0] != names[1]
    one._compaction.keep_up()
    assert in_metadata_table(table) == {"": {"x": 10}}


@pytest.mark.parametrize("ending", ["log", "deltacommit"])
def test_what_arrived_after_the_lock_was_lost_goes(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    table = create(tmp_path / "table", 9)
    one, really = metadata_table(table), LocalStorage.create

    def late(storage: LocalStorage, path: str, data: bytes) -> None:
        really(storage, path, data)
        if FIRST in path and (path.endswith(".deltacommit") if ending == "deltacommit" else ".log." in path):
            raise LockLost("It was taken.", where="here", hint="Look.")

    monkeypatch.setattr(LocalStorage, "create", late)
    with pytest.raises(LockLost):
        one.record(FIRST, {"": {"x": 10}})
    left = [path for path in Path(table.path, ROOT).rglob("*") if FIRST in path.name]
    assert not [path for path in left if path.name.endswith(".deltacommit")]
    assert bool([path for path in left if ".log." in path.name]) is (ending == "deltacommit")
    monkeypatch.undo()
    one.tidy()
    assert not [path for path in Path(table.path, ROOT).rglob("*") if FIRST in path.name]


def test_a_name_is_mentioned_once(table: HudiTable) -> None:
    """Readers would show a base file's name for ever, that came again in a log file and went in the next."""
    one = metadata_table(table)
    one.record(FIRST, {"": {"link": 10}})
    one._compaction.compact()
    one.record(SECOND, {"": {"link": 10, "base": 3}})
    one.record(THIRD, {}, {"": ["link"]})
    assert in_metadata_table(table) == {"": {"base": 3}}


@pytest.mark.parametrize("size", [5, 10, 15])
def test_a_free_name_is_taken_again(table: HudiTable, size: int) -> None:
    one = metadata_table(table)
    one.record(FIRST, {"": {"log": 10}})
    one._compaction.compact()
    one.undo(FIRST, ["log"])
    assert in_metadata_table(table) == {}
    one.record(SECOND, {"": {"log": size}})
    assert in_metadata_table(table) == {"": {"log": size}}
    one.record(THIRD, {}, {"": ["log"]})
    assert in_metadata_table(table) == {}


def test_another_engines_unfinished_write(session: Any, table: HudiTable) -> None:
    state = table.state()
    foreign = own_path(state.layout, FIRST, Action.DELTA_COMMIT, State.INFLIGHT)
    state.storage.create(foreign, b"{}")
    with pytest.raises(Conflict, match=FIRST):
        write(table, session, 0, 1_000)
    assert own(table).of(FIRST, Action.DELTA_COMMIT)
    state.storage.delete(foreign)
    table.recover()
    write(table, session, 0, 1_000)
    assert in_metadata_table(table) == on_disk(table)


def test_another_engine_wrote_the_instant(table: HudiTable) -> None:
    state = table.state()
    state.storage.create(own_path(state.layout, FIRST, Action.DELTA_COMMIT, State.COMPLETED), b"{}")
    with pytest.raises(Conflict, match="Another engine has written"):
        metadata_table(table).record(FIRST, {"": {"x": 1}})


def test_two_file_groups_are_damage(session: Any, table: HudiTable) -> None:
    Path(table.path, ROOT, "files/files-0001-0_0-0-0_00000000000000010.hfile").write_bytes(b"x")
    with pytest.raises(Exception, match="2 file groups"):
        metadata_table(table).record(FIRST, {"": {"x": 1}})


def test_what_becomes_untrue() -> None:
    known = ("bloom_filters", "column_stats", "expr_index_a", "files", "partition_stats", "record_index")
    every = (*known, "secondary_index_b", "something_new")
    assert untrue_after(every, "compaction") == ("bloom_filters", "expr_index_a", "something_new")
    writes = {*every} - {"files", "column_stats"}
    assert {*untrue_after(every, "write")} == writes


@pytest.mark.parametrize("index", ["record_index", "partition_stats", "bloom_filters", "secondary_index_v"])
def test_a_write_is_refused_or_the_index_switched_off(session: Any, tmp_path: Path, index: str) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", data_latency="1s")
    switch_on(table, "column_stats", index)
    folder = path / ROOT / index
    folder.mkdir()
    (folder / "log").write_text("x")
    before = (path / ".hoodie/hoodie.properties").read_bytes()
    with pytest.raises(UnsupportedTable, match=index):
        write(HudiTable.open(str(path)), session, 0, 1_000)
    assert (path / ".hoodie/hoodie.properties").read_bytes() == before
    assert folder.exists()
    willing = HudiTable.open(str(path), settings={"hudi_assets.metadata.switch.off": "true"})
    write(willing, session, 0, 1_000)
    properties = table_properties(willing.state().storage)
    assert named(properties["hoodie.table.metadata.partitions"]) == ("column_stats", "files")
    assert not folder.exists()
    assert in_metadata_table(willing) == on_disk(willing)
    assert HudiTable.open(str(path)).config.name == table.config.name


def test_a_compaction_is_refused_only_where_it_matters(session: Any, table: HudiTable) -> None:
    for first, ts in ((0, 1_000), (2, 9_000)):
        write(table, session, first, ts)
    file = Path(table.path, ".hoodie/hoodie.properties")
    text = file.read_text()
    file.write_text(text.replace("partitions=files", "partitions=files,bloom_filters"))
    with pytest.raises(UnsupportedTable, match="bloom_filters"):
        table.plan_compaction(threshold=THRESHOLD)
    # A look refuses nothing: the plan is shown, with the reason why it is not executed.
    due = table.plan_compaction(threshold=THRESHOLD, dry_run=True)
    assert isinstance(due, Plan)
    with pytest.raises(UnsupportedTable, match="bloom_filters"):
        table.refuse_execution(due)
    looked = HudiTable.open(table.path, settings={"hudi_assets.data.latency": "0s"}).look().due
    assert isinstance(looked, NoPlan)
    assert "bloom_filters" in looked.reason
    file.write_text(text.replace("partitions=files", "partitions=files,record_index,partition_stats"))
    compact(table, session, THRESHOLD)
    assert in_metadata_table(table) == on_disk(table)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("act", ["rollback", "restore"])
def test_what_an_index_of_records_has_merged_is_not_taken_back(
    session: Any, tmp_path: Path, version: int, act: str
) -> None:
    """It would go on naming file groups for rows that are gone; before its compaction the entries go too."""
    table = create(tmp_path / "t", version)
    write(table, session, 0, 1_000)
    kept = table.savepoint()
    newest = write(table, session, 2, 2_000)
    metadata_table(table)._compaction.compact()
    properties = Path(table.path, ".hoodie/hoodie.properties")
    properties.write_text(properties.read_text().replace("partitions=files", "partitions=files,record_index"))
    Path(table.path, ROOT, "record_index").mkdir()

    def undo(**settings: str) -> None:
        chosen = HudiTable.open(table.path, settings=settings)
        chosen.rollback(newest) if act == "rollback" else chosen.restore(kept)

    def there() -> set[str]:
        return {file.name for file in Path(table.path).rglob("*") if not file.name.endswith(".lock")}

    names = there()
    with pytest.raises(UnsupportedTable, match="record_index"):
        undo()
    assert there() == names
    undo(**{"hudi_assets.metadata.switch.off": "true"})
    assert "record_index" not in named(table_properties(table.state().storage)["hoodie.table.metadata.partitions"])
    assert in_metadata_table(table) == on_disk(table)


def test_what_it_has_not_merged_is_taken_back(session: Any, table: HudiTable) -> None:
    write(table, session, 0, 1_000)
    metadata_table(table)._compaction.compact()
    newest = write(table, session, 2, 2_000)
    properties = Path(table.path, ".hoodie/hoodie.properties")
    properties.write_text(properties.read_text().replace("partitions=files", "partitions=files,record_index"))
    table.rollback(newest)
    assert in_metadata_table(table) == on_disk(table)


def test_another_version_is_refused(session: Any, table: HudiTable) -> None:
    own_properties = Path(table.path, ROOT, ".hoodie/hoodie.properties")
    own_properties.write_text(own_properties.read_text().replace("version=6", "version=8"))
    with pytest.raises(UnsupportedTable, match="version 8"):
        write(table, session, 0, 1_000)


def test_one_that_is_being_built(session: Any, table: HudiTable) -> None:
    file = Path(table.path, ".hoodie/hoodie.properties")
    file.write_text(file.read_text() + "hoodie.table.metadata.partitions.inflight=files\n")
    with pytest.raises(UnsupportedTable, match="being built"):
        write(table, session, 0, 1_000)


def test_the_setting_is_checked(table: HudiTable) -> None:
    with pytest.raises(InvalidInput, match=r"switch\.off"):
        HudiTable.open(table.path, settings={"hudi_assets.metadata.switch.off": "perhaps"})


def test_the_archiver_stays_behind_its_compaction(session: Any, tmp_path: Path) -> None:
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = create(tmp_path / "t", properties={**keep, "hoodie.metadata.compact.max.delta.commits": "6"})
    for number in range(5):
        write(table, session, 0, 1_000 + number)
    held = table.archive()
    assert isinstance(held, NothingToDo)
    assert "metadata table" in held.reason
    for number in range(5, 9):
        write(table, session, 0, 1_000 + number)
    archived = table.archive()
    assert not isinstance(archived, NothingToDo)
    last = own(table).last_compaction
    assert last is not None
    assert archived.instants
    assert all(instant < last.timestamp for instant in archived.instants)
    assert in_metadata_table(table) == on_disk(table)


def test_validate_compares_it_with_the_files(session: Any, table: HudiTable) -> None:
    write(table, session, 0, 1_000)
    assert table.validate() == ()
    log = min(Path(table.path).glob(".0*.log.1_*"))
    metadata_table(table).record(SECOND, {"": {"never there": 7}}, {"": [log.name]})
    found = {finding.path: finding.what for finding in table.validate() if finding.kind == "metadata_table"}
    assert found.keys() == {log.name, "never there"}
    assert "does not list" in found[log.name]
    assert "not there" in found["never there"]


def test_column_stats_are_switched_off_with_their_definition(session: Any, tmp_path: Path) -> None:
    """As Hudi does it; of other indexes it keeps the definition."""
    table = create(tmp_path / "t", 9)
    definitions = Path(table.path, INDEX_DEFS)
    other = {"sourceFields": ["v"], "version": "V2"}
    known = json.loads(definitions.read_text())["indexDefinitions"]
    definitions.write_text(json.dumps({"indexDefinitions": {**known, "secondary_index_v": other}}))
    switch_off(table.state().storage, ("column_stats", "secondary_index_v"))
    assert json.loads(definitions.read_text()) == {"indexDefinitions": {"secondary_index_v": other}}
    assert not Path(table.path, ROOT, "column_stats").exists()
    write(table, session, 0, 1_000)
    assert in_metadata_table(table) == on_disk(table)


def test_an_orphan_is_found_once(session: Any, tmp_path: Path) -> None:
    """A log file of an instant that is on no timeline is not to be listed: it is to go."""
    table = create(tmp_path / "t", 9)
    for ts in (1_000, 2_000):
        newest = write(table, session, 0, ts)
    metadata_table(table).take_back(newest)
    for file in Path(table.path, ".hoodie/timeline").glob(f"{newest}*"):
        file.unlink()
    write(table, session, 0, 3_000)
    orphans = {log.name for log in Path(table.path).glob(f".0*_{newest}.log.*")}
    assert orphans
    assert {(finding.kind, finding.path) for finding in table.validate()} == {("orphan", name) for name in orphans}


@pytest.mark.parametrize(("version", "counted"), [(6, 5), (9, 2)])
def test_where_others_compact_their_own_only_ours_count(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, counted: int
) -> None:
    table = create(tmp_path / "t", version)
    for number in range(4):
        write(table, session, number, 1_000 + number)
    others = own(table).completed(Action.DELTA_COMMIT)[-3].timestamp
    monkeypatch.setattr(compaction, "is_ours", lambda storage, layout, one: one.timestamp != others)
    assert metadata_table(table)._compaction.delta_commits(own(table)) == counted


@pytest.mark.parametrize("version", [6, 9])
def test_old_slices_go(session: Any, tmp_path: Path, version: int) -> None:
    table = create(tmp_path / "t", version, {"hoodie.metadata.compact.max.delta.commits": "3"})
    for number in range(14):
        write(table, session, number, 1_000 + number)
        assert in_metadata_table(table) == on_disk(table)
    files = Path(table.path, ROOT, "files")
    compactions = [i.timestamp for i in own(table).completed(Action.COMMIT)]
    assert len(compactions) >= 3
    assert sorted(f.stem.split("_")[2] for f in files.glob("*.hfile")) == compactions[-2:]
    assert len(list(files.glob(".files-*.log.*"))) <= 2 * 4


@pytest.mark.parametrize(
    ("version", "stated", "fits"),
    [(6, "6", True), (6, "9", False), (9, "9", True), (9, "8", True), (9, "6", False), (9, None, False)],
)
def test_one_of_another_layout_is_refused(
    session: Any, tmp_path: Path, version: int, stated: str | None, fits: bool
) -> None:
    """Its files and timeline would be named by other rules than those it is written with."""
    table = create(tmp_path / "table", version)
    properties = Path(table.path, ROOT, ".hoodie/hoodie.properties")
    lines = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.version=")]
    properties.write_text("\n".join([*lines, *([] if stated is None else [f"hoodie.table.version={stated}"])]) + "\n")
    if fits:
        write(table, session, 0, 1_000)
        return
    with pytest.raises(UnsupportedTable, match=f"of version {stated or 'unknown'}.* of version {version}"):
        write(table, session, 0, 1_000)
    assert table.state().timeline.instants == ()
