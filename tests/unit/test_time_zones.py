"""The zone of a timeline: instants beside true time, what files tell of the writers' clock, and what is refused."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction.hudi_executor import check_jvm_zone
from hudi_assets.engine.errors import Conflict, InvalidInput
from hudi_assets.engine.model import Action, Instant, NoPlan, Plan, State
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.layout.placement import past_instant
from hudi_assets.engine.table.metadata.policy import switch_off
from hudi_assets.engine.table.settings.config import TIMELINE_ZONE
from hudi_assets.engine.timeline.clock import next_instant
from hudi_assets.engine.timeline.instants import (
    Timeline,
    format_instant,
    instant_ago,
    instant_ms,
    local_date,
    moved_instant,
)
from hudi_assets.engine.timeline.writers_zone.evidence import (
    Finding,
    SavedBy,
    Sighting,
    agrees_with_saved,
    judge,
    saved_by,
    sightings,
)
from hudi_assets.engine.timeline.zone import zone_of
from hudi_assets.engine.transaction.publish import system_now_ms
from tests.tables.life import SCHEMA
from tests.tables.local_session import LocalSession

LOS_ANGELES, KOLKATA = "America/Los_Angeles", "Asia/Kolkata"
ZONES = ("UTC", LOS_ANGELES, KOLKATA, "Europe/Berlin", "America/New_York", "Pacific/Auckland", "Australia/Lord_Howe")
MINUTE, HOUR = 60_000, 3_600_000


def utc(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


FIRST_PASS = utc("2026-11-01T08:50:00")  # 01:50 in Los Angeles, which comes again
SECOND_PASS = utc("2026-11-01T09:10:00")  # 01:10, once more
HEAD = "#Properties saved on 2026-11-22T10:22:08.091003546Z\n#Sun Nov 22 02:22:08 PST 2026\n"


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def go(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield go
    monkeypatch.undo()
    time.tzset()


# ------------------------------------------------------------------------------------------- instants and time


@given(zone=st.sampled_from(ZONES), ms=st.integers(utc("2020-01-01"), utc("2030-01-01")))
def test_an_instant_is_read_as_it_was_made(zone: str, ms: int) -> None:
    instant = format_instant(ms, zone)
    assert ms in {instant_ms(instant, zone), instant_ms(instant, zone, second_pass=True)}
    assert (instant_ms(instant, zone, second_pass=True) > ms) == zone_of(zone).comes_again(ms)


@pytest.mark.parametrize("zone", ["Asia/Shanghai", LOS_ANGELES, "<+0330>-3:30"])
def test_the_process_has_a_zone_of_its_own(in_zone: Any, zone: str) -> None:
    in_zone(zone)
    for ms in (FIRST_PASS, SECOND_PASS, SECOND_PASS + 123):
        instant = format_instant(ms, "LOCAL")
        assert ms in {instant_ms(instant, "LOCAL"), instant_ms(instant, "LOCAL", second_pass=True)}
    assert zone_of("LOCAL").described(0).startswith(zone)


def test_an_hour_that_is_missing_counts_as_that_much_later() -> None:
    """As in Java, where a local time in a gap is moved on by the gap's length."""
    missing = "20260308023000000"
    assert instant_ms(missing, LOS_ANGELES) == utc("2026-03-08T10:30:00")
    assert format_instant(utc("2026-03-08T10:30:00"), LOS_ANGELES) == "20260308033000000"
    assert not zone_of(LOS_ANGELES).comes_again(utc("2026-03-08T09:59:59"))


def test_days_are_the_zones() -> None:
    assert local_date(utc("2026-11-22T02:00:00"), LOS_ANGELES).day == 21


@given(zone=st.sampled_from(ZONES), day=st.sampled_from(["2026-11-01", "2026-03-08", "2026-10-25"]), data=st.data())
def test_what_is_younger_is_not_below_an_instant_so_long_ago(zone: str, day: str, data: st.DataObject) -> None:
    """What was replaced less than the grace ago stays, whatever the clock did meanwhile."""
    now = utc(day) + data.draw(st.integers(0, 48 * HOUR))
    ago = data.draw(st.integers(0, 5 * HOUR))
    young = now - data.draw(st.integers(0, ago))
    assert format_instant(young, zone) >= instant_ago(now, ago, zone)
    assert instant_ago(now, ago, "UTC") == format_instant(now - ago, "UTC")


