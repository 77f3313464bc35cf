"""The freshness of each partition beside the views: what readers find, when it changes, what stays."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hudi_assets import cli
from hudi_assets.catalog import hive, partition_folders, partition_table
from hudi_assets.catalog.follow import before_clean, follow
from hudi_assets.catalog.hive import Entry
from hudi_assets.catalog.partition_table import FOLDER
from hudi_assets.catalog.places import Place, found_together
from hudi_assets.catalog.publication import PUBLICATION
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.engine import PARTITION_TABLES, PUBLISH_PARTITIONS, HudiTable, InvalidInput
from tests.catalog.conftest import Served
from tests.catalog.reader import Reader
from tests.catalog.tables import HOUR, make_table, row, write
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
ON = {PUBLISH_PARTITIONS: "true"}


def place(served: Served, name: str, form: Form = Form.VIEWS) -> Place:
    return Place(served.uri, Names("default", f"{name}_ro", f"{name}_rt", form))


def two_partitions(path: Path, session: LocalSession, settings: dict[str, str] | None = None) -> HudiTable:
    """`x` waits for a compaction, `y` has none to wait for. The clock is its commits'."""
    table = make_table(path, clock="commit")
    write(table, session, row("a", HOUR), row("b", HOUR, "y"), clock=2 * HOUR)
    table.compact(session)
    write(table, session, row("c", 3 * HOUR), clock=5 * HOUR)
    return HudiTable.open(str(path), settings=ON if settings is None else settings)


def entry_of(served: Served, name: str) -> Entry | None:
    with hive.connect(served.uri) as metastore:
        return metastore.entry("default", name)


def told(table: HudiTable) -> list[dict[str, object]]:
    """What `status --partitions` says, in the table's order."""
    return [
        {
            "partition_path": one.partition,
            "freshness_ms": one.freshness,
            "behind": one.holds_back,
            "log_files": one.remaining_log_files,
            "log_bytes": one.remaining_bytes,
        }
        for one in table.partition_freshness()
    ]


def test_readers_find_each_partition_by_itself(
    tmp_path: Path, served: Served, reader: Reader, session: LocalSession
) -> None:
    table = two_partitions(tmp_path / "each", session)
    properties = place(served, "each").publish(table)
    assert properties["hudi_assets.partitions"] == "each_freshness"
    columns = "partition_path, freshness_ms, behind, log_files, log_bytes"
    found = reader.rows(f"SELECT {columns} FROM each_freshness")
    assert found == told(table)
    assert [(one["partition_path"], one["freshness_ms"]) for one in found] == [
        ("part=x", 3 * HOUR - 1),
        ("part=y", 4 * HOUR),
    ]
    (one,) = reader.rows(
        "SELECT unix_micros(freshness) AS at, as_of_instant, unix_micros(computed_at) AS c, reason FROM each_freshness "
        "WHERE partition_path = 'part=y'"
    )
    assert one == {
        "at": 4 * HOUR * 1000,
        "as_of_instant": table.stats().last_commit,
        "c": 5 * HOUR * 1000,
        "reason": None,
    }
    joined = reader.rows(
        "SELECT r.id FROM each_ro r JOIN each_freshness f ON r._hoodie_partition_path = f.partition_path "
        "WHERE f.freshness_ms >= 4 * 3600000"
    )
    assert joined == [{"id": "b"}]
    assert properties.items() <= reader.properties("each_freshness").items()


def test_it_changes_with_the_promise_and_goes_when_it_is_not_wanted(
    tmp_path: Path, served: Served, reader: Reader, session: LocalSession
) -> None:
    table = two_partitions(tmp_path / "moves", session)
    here = place(served, "moves")
    here.publish(table)
    assert follow(table.look(), table, here).properties is None
    write(table, session, row("d", 2 * HOUR + 1, "y"), clock=5 * HOUR)  # late, in the cold partition
    found = follow(table.look(), table, here)
    assert found.why == "the freshness is 1970-01-01T02:00:00Z, and 1970-01-01T02:59:59.999Z is published"
    assert reader.rows("SELECT partition_path, freshness_ms FROM moves_freshness")[0] == {
        "partition_path": "part=y",
        "freshness_ms": 2 * HOUR,
    }
    table.compact(session)
    assert follow(table.look(), table, here).properties is not None
    assert [one["behind"] for one in reader.rows("SELECT behind FROM moves_freshness")] == [False, False]
    off = HudiTable.open(table.path)
    assert follow(off.look(), off, here).why == "the freshness of each partition is published, and not wanted"
    assert entry_of(served, "moves_freshness") is None
    assert list(Path(table.path, PARTITION_TABLES).rglob("*.parquet"))  # who began to read it goes on
    assert follow(off.look(), off, here).properties is None


