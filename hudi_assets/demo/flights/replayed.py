"""The stream that a home directory replays: how long its windows are is kept there, beside the table.

So the UI, which loads the definitions anew, shows the partitions that the table was written with.
"""

from __future__ import annotations

import json

from hudi_assets.demo.flights.stream import FlightStream
from hudi_assets.home import home

WHOLE_YEAR = 368
"""The year, and the days in which its last updates arrive."""
_LONG_REPLAY = 60
_SHORT_WINDOW, _LONG_WINDOW = 3, 24


def window_hours(days: int) -> int:
    """Hours of a window for a replay of so many days: 3; of more than two months, a day."""
    return _SHORT_WINDOW if days <= _LONG_REPLAY else _LONG_WINDOW


def stored_window() -> int:
    """The window of this home's table; of a home without one, the short one."""
    try:
        hours = json.loads((home() / "flights.json").read_text())["window_hours"]
    except FileNotFoundError:
        return _SHORT_WINDOW
    return int(hours)


def store_window(hours: int) -> None:
    home().mkdir(parents=True, exist_ok=True)
    (home() / "flights.json").write_text(json.dumps({"window_hours": hours}) + "\n")


def replayed_flights() -> FlightStream:
    """The whole stream in this home's windows: the source of the table `flights`."""
    return FlightStream(days=WHOLE_YEAR, batch_hours=stored_window())
