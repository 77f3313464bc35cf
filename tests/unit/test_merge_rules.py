"""Whose rules a version 6 table is merged by: stated, or told by who created it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.settings.java_properties import dump_properties
from hudi_assets.engine.table.settings.merging import MERGE_RULES, parse_merge_settings
from tests.spark.test_merge_modes import SCHEMA

MODEL = "org.apache.hudi.common.model."
DEFAULT, OVERWRITE = f"{MODEL}DefaultHoodieRecordPayload", f"{MODEL}OverwriteWithLatestAvroPayload"
EVENT, EVENT_0X = MergeMode.EVENT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING_0X
LATEST, COMMIT = MergeMode.OVERWRITE_WITH_LATEST, MergeMode.COMMIT_TIME_ORDERING
EVENT_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
BY_0_X = {  # as 0.15.0 writes hoodie.properties (tried)
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.name": "t",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.precombine.field": "ts",
    "hoodie.compaction.payload.class": DEFAULT,
    "hoodie.compaction.record.merger.strategy": EVENT_ID,
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.timeline.timezone": "UTC",
}
BY_1_X = {  # as 1.2.0 does (tried)
    **{key: value for key, value in BY_0_X.items() if key not in ("hoodie.table.precombine.field",)},
    "hoodie.table.ordering.fields": "ts",
    "hoodie.record.merge.strategy.id": EVENT_ID,
    "hoodie.timeline.path": "timeline",
    "hoodie.archivelog.folder": "history",
}
PRECOMBINE = {"hoodie.table.precombine.field": "ts"}


def opened(path: Path, properties: dict[str, str], **settings: str) -> HudiTable:
    (path / ".hoodie").mkdir(parents=True)
    (path / ".hoodie/hoodie.properties").write_bytes(dump_properties(properties))
    return HudiTable.open(str(path), settings=settings)


@pytest.mark.parametrize(
    ("properties", "mode"),
    [
        (BY_0_X, EVENT_0X),
        ({**BY_0_X, "hoodie.compaction.payload.class": f"{MODEL}EventTimeAvroPayload"}, EVENT_0X),
        ({**BY_0_X, "hoodie.compaction.payload.class": OVERWRITE}, LATEST),
        (BY_1_X, EVENT),
        # Each of 1.x's keys by itself: 1.0 wrote others than 1.2.
        ({**BY_0_X, "hoodie.timeline.path": "timeline"}, EVENT),
        ({**BY_0_X, "hoodie.record.merge.mode": EVENT.value}, EVENT),
        ({**BY_0_X, "hoodie.record.merge.strategy.id": EVENT_ID}, EVENT),
        ({**BY_0_X, "hoodie.table.initial.version": "6"}, EVENT),
        ({**BY_0_X, MERGE_RULES: "1.x"}, EVENT),
        ({**BY_1_X, **PRECOMBINE, MERGE_RULES: "0.x"}, EVENT_0X),
    ],
)
def test_the_rules_are_those_of_who_created_the_table_where_nothing_is_stated(
    tmp_path: Path, properties: dict[str, str], mode: MergeMode
) -> None:
    assert opened(tmp_path, properties).config.merging.mode is mode


@pytest.mark.parametrize(("rules", "mode"), [("0.x", EVENT_0X), ("1.x", EVENT)])
def test_a_reader_states_them(tmp_path: Path, rules: str, mode: MergeMode) -> None:
    assert opened(tmp_path, BY_0_X, **{MERGE_RULES: rules}).config.merging.mode is mode


def test_what_the_table_states_no_reader_changes(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has hudi_assets.merge.rules=0.x, not 1.x"):
        opened(tmp_path, {**BY_0_X, MERGE_RULES: "0.x"}, **{MERGE_RULES: "1.x"})


def test_a_setting_of_ours_given_by_a_reader_is_no_evidence(tmp_path: Path) -> None:
    assert opened(tmp_path, BY_0_X, **{"hudi_assets.clock": "commit"}).config.merging.mode is EVENT_0X


@pytest.mark.parametrize(
    ("stated", "rules", "mode"),
    [
        (PRECOMBINE, "0.x", LATEST),
        (PRECOMBINE, "1.x", COMMIT),
        ({}, "0.x", COMMIT),
        ({}, "1.x", COMMIT),
        # 0.x looks at the field alone; unless its rules are asked for, the stated mode counts.
        ({**PRECOMBINE, "hoodie.record.merge.mode": COMMIT.value}, "0.x", LATEST),
        ({**PRECOMBINE, "hoodie.record.merge.mode": COMMIT.value}, "", COMMIT),
    ],
)
def test_they_say_what_overwriting_with_the_latest_means(stated: dict[str, str], rules: str, mode: MergeMode) -> None:
    said = {MERGE_RULES: rules} if rules else {}
    settings = parse_merge_settings(
        {"hoodie.compaction.payload.class": OVERWRITE, **stated, **said}, layout_of(6, "/t"), "/t"
    )
    assert settings.mode is mode


@pytest.mark.parametrize(
    ("properties", "error", "words"),
    [
        ({**BY_0_X, MERGE_RULES: "0.15"}, InvalidInput, "It may be: 0.x, 1.x"),
        (
            {
                **BY_1_X,
                "hoodie.table.version": "9",
                "hoodie.timeline.layout.version": "2",
                "hoodie.record.merge.mode": EVENT.value,
                MERGE_RULES: "0.x",
            },
            InvalidInput,
            "table's version is 9",
        ),
    ],
)
def test_rules_that_cannot_be(tmp_path: Path, properties: dict[str, str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        opened(tmp_path, properties)


def test_rules_of_0_x_without_its_ordering_field_are_not_merged(tmp_path: Path) -> None:
    problem = opened(tmp_path, {**BY_1_X, MERGE_RULES: "0.x"}).config.merging.not_merged
    assert problem is not None
    assert "no hoodie.table.precombine.field, the only one that Hudi 0.x" in problem.what


def test_a_new_table_states_0_x_and_else_has_the_rules_of_1_x(tmp_path: Path) -> None:
    for folder, mode in (("new", EVENT), ("old", EVENT_0X)):
        HudiTable.create(
            str(tmp_path / folder), SCHEMA, record_key=["id"], ordering_field="ts", merge_mode=mode, buckets=1
        )
        config = HudiTable.open(str(tmp_path / folder)).config
        assert config.merging.mode is mode
        assert (MERGE_RULES in (tmp_path / folder / ".hoodie/hoodie.properties").read_text()) == (mode is EVENT_0X)
    with pytest.raises(InvalidInput, match="Version 6 has it"):
        HudiTable.create(
            str(tmp_path / "v9"), SCHEMA, record_key=["id"], ordering_field="ts", merge_mode=EVENT_0X, table_version=9
        )  # fmt: skip


def test_an_exact_split_needs_the_rules_of_1_x(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"hudi_assets\.merge\.rules=1\.x"):
        HudiTable.create(
            str(tmp_path), SCHEMA, record_key=["id"], ordering_field="ts", merge_mode=EVENT_0X, exact_split=True
        )  # fmt: skip
