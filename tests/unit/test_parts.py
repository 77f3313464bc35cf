"""Keys are dealt into parts: each to one, the same in every block, and to none much more than to others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hudi_assets.engine.merging.merge import KEY, Rows, head_of
from hudi_assets.engine.merging.passes import _of_part


@pytest.mark.parametrize("parts", [1, 2, 16])
def test_each_key_is_of_one_part(parts: int) -> None:
    keys = [f"k{n}" for n in range(3_200)]
    dealt = []
    for block, order in enumerate((keys, keys[::-1])):
        head = head_of(Rows(pa.table({KEY: order, "ts": range(len(order))})), block, ("ts",))
        flags = [_of_part(head, part, parts) for part in range(parts)]
        assert (np.sum([flag.astype(int) for flag in flags], axis=0) == 1).all()
        assert max(flag.sum() for flag in flags) < 1.5 * len(keys) / parts
        dealt.append({key: part for part, flag in enumerate(flags) for key in head.filter(flag).keys.to_pylist()})
    assert dealt[0] == dealt[1]
