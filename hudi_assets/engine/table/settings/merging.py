"""What hoodie.properties says about merging, checked: merge mode, ordering field, who runs table services. Pure.

What our merge does not know is said in `MergeSettings.not_merged`: such a table can be looked at (`not_merged`).

On version 6 the payload class and `hoodie.table.precombine.field` decide (tried: Hudi 0.15.0 looks at nothing else;
1.2.0 fails where `hoodie.record.merge.mode` contradicts the payload class). See `docs/explanation/merge.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.model.settings import is_true, listed
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.settings.not_merged import (
    PARTIAL_UPDATE_MODE,
    DeleteMarker,
    NotMerged,
    delete_marker,
    files_of_another_kind,
    rules_of_another_kind,
    stated_gaps,
)

PAYLOAD_CLASS: Final = "hoodie.compaction.payload.class"
ORDERING_FIELD: Final = "hoodie.table.precombine.field"
ORDERING_FIELDS: Final = "hoodie.table.ordering.fields"
MERGE_MODE: Final = "hoodie.record.merge.mode"
MERGER_STRATEGY: Final = "hoodie.compaction.record.merger.strategy"
MERGE_STRATEGY_ID: Final = "hoodie.record.merge.strategy.id"
TABLE_SERVICES: Final = "hudi_assets.table.services"
EXACT_SPLIT: Final = "hudi_assets.exact.split"
MERGE_RULES: Final = "hudi_assets.merge.rules"
RULES_0_X: Final = "0.x"
RULES_1_X: Final = "1.x"

_MODEL: Final = "org.apache.hudi.common.model."
DEFAULT_PAYLOAD: Final = f"{_MODEL}DefaultHoodieRecordPayload"
OVERWRITE_PAYLOAD: Final = f"{_MODEL}OverwriteWithLatestAvroPayload"
EVENT_TIME_PAYLOADS: Final = frozenset({DEFAULT_PAYLOAD, f"{_MODEL}EventTimeAvroPayload"})
# HoodieRecordMerger's: event time, commit time, and "as the payload class says".
EVENT_TIME_MERGER_ID: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_MERGER_ID: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
_PAYLOAD_MERGER_ID: Final = "00000000-0000-0000-0000-000000000000"
_MERGER_IDS: Final = (EVENT_TIME_MERGER_ID, COMMIT_TIME_MERGER_ID, _PAYLOAD_MERGER_ID)
_STATED_MODES: Final = (MergeMode.EVENT_TIME_ORDERING.value, MergeMode.COMMIT_TIME_ORDERING.value)
# What versions 8 and 9 may state beside a mode, where they do.
_AGREEING: Final = {
    MergeMode.EVENT_TIME_ORDERING: (EVENT_TIME_PAYLOADS, EVENT_TIME_MERGER_ID),
    MergeMode.COMMIT_TIME_ORDERING: (frozenset({OVERWRITE_PAYLOAD}), COMMIT_TIME_MERGER_ID),
}
_CHOICES: Final = {
    TABLE_SERVICES: ("shared", "ours"),
    EXACT_SPLIT: ("true", "false"),
    MERGE_RULES: (RULES_0_X, RULES_1_X),
}
# Of a version 6 table: what Hudi 1.x writes into hoodie.properties when it creates one and 0.x does not; and we.
_WRITTEN_BY_1_X: Final = (
    ORDERING_FIELDS,
    MERGE_MODE,
    MERGE_STRATEGY_ID,
    "hoodie.table.initial.version",
    "hoodie.timeline.path",
)
_WRITTEN_HERE: Final = "hudi_assets.clock"


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """`ordering_fields` are empty where the mode asks for none. `ours`: Hudi's table services never touch it.

    `not_merged` says why this project does not merge the table's log records, and is None where it does. `mode` is how
    its records are ordered, None where that is not known. `null_may_keep`: a null in a row may leave the value that the
    key's row has, by the table's rules or by a class that is not known here. `gaps`: what is one in the table's rows,
    None where they have none.
    """

    payload_class: str
    mode: MergeMode | None
    ordering_fields: tuple[str, ...]
    ours: bool
    exact_split: bool
    not_merged: NotMerged | None = None
    null_may_keep: bool = False
    delete_marker: DeleteMarker | None = None
    gaps: Gaps | None = None


def parse_merge_settings(properties: Mapping[str, str], layout: Layout, where: str) -> MergeSettings:
    """The merge settings; `InvalidInput`, naming key and value, for a setting of ours that is wrong.

    What is not merged here is no error: it can be looked at.
    """
    for key, choices in _CHOICES.items():
        if key in properties and properties[key].strip().lower() not in choices:
            raise InvalidInput(f"{key} is {properties[key]!r}.", where=where, hint=f"It may be: {', '.join(choices)}.")
    payload = properties.get(PAYLOAD_CLASS, "")
    mode, ordering, problem = _mode_and_ordering(properties, payload, layout, where)
    problem = files_of_another_kind(properties) or problem
    return MergeSettings(
        payload_class=payload,
        mode=mode,
        ordering_fields=ordering,
        ours=properties.get(TABLE_SERVICES, "shared").strip().lower() == "ours",
        exact_split=is_true(properties, EXACT_SPLIT),
        not_merged=problem and replace(problem, whole=not layout.hudi_executes_plans),
        null_may_keep=_null_may_keep(properties, payload),
        delete_marker=_delete_marker(properties, layout),
        gaps=_gaps(properties, layout),
    )


def _gaps(properties: Mapping[str, str], layout: Layout) -> Gaps | None:
    # On version 8 a payload class decides, and the mode beside it is not looked at by each of Hudi's readers.
    return None if layout.states_payload_class else stated_gaps(properties)


def _delete_marker(properties: Mapping[str, str], layout: Layout) -> DeleteMarker | None:
    # Of version 6 Hudi 0.x is a reader too, which has not been asked.
    return delete_marker(properties) if layout.states_merge_mode else None


def _null_may_keep(properties: Mapping[str, str], payload: str) -> bool:
    mergers = [properties.get(key, EVENT_TIME_MERGER_ID) for key in (MERGER_STRATEGY, MERGE_STRATEGY_ID)]
    return (
        bool(properties.get(PARTIAL_UPDATE_MODE))
        or payload not in ("", *EVENT_TIME_PAYLOADS, OVERWRITE_PAYLOAD)
        or not set(mergers).issubset(_MERGER_IDS)
        or properties.get(MERGE_MODE, "").strip().upper() == "CUSTOM"
    )


def _mode_and_ordering(
    properties: Mapping[str, str], payload: str, layout: Layout, where: str
) -> tuple[MergeMode | None, tuple[str, ...], NotMerged | None]:
    """Mode and ordering fields, and what our merge does not do of the table's rules."""
    gaps = _gaps(properties, layout)
    other = rules_of_another_kind(properties, _delete_marker(properties, layout), gaps)
    try:
        _refuse_other_mergers(properties)
        mode = _mode(properties, payload, layout, where)
        ordering = _ordering_fields_of(properties, mode)
    except UnsupportedTable as unknown:
        hudi_can = not isinstance(unknown, _ContradictionError)
        problem = NotMerged(unknown.what, unknown.hint, hudi_can=hudi_can)
        return None, _ordering_fields(properties), other or problem
    if other is not None:
        return None, ordering, other
    if len(ordering) > 1 and not layout.states_merge_mode:
        # Hudi 0.x, which reads version 6 too, sees none of them.
        return mode, ordering, NotMerged(f"The table has several ordering fields ({', '.join(ordering)}).")
    if len(ordering) > 1 and gaps is not None:
        what = f"The table has several ordering fields ({', '.join(ordering)}) and a partial update mode."
        return mode, ordering, NotMerged(what)
    return mode, ordering, None


