"""Versions 8 and 9: the merge mode that hoodie.properties state, as Apache Hudi 1.2.0 writes them (tried)."""

from __future__ import annotations

import pytest

from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.settings.merging import MergeSettings, new_merge_properties, parse_merge_settings
from hudi_assets.engine.table.settings.not_merged import DeleteMarker

MODEL = "org.apache.hudi.common.model."
DEFAULT, OVERWRITE = f"{MODEL}DefaultHoodieRecordPayload", f"{MODEL}OverwriteWithLatestAvroPayload"
MODE, IDENTITY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"
PAYLOAD, LEGACY = "hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"
OWN = "hoodie.record.merge.property."
PARTIAL = "hoodie.table.partial.update.mode"
UNAVAILABLE = f"{OWN}hoodie.write.partial.update.unavailable.value"
FIELDS = "hoodie.table.ordering.fields"
EVENT_ID, COMMIT_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"
PAYLOAD_ID = "00000000-0000-0000-0000-000000000000"
EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING


def parsed(version: int, **properties: str) -> MergeSettings:
    layout = layout_of(version, "/t")
    return parse_merge_settings({**layout.table_properties, **properties}, layout, "/t")


@pytest.mark.parametrize(
    ("version", "stated", "mode", "fields"),
    [
        (9, {MODE: COMMIT}, COMMIT, ()),
        (9, {MODE: EVENT, FIELDS: "ts"}, EVENT, ("ts",)),
        (9, {MODE: EVENT, FIELDS: "ts", LEGACY: DEFAULT}, EVENT, ("ts",)),
        (9, {MODE: EVENT, FIELDS: "ts", LEGACY: f"{MODEL}EventTimeAvroPayload"}, EVENT, ("ts",)),
        # The field is there, and is not compared.
        (9, {MODE: COMMIT, FIELDS: "ts", LEGACY: OVERWRITE}, COMMIT, ()),
        (8, {MODE: COMMIT, IDENTITY: COMMIT_ID, PAYLOAD: OVERWRITE}, COMMIT, ()),
        (8, {MODE: EVENT, IDENTITY: EVENT_ID, PAYLOAD: DEFAULT, FIELDS: "ts"}, EVENT, ("ts",)),
        (8, {MODE: EVENT, IDENTITY: EVENT_ID, PAYLOAD: f"{MODEL}EventTimeAvroPayload", FIELDS: "ts"}, EVENT, ("ts",)),
        (9, {MODE: EVENT, FIELDS: "ts,v"}, EVENT, ("ts", "v")),
        (8, {MODE: EVENT, IDENTITY: EVENT_ID, PAYLOAD: DEFAULT, FIELDS: "ts,v"}, EVENT, ("ts", "v")),
        (9, {MODE: COMMIT, FIELDS: "ts,v", LEGACY: OVERWRITE}, COMMIT, ()),
    ],
)
def test_what_hudi_writes(version: int, stated: dict[str, str], mode: MergeMode, fields: tuple[str, ...]) -> None:
    settings = parsed(version, **stated)
    assert (settings.mode, settings.ordering_fields) == (mode, fields)
    assert settings.not_merged is None


@pytest.mark.parametrize(
    ("version", "stated", "named"),
    [
        (9, {MODE: EVENT}, "needs one"),
        (9, {MODE: COMMIT, PARTIAL: "KEEP_VALUES"}, "partial updates"),
        (9, {MODE: COMMIT, PARTIAL: "ignore_defaults"}, "partial updates"),
        (9, {MODE: COMMIT, PARTIAL: "FILL_UNAVAILABLE"}, "partial updates"),
        (9, {MODE: COMMIT, PARTIAL: "FILL_UNAVAILABLE", UNAVAILABLE: ""}, "partial updates"),
        (8, {MODE: COMMIT, PARTIAL: "IGNORE_DEFAULTS"}, "partial updates"),
        (9, {MODE: EVENT, FIELDS: "ts,v", PARTIAL: "IGNORE_DEFAULTS"}, "several ordering fields"),
        (9, {MODE: COMMIT, PARTIAL: "IGNORE_DEFAULTS", OWN + "more": "x"}, "properties of its own"),
        (9, {MODE: COMMIT, UNAVAILABLE: "?"}, "properties of its own"),
        (
            9,
            {MODE: EVENT, FIELDS: "ts", "hoodie.record.merge.property.hoodie.payload.delete.field": "Op"},
            "properties of its own",
        ),
        (9, {MODE: "CUSTOM", IDENTITY: PAYLOAD_ID, FIELDS: "ts"}, "merge mode is CUSTOM"),
        (9, {FIELDS: "ts"}, "not stated"),
        (
            8,
            {MODE: "CUSTOM", IDENTITY: PAYLOAD_ID, PAYLOAD: f"{MODEL}PartialUpdateAvroPayload"},
            "PartialUpdateAvroPayload",
        ),
        (8, {MODE: EVENT, PAYLOAD: OVERWRITE, FIELDS: "ts"}, "contradicts hoodie.compaction.payload.class"),
        (8, {MODE: COMMIT, IDENTITY: EVENT_ID, PAYLOAD: OVERWRITE}, "contradicts hoodie.record.merge.strategy.id"),
        (8, {MODE: EVENT, IDENTITY: PAYLOAD_ID, PAYLOAD: DEFAULT, FIELDS: "ts"}, "contradicts"),
    ],
)
def test_what_is_not_merged_says_so_by_name(version: int, stated: dict[str, str], named: str) -> None:
    problem = parsed(version, **stated).not_merged
    assert problem is not None
    assert named in problem.what
    # What contradicts itself is refused by Hudi too.
    assert problem.hudi_can == ("contradicts" not in problem.what)
    assert ("hudi_assets.executor=hudi" in problem.hint) == problem.hudi_can


