"""Which tables' rows are surely in the partition that their columns name: by index, and by key generator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_assets.engine.table.index import leaves_no_row_behind
from hudi_assets.engine.table.settings.key_generators import CLASS, COMPLEX, SIMPLE, stated_generator

BUCKET = ("p=a", "00000001-8f1d-4a52-9d51-0d1c8b3f6a11-0")
OTHER = ("p=a", "f3b1c2d4-8f1d-4a52-9d51-0d1c8b3f6a11-0")


def state(index: str | None, now: list[tuple[str, str]], replaced: list[tuple[str, str]]) -> Any:
    """What the rule asks of a table's state: the stated index, the file groups, and those that were replaced."""
    return SimpleNamespace(
        config=SimpleNamespace(index=SimpleNamespace(type=index)),
        parts={"p=a": _Part(now)},
        view_with_replaced=SimpleNamespace(groups=dict.fromkeys([*now, *replaced])),
    )


class _Part:
    """A partition with these file groups."""

    def __init__(self, groups: list[tuple[str, str]]) -> None:
        self.counts = SimpleNamespace(file_groups=len(groups))
        self.file_ids = [file_id for _, file_id in groups]

    def tell(self, question: Any, make: Any) -> Any:
        del question
        return make()


@pytest.mark.parametrize(
    ("index", "now", "replaced", "sure"),
    [
        ("BUCKET", [BUCKET], [], True),
        ("BUCKET", [BUCKET], [OTHER], False),  # time travel shows what another index wrote
        (None, [BUCKET, OTHER], [], False),
        ("SIMPLE", [OTHER], [OTHER], True),
        ("GLOBAL_SIMPLE", [BUCKET], [], False),
    ],
)
def test_by_index(index: str | None, now: list[tuple[str, str]], replaced: list[tuple[str, str]], sure: bool) -> None:
    assert leaves_no_row_behind(state(index, now, replaced)) is sure


@pytest.mark.parametrize("kind", [SIMPLE, COMPLEX])
def test_generators_over_avro_records_join_values_too(kind: str) -> None:
    assert stated_generator({CLASS: kind.replace("KeyGenerator", "AvroKeyGenerator")}) == kind
    other = "org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator"
    assert stated_generator({CLASS: other}) == other