def test_what_is_minutes_old_is_younger_than_an_hour_when_the_clock_is_put_back() -> None:
    minutes_old = format_instant(SECOND_PASS - 5 * MINUTE, LOS_ANGELES)  # 01:05, and the hour began at 01:10
    assert format_instant(SECOND_PASS - HOUR, LOS_ANGELES) > minutes_old >= instant_ago(SECOND_PASS, HOUR, LOS_ANGELES)


@given(zone=st.sampled_from(ZONES), ms=st.integers(utc("2026-10-31"), utc("2026-11-02")), by=st.integers(1, 10**7))
def test_moving_an_instant_keeps_the_order(zone: str, ms: int, by: int) -> None:
    instant = format_instant(ms, zone)
    assert moved_instant(instant, by) > instant > moved_instant(instant, -by)


def test_a_plan_is_placed_above_what_it_takes_when_the_clock_is_put_back() -> None:
    """01:59:59.999 is followed by 01:00 there."""
    done = Instant("20261101015959000", Action.DELTA_COMMIT, State.COMPLETED, "d", "20261101015959999")
    placement = past_instant(Timeline((done,)), {done.timestamp: done.completion}.get)
    assert placement._free("20261101015959999") == "20261101020000000"


# ------------------------------------------------------------------------------------------- new instants


def test_no_instant_is_begun_in_an_hour_that_comes_again() -> None:
    with pytest.raises(Conflict, match="comes twice") as refused:
        next_instant(None, lambda: FIRST_PASS, LOS_ANGELES, "t")
    assert "2026-11-01 09:00:00 UTC" in str(refused.value)
    # What was begun before is completed.
    assert next_instant(None, lambda: FIRST_PASS, LOS_ANGELES, "t", completes=True) == "20261101015000000"
    assert next_instant(None, lambda: SECOND_PASS, LOS_ANGELES, "t") == "20261101011000000"
    for ms in (FIRST_PASS, SECOND_PASS):
        assert next_instant(None, partial(int, ms), "UTC", "t")


def test_in_the_second_pass_the_first_ones_instants_are_ahead() -> None:
    with pytest.raises(Conflict, match="put back") as refused:
        next_instant("20261101015000000", lambda: SECOND_PASS, LOS_ANGELES, "t")
    assert "2026-11-01 09:50:00 UTC" in str(refused.value)
    after = utc("2026-11-01T09:50:00") + 1
    assert next_instant("20261101015000000", lambda: after, LOS_ANGELES, "t") == "20261101015000001"


def test_an_instant_ahead_is_told_with_the_zone() -> None:
    with pytest.raises(Conflict, match=r"Asia/Kolkata \(UTC\+05:30\)"):
        next_instant("20261122203000000", lambda: utc("2026-11-22T10:00:00"), KOLKATA, "t")


def test_the_next_instant_waits_for_its_millisecond() -> None:
    ticks = iter(range(5))
    last = format_instant(SECOND_PASS + 2, "UTC")
    assert next_instant(last, lambda: SECOND_PASS + next(ticks), "UTC", "t") == moved_instant(last, 1)


# ------------------------------------------------------------------------------------------- evidence


def seen_by(zone: str, times: list[int], *, lag: int = 300) -> list[Sighting]:
    """What a writer in a zone leaves, newest first."""
    made = [Sighting(f"{format_instant(ms, zone)}.d", format_instant(ms, zone), ms + lag) for ms in times]
    return sorted(made, key=lambda one: one.modified_ms, reverse=True)


TIMES = st.lists(st.integers(0, 3 * 24 * 60), min_size=3, max_size=25, unique=True).map(
    lambda minutes: [utc("2026-10-31T00:00:00") + minute * MINUTE for minute in minutes]
)


