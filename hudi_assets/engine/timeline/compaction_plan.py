"""The compaction plan's Avro (HoodieCompactionPlan), with the RFC's `symlinkOperations` as an extra field.

`target` is the first original there, as the RFC has it; `source` is the file that the link is made from, where another.

Java's reader resolves by its own schema and passes the extra field by (tried with 0.15.0 and 1.2.0).
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

import fastavro

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.format.avro.container import checked
from hudi_assets.engine.format.paths import inside_folder, inside_table
from hudi_assets.engine.model import NO_THRESHOLD, CarryOver, Operation, Plan
from hudi_assets.engine.model.plans import StrategyName
from hudi_assets.engine.timeline.commit_metadata import int64

STRATEGY: Final = StrategyName.EVENT_TIME.class_name
RESIDUE: Final = "hudi_assets.residue"
"""In a plan's extra metadata: its execution may write residue logs, and its carried-over log files start at log.2."""
_THRESHOLD: Final = "hudi_assets.threshold"
_STRATEGY: Final = "hudi_assets.strategy"
RESIDUE_VERSION: Final = 1
AFTER_RESIDUE: Final = RESIDUE_VERSION + 1
LogFileName = Callable[[str, str, int, str], str]
"""(file id, base instant, version, write token) → a log file's name (`Layout.log_file_name`)."""
_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}


def _optional(type_: object) -> list[object]:
    return ["null", type_]


def _field(name: str, type_: object) -> dict[str, object]:
    return {"name": name, "type": _optional(type_), "default": None}


