"""Writing over what is there, and over nothing else: on a store a request may arrive when another has the lock."""

from __future__ import annotations

from hudi_assets.engine.errors import Conflict, LockLost
from hudi_assets.engine.storage.interface import Storage


def write_over(storage: Storage, path: str, data: bytes) -> None:
    """Write a file, over what a crash left under this name; `Conflict` where that is changed meanwhile.

    On a file system without the question: there nothing arrives late.
    """
    if not storage.capabilities.put_if_match:
        storage.replace(path, data)
        return
    try:
        storage.create(path, data)
    except LockLost:
        raise
    except Conflict:
        _, version = storage.read_with_version(path)
        storage.replace_if(path, data, version)


def read_to_change(storage: Storage, path: str) -> tuple[bytes, str]:
    """A file's bytes, and what `change` knows them again by; "" on a file system."""
    if storage.capabilities.put_if_match:
        return storage.read_with_version(path)
    return storage.read(path), ""


def change(storage: Storage, path: str, data: bytes, version: str) -> None:
    """Write a file over what `read_to_change` gave; `Conflict` where it is another by now."""
    if version:
        storage.replace_if(path, data, version)
    else:
        storage.replace(path, data)