@given(writers=st.sampled_from(ZONES), ours=st.sampled_from(ZONES), times=TIMES, lag=st.integers(0, 20_000))
def test_the_writers_zone_is_told_by_their_files(writers: str, ours: str, times: list[int], lag: int) -> None:
    """Across the change of daylight saving time: what decides is which offsets the two have for the newest files."""
    seen = seen_by(writers, times, lag=lag)
    offsets = [zone_of(zone).offset_ms(seen[0].modified_ms - lag) for zone in (writers, ours)]
    verdict = judge(ours, seen)
    if writers == ours:
        assert verdict.finding is Finding.AGREES
    elif verdict.finding is Finding.AGREES:
        # Somewhere in the time that was looked at they have shown the same.
        assert any(zone_of(writers).offset_ms(t) == zone_of(ours).offset_ms(t) for t in times)
    if offsets[0] != offsets[1] and not any(zone_of(writers).offset_ms(t) == zone_of(ours).offset_ms(t) for t in times):
        assert verdict.finding is Finding.DISAGREES


def test_the_offset_is_named() -> None:
    times = [utc("2026-11-22T10:00:00") + n * MINUTE for n in range(3)]
    for writers, ours, hours in ((LOS_ANGELES, "UTC", -8), ("UTC", KOLKATA, 0), (KOLKATA, "UTC", 5.5)):
        verdict = judge(ours, seen_by(writers, times))
        assert (verdict.finding, verdict.offset_ms) == (Finding.DISAGREES, hours * HOUR)


def test_one_file_before_its_instant_is_enough() -> None:
    (one,) = seen_by(KOLKATA, [utc("2026-11-22T10:00:00")])
    assert judge("UTC", [one]).finding is Finding.DISAGREES
    late = Sighting(one.file, one.time, one.modified_ms + 3 * HOUR + 7 * MINUTE)  # a copy, 3:07 h later
    assert judge("UTC", [late]).finding is Finding.DISAGREES
    days = Sighting(one.file, format_instant(one.modified_ms + 48 * HOUR, "UTC"), one.modified_ms)
    assert judge("UTC", [days]).finding is Finding.UNSURE  # a clock that was wrong by days is no zone


def test_a_copy_says_nothing() -> None:
    """All files of about one time, hours or years after their instants."""
    times = [utc("2026-11-22T10:00:00") + n * 10 * MINUTE for n in range(12)]
    for after in (HOUR, 8 * HOUR, 400 * 24 * HOUR):
        copied = [Sighting(o.file, o.time, times[-1] + after + n) for n, o in enumerate(seen_by(LOS_ANGELES, times))]
        for zone in (LOS_ANGELES, "UTC"):
            assert judge(zone, copied[::-1]).finding is not Finding.DISAGREES


def test_writers_that_moved_count_from_then_on() -> None:
    before = [utc("2026-11-20T10:00:00") + n * MINUTE for n in range(4)]
    after = [utc("2026-11-21T20:00:00") + n * MINUTE for n in range(4)]
    moved = sorted(
        [*seen_by(LOS_ANGELES, before), *seen_by("UTC", after)], key=lambda one: one.modified_ms, reverse=True
    )
    assert judge("UTC", moved).finding is Finding.AGREES
    assert judge(LOS_ANGELES, moved).finding is Finding.DISAGREES
    # One commit since the move is enough to be unsure: an instant of ours might lie ahead of it.
    assert judge(LOS_ANGELES, moved[3:]).finding is not Finding.AGREES
    back = [utc("2026-11-01T08:30:00"), utc("2026-11-01T09:30:00")]  # before and after the clock was put back
    assert judge("Etc/GMT+7", seen_by(LOS_ANGELES, back)).finding is Finding.UNSURE
    assert judge(LOS_ANGELES, seen_by(LOS_ANGELES, back)).finding is Finding.AGREES
    # Two writers in two zones at a time: no zone is right.
    both = sorted(
        [*seen_by(LOS_ANGELES, after), *seen_by("UTC", [t + 1000 for t in after])],
        key=lambda one: one.modified_ms,
        reverse=True,
    )
    assert {judge(zone, both).finding for zone in ("UTC", LOS_ANGELES)} == {Finding.DISAGREES}


