"""`hudi_assets.written.again`: the owner's word that rows which were in no view are in later commits once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.settings import listed
from hudi_assets.engine.timeline.instants import is_instant

WRITTEN_AGAIN: Final = "hudi_assets.written.again"


def written_again(properties: Mapping[str, str], where: str) -> frozenset[str]:
    """The instants of the delta commits that are named. Raises `InvalidInput` for what is no instant."""
    stated = listed(properties.get(WRITTEN_AGAIN))
    for instant in stated:
        if not is_instant(instant):
            hint = "Give the instants of delta commits, with commas between."
            raise InvalidInput(f"{WRITTEN_AGAIN} has {instant!r}, which is no instant.", where=where, hint=hint)
    return frozenset(stated)