def evident_rules(properties: Mapping[str, str], layout: Layout) -> dict[str, str]:
    """MERGE_RULES as the table's own properties suggest them, where rules differ; empty where they do not.

    Hudi 0.x merges by its rules what a table of version 6 holds, 1.x by its own. Nothing tells who reads a table;
    who created it can be told.
    """
    by_1_x = any(properties.get(key) for key in (*_WRITTEN_BY_1_X, _WRITTEN_HERE))
    differ = properties.get(PAYLOAD_CLASS) in EVENT_TIME_PAYLOADS and not layout.states_merge_mode
    if not differ or not (by_1_x or properties.get(ORDERING_FIELD)):
        return {}
    return {MERGE_RULES: RULES_1_X if by_1_x else RULES_0_X}


def _refuse_other_mergers(properties: Mapping[str, str]) -> None:
    for key in (MERGER_STRATEGY, MERGE_STRATEGY_ID):
        if properties.get(key, EVENT_TIME_MERGER_ID) not in _MERGER_IDS:
            raise UnsupportedTable(f"The table's record merger is {properties[key]} ({key}).")


class _ContradictionError(UnsupportedTable):
    """The properties say two things about merging: Hudi 1.x refuses such a table too."""


def _mode(properties: Mapping[str, str], payload: str, layout: Layout, where: str) -> MergeMode:
    rules = properties.get(MERGE_RULES, "").strip().lower()
    if layout.states_merge_mode:
        if rules == RULES_0_X:
            raise InvalidInput(
                f"{MERGE_RULES} is {rules}, and the table's version is {layout.version}.",
                where=where,
                hint="Hudi 0.x reads version 6 alone: leave it out.",
            )
        return _stated_mode(properties, payload, where)
    stated = properties.get(MERGE_MODE, "").strip().upper()
    by_commit_time = COMMIT_TIME_MERGER_ID in (properties.get(MERGER_STRATEGY), properties.get(MERGE_STRATEGY_ID))
    if payload in EVENT_TIME_PAYLOADS:
        if stated in ("", MergeMode.EVENT_TIME_ORDERING) and not by_commit_time:
            return _event_time_ordering(properties, rules, where)
    elif payload != OVERWRITE_PAYLOAD:
        raise UnsupportedTable(
            f"The table merges records by {payload or 'an unstated payload class'}.",
            where=where,
            hint="Merged here: DefaultHoodieRecordPayload, EventTimeAvroPayload, OverwriteWithLatestAvroPayload.",
        )
    elif stated in ("", MergeMode.COMMIT_TIME_ORDERING):
        # Hudi 0.x looks at the field alone, 1.x takes the class for commit-time ordering.
        stated_so = rules == RULES_1_X or (rules != RULES_0_X and (stated or by_commit_time))
        if stated_so or not properties.get(ORDERING_FIELD):
            return MergeMode.COMMIT_TIME_ORDERING
        return MergeMode.OVERWRITE_WITH_LATEST
    raise _ContradictionError(
        f"The merge mode {stated or 'of the record merger'} contradicts the payload class {payload}.",
        where=where,
        hint="Hudi 0.15 goes by the payload class, 1.2 refuses such a table: let the properties agree.",
    )