def test_only_files_that_are_made_at_once_are_looked_at() -> None:
    at = "20261122100000000"

    def file(action: Action, state: State, completion: str | None = None) -> tuple[Instant, int]:
        return Instant(at, action, state, f"{action}.{state}", completion), 5

    telling = [
        file(Action.DELTA_COMMIT, State.REQUESTED),
        file(Action.DELTA_COMMIT, State.COMPLETED, "20261122100001000"),
        file(Action.CLEAN, State.REQUESTED),
    ]
    others = [
        file(Action.COMPACTION, State.REQUESTED),  # at a past instant, it may be; and it is ours
        file(Action.COMMIT, State.COMPLETED, "20261122100001000"),
        file(Action.DELTA_COMMIT, State.COMPLETED),  # hours later, it may be
        file(Action.DELTA_COMMIT, State.INFLIGHT),
        file(Action.SAVEPOINT, State.INFLIGHT),
        (Instant("00000000000000", Action.DELTA_COMMIT, State.REQUESTED, "bootstrap"), 5),
    ]
    assert {one.file for one in sightings([*telling, *others])} == {i.file_name for i, _ in telling}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (HEAD, SavedBy(utc("2026-11-22T10:22:08"), -8 * HOUR, "PST")),
        (HEAD.replace("02:22:08 PST", "15:52:08 IST"), SavedBy(utc("2026-11-22T10:22:08"), 11 * HOUR // 2, "IST")),
        (HEAD.replace("02:22:08", "02:29:08"), None),  # no zone has such an offset
        ("#Sun Nov 22 02:22:08 PST 2026\n", None),
        ("", None),
    ],
)
def test_what_hudi_writes_on_top_of_its_properties(head: str, expected: SavedBy | None) -> None:
    found = saved_by(head + "hoodie.table.name=t\n")
    assert found == expected
    if found is not None:
        assert agrees_with_saved("UTC", found) is False
        assert agrees_with_saved(LOS_ANGELES, found) is (found.zone == "PST")


# ------------------------------------------------------------------------------------------- tables


class Table:
    """A table whose instants are LOCAL. What is written by `writers` is as if their process were in that zone."""

    def __init__(self, path: Path, session: LocalSession, version: int = 6) -> None:
        self.path, self.session, self.number, self.ahead_ms = path, session, 0, 0
        keys: Any = {"record_key": ["id"], "ordering_field": "ts", "buckets": 1, "table_version": version}
        HudiTable.create(str(path), SCHEMA, data_latency="1h", **keys)
        self.head("")

    @property
    def properties(self) -> Path:
        return self.path / ".hoodie/hoodie.properties"

    def head(self, comments: str) -> None:
        lines = [line for line in self.properties.read_text().splitlines() if not line.startswith("#")]
        local = [line.replace("timezone=UTC", "timezone=LOCAL") for line in lines]
        self.properties.write_text(comments + "\n".join(local) + "\n")

    def open(self, zone: str | None = None) -> HudiTable:
        config = HudiTable.open(str(self.path), settings={TIMELINE_ZONE: zone} if zone else {}).config
        storage = LocalStorage(str(self.path))
        return HudiTable(storage, config, now_ms=lambda: system_now_ms() + self.ahead_ms)

    def write(self, zone: str | None, ms: int | None = None) -> str:
        """An upsert; its files as old as they would be if it had been made `ms` ms ago."""
        self.number += 1
        self.ahead_ms = -(ms or 0)
        rows = self.session.rows([{"id": self.number, "ts": self.number, "v": 1, "p": ""}], SCHEMA)
        instant = self.open(zone).upsert(self.session, rows).instant or ""
        self.age(instant, ms or 0)
        self.ahead_ms = 0
        return instant

    def age(self, instant: str, ms: int) -> None:
        for file in (self.path / ".hoodie").rglob(f"{instant}*"):
            made = file.stat().st_mtime - ms / 1000
            os.utime(file, (made, made))

    def written_in(self, zone: str) -> None:
        for ago in (3 * HOUR, 2 * HOUR, HOUR):
            self.write(zone, ago)

    def tree(self) -> dict[str, bytes]:
        found = (file for file in self.path.rglob("*") if file.is_file() and ".aux" not in file.parts)
        return {str(file): file.read_bytes() for file in found}


