"""Configurations by what decides between records of a key: merge modes, payload classes, partial updates, deletes."""

from __future__ import annotations

from typing import Any

from tests.interop.zoo.configuration import Configuration, Deletes, Refused
from tests.interop.zoo.of_indexes import NOT_BY_HUDI
from tests.interop.zoo.writes import MERGE, UPDATE, by_sql, operations

PAYLOAD = "hoodie.datasource.write.payload.class"
ORDERING = "hoodie.datasource.write.precombine.field"
MODE = "hoodie.write.record.merge.mode"
_MODEL = "org.apache.hudi.common.model."
_NO_ORDERING: dict[str, str | None] = {ORDERING: None, "hoodie.payload.ordering.field": None}
_KEYED = ", primaryKey='id', orderingFields='ts'"
_PARTIAL_RANGE = {"incremental": "Cannot grow BufferHolder"}
_NOT_FILLED = "Of a range of commits Hudi shows nulls where records before it have the values. Ours are filled."
# Merge modes have payloads of their own in 1.x.
_MODES = {PAYLOAD: None}


def _change(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"Op": kind}


def _postgres(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"_event_lsn": number * 1000 + key, "_change_operation_type": {"I": "c", "U": "u", "D": "d"}[kind]}


def _mysql(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"_event_bin_file": "mysql-bin.000001", "_event_pos": number * 1000 + key,
            "_event_seq": f"000001.{number * 1000 + key}",
            "_change_operation_type": {"I": "c", "U": "u", "D": "d"}[kind]}  # fmt: skip


def _sequence(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"seq": number}


def _deleted(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"_hoodie_is_deleted": kind == "D"}


def _payload(name: str, words: str, release: str = "1.2.0", version: int = 9, **more: Any) -> Configuration:
    return Configuration(
        name.rpartition(".")[2],
        release,
        version,
        options={PAYLOAD: _MODEL + name, **more.pop("options", {})},
        merged=Refused(words),
        **more,
    )


