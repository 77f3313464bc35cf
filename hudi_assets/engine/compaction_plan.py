"""The compaction plan's Avro (HoodieCompactionPlan), with the RFC's `symlinkOperations` as an extra field.

Java's reader resolves by its own schema and passes the extra field by (tried with 0.15.0 and 1.2.0).
"""

from __future__ import annotations

import io
from typing import Any, Final

import fastavro

from .errors import CorruptTable
from .model import NO_THRESHOLD, CarryOver, Operation, Plan

STRATEGY: Final = "org.apache.hudi.table.action.compact.strategy.EventTimeBasedCompactionStrategy"
_THRESHOLD: Final = "hudi_assets.threshold"
_STRATEGY: Final = "hudi_assets.strategy"
_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}


def _optional(type_: object) -> list[object]:
    return ["null", type_]


def _field(name: str, type_: object) -> dict[str, object]:
    return {"name": name, "type": _optional(type_), "default": None}


_CARRY_OVER: Final = {
    "type": "record",
    "name": "HoodieSymlinkOperation",
    "fields": [{"name": "symlink", "type": _STRING}, {"name": "target", "type": _STRING}],
}
_OPERATION: Final = {
    "type": "record",
    "name": "HoodieCompactionOperation",
    "fields": [
        {"name": "baseInstantTime", "type": _optional(_STRING)},
        _field("deltaFilePaths", {"type": "array", "items": _STRING}),
        _field("dataFilePath", _STRING),
        {"name": "fileId", "type": _optional(_STRING)},
        _field("partitionPath", _STRING),
        _field("metrics", {"type": "map", "values": "double", "avro.java.string": "String"}),
        _field("bootstrapFilePath", _STRING),
        _field("symlinkOperations", {"type": "array", "items": _CARRY_OVER}),
    ],
}
_STRINGS_MAP: Final = {"type": "map", "values": _STRING, "avro.java.string": "String"}
_STRATEGY_RECORD: Final = {
    "type": "record",
    "name": "HoodieCompactionStrategy",
    "fields": [
        _field("compactorClassName", _STRING),
        _field("strategyParams", _STRINGS_MAP),
        {"name": "version", "type": ["int", "null"], "default": 1},
    ],
}
_SCHEMA: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieCompactionPlan",
        "namespace": _NAMESPACE,
        "fields": [
            _field("operations", {"type": "array", "items": _OPERATION}),
            _field("extraMetadata", _STRINGS_MAP),
            {"name": "version", "type": ["int", "null"], "default": 1},
            _field("strategy", _STRATEGY_RECORD),
            {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False},
            _field("missingSchedulePartitions", {"type": "array", "items": _STRING}),
        ],
    }
)


def encode_plan(plan: Plan) -> bytes:
    """The `.compaction.requested` file of a plan. Log and base files are named without their folder."""
    record = {
        "operations": [_operation(op) for op in plan.operations],
        "extraMetadata": {
            **plan.extra_metadata,
            _THRESHOLD: str(plan.threshold),
            _STRATEGY: plan.strategy,
        },
        "version": 2,
        # Java 0.15 loads the class that is named here when it executes the plan; ours is no Java class.
        "strategy": None,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": None,
    }
    out = io.BytesIO()
    fastavro.writer(out, _SCHEMA, [record])
    return out.getvalue()


def _operation(op: Operation) -> dict[str, Any]:
    return {
        "baseInstantTime": op.base_instant,
        "deltaFilePaths": [_name(path) for path in op.log_files],
        "dataFilePath": _name(op.base_file) if op.base_file else None,
        "fileId": op.file_id,
        "partitionPath": op.partition,
        "metrics": dict(op.metrics),
        "bootstrapFilePath": None,
        "symlinkOperations": [
            {"symlink": _name(carried.link), "target": _name(carried.target)} for carried in op.carried_over
        ],
    }


def decode_plan(instant: str, data: bytes, where: str) -> Plan:
    """A plan file as a value, ours or Apache Hudi's. Paths become table-relative.

    A plan of another planner has no threshold: it is NO_THRESHOLD then, and `strategy` empty or its class name.
    """
    try:
        records = list(fastavro.reader(io.BytesIO(data)))
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise CorruptTable(f"The compaction plan cannot be parsed: {error}.", where=where) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTable("The compaction plan does not hold one record.", where=where)
    record = records[0]
    extra = record.get("extraMetadata") or {}
    return Plan(
        instant=instant,
        threshold=int(extra.get(_THRESHOLD, NO_THRESHOLD)),
        operations=tuple(_decode_operation(op, where) for op in record.get("operations") or ()),
        strategy=extra.get(_STRATEGY) or (record.get("strategy") or {}).get("compactorClassName") or "",
        extra_metadata={k: v for k, v in extra.items() if k not in (_THRESHOLD, _STRATEGY)},
    )


def _decode_operation(op: dict[str, Any], where: str) -> Operation:
    partition = op.get("partitionPath") or ""
    folder = f"{partition}/" if partition else ""

    def path(name: str) -> str:
        if "/" in name or name in ("", ".", ".."):
            raise CorruptTable(f"The plan names a file outside its partition: {name!r}.", where=where)
        return folder + name

    if partition.startswith("/") or ".." in partition.split("/"):
        raise CorruptTable(f"The plan names a partition outside the table: {partition!r}.", where=where)
    base = op.get("dataFilePath")
    return Operation(
        partition=partition,
        file_id=op.get("fileId") or "",
        base_instant=op.get("baseInstantTime") or "",
        base_file=path(base) if base else None,
        log_files=tuple(path(name) for name in op.get("deltaFilePaths") or ()),
        carried_over=tuple(CarryOver(path(c["symlink"]), path(c["target"])) for c in op.get("symlinkOperations") or ()),
        metrics=op.get("metrics") or {},
    )


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