@pytest.fixture
def table(tmp_path: Path, session: LocalSession) -> Table:
    return Table(tmp_path / "t", session)


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_across_the_hour_that_comes_twice(tmp_path: Path, session: LocalSession, version: int) -> None:
    """Another writer goes on in the first pass, at the offset that holds then, as Hudi would; ours waits."""
    table, now = Table(tmp_path / "t", session, version), system_now_ms()
    before = table.write(LOS_ANGELES, now - FIRST_PASS + HOUR)
    with pytest.raises(Conflict, match="comes twice"):
        table.write(LOS_ANGELES, now - FIRST_PASS)
    theirs = table.write("Etc/GMT+7", now - FIRST_PASS)
    assert before < theirs
    with pytest.raises(Conflict, match="put back"):
        table.write(LOS_ANGELES, now - SECOND_PASS)
    after = table.write(LOS_ANGELES, now - SECOND_PASS - HOUR)
    assert theirs < after
    table.ahead_ms = SECOND_PASS + HOUR + MINUTE - now
    ours = table.open(LOS_ANGELES)
    plan = ours.plan_compaction(threshold=3)
    assert isinstance(plan, Plan)
    assert instant_ms(plan.instant, LOS_ANGELES) <= SECOND_PASS + HOUR + MINUTE + (system_now_ms() - now)
    some: Any = session
    ours.execute_compaction(some, plan.instant)
    assert {row["id"] for row in ours.snapshot(some).rows()} == {1, 3, 5}


@pytest.mark.parametrize(("writers", "theirs"), [("Etc/GMT+8", "UTC-08:00"), (KOLKATA, "UTC+05:30")])
def test_another_zone_is_refused_before_anything_is_written(
    table: Table, session: LocalSession, in_zone: Any, writers: str, theirs: str
) -> None:
    in_zone("UTC")
    table.written_in(writers)
    there, ours = table.tree(), table.open()
    rows: Any = session.rows([{"id": 1, "ts": 1, "v": 1, "p": ""}], SCHEMA)
    some: Any = session
    newest = ours.state().timeline.last_write or ""
    for act in (
        lambda: ours.plan_compaction(threshold=5),
        ours.due_compaction,
        lambda: ours.upsert(some, rows),
        lambda: ours.delete(some, rows),
        lambda: ours.clean(dry_run=True),
        ours.clean,
        ours.archive,
        ours.savepoint,
        lambda: ours.rollback(newest),
        lambda: ours.restore(newest),
        lambda: ours.execute_compaction(some, newest),
        ours.recover,
    ):
        with pytest.raises(InvalidInput, match=r"UTC \(UTC\+00:00\); its writers are in " + theirs.replace("+", r"\+")):
            act()
    assert table.tree() == there
    due = ours.look().due
    assert isinstance(due, NoPlan)
    assert theirs in due.reason
    assert [finding.kind for finding in ours.validate()] == ["time_zone"]
    # Told the zone, or started in it, all goes on.
    assert not isinstance(table.open(writers).plan_compaction(threshold=1), NoPlan)
    in_zone(writers)
    assert table.write(None) > newest


def test_the_same_zone_is_fine(table: Table, in_zone: Any) -> None:
    in_zone(KOLKATA)
    table.written_in(KOLKATA)
    table.write(None)
    assert table.open().validate() == ()


def test_the_owners_word_is_refused_where_the_files_say_otherwise(table: Table, in_zone: Any) -> None:
    in_zone("UTC")
    table.written_in("Etc/GMT+8")
    with pytest.raises(InvalidInput, match=r"said to be in Asia/Kolkata.*UTC-08:00"):
        table.open(KOLKATA).clean()


