"""Each configuration of the zoo lives its life, and what is seen is what the page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.hudi_client import Hudi
from tests.interop.zoo.configuration import Configuration
from tests.interop.zoo.life import Life
from tests.interop.zoo.seen import MAKE, everything, kept, note
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
FIXTURES = {"0.15.0": "hudi_0_15", "1.2.0": "hudi_1_2"}


def of(configuration: Configuration) -> Any:
    return pytest.param(configuration, id=configuration.id, marks=() if configuration.quick else pytest.mark.slow)


@pytest.mark.parametrize("configuration", [of(one) for one in everything()])
def test_zoo(configuration: Configuration, path: Path, session: LocalSession, request: pytest.FixtureRequest) -> None:
    hudi: Hudi = request.getfixturevalue(FIXTURES[configuration.release])
    record = Life(configuration, hudi, path, session).run().record(configuration)
    note(configuration, record)
    assert record == kept().get(configuration.id), f"The page says something else. If this is right: {MAKE}"
