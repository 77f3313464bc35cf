"""Does a store of objects keep to a write's condition? Those that do not answer all the same, and overwrite."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.storage.interface import LOCKS
from hudi_assets.engine.storage.object_errors import said_by_store
from hudi_assets.engine.storage.remote import Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable

    from obstore import PutMode
    from obstore.store import ObjectStore

FOLDER: Final = f"{LOCKS}/hudi_assets_probes"


def check_conditions(store: ObjectStore, key_of: Callable[[str], str], where: str) -> None:
    """Write a file, and try what has to be refused then; `UnsupportedTable`, by name, where it is done instead.

    Every change relies on it: the lock, the timeline, and the names of data files.
    """
    key, staged = (key_of(f"{FOLDER}/{uuid.uuid4().hex}") for _ in range(2))
    try:
        made = _put(store, key, b"1", "create", where)
        with said_by_store(where):
            obstore.put(store, staged, b"2", use_multipart=False)
        _refused("If-None-Match", where, lambda: obstore.put(store, key, b"3", mode="create", use_multipart=False))
        _refused("If-None-Match of a copy", where, lambda: obstore.copy(store, staged, key, overwrite=False))
        now = _put(store, key, b"4", {"e_tag": made}, where)
        if made is None or now == made:
            raise _ignores("ETags that tell contents apart", where)
        _refused("If-Match", where, lambda: obstore.put(store, key, b"5", mode={"e_tag": made}, use_multipart=False))
    except Unanswered as error:
        if "501" not in str(error):
            raise
        raise _ignores("conditions on a write (501)", where) from None
    finally:
        with suppress(BaseError, OSError):
            obstore.delete(store, [key, staged])


def _put(store: ObjectStore, key: str, data: bytes, mode: PutMode, where: str) -> str | None:
    """The version. The name is this call's own: where the library's second try is refused, the first one was done."""
    with said_by_store(where):
        try:
            return obstore.put(store, key, data, mode=mode, use_multipart=False)["e_tag"]
        except (AlreadyExistsError, PreconditionError):
            there = obstore.get(store, key)
            if bytes(there.bytes()) != data:
                raise
            return there.meta["e_tag"]


def _refused(condition: str, where: str, ask: Callable[[], object]) -> None:
    try:
        with said_by_store(where, passed=(AlreadyExistsError, PreconditionError)):
            ask()
    except (AlreadyExistsError, PreconditionError):
        return
    raise _ignores(condition, where)


def _ignores(what: str, where: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"The store does not keep to {what}: of two writers both would win.",
        where=where,
        hint="Nothing was changed. Write to a store that does (Amazon's S3, MinIO, Ceph from 2024 on), or update this "
        "one. The table can be looked at here.",
    )