def test_a_copy_goes_by_what_hudi_has_saved(table: Table, in_zone: Any) -> None:
    """Files of about one time tell nothing; without a word of Hudi's clock they are refused, with it they count."""
    in_zone("UTC")
    table.written_in("UTC")
    for file in (table.path / ".hoodie").glob("2*"):
        os.utime(file, (time.time() + 4 * 86400, time.time() + 4 * 86400))
    with pytest.raises(InvalidInput, match="nothing tells whether that is the writers'"):
        table.write(None)
    table.head(HEAD.replace("02:22:08 PST", "10:22:08 UTC"))
    table.write(None)
    table.head(HEAD)
    in_zone(KOLKATA)
    for file in (table.path / ".hoodie").glob("2*"):
        os.utime(file, (time.time() + 4 * 86400, time.time() + 4 * 86400))
    with pytest.raises(InvalidInput, match=r"Asia/Kolkata \(UTC\+05:30\); its writers are in UTC-08:00 \(PST\)"):
        table.write(None)


def test_a_table_without_instants_is_its_creators(table: Table, in_zone: Any) -> None:
    in_zone("UTC")
    table.head(HEAD)
    with pytest.raises(InvalidInput, match="saved by a clock at UTC-08:00"):
        table.write(None)
    table.head("")
    assert table.write(None)


def test_a_wrong_zone_is_no_setting(table: Table) -> None:
    for zone in ("Mars/Olympus", "/etc/localtime", "America"):
        with pytest.raises(InvalidInput, match=r"hudi_assets\.timeline\.zone"):
            table.open(zone)
    table.properties.write_text(table.properties.read_text().replace("timezone=LOCAL", "timezone=UTC"))
    with pytest.raises(InvalidInput, match="the table's instants are in UTC"):
        table.open(KOLKATA)
    assert table.open("UTC")


def test_freshness_waits_for_the_zone(table: Table, in_zone: Any) -> None:
    """An unfinished write bounds the watermark by when it began: unknown in another zone, so there is no freshness."""
    in_zone("UTC")
    table.written_in(KOLKATA)
    assert table.open().freshness().freshness is not None
    begun = format_instant(system_now_ms() - 5 * HOUR, KOLKATA)
    for state in ("requested", "inflight"):
        (table.path / f".hoodie/{begun}.deltacommit.{state}").write_bytes(b"")
    table.age(begun, 5 * HOUR)
    found = table.open().freshness()
    assert found.freshness is None
    assert "UTC+05:30" in (found.reason or "")
    told = table.open(KOLKATA).freshness()
    assert told.watermark == instant_ms(begun, KOLKATA) - HOUR


def test_nothing_is_learned_in_another_zone(table: Table, in_zone: Any) -> None:
    in_zone("UTC")
    table.written_in(KOLKATA)
    table.properties.write_text(table.properties.read_text().replace("latency=3600000ms", "latency=auto"))
    assert table.open().observed_latency() is None
    assert "UTC+05:30" in (table.open().freshness().reason or "")
    assert table.open(KOLKATA).observed_latency() is not None


def test_a_commit_bounds_nothing_in_another_zone(table: Table, in_zone: Any) -> None:
    """A delete without ordering value happened by the time of its commit, if that is known."""
    in_zone("UTC")
    table.written_in(KOLKATA)
    keys: Any = table.session.frame(table.session.rows([{"id": 1}], SCHEMA).table.select(["id"]))
    table.open(KOLKATA).delete(table.session, keys)
    assert table.open(KOLKATA).freshness().freshness is not None
    found = table.open().freshness()
    assert found.freshness is None
    assert "UTC+05:30" in (found.reason or "")
    assert found.bounds == ()


