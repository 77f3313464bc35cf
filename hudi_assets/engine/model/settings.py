"""Values of settings, read from their text: one way for all keys, Hudi's and ours, and one error.

It says where the setting is, what it is, and what to give.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hudi_assets.engine.errors import InvalidInput

# What Java's parseInt takes. Nobody means a longer one, and Python refuses to read one of thousands of digits.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,30}")


def whole_number(
    properties: Mapping[str, str],
    key: str,
    default: int | None,
    *,
    where: str | None = None,
    least: int | None = None,
    most: int | None = None,
) -> int:
    """The number under a key, else the default. Raises `InvalidInput` for what is none from `least` to `most`.

    Where `default` is None, no value is refused too.
    """
    text = (properties.get(key) or ("" if default is None else str(default))).strip()
    value = int(text) if _WHOLE.fullmatch(text) else None
    if value is None or (least is not None and value < least) or (most is not None and value > most):
        asked = "Give a whole number."
        if least is not None:
            asked = f"Give a whole number, {least} or more." if most is None else f"Give one from {least} to {most}."
        raise InvalidInput(f"{key} is {text[:40]!r}.", where=where, hint=asked)
    return value


def choice(properties: Mapping[str, str], key: str, choices: Sequence[str], *, where: str | None = None) -> str | None:
    """The choice under a key, in whichever case it is written; None where there is none. Else `InvalidInput`."""
    text = (properties.get(key) or "").strip()
    found = next((one for one in choices if one.lower() == text.lower()), None)
    if text and found is None:
        raise InvalidInput(f"{key} is {text!r}.", where=where, hint=f"It may be: {', '.join(choices)}.")
    return found


def is_true(properties: Mapping[str, str], key: str) -> bool:
    """Whether a switch is on. As Java has it: anything but `true` is off."""
    return properties.get(key, "").strip().lower() == "true"


def listed(text: str | None) -> tuple[str, ...]:
    """The names of a list that commas part."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
