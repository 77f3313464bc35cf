"""How long the writer writes: MINUTES (1 in CI, 10 by `make test-live`)."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def seconds() -> float:
    return float(os.environ.get("MINUTES", "1")) * 60
