"""A time zone whose clock is changed at a moment of our choice, for Java, for the C library and for Python.

Java takes its zones from `lib/tzdb.dat` of its home, the C library from the folder that the variable TZDIR names,
Python's `zoneinfo` from PYTHONTZPATH. So Apache Hudi and this project live through a change of daylight saving time
by the machine's true clock. libfaketime, which would change the clock itself, stalls the JVM.
"""

from __future__ import annotations

import os
import shutil
import struct
import time
import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_assets.engine.timeline import zone as engine_zone

NAME = "America/Los_Angeles"
STANDARD_S = -8 * 3600
# What the JVM finds by its own real path; all else of a Java's home may be links.
_OWN_FILES = ("bin/java", "lib/libjli.so", "lib/server/libjvm.so")


@dataclass(frozen=True, slots=True)
class ChangedZone:
    """`NAME`, but with a single change: at `at` (epoch s) its clock is put forward by `by` seconds (back: below 0)."""

    folder: Path
    at: int
    by: int

    @property
    def before(self) -> int:
        """Its offset before the change, seconds: in autumn it is the summer's that is ahead."""
        return STANDARD_S if self.by > 0 else STANDARD_S - self.by

    @property
    def after(self) -> int:
        return self.before + self.by

    @property
    def java_home(self) -> Path:
        return self.folder / "java"

    @property
    def zones(self) -> Path:
        return self.folder / "zoneinfo"

    def environment(self, zone: str = NAME) -> dict[str, str]:
        """The variables of a process in a zone."""
        return {
            "TZ": zone,
            "TZDIR": str(self.zones),
            "PYTHONTZPATH": str(self.zones),
            "JAVA_HOME": str(self.java_home),
        }

    def made(self) -> ChangedZone:
        """Write what Java, the C library and Python read."""
        _make_java_home(self)
        for name, content in ((NAME, _tzif(self)), ("UTC", _TZIF_UTC)):
            file = self.zones / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return self


# -- Python and the C library ---------------------------------------------------------------------


def _tzif(zone: ChangedZone) -> bytes:
    """A file of the zone, version 2 (RFC 8536): from 1970 on as before the change, and nothing after it."""
    types = struct.pack(">iBBiBB", zone.before, zone.before != STANDARD_S, 0, zone.after, zone.after != STANDARD_S, 4)
    names = b"PDT\0PST\0" if zone.by < 0 else b"PST\0PDT\0"
    header = b"TZif2" + bytes(15)
    old = header + struct.pack(">6I", 0, 0, 0, 0, 1, 4) + struct.pack(">iBB", zone.after, 0, 0) + names[4:]
    new = (
        header + struct.pack(">6I", 0, 0, 0, 2, 2, len(names)) + struct.pack(">qqBB", 0, zone.at, 0, 1) + types + names
    )
    return old + new + b"\n\n"


_TZIF_UTC = 2 * (b"TZif2" + bytes(15) + struct.pack(">6I", 0, 0, 0, 0, 1, 4) + struct.pack(">iBB", 0, 0, 0) + b"UTC\0")
_TZIF_UTC += b"\nUTC0\n"