LISTED = (
    Configuration("COMMIT_TIME_ORDERING", options={**_MODES, **_NO_ORDERING, MODE: "COMMIT_TIME_ORDERING"}),
    Configuration("COMMIT_TIME_ORDERING", version=8, options={**_MODES, **_NO_ORDERING, MODE: "COMMIT_TIME_ORDERING"}),
    Configuration("COMMIT_TIME_ORDERING, with an ordering field", options={**_MODES, MODE: "COMMIT_TIME_ORDERING"}),
    Configuration("EVENT_TIME_ORDERING", options={**_MODES, MODE: "EVENT_TIME_ORDERING"}),
    Configuration(
        "OverwriteWithLatestAvroPayload",
        "0.15.0",
        6,
        options={PAYLOAD: _MODEL + "OverwriteWithLatestAvroPayload"},
        by_hudi=NOT_BY_HUDI,
    ),
    Configuration("OverwriteWithLatestAvroPayload", options={PAYLOAD: _MODEL + "OverwriteWithLatestAvroPayload"}),
    Configuration(
        "EventTimeAvroPayload", "0.15.0", 6, options={PAYLOAD: _MODEL + "EventTimeAvroPayload"}, by_hudi=NOT_BY_HUDI
    ),
    Configuration("EventTimeAvroPayload", options={PAYLOAD: _MODEL + "EventTimeAvroPayload"}),
    _payload("PartialUpdateAvroPayload", "PartialUpdateAvroPayload", "0.15.0", 6),
    _payload("PartialUpdateAvroPayload", "PartialUpdateAvroPayload", version=6),
    _payload("PartialUpdateAvroPayload", "PartialUpdateAvroPayload", version=8),
    Configuration(
        "PartialUpdateAvroPayload",
        options={PAYLOAD: _MODEL + "PartialUpdateAvroPayload"},
        fills=True,
        note=_NOT_FILLED,
        quick=True,
    ),
    _payload("OverwriteNonDefaultsWithLatestAvroPayload", "OverwriteNonDefaults", "0.15.0", 6),
    Configuration(
        "OverwriteNonDefaultsWithLatestAvroPayload",
        options={PAYLOAD: _MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"},
        fills=True,
        note=_NOT_FILLED,
    ),
    _payload("FirstValueAvroPayload", "FirstValueAvroPayload", "0.15.0", 6),
    Configuration(
        "AWSDmsAvroPayload",
        columns=_change,
        deletes=Deletes.ROW_WITHOUT_TIME,
        options={PAYLOAD: _MODEL + "AWSDmsAvroPayload"},
    ),
    _payload("AWSDmsAvroPayload", "AWSDmsAvroPayload", version=8, columns=_change, deletes=Deletes.ROW),
    Configuration(
        "PostgresDebeziumAvroPayload",
        columns=_postgres,
        deletes=Deletes.ROW,
        options={
            PAYLOAD: _MODEL + "debezium.PostgresDebeziumAvroPayload",
            ORDERING: "_event_lsn",
            "hoodie.payload.ordering.field": "_event_lsn",
        },
    ),
    Configuration(
        "MySqlDebeziumAvroPayload",
        columns=_mysql,
        deletes=Deletes.ROW_WITHOUT_TIME,
        options={
            PAYLOAD: _MODEL + "debezium.MySqlDebeziumAvroPayload",
            ORDERING: "_event_bin_file,_event_pos",
            "hoodie.payload.ordering.field": None,
        },
    ),
    Configuration(
        "delete marker",
        columns=_change,
        deletes=Deletes.ROW,
        options={"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"},
    ),
    Configuration(
        "delete marker",
        version=8,
        columns=_change,
        deletes=Deletes.ROW,
        options={"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"},
    ),
    Configuration(
        "delete marker",
        "0.15.0",
        6,
        columns=_change,
        deletes=Deletes.ROW,
        options={"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"},
        by_hudi=NOT_BY_HUDI,
        note="No property of the table has the marker. Hudi's queries show the marked row, as ours do.",
    ),
    Configuration(
        "several ordering fields",
        options={ORDERING: "ts,seq", "hoodie.payload.ordering.field": None},
        columns=_sequence,
    ),
    Configuration(
        "several ordering fields",
        version=8,
        options={ORDERING: "ts,seq", "hoodie.payload.ordering.field": None},
        columns=_sequence,
    ),
    Configuration(
        "ordering field is not the event time",
        columns=_sequence,
        options={ORDERING: "seq", "hoodie.payload.ordering.field": "seq"},
    ),
    Configuration(
        "ordering field is not the event time",
        "0.15.0",
        6,
        columns=_sequence,
        options={ORDERING: "seq", "hoodie.payload.ordering.field": "seq"},
        by_hudi=NOT_BY_HUDI,
    ),
    Configuration("MERGE INTO of some columns", write=by_sql(MERGE, _KEYED), failing=_PARTIAL_RANGE),
    Configuration("MERGE INTO of some columns", version=8, write=by_sql(MERGE, _KEYED), failing=_PARTIAL_RANGE),
    Configuration("SQL's UPDATE and DELETE", write=by_sql(UPDATE, _KEYED)),
    Configuration("no record key", write=by_sql(UPDATE, "")),
    Configuration(
        "a column _hoodie_is_deleted", "0.15.0", 6, columns=_deleted, deletes=Deletes.ROW, by_hudi=NOT_BY_HUDI
    ),
    Configuration("a column _hoodie_is_deleted", columns=_deleted, deletes=Deletes.ROW),
    Configuration("insert_overwrite", write=operations(_3="insert_overwrite")),
    Configuration("insert_overwrite", "0.15.0", 6, write=operations(_3="insert_overwrite"), by_hudi=NOT_BY_HUDI),
    Configuration("delete_partition", write=operations(_3="delete_partition")),
    Configuration("bulk_insert, then upserts", write=operations(_0="bulk_insert")),
    Configuration("insert, then upserts", write=operations(_0="insert")),
    Configuration("change data", options={"hoodie.table.cdc.enabled": "true"}),
    Configuration("change data", version=8, options={"hoodie.table.cdc.enabled": "true"}),
    Configuration("change data", "0.15.0", 6, options={"hoodie.table.cdc.enabled": "true"}, by_hudi=NOT_BY_HUDI),
    Configuration(
        "change data, keys alone",
        options={"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "op_key_only"},
    ),
)
