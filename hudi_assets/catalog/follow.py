"""Keeping what is published true: whoever has looked at a table says what the catalog should say, and it does.

A look costs two questions to the metastore, of milliseconds, and where something differs a publication. Nothing is
published a first time here: that is for `publish`, which a person or a run asks for.

The promise is the publisher's, who may have settings that the table does not state. So whoever cleans or rolls back
publishes by the settings that the table notes with the place, and not by his own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hudi_assets.catalog.places import Found, Note, Place, forget, note_only_view, notes_of
from hudi_assets.catalog.publication import VIEW_DIGEST, Current, what_differs
from hudi_assets.catalog.publishing import Form
from hudi_assets.catalog.same_table import is_same_folder
from hudi_assets.engine import (
    Conflict,
    EnvironmentProblem,
    HudiAssetsError,
    HudiTable,
    InvalidInput,
    OutdatedView,
    UnsupportedTable,
)


@dataclass(frozen=True)
class Followed:
    """What came of following a look.

    `stands`: the catalog says now what is true. `why`: what was not true, or why nothing could be done.
    `properties`: what was published for it; None where it was true already.
    """

    stands: bool
    why: str | None = None
    properties: Mapping[str, str] | None = None


def _ask(place: Place) -> Found | None:
    return place.found()


Cleaned = TypeVar("Cleaned")
# How often a clean is tried beside writers.
_CLEANS = 3
_APART = "what stands beside the read-optimized view is of another publication"
NOT_PUBLISHED = Followed(False, "the table is not published there yet")


def follow(
    seen: Current, table: HudiTable, place: Place, *, step_ms: int = 0, find: Callable[[Place], Found | None] = _ask
) -> Followed:
    """Publish at once where the published state differs from what `seen` says. Raises nothing of the catalog's.

    Of a freshness that has only moved on, less than `step_ms` is no difference. `find`: says what stands at the place,
    for those who ask for many.
    """
    try:
        found = None if place.was_never_used else find(place)
        if found is None or not is_same_folder(found.path, table.path):
            return NOT_PUBLISHED
        names_files = place.names.form is Form.VIEWS
        why = what_differs(found.properties, seen, files=names_files, step_ms=step_ms)
        why = why or (None if found.together else _APART)
        if why is not None:
            return Followed(True, why, place.publish(_read_as(table, found, None)))
        if names_files:
            for file in {place.note_file, place.earlier_note_file}:  # a publisher that died left more in a note
                note_only_view(table, file, seen.view_digest)
        return Followed(True)
    except HudiAssetsError as problem:
        return Followed(False, str(problem))


def before_clean(table: HudiTable) -> None:
    """Make every view true that names files of the table: a clean then deletes none that a view still names.

    `HudiTable.clean` refuses where a note says otherwise, under the table's lock. Only files matter here, so no event
    time is asked for. Raises `Conflict` where that cannot be done now.
    """
    for note in notes_of(table):
        names = note.place.names
        if names.form is not Form.VIEWS:
            continue  # its readers list the table's folders themselves
        try:
            found = _found(note, table)
            if found is None:
                _forget(table, note)
            elif found.properties.get(VIEW_DIGEST) != (digest := table.view_digest()):
                note.place.publish(_read_as(table, found, note.settings))
            else:
                note_only_view(table, note.file, digest)  # it may be an earlier day's note
        except (EnvironmentProblem, InvalidInput, UnsupportedTable) as problem:
            asked = isinstance(problem, EnvironmentProblem)
            raise Conflict(
                f"The view {names.database}.{names.ro} may name files that a clean would delete, and it "
                f"cannot be {'asked' if asked else 'published anew'}: {problem.what}",
                where=note.place.metastore,
                hint=f"{_way_out(problem, note)} Or clean with --unasked, whatever the catalog says.",
            ) from problem


def publish_and_clean(table: HudiTable, clean: Callable[[], Cleaned]) -> Cleaned:
    """`before_clean`, then the clean; both again where a commit that came in between made a view outdated."""
    for _ in range(_CLEANS - 1):
        before_clean(table)
        try:
            return clean()
        except OutdatedView:
            continue
    before_clean(table)
    try:
        return clean()
    except OutdatedView as outdated:
        raise OutdatedView(
            outdated.what,
            where=outdated.where,
            hint=f"It was published anew {_CLEANS} times, and each time writers made base files before the clean "
            "began, or that note could not be written. Clean again later.",
        ) from outdated


def after_change(table: HudiTable) -> list[str]:
    """Make every view true that a rollback or a restore took files from; what could not be made, in words."""
    try:
        problems = [_published_again(table, note) for note in list(notes_of(table))]
    except (HudiAssetsError, OSError) as problem:
        return [f"where the table is published cannot be read: {problem}"]
    return [problem for problem in problems if problem is not None]


def _published_again(table: HudiTable, note: Note) -> str | None:
    try:
        found = _found(note, table)
        if found is None:
            _forget(table, note)
        else:
            note.place.publish(_read_as(table, found, note.settings))
    except (HudiAssetsError, OSError) as problem:
        return f"{note.place.names.database}.{note.place.names.ro} is not published anew: {problem}"
    return None


def _forget(table: HudiTable, note: Note) -> None:
    """Nothing stands there. Where a first publication has come meanwhile, it is noted again, by publishing it anew."""
    forget(table, note)
    found = _found(note, table)
    if found is not None:
        note.place.publish(_read_as(table, found, note.settings))


def _found(note: Note, table: HudiTable) -> Found | None:
    """What stands there of this table; None where its metastore says for certain: nothing. Else it raises."""
    note.check_reachable(table)
    found = note.place.found()
    if found is None:
        return None
    same = is_same_folder(found.path, table.path)
    if same is None:
        raise EnvironmentProblem(
            f"It is the view of a table at {found.path}, and here is no such folder: that may be this table.",
            where=note.place.metastore,
            hint=f"Call again where the table has that path. If it is another table, delete {note.path(table)}.",
        )
    return found if same else None


def _read_as(table: HudiTable, found: Found, settings: Mapping[str, str] | None) -> HudiTable:
    """The table by its publisher's settings and by the path that is published; without settings by its reader's."""
    if found.path == table.path:
        return table if settings is None else table.read_by(settings)
    # A link or a mount leads to the same folder: that is no bucket, and takes no options.
    return HudiTable.open(found.path, settings=table.given_settings() if settings is None else settings)


def _way_out(problem: HudiAssetsError, note: Note) -> str:
    if isinstance(problem, EnvironmentProblem):
        return problem.hint or "Clean when the catalog answers."
    options = f"--metastore {note.place.metastore} " if "://" in note.place.metastore else ""
    return f"Publish it with the settings that it needs: hudi-assets publish {options}…"