DELETES = "hoodie.record.merge.property.hoodie.payload.delete."


@pytest.mark.parametrize(
    ("stated", "mode"),
    [
        ({MODE: COMMIT, f"{DELETES}field": "Op", "hoodie.record.merge.property.more": "x"}, None),
        ({MODE: COMMIT, PARTIAL: "KEEP_VALUES"}, None),
        ({MODE: "CUSTOM", FIELDS: "ts"}, None),
    ],
)
def test_the_order_of_records_is_known_where_that_is_all_that_is(
    stated: dict[str, str], mode: MergeMode | None
) -> None:
    settings = parsed(9, **stated)
    assert settings.not_merged is not None
    assert settings.mode == mode


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize(("mode", "ordering"), [(COMMIT, ""), (EVENT, "ts")])
def test_a_marker_of_deletes_is_the_writers(version: int, mode: MergeMode, ordering: str) -> None:
    marked = {f"{DELETES}field": "Op", f"{DELETES}marker": "D"}
    settings = parsed(version, **{MODE: mode, FIELDS: ordering}, **marked)
    assert (settings.not_merged, settings.mode, settings.ordering_fields) == (
        None,
        mode,
        (ordering,) if ordering else (),
    )
    assert settings.delete_marker == DeleteMarker("Op", "D")
    for more in ({OWN + "more": "x"}, {PARTIAL: "KEEP_VALUES"}):
        assert parsed(version, **{MODE: mode, FIELDS: ordering}, **marked, **more).not_merged is not None


@pytest.mark.parametrize("mode", [{MODE: COMMIT}, {MODE: EVENT, FIELDS: "ts"}])
@pytest.mark.parametrize(
    ("stated", "gaps"),
    [
        ({PARTIAL: "IGNORE_DEFAULTS"}, Gaps()),
        ({PARTIAL: "IGNORE_DEFAULTS", UNAVAILABLE: "?"}, Gaps()),
        ({PARTIAL: "FILL_UNAVAILABLE", UNAVAILABLE: "?"}, Gaps("?")),
        ({PARTIAL: "FILL_UNAVAILABLE", UNAVAILABLE: "?", f"{DELETES}field": "Op", f"{DELETES}marker": "D"}, Gaps("?")),
        ({}, None),
    ],
)
def test_partial_update_modes_of_version_9(mode: dict[str, str], stated: dict[str, str], gaps: Gaps | None) -> None:
    settings = parsed(9, **mode, **stated)
    assert (settings.not_merged, settings.mode, settings.gaps) == (None, mode[MODE], gaps)
    # A null leaves the event time of the row that it changes.
    assert settings.null_may_keep == (gaps is not None)


def stated_by_new_tables(version: int, mode: MergeMode, field: str | None) -> dict[str, str]:
    return new_merge_properties(mode, field, layout_of(version, "/t"))


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize(("mode", "field"), [(EVENT, "ts"), (COMMIT, None)])
def test_new_tables_state_what_is_read_back(version: int, mode: MergeMode, field: str | None) -> None:
    settings = parsed(version, **stated_by_new_tables(version, mode, field))
    assert (settings.mode, settings.ordering_fields) == (mode, (field,) if field else ())