def test_a_clean_by_somebody_else_leaves_it_wanted(tmp_path: Path, served: Served, session: LocalSession) -> None:
    """Whoever cleans publishes by the settings that the table notes."""
    table = two_partitions(tmp_path / "noted", session)
    here = place(served, "noted")
    here.publish(table)
    plain = HudiTable.open(table.path)
    plain.compact(session)
    before_clean(plain)
    entry = entry_of(served, "noted_freshness")
    assert entry is not None
    found = here.found()
    assert found is not None
    assert entry.parameters[PUBLICATION] == found.properties[PUBLICATION]


def test_what_a_reader_began_to_read_stays_for_an_hour(
    tmp_path: Path, served: Served, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, here = two_partitions(tmp_path / "stays", session), place(served, "stays")
    now = 1_700_000_000_000
    monkeypatch.setattr(partition_folders, "_now_ms", lambda: now)
    folders = []
    for minutes in (0, 50, 55, 115, 116):
        now = 1_700_000_000_000 + minutes * 60_000
        here.publish(table)
        entry = entry_of(served, "stays_freshness")
        assert entry is not None
        folders.append(entry.parameters[FOLDER])
        assert entry.location is not None
        assert entry.location.endswith(folders[-1])
    # At 116 the first one had been left for 66 minutes and the second for 61, the third for one.
    assert [Path(table.path, folder).is_dir() for folder in folders] == [False, False, True, True, True]


def test_a_publisher_that_died_before_it_is_made_good(
    tmp_path: Path, served: Served, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, here = two_partitions(tmp_path / "died", session), place(served, "died")
    with monkeypatch.context() as patched:
        patched.setattr(partition_table, "new_table", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            here.publish(table)
    found = here.found()
    assert found is not None
    assert not found.together
    assert found == found_together([here])[here]
    assert (
        follow(table.look(), table, here).why == "what stands beside the read-optimized view is of another publication"
    )
    assert entry_of(served, "died_freshness") is not None
    assert follow(table.look(), table, here).properties is None


def test_a_table_of_somebody_else_is_left_alone(
    tmp_path: Path, served: Served, reader: Reader, session: LocalSession
) -> None:
    table, here = two_partitions(tmp_path / "foreign", session), place(served, "foreign")
    reader.rows("CREATE TABLE foreign_freshness (x INT) USING parquet")
    with pytest.raises(InvalidInput, match="Something else has the name"):
        here.publish(table)
    assert entry_of(served, "foreign_ro") is None
    here.publish(HudiTable.open(table.path))
    assert reader.rows("SELECT * FROM foreign_freshness") == []


def test_beside_synced_tables(tmp_path: Path, served: Served, reader: Reader, session: LocalSession) -> None:
    table, here = two_partitions(tmp_path / "synced", session), place(served, "synced", Form.SYNCED)
    reader.rows(f"CREATE TABLE synced_ro (id STRING) USING parquet LOCATION '{table.path}'")
    here.publish(table)
    found = reader.rows("SELECT partition_path, freshness_ms FROM synced_freshness")
    assert found == [{key: one[key] for key in ("partition_path", "freshness_ms")} for one in told(table)]
    found_there = here.found()
    assert found_there is not None
    assert found_there.together
    here.publish(HudiTable.open(table.path))
    assert entry_of(served, "synced_freshness") is None
    assert "hudi_assets.partitions" not in reader.properties("synced_ro")


def test_by_the_command_line(
    tmp_path: Path,
    served: Served,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*options: str) -> dict[str, object]:
        monkeypatch.setattr(sys, "argv", ["hudi-assets", "publish", table.path, "--metastore", served.uri, *options])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    table = two_partitions(tmp_path / "typed", session, {})
    assert "partitions" not in run("--json")
    assert run("--json", "--partitions")["partitions"] == "typed_freshness"
    entry = entry_of(served, "typed_freshness")
    assert entry is not None
    at = int(entry.parameters["hudi_assets.computed_at_ms"])
    assert datetime.fromtimestamp(at / 1000, UTC).hour == 5
    assert "partitions" not in run("--json", "--no-partitions")
    assert entry_of(served, "typed_freshness") is None
