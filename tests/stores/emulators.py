"""Azurite and fake-gcs-server, which stand for Azure and Google Cloud Storage in tests: on the loopback, in memory."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hudi_assets.engine import open_storage
from tests.stores.minio import BUCKET

# The account that Azurite has, which everybody knows.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Emulator:
    """A server that answers: the beginning of a path there, and what the environment has to say."""

    root: str
    environment: dict[str, str]
    endpoint: str

    def upload(self, folder: Path, name: str) -> str:
        """A folder of this machine; its path there. fake-gcs-server takes no write of the library's."""
        path = f"{self.root}/{name}"
        storage = open_storage(path)
        for file in sorted(folder.rglob("*")):
            if file.is_file() and self.root.startswith("gs:"):
                key = urllib.parse.quote(f"{name}/{file.relative_to(folder)}", safe="")
                url = f"{self.endpoint}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={key}"
                urllib.request.urlopen(urllib.request.Request(url, file.read_bytes()), timeout=30).close()
            elif file.is_file():
                storage.replace(str(file.relative_to(folder)), file.read_bytes())
        return path


def _program(name: str) -> Path | None:
    """What scripts/emulators-setup has fetched; None where it was not run."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "hudi-assets" / "emulators" / name
    return program if os.access(program, os.X_OK) else None


def azurite_program() -> Path | None:
    return _program("node_modules/.bin/azurite-blob")


def fake_gcs_program() -> Path | None:
    return _program("bin/fake-gcs-server")


@contextmanager
def running_azurite(program: Path, port: int) -> Iterator[Emulator]:
    command = [str(program), "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence"]
    with _running([*command, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port):
        endpoint = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        _make_container(endpoint)
        said = {"AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_STORAGE_ACCOUNT_KEY": _KEY}
        yield Emulator(f"abfs://{BUCKET}@{_ACCOUNT}.dfs.core.windows.net", said, endpoint)


def _make_container(endpoint: str) -> None:
    """The one request that the library has not."""
    now = datetime.datetime.now(datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    signed = "PUT" + 12 * "\n" + f"x-ms-date:{now}\nx-ms-version:2021-08-06\n"
    signed += f"/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    mark = base64.b64encode(hmac.new(base64.b64decode(_KEY), signed.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": now, "x-ms-version": "2021-08-06", "Authorization": f"SharedKey {_ACCOUNT}:{mark}"}
    request = urllib.request.Request(f"{endpoint}/{BUCKET}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=30).close()


@contextmanager
def running_fake_gcs(program: Path, port: int, folder: Path) -> Iterator[Emulator]:
    endpoint = f"http://127.0.0.1:{port}"
    command = [str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    with _running([*command, "-public-host", f"127.0.0.1:{port}"], port):
        body = json.dumps({"name": BUCKET}).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{endpoint}/storage/v1/b?project=p", body, kind)
        urllib.request.urlopen(request, timeout=30).close()
        account = folder / "account.json"
        nobody = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        account.write_text(json.dumps({"gcs_base_url": endpoint, "disable_oauth": True, **nobody}))
        yield Emulator(f"gs://{BUCKET}", {"GOOGLE_SERVICE_ACCOUNT": str(account)}, endpoint)


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)