_CARRY_OVER: Final = {
    "type": "record",
    "name": "HoodieSymlinkOperation",
    "fields": [{"name": "symlink", "type": _STRING}, {"name": "target", "type": _STRING}, _field("source", _STRING)],
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
_REST: Final = [
    _field("extraMetadata", _STRINGS_MAP),
    {"name": "version", "type": ["int", "null"], "default": 1},
    _field("strategy", _STRATEGY_RECORD),
    {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False},
    _field("missingSchedulePartitions", {"type": "array", "items": _STRING}),
]


def _plan_of(fields: list[Any]) -> Any:
    return fastavro.parse_schema(
        {"type": "record", "name": "HoodieCompactionPlan", "namespace": _NAMESPACE, "fields": fields}
    )


_SCHEMA: Final = _plan_of([_field("operations", {"type": "array", "items": _OPERATION}), *_REST])
_OF_OPERATION: Final = fastavro.parse_schema({**_OPERATION, "namespace": _NAMESPACE})
_AFTER_OPERATIONS: Final = _plan_of(_REST)
_SOME: Final = b"\x02"  # the second branch of a union with null
_SYNC_BYTES: Final = 16


def residue_paths(plan: Plan, log_file_name: LogFileName) -> frozenset[str]:
    """Where an execution of the plan leaves residue logs, if it does: table-relative."""
    if RESIDUE not in plan.extra_metadata:
        return frozenset()
    return frozenset(residue_path(op, plan.instant, log_file_name) for op in plan.operations)


def residue_path(op: Operation, instant: str, log_file_name: LogFileName) -> str:
    """Where an operation's residue log is, if it has one. First in log order: version 1, the smallest write token."""
    name = log_file_name(op.file_id, instant, RESIDUE_VERSION, "0-0-0")
    return f"{op.partition}/{name}" if op.partition else name


def encode_plan(plan: Plan) -> bytes:
    """The `.compaction.requested` file of a plan. Log and base files are named without their folder.

    One operation after the other: there may be a million, and what Avro writes is made of values ten times as large.
    """
    body = io.BytesIO()
    body.write(_SOME)
    if plan.operations:
        body.write(_long(len(plan.operations)))
        for op in plan.operations:
            fastavro.schemaless_writer(body, _OF_OPERATION, _operation(op))
    body.write(_long(0))
    fastavro.schemaless_writer(body, _AFTER_OPERATIONS, _after_operations(plan))
    out = io.BytesIO()
    fastavro.writer(out, _SCHEMA, [])
    header = out.getvalue()
    return b"".join((header, _long(1), _long(body.tell()), body.getbuffer(), header[-_SYNC_BYTES:]))


def _after_operations(plan: Plan) -> dict[str, Any]:
    return {
        "extraMetadata": {
            **plan.extra_metadata,
            _THRESHOLD: str(plan.threshold),
            _STRATEGY: plan.strategy,
        },
        "version": 2,
        # Java 0.15 loads the class that is named here when it executes the plan; ours is no Java class.
        "strategy": None,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": list(plan.left) or None,
    }


def _long(number: int) -> bytes:
    """As Avro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", number)
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
            {"symlink": _name(c.link), "target": _name(c.target), "source": _name(c.source) if c.source else None}
            for c in op.carried_over
        ],
    }


def decode_plan(instant: str, data: bytes, where: str) -> Plan:
    """A plan file as a value, ours or Apache Hudi's. Paths become table-relative.

    A plan of another planner has no threshold: it is NO_THRESHOLD then, and `strategy` empty or its class name.
    """
    try:
        # By our schema: whatever the file's own says, the values are of these types.
        records = list(fastavro.reader(io.BytesIO(checked(data, "compaction plan", where)), _SCHEMA))
    except CorruptTable:
        raise
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise CorruptTable(f"The compaction plan cannot be parsed: {error}.", where=where) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTable("The compaction plan does not hold one record.", where=where)
    record = records[0]
    extra = record.get("extraMetadata") or {}
    try:
        threshold = int64(extra.get(_THRESHOLD, str(NO_THRESHOLD)))
    except ValueError as error:
        raise CorruptTable(f"The compaction plan's threshold cannot be parsed: {error}.", where=where) from error
    return Plan(
        instant=instant,
        threshold=threshold,
        operations=tuple(_decode_operation(op, instant, where) for op in record.get("operations") or ()),
        strategy=extra.get(_STRATEGY) or (record.get("strategy") or {}).get("compactorClassName") or "",
        extra_metadata={k: v for k, v in extra.items() if k not in (_THRESHOLD, _STRATEGY)},
        left=tuple(record.get("missingSchedulePartitions") or ()),
    )


def archived_plan(instant: str, record: object, where: str) -> Plan:
    """A plan as a record of an archive, read by the schema that the archive states."""
    out = io.BytesIO()
    try:
        fastavro.writer(out, _SCHEMA, [record])
    except Exception as error:  # fastavro raises many kinds on values of other types
        raise CorruptTable(f"An archived compaction plan cannot be parsed: {error}.", where=where) from error
    return decode_plan(instant, out.getvalue(), where)


def _decode_operation(op: dict[str, Any], instant: str, where: str) -> Operation:
    partition = inside_table(op.get("partitionPath") or "", "compaction plan", where)
    folder = f"{partition}/" if partition else ""
    file_id = op.get("fileId") or ""

    def path(name: str, start: str) -> str:
        inside_folder(name, "compaction plan", where)
        # Links are made and deleted by these names: they have to be of the operation's file group.
        if not name.startswith(start) or not file_id:
            raise CorruptTable(f"The compaction plan names a file of no group of its own: {name!r:.200}.", where=where)
        return folder + name

    if op.get("bootstrapFilePath"):
        raise UnsupportedTable("The compaction plan names a bootstrap base file, which is not supported.", where=where)
    base, log = op.get("dataFilePath"), f".{file_id}_"
    return Operation(
        partition=partition,
        file_id=file_id,
        base_instant=op.get("baseInstantTime") or "",
        base_file=path(base, f"{file_id}_") if base else None,
        log_files=tuple(path(name, log) for name in op.get("deltaFilePaths") or ()),
        carried_over=tuple(
            CarryOver(
                path(c["symlink"], f"{log}{instant}.log."),
                path(c["target"], log),
                path(c["source"], log) if c.get("source") else None,
            )
            for c in op.get("symlinkOperations") or ()
        ),
        metrics=op.get("metrics") or {},
    )


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
