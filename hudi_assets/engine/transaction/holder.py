"""What a lock says of who holds it, for those who wait."""

from __future__ import annotations

import json


def parsed(content: bytes) -> dict[str, object]:
    """A holder's JSON; empty for anything else."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
