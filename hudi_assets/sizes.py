"""Sizes in words."""

from __future__ import annotations


def size_of(count: int) -> str:
    """`12 B`, `1.5 MiB`."""
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024 or unit == "GiB":
            break
    return f"{size:.1f} {unit}"