def test_a_time_with_a_zone_is_no_instant_in_another_zone(table: Table, in_zone: Any) -> None:
    in_zone("UTC")
    table.written_in(KOLKATA)
    some: Any = table.session
    newest = table.open().state().timeline.last_write or ""
    moment = datetime.fromtimestamp(instant_ms(newest, KOLKATA) / 1000, UTC)
    for ask in (
        lambda of: of.time_travel(some, moment),
        lambda of: of.time_travel(some, moment.isoformat()),
        lambda of: of.incremental(some, "earliest", moment),
    ):
        with pytest.raises(InvalidInput, match=r"UTC\+05:30"):
            ask(table.open())
        assert ask(table.open(KOLKATA)).count() == 3
    assert table.open().time_travel(some, newest).count() == 3
    assert table.open().snapshot(some).count() == 3


@pytest.mark.parametrize(("offset_ms", "fits"), [(HOUR * 11 // 2, True), (0, False)])
def test_hudi_executes_in_the_tables_zone(table: Table, offset_ms: int, *, fits: bool) -> None:
    """By Hudi, in a Spark whose JVM has a zone of its own."""
    default = SimpleNamespace(getOffset=lambda _: offset_ms)
    java = SimpleNamespace(util=SimpleNamespace(TimeZone=SimpleNamespace(getDefault=lambda: default)))
    spark: Any = SimpleNamespace(_jvm=SimpleNamespace(java=java))
    config = table.open(KOLKATA).config
    with nullcontext() if fits else pytest.raises(InvalidInput, match=r"Asia/Kolkata \(UTC\+05:30\).*UTC\+00:00"):
        check_jvm_zone(spark, config, FIRST_PASS, "t")
    table.properties.write_text(table.properties.read_text().replace("timezone=LOCAL", "timezone=UTC"))
    check_jvm_zone(spark, table.open().config, FIRST_PASS, "t")


def test_what_happened_in_another_zone_is_found(table: Table, in_zone: Any) -> None:
    """A compaction eight hours ahead of the writers, and a delta commit that lies below it."""
    in_zone("UTC")
    table.written_in("Etc/GMT+8")
    compaction = format_instant(system_now_ms() - HOUR // 2, "UTC")
    for state in (".compaction.requested", ".compaction.inflight"):
        (table.path / f".hoodie/{compaction}{state}").write_bytes(b"")
    table.age(compaction, HOUR // 2)
    hidden = format_instant(system_now_ms() - MINUTE, "Etc/GMT+8")
    (table.path / f".hoodie/{hidden}.deltacommit.requested").write_bytes(b"")
    for zone in (None, "Etc/GMT+8"):
        (ahead,) = table.open(zone).state().ahead_of_time
        assert ahead.instant.timestamp == compaction
        assert abs(ahead.ahead_ms - 8 * HOUR) < MINUTE
        assert ahead.hidden == (hidden,)
        found = [finding for finding in table.open(zone).validate() if finding.kind == "instant_ahead"]
        assert "Do not roll it back" in found[0].hint
        assert "8 h 00 min ahead" in found[0].what


def test_a_compaction_is_not_rolled_back_where_a_commit_below_it_wrote_to_its_slice(table: Table, in_zone: Any) -> None:
    """As Hudi's writers do, whose clock has not reached the compaction's instant."""
    in_zone("UTC")
    table.write(None, HOUR)
    opened = table.open()
    plan = opened.plan_compaction(threshold=1)
    assert isinstance(plan, Plan)
    opened.execute_compaction(table.session, plan.instant)
    later = table.write(None)
    below = moved_instant(plan.instant, -1)
    for file in [file for file in table.path.rglob("*") if file.is_file() and ".aux" not in file.parts]:
        if later in file.name or ".log." in file.name:
            content = file.read_bytes().replace(later.encode(), below.encode())
            file.unlink()
            file.with_name(file.name.replace(later, below)).write_bytes(content)
    before = table.tree()
    with pytest.raises(InvalidInput, match=f"Commit {below} wrote to the compaction's slice"):
        table.open().rollback(plan.instant)
    assert table.tree() == before


def test_switching_partitions_off_keeps_what_hudi_has_saved(table: Table) -> None:
    table.head(HEAD)
    switch_off(LocalStorage(str(table.path)), ("column_stats",))
    assert saved_by(table.properties.read_text()) == saved_by(HEAD)
