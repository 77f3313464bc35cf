"""JSON that this project keeps beside a table, with a checksum: what was damaged is forgotten, never believed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any


def seal(body: Mapping[str, Any]) -> bytes:
    """The body as JSON, and its CRC32 in front."""
    return seal_pieces((as_json(body),))


def seal_pieces(pieces: Iterable[str]) -> bytes:
    """The same of JSON that comes piece by piece: of a large body only the bytes are there at once."""
    encoded, checksum = [], 0
    for piece in pieces:
        encoded.append(piece.encode())
        checksum = zlib.crc32(encoded[-1], checksum)
    return b"".join((b"%08x " % checksum, *encoded))


def as_json(value: object) -> str:
    """As `seal` writes it."""
    return json.dumps(value, separators=(",", ":"))


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
