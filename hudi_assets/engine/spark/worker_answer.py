"""What a worker says of itself. Sent as a whole, since a worker may lack this package: the standard library alone."""

from __future__ import annotations

from collections.abc import Mapping


def answer(packages: Mapping[str, str], file: str | None) -> str:
    """In a worker: where it is, its Python, its packages, and what a file looks like from there, as JSON.

    Args:
        packages: Distribution → module to import.
        file: A path, or None.
    """
    import json
    import os
    import socket
    import sys

    said = {
        "host": socket.gethostname(),
        "folder": os.getcwd(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "executable": sys.executable,
        "packages": {name: _package(name, module) for name, module in packages.items()},
        "file": _file(file) if file else None,
    }
    return json.dumps(said)


def _package(name: str, module: str) -> dict[str, str | None]:
    """`version`: "" where it is found on a path and nothing tells; None where it cannot be imported."""
    import importlib
    from importlib import metadata

    try:
        importlib.import_module(module)
    except Exception as error:  # whatever keeps it from being imported
        return {"version": None, "error": f"{type(error).__name__}: {error}"}
    try:
        return {"version": metadata.version(name), "error": None}
    except metadata.PackageNotFoundError:
        return {"version": "", "error": None}


def _file(path: str) -> dict[str, str | None]:
    """`digest`: of its bytes; None where it cannot be read."""
    import hashlib

    try:
        with open(path, "rb") as file:
            return {"digest": hashlib.sha256(file.read()).hexdigest(), "error": None}
    except OSError as error:
        return {"digest": None, "error": error.strerror or str(error)}
