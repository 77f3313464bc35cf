"""What the matrix's tests share: the releases of Apache Hudi, each started when it is first asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.hudi_client import Hudi
from tests.interop.matrix.kinds import Kind, Shape
from tests.interop.matrix.stories import story
from tests.interop.matrix.subject import Subject
from tests.tables.local_session import LocalSession

Table = Callable[[Kind, Shape], Subject]
FIXTURES = {"0.15.0": "hudi_0_15", "1.2.0": "hudi_1_2"}


@pytest.fixture
def hudi(request: pytest.FixtureRequest) -> Callable[[str], Hudi]:
    def running(release: str) -> Hudi:
        started: Hudi = request.getfixturevalue(FIXTURES[release])
        return started

    return running


@pytest.fixture
def told(hudi: Callable[[str], Hudi], path: Path, session: LocalSession) -> Table:
    """Makes a table that Hudi wrote (`stories.tell`)."""
    return lambda kind, shape: story(kind, shape, hudi, path)


@pytest.fixture
def new(hudi: Callable[[str], Hudi], path: Path, session: LocalSession) -> Table:
    """Makes a subject without a table yet."""
    return lambda kind, shape: Subject(kind, shape, path, hudi)
