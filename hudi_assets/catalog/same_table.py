"""Whether two locations are one table's. A catalog's entries are compared by their words, notes by what is there."""

from __future__ import annotations

import os
import re

from hudi_assets.engine import as_s3

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_same_location(one: str, other: str) -> bool:
    """Are these the same folder? A location may have `file:` before it, a slash after it, or links in it.

    A bucket's is the same by `s3://` and by `s3a://`, as Hadoop names it.

    Also of folders that are not there: what somebody else's entry names is never taken for ours.
    """
    return _folder(one) == _folder(other)


def is_same_folder(published: str, path: str) -> bool | None:
    """Whether two paths lead to the same folder here: a link and a mount are other words for one.

    None where the published one is not here: another machine may have the table there. A bucket is the same everywhere.
    """
    if published == path:
        return True
    if as_s3(published) or as_s3(path):
        return _folder(published) == _folder(path)
    try:
        return os.path.samefile(published, path)
    except OSError:
        return None


def _folder(location: str) -> str:
    """As Hadoop writes a path: nothing in it is escaped. Another scheme than `file` stays, so it is never local."""
    if bucket := as_s3(location):
        return bucket.rstrip("/")
    if _SCHEME.match(location) and not location.startswith("file:"):
        return location
    return os.path.realpath("/" + location.removeprefix("file:").lstrip("/"))
