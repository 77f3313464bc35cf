"""JSON that this project keeps beside a table, with a checksum: what was damaged is forgotten, never believed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any


def seal(body: Mapping[str, Any]) -> bytes:
    """The body as JSON, and its CRC32 in front."""
    text = json.dumps(body, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}".encode()


def unseal(data: bytes) -> dict[str, Any]:
    """What was sealed; ValueError for anything else."""
    body: dict[str, Any] = json.loads(sealed_text(data))
    return body


def sealed_text(data: bytes) -> bytes:
    """The JSON of what was sealed; ValueError for anything else."""
    checksum, _, text = data.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise ValueError("the checksum does not match")
    return text
