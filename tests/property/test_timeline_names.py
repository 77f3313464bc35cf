"""Names of timeline files, of all versions: what is written is read back, and no name that is found is too strange."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hudi_assets.engine.model import Action, State
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.layout.v8 import LayoutV8

LAYOUTS: list[Layout] = [LayoutV6(), LayoutV8(8), LayoutV8(9)]
INSTANTS = st.one_of(*(st.integers(0, 10**n - 1).map(lambda i, n=n: str(i).zfill(n)) for n in (14, 17)))  # type: ignore[misc]
COMPLETES_AS = {Action.COMPACTION: Action.COMMIT}
COMPLETES_AS_IN_V8 = {Action.LOG_COMPACTION: Action.DELTA_COMMIT, Action.CLUSTERING: Action.REPLACE_COMMIT}
PIECES = st.lists(
    st.one_of(
        st.sampled_from([*Action, *State, ".", "_", "..", "", "/", "crc", "20260101000000000", "2026010100000000"]),
        st.text(max_size=3),
    ),
    max_size=7,
).map("".join)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: str(one.version))
@given(instant=INSTANTS, completion=INSTANTS, action=st.sampled_from(Action), state=st.sampled_from(State))
def test_read_back(layout: Layout, instant: str, completion: str, action: Action, state: State) -> None:
    # Version 6 names a clustering as the replacecommit that it becomes.
    assume(layout.names_completion_times or action is not Action.CLUSTERING)
    completion_given = completion if state is State.COMPLETED and layout.names_completion_times else None
    path = layout.instant_path(instant, action, state, completion_given)
    folder, _, name = path.rpartition("/")
    assert folder == layout.timeline_folder
    found = layout.parse_instant(name)
    assert found is not None, name
    assert (found.timestamp, found.state, found.completion) == (instant, state, completion_given)
    ends_as = COMPLETES_AS | (COMPLETES_AS_IN_V8 if layout.names_completion_times else {})
    assert found.action == (ends_as.get(action, action) if state is State.COMPLETED else action)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: str(one.version))
@given(name=PIECES)
def test_any_name(layout: Layout, name: str) -> None:
    """It is an instant whose own file has this name, or none."""
    found = layout.parse_instant(name)
    if found is not None:
        again = layout.instant_path(found.timestamp, found.action, found.state, found.completion)
        assert again == f"{layout.timeline_folder}/{name}"
