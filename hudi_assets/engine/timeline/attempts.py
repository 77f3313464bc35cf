"""Files that task attempts write: none has a name of the table's until the driver publishes it.

Spark may run a task more than once: by speculation, after a lost executor, after an error. An attempt that does not
count may still be writing when the instant is completed, and so may an executor whose driver is dead. What they
wrote would be one more base or log file of a completed instant. So an attempt writes each file under a name that
occurs once, outside all partitions, and the driver publishes those of the attempts whose results it has, right before
the commit: their markers first, so that whoever finds them without a commit can take them back. What is left counts
for no reader; whoever changes the table next removes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from hudi_assets.engine.errors import Conflict, machine_problem
from hudi_assets.engine.storage import SCRATCH, Storage, each
from hudi_assets.engine.timeline.markers import marker_path

FOLDER: Final = f"{SCRATCH}/attempts"


class Staged(NamedTuple):
    """A file that an attempt writes: where it lies, and the table-relative path that it is to have.

    `marker`: the kind of the marker that stands for it; "" where its name alone tells whose it is.
    """

    at: str
    path: str
    marker: str


def stage(instant: str, path: str, marker: str) -> Staged:
    """Where an attempt of a task of this instant writes the file that `path` is to be."""
    return Staged(f"{FOLDER}/{instant}/{uuid.uuid4().hex}", path, marker)


def write_staged(storage: Storage, file: Staged, data: bytes) -> None:
    """Write a staged file whole and durably; `EnvironmentProblem` where the machine lacks room or permission."""
    try:
        with storage.open_new(file.at) as out:
            out.write(data)
        storage.sync(file.at)
    except OSError as error:
        raise machine_problem(error, f"{storage.base}: {file.path}") or error from error


def publish(storage: Storage, instant: str, files: Sequence[Staged], published: list[str]) -> None:
    """Mark these files, then give them their names, each of which is then added to `published`. In the driver.

    Raises `Conflict` where a name is taken, or another process has taken the instant back.
    """
    markers = [marker_path(instant, file.path, file.marker) for file in files if file.marker]
    each(storage, storage.touch, markers)
    _sync_folders(storage, markers)

    def name(file: Staged) -> None:
        _publish(storage, file)
        published.append(file.path)

    each(storage, name, files)
    _sync_folders(storage, published)


def _sync_folders(storage: Storage, paths: Iterable[str]) -> None:
    for folder in sorted({path.rpartition("/")[0] for path in paths}):
        storage.sync(folder)


def _publish(storage: Storage, file: Staged) -> None:
    try:
        storage.publish(file.at, file.path)
    except FileNotFoundError as error:
        raise Conflict(
            "What a task wrote is gone: another process has taken its instant back.",
            where=f"{storage.base}: {file.path}",
            hint="Nothing was committed. Look at the table again before going on.",
        ) from error


def staged_instants(storage: Storage) -> list[str]:
    """Instants of which attempts have left something."""
    return [folder.rpartition("/")[2] for folder in storage.list_directories(FOLDER)]


def forget_staged(storage: Storage, instant: str) -> None:
    """Remove what attempts of an instant's tasks left."""
    storage.delete_tree(f"{FOLDER}/{instant}")
