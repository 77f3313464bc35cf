"""The plan file: what is written comes back, and what leads out of the table is refused."""

from __future__ import annotations

import io

import fastavro
import pytest

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model import CarryOver, Operation, Plan
from hudi_assets.engine.timeline.compaction_plan import STRATEGY, decode_plan, encode_plan

METRICS = dict.fromkeys(
    ("TOTAL_LOG_FILES", "TOTAL_LOG_FILES_SIZE", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB", "TOTAL_IO_MB"), 1.0
)


def plan(partition: str = "p=a", log: str = ".g_1.log.1_0-0-0") -> Plan:
    operation = Operation(
        partition=partition,
        file_id="g",
        base_instant="1",
        base_file=f"{partition}/g_0-0-0_1.parquet",
        log_files=(f"{partition}/{log}",),
        carried_over=(CarryOver(f"{partition}/.g_2.log.1_0-0-0", f"{partition}/.g_1.log.2_0-0-0"),),
        metrics=METRICS,
    )
    return Plan("2", 1234, (operation,), STRATEGY, {"k": "v"})


def test_round_trip() -> None:
    assert decode_plan("2", encode_plan(plan()), "t") == plan()


def test_java_finds_every_metric_and_no_strategy_class_to_load() -> None:
    (record,) = fastavro.reader(io.BytesIO(encode_plan(plan())))
    assert isinstance(record, dict)
    assert record["strategy"] is None
    assert record["operations"][0]["metrics"] == METRICS
    assert record["operations"][0]["deltaFilePaths"] == [".g_1.log.1_0-0-0"]


@pytest.mark.parametrize("partition", ["../x", "/etc", "a/../../b"])
def test_a_partition_outside_the_table_is_refused(partition: str) -> None:
    with pytest.raises(CorruptTable, match="outside"):
        decode_plan("2", encode_plan(plan(partition)), "t")


def test_a_file_outside_its_partition_is_refused() -> None:
    data = encode_plan(plan(log="xxxxxxxxxxx")).replace(b"xxxxxxxxxxx", b"../../x/y/z")
    with pytest.raises(CorruptTable, match="outside"):
        decode_plan("2", data, "t")


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"not avro", encode_plan(plan())[:-20]])
def test_damaged_plans_are_typed_errors(data: bytes) -> None:
    with pytest.raises(CorruptTable):
        decode_plan("2", data, "t")


def test_what_is_written_piece_by_piece_is_one_avro_record() -> None:
    """As Avro's own writer writes it whole, to the byte: no reader of Hudi's sees a difference."""
    one = plan()
    for operations, left in (((), ()), (one.operations, ()), (one.operations * 70, ("p=a", "p=b"))):
        data = encode_plan(Plan("2", 1234, operations, STRATEGY, {"k": "v"}, left=left))
        (record,) = fastavro.reader(io.BytesIO(data))
        whole = io.BytesIO()
        schema = fastavro.reader(io.BytesIO(data)).writer_schema
        assert schema is not None
        fastavro.writer(whole, schema, [record], sync_marker=data[-16:])
        assert data == whole.getvalue()
