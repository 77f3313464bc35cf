"""Options that several commands share, as one parameter of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command that has the options of its parameters' dataclasses: each of their fields is an option of its own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    found = []
    for one in signature(command).parameters.values():
        if one.name not in groups:
            found.append(one.replace(annotation=hints[one.name], kind=Parameter.KEYWORD_ONLY))
            continue
        kinds = get_type_hints(groups[one.name], include_extras=True)
        found += [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name])
            for field in fields(groups[one.name])
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__annotations__ = {one.name: one.annotation for one in found}
    run.__signature__ = Signature(found)  # type: ignore[attr-defined]
    return run