def _event_time_ordering(properties: Mapping[str, str], rules: str, where: str) -> MergeMode:
    if rules != RULES_0_X:
        return MergeMode.EVENT_TIME_ORDERING
    if not properties.get(ORDERING_FIELD):
        raise UnsupportedTable(
            f"{MERGE_RULES} is {rules}, and the table has no {ORDERING_FIELD}, the only one that Hudi 0.x looks at.",
            where=where,
            hint=f"State {MERGE_RULES}={RULES_1_X}: Hudi 0.x reads this table by no ordering value.",
        )
    return MergeMode.EVENT_TIME_ORDERING_0X


def _stated_mode(properties: Mapping[str, str], payload: str, where: str) -> MergeMode:
    """The mode of versions 8 and 9; a payload class beside it has to be one that merges no other way."""
    stated = properties.get(MERGE_MODE, "").strip().upper()
    if payload and payload not in (*EVENT_TIME_PAYLOADS, OVERWRITE_PAYLOAD):
        raise UnsupportedTable(
            f"The table merges records by {payload}.",
            where=where,
            hint="Merged here: DefaultHoodieRecordPayload, EventTimeAvroPayload, OverwriteWithLatestAvroPayload.",
        )
    if stated not in _STATED_MODES:
        raise UnsupportedTable(
            f"The table's merge mode is {stated or 'not stated'} ({MERGE_MODE}).",
            where=where,
            hint=f"Merged here: {', '.join(_STATED_MODES)}.",
        )
    mode = MergeMode(stated)
    payloads, strategy = _AGREEING[mode]
    for key, said, agreeing in (
        (PAYLOAD_CLASS, payload, payloads),
        (MERGE_STRATEGY_ID, properties.get(MERGE_STRATEGY_ID, ""), {strategy}),
    ):
        if said and said not in agreeing:
            raise _ContradictionError(
                f"The merge mode {stated} contradicts {key}={said}.",
                where=where,
                hint="Hudi infers one from the other: let the properties agree.",
            )
    return mode


