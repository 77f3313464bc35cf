"""Rollback and restore files as values, and Apache Hudi's own."""

from __future__ import annotations

import pytest

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.timeline.rollback_metadata import (
    InstantInfo,
    RestorePlan,
    RollbackPlan,
    RollbackRequest,
    decode_restore_plan,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_restore_metadata,
    encode_restore_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
    rollback_record,
)

TARGET = InstantInfo("20260101000000000", "deltacommit")
PLAN = RollbackPlan(
    TARGET,
    (
        RollbackRequest("p=a", "f", "20250101000000000", ("p=a/.f_20250101000000000.log.2_0-1-2",)),
        RollbackRequest("p=b", "g", "20250101000000000", log_blocks={"p=b/.g_20250101000000000.log.1": 9}),
    ),
)


def uri(path: str) -> str:
    return f"/tables/t/{path}"


@pytest.mark.parametrize("ours", [True, False])
def test_rollback_plan(ours: bool) -> None:
    plan = RollbackPlan(PLAN.target, PLAN.requests, ours)
    data = encode_rollback_plan(plan, uri)
    assert b"file:/tables/t/p=a/.f_" in data
    assert decode_rollback_plan(data, "x") == plan


def test_a_moved_tables_plan_still_holds() -> None:
    data = encode_rollback_plan(PLAN, lambda path: f"hdfs://other/place/{path}")
    assert decode_rollback_plan(data, "x") == PLAN


@pytest.mark.parametrize("partition", ["../other", "/etc", ".hoodie"])
def test_no_partition_leads_out_of_the_table(partition: str) -> None:
    plan = RollbackPlan(TARGET, (RollbackRequest(partition, "f", "", ("x",)),))
    with pytest.raises(CorruptTable, match="outside the table"):
        decode_rollback_plan(encode_rollback_plan(plan, uri), "x")


def test_metadata() -> None:
    record = rollback_record("20260101000000005", PLAN, {"p=b": {"p=b/.g.log.2": 105}}, 7, uri)
    read = decode_rollback_metadata(encode_rollback_metadata(record), "x")
    assert read == record
    assert read["commitsRollback"] == [TARGET.timestamp]
    assert read["totalFilesDeleted"] == 1
    assert read["partitionMetadata"]["p=b"]["rollbackLogFiles"] == {"file:/tables/t/p=b/.g.log.2": 105}


@pytest.mark.parametrize("ours", [True, False])
def test_restore(ours: bool) -> None:
    plan = RestorePlan("20250101000000000", (TARGET,), ours)
    assert decode_restore_plan(encode_restore_plan(plan), "x") == plan
    record = rollback_record("20260101000000005", PLAN, {}, 7, uri)
    metadata = encode_restore_metadata("20260101000000006", plan, {TARGET.timestamp: record}, 8)
    read = decode_rollback_metadata(metadata, "x")
    assert read["hoodieRestoreMetadata"] == {TARGET.timestamp: [record]}
    assert read["instantsToRollback"] == [TARGET.timestamp]


@pytest.mark.parametrize("cut", [0, 3, 40, 300])
def test_cut_files(cut: int) -> None:
    with pytest.raises(CorruptTable):
        decode_rollback_plan(encode_rollback_plan(PLAN, uri)[:cut], "x")
