"""Keeping what is published true: whoever has looked at a table says what the catalog should say, and it does.

A look costs one question to the metastore, of milliseconds, and where something differs a publication. Nothing is
published a first time here: that is for `publish`, which a person or a run asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_assets.catalog.places import Place, forget, noted_places
from hudi_assets.catalog.publication import PATH, what_differs
from hudi_assets.catalog.publishing import Form, published
from hudi_assets.engine import Conflict, EnvironmentProblem, HudiAssetsError, HudiTable, Look


@dataclass(frozen=True)
class Followed:
    """What came of following a look.

    `stands`: the catalog says now what is true. `why`: what was not true, or why nothing could be done.
    `properties`: what was published for it; None where it was true already.
    """

    stands: bool
    why: str | None = None
    properties: Mapping[str, str] | None = None


NOT_PUBLISHED = Followed(False, "the table is not published there yet")


def follow(seen: Look, table: HudiTable, place: Place, *, step_ms: int = 0) -> Followed:
    """Publish at once where the published state differs from what `seen` says. Raises nothing of the catalog's.

    Of a freshness that has only moved on, less than `step_ms` is no difference.
    """
    try:
        return _follow(seen, table, place, step_ms)
    except HudiAssetsError as problem:
        return Followed(False, str(problem))


def before_clean(table: HudiTable) -> None:
    """Make every view true that names files of the table: a clean then deletes none that a view still names.

    Raises `Conflict` where that cannot be done now.
    """
    for place in noted_places(table):
        if place.names.form is not Form.VIEWS:
            continue  # its readers list the table's folders themselves
        try:
            followed = NOT_PUBLISHED if place.was_never_used else _follow(table.look(), table, place, 0)
        except EnvironmentProblem as problem:
            raise Conflict(
                f"The view {place.names.database}.{place.names.ro} may name files that a clean would delete, and it "
                f"cannot be asked: {problem.what}",
                where=place.metastore,
                hint="Clean when the catalog answers, or with --unasked whatever it says.",
            ) from problem
        if followed == NOT_PUBLISHED:
            forget(table, place)


def after_change(table: HudiTable) -> list[str]:
    """Make every view true that a rollback or a restore took files from; what could not be made, in words."""
    problems = []
    for place in noted_places(table):
        followed = NOT_PUBLISHED if place.was_never_used else follow(table.look(), table, place)
        if followed == NOT_PUBLISHED:
            forget(table, place)
        elif not followed.stands:
            problems.append(f"{place.names.database}.{place.names.ro} is not published anew: {followed.why}")
    return problems


def _follow(seen: Look, table: HudiTable, place: Place, step_ms: int) -> Followed:
    if place.was_never_used:
        return NOT_PUBLISHED
    found = published(place.address(), place.names)
    if found is None or found[PATH] != table.path:
        return NOT_PUBLISHED
    why = what_differs(found, seen, files=place.names.form is Form.VIEWS, step_ms=step_ms)
    return Followed(True) if why is None else Followed(True, why, place.publish(table))