def _ordering_fields(properties: Mapping[str, str]) -> tuple[str, ...]:
    # Hudi 1.x writes the second key, into tables of version 6 too.
    return listed(properties.get(ORDERING_FIELD) or properties.get(ORDERING_FIELDS) or "")


def _ordering_fields_of(properties: Mapping[str, str], mode: MergeMode) -> tuple[str, ...]:
    """The ordering fields; none where the mode asks for none."""
    if mode is MergeMode.COMMIT_TIME_ORDERING:
        return ()
    if not (fields := _ordering_fields(properties)):
        raise UnsupportedTable(f"The table has no {ORDERING_FIELD}, and {mode} needs one.")
    return fields


def new_merge_properties(mode: MergeMode, ordering_field: str | None, layout: Layout) -> dict[str, str]:
    """What a new table's properties say about merging; every release reads the same mode from it.

    `InvalidInput` where mode and ordering field do not go together, or the version has no such mode.
    """
    stated = layout.states_merge_mode
    if stated and mode in (MergeMode.OVERWRITE_WITH_LATEST, MergeMode.EVENT_TIME_ORDERING_0X):
        raise InvalidInput(
            f"A table of version {layout.version} has no merge mode {mode}.",
            hint=f"It may be: {', '.join(_STATED_MODES)}. Version 6 has it.",
        )
    if mode is MergeMode.COMMIT_TIME_ORDERING:
        if ordering_field:
            raise InvalidInput(
                f"A table with {mode} takes no ordering field (got {ordering_field!r}).",
                hint="With one, Hudi 0.15 would order log records by it. Give event_time_field for event times.",
            )
        payloads = {PAYLOAD_CLASS: OVERWRITE_PAYLOAD} if layout.states_payload_class else {}
        merger = {} if stated else {MERGER_STRATEGY: COMMIT_TIME_MERGER_ID}
        return {**payloads, **merger, MERGE_MODE: mode.value, MERGE_STRATEGY_ID: COMMIT_TIME_MERGER_ID}
    if not ordering_field:
        raise InvalidInput(f"A table with {mode} needs an ordering field.")
    if len(listed(ordering_field)) > 1:
        raise InvalidInput(
            f"A new table takes one ordering field (got {ordering_field!r}).",
            hint="Tables with several are read and compacted here, and written by Hudi.",
        )
    if stated:
        payloads = {PAYLOAD_CLASS: DEFAULT_PAYLOAD} if layout.states_payload_class else {}
        ordering = {ORDERING_FIELDS: ordering_field, MERGE_STRATEGY_ID: EVENT_TIME_MERGER_ID}
        return {**payloads, **ordering, MERGE_MODE: mode.value}
    payload = OVERWRITE_PAYLOAD if mode is MergeMode.OVERWRITE_WITH_LATEST else DEFAULT_PAYLOAD
    rules = {MERGE_RULES: RULES_0_X} if mode is MergeMode.EVENT_TIME_ORDERING_0X else {}
    return {PAYLOAD_CLASS: payload, ORDERING_FIELD: ordering_field, MERGER_STRATEGY: EVENT_TIME_MERGER_ID, **rules}
