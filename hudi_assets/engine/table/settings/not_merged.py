"""What this project's merge does not know of a table, told from hoodie.properties, in words. Pure.

A look at a table needs its timeline, its files and their event times, and no merge. So such a table is opened like any
other. What merges log records (our compaction, our queries of log files) or writes them asks `TableConfig.merge_mode`,
the one place that refuses, and gives the reason from here. Hudi itself can compact most of these tables
(`hudi_assets.executor=hudi`); where its files are of another kind than a plan of ours describes, not even that.
`docs/reference/tables.md` lists what was tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.merging.gaps import Gaps

_BY_HUDI: Final = "state hudi_assets.executor=hudi and give its Spark bundle (--hudi-bundle, HUDI_BUNDLE)."
LET_HUDI: Final = f"It can be looked at and planned here, and compacted by Apache Hudi: {_BY_HUDI}"
# On version 6 Hudi's execution carries no log file over.
LET_HUDI_WHOLE: Final = (
    "It can be looked at and planned here. On version 6 its plans take whole file slices, and Apache Hudi executes "
    f"them: {_BY_HUDI}"
)
# Of a log file, where the table's properties tell nothing.
LET_HUDI_BY_VERSION: Final = (
    f"It can be looked at here. On versions 8 and 9 it can be planned here, and compacted by Apache Hudi: {_BY_HUDI} "
    "On version 6 let the engine that wrote it compact it."
)
LOOK_ALONE: Final = "It can be looked at here. Let the engine that wrote it compact it."
META_FIELDS: Final = "hoodie.populate.meta.fields"

# Each of these makes a file of the table something else than a plan and a merge of ours take it for.
_FILES: Final = {
    "hoodie.bootstrap.base.path": "The table is bootstrapped: base files may lack their data, which is elsewhere",
}
_FILES_BY_VALUE: Final = (
    (META_FIELDS, "true", "The table has no Hudi meta columns"),
    ("hoodie.datasource.write.drop.partition.columns", "false", "The partition columns are dropped"),
    ("hoodie.allow.operation.metadata.field", "false", "The table keeps _hoodie_operation"),
    ("hoodie.table.multiple.base.file.formats.enable", "false", "The table has base files of several formats"),
)
# Each of these changes which rows a merge leaves, in a way of its own.
_DELETES: Final = {
    "hoodie.payload.delete.field": "Deletes are told by a column of the payload's own",
    "hoodie.payload.delete.marker": "Deletes are told by a marker of the payload's own",
}
PARTIAL_UPDATE_MODE: Final = "hoodie.table.partial.update.mode"
_MERGER: Final = "hoodie.record.merge.property."
# What Hudi 1.x makes of those two in a new table of version 8 or 9, and of AWSDmsAvroPayload.
_MARKED: Final = tuple(f"{_MERGER}{key}" for key in _DELETES)
_UNAVAILABLE: Final = f"{_MERGER}hoodie.write.partial.update.unavailable.value"


@dataclass(frozen=True, slots=True)
class NotMerged:
    """Why this project does not merge a table's log records: a sentence, and what to do.

    `hudi_can`: Hudi's execution of our plans is left to do it. `whole`: of such plans alone that take whole slices.
    """

    what: str
    advice: str | None = None
    hudi_can: bool = True
    whole: bool = False

    @property
    def hint(self) -> str:
        """What the reader can do."""
        by_hudi = LET_HUDI_WHOLE if self.whole else LET_HUDI
        can = by_hudi if self.hudi_can else LOOK_ALONE
        return f"{self.advice} {can}" if self.advice else can


def files_of_another_kind(properties: Mapping[str, str]) -> NotMerged | None:
    """Why files of the table are not what a plan of ours would take them for; None where they are."""
    for key, words in _FILES.items():
        if properties.get(key):
            return NotMerged(f"{words} ({key}).", hudi_can=False)
    for key, usual, words in _FILES_BY_VALUE:
        if properties.get(key, usual).strip().lower() != usual:
            return NotMerged(f"{words} ({key}={properties[key]}).", hudi_can=False)
    return None


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """Writers of the table take a row whose `column` is `value` for a delete, and write it into a delete block.

    Nothing is to be known of it to merge: Hudi 1.2.0's readers and its compaction take such a row in a data block for
    a row (tried), unless a reader is given the same two options.
    """

    column: str
    value: str


def delete_marker(properties: Mapping[str, str]) -> DeleteMarker | None:
    """By what the table's writers tell deletes (`DeleteContext`); None where it states not both."""
    column, value = (properties.get(key) for key in _MARKED)
    return DeleteMarker(column, value) if column and value else None


def stated_gaps(properties: Mapping[str, str]) -> Gaps | None:
    """What the table's partial update mode takes for a gap; None where it states none that is merged here."""
    mode, marker = properties.get(PARTIAL_UPDATE_MODE), properties.get(_UNAVAILABLE)
    if mode == "IGNORE_DEFAULTS":
        return Gaps()
    return Gaps(marker) if mode == "FILL_UNAVAILABLE" and marker else None


def rules_of_another_kind(
    properties: Mapping[str, str], marker: DeleteMarker | None, gaps: Gaps | None
) -> NotMerged | None:
    """Why records are merged by more than the merge mode says; None where they are not.

    `marker`: the `delete_marker` that is told by writers alone, None where it is not known how readers take it. `gaps`:
    those of `stated_gaps`, None where it is not known.
    """
    if properties.get(PARTIAL_UPDATE_MODE) and gaps is None:
        return NotMerged(f"Log records are partial updates ({PARTIAL_UPDATE_MODE}={properties[PARTIAL_UPDATE_MODE]}).")
    for key, words in _DELETES.items():
        if properties.get(key):
            return NotMerged(f"{words} ({key}).")
    known = (*(_MARKED if marker else ()), *([_UNAVAILABLE] if gaps else ()))
    merger = [key for key in properties if key.startswith(_MERGER) and key not in known]
    if merger:
        return NotMerged(f"The record merger has properties of its own ({', '.join(sorted(merger))}).")
    return None