@contextmanager
def process_in(zone: ChangedZone, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process with the changed zone, and in the zone `name` itself."""
    with monkeypatch.context() as patch:
        for key, value in zone.environment(name).items():
            patch.setenv(key, value)
        time.tzset()
        _read_zones_anew([str(zone.zones)])
        try:
            yield
        finally:
            patch.undo()
            time.tzset()
            _read_zones_anew(None)


def _read_zones_anew(folders: list[str] | None) -> None:
    zoneinfo.reset_tzpath(folders)
    zoneinfo.ZoneInfo.clear_cache()
    engine_zone._fixed_zone.cache_clear()


# -- Java -----------------------------------------------------------------------------------------


def _make_java_home(zone: ChangedZone) -> None:
    """A Java whose `lib/tzdb.dat` has the changed zone: links to the machine's Java, but for a few copies."""
    real = machines_java()
    for name in ("lib/server", "lib", "."):
        there = zone.java_home / name
        there.mkdir(parents=True, exist_ok=True)
        for file in (real / name).iterdir():
            if not os.path.lexists(there / file.name) and file.name != "bin":
                (there / file.name).symlink_to(file)
    for name in _OWN_FILES:
        file = zone.java_home / name
        file.unlink(missing_ok=True)
        file.parent.mkdir(exist_ok=True)
        shutil.copy(real / name, file)
    database = zone.java_home / "lib" / "tzdb.dat"
    database.unlink()
    database.write_bytes(_changed_database((real / "lib" / "tzdb.dat").read_bytes(), NAME, _java_rules(zone)))


def machines_java() -> Path:
    """The home of the Java that tests run with."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else shutil.which("java")
    assert java is not None
    return Path(java).resolve().parents[1]


def _java_rules(zone: ChangedZone) -> bytes:
    """java.time.zone.ZoneRules in the form of java.time.zone.Ser: one transition of the wall clock, no rules after."""
    return (
        b"\x01"
        + struct.pack(">i", 0)
        + _offset(STANDARD_S)
        + struct.pack(">i", 1)
        + struct.pack(">Bq", 255, zone.at)
        + _offset(zone.before)
        + _offset(zone.after)
        + b"\0"
    )


def _offset(seconds: int) -> bytes:
    return struct.pack(">b", seconds // 900) if seconds % 900 == 0 else struct.pack(">bi", 127, seconds)


def _changed_database(data: bytes, region: str, rules: bytes) -> bytes:
    """A `tzdb.dat` with other rules for a region (form: java.time.zone.TzdbZoneRulesProvider).

    Magic 1, "TZDB", the versions, the regions, the rules; per version each region's rules by index; the aliases.
    """
    place = 1
    (length,) = struct.unpack_from(">H", data, place)
    place += 2 + length
    for _ in range(struct.unpack_from(">H", data, place)[0]):  # versions
        (length,) = struct.unpack_from(">H", data, place + 2)
        place += 2 + length
    place += 2
    regions = []
    (count,) = struct.unpack_from(">H", data, place)
    place += 2
    for _ in range(count):
        (length,) = struct.unpack_from(">H", data, place)
        regions.append(data[place + 2 : place + 2 + length].decode())
        place += 2 + length
    at_rules = place
    (count,) = struct.unpack_from(">H", data, place)
    place += 2
    for _ in range(count):
        (length,) = struct.unpack_from(">H", data, place)
        place += 2 + length
    after_rules = place
    (pairs,) = struct.unpack_from(">H", data, place)
    table = bytearray(data[place + 2 : place + 2 + 4 * pairs])
    for pair in range(pairs):
        if regions[struct.unpack_from(">H", table, 4 * pair)[0]] == region:
            struct.pack_into(">H", table, 4 * pair + 2, count)
    return (
        data[:at_rules]
        + struct.pack(">H", count + 1)
        + data[at_rules + 2 : after_rules]
        + struct.pack(">H", len(rules))
        + rules
        + data[place : place + 2]
        + bytes(table)
        + data[place + 2 + 4 * pairs :]
    )


# -- do they agree? -------------------------------------------------------------------------------

CLOCK_JAVA = """
import java.text.SimpleDateFormat;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Date;

public class Clock {
    public static void main(String[] args) {
        for (String arg : args) {
            long ms = Long.parseLong(arg) * 1000;
            String old = new SimpleDateFormat("yyyyMMddHHmmss").format(new Date(ms));
            String now = DateTimeFormatter.ofPattern("yyyyMMddHHmmss").withZone(ZoneId.systemDefault())
                .format(Instant.ofEpochMilli(ms));
            System.out.println(old + " " + now);
        }
    }
}
"""
