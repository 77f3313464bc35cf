"""What ends a command from outside, Ctrl-C and an output that takes no more: in words, and without a traceback."""

from __future__ import annotations

import os
import sys
from typing import Any

from typer.core import TyperGroup

from hudi_assets.engine import HudiAssetsError


class Interrupted(HudiAssetsError):
    """Somebody wanted no more of it: what was unfinished is as a process that dies leaves it."""


class Interruptible(TyperGroup):
    """Commands that Ctrl-C ends with an error in words, with --json too."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            if not _began_with_ctrl_c(error):
                raise
            path = next((text for text in sys.argv[2:] if not text.startswith("-")), None)
            raise Interrupted(
                "Interrupted before it was done.",
                where=path,
                hint="Nothing half done counts. `hudi-assets recover PATH` finishes or undoes what was begun; a "
                "compaction that is pending (`hudi-assets status PATH`) is executed by `hudi-assets compact PATH`.",
            ) from error


def _began_with_ctrl_c(error: BaseException) -> bool:
    """True also for an error that arose while one was handled: py4j cannot tell Java of it in the midst of a call."""
    found: list[BaseException] = []
    last: BaseException | None = error
    while last is not None and last not in found:
        found.append(last)
        last = last.__cause__ or last.__context__
    return any(isinstance(one, KeyboardInterrupt) for one in found)


def give_up_output() -> None:
    """Forget what the output did not take: Python would try again as it ends, and end with 120 and words of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
