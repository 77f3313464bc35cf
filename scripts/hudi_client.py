"""The near end of `hudi_server.py`: start one Apache Hudi, ask it, get Arrow tables back.

    with Hudi("0.15.0") as hudi:
        rows = hudi.read("/path/of/table", "snapshot")

Where the interop environment is: `INTEROP_HOME`, else `$HUDI_ASSETS_HOME/interop`, else
`.hudi-assets/interop` in the repository; `scripts/interop-setup` makes it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

RELEASES = ("0.15.0", "1.2.0")
ROOT = Path(__file__).resolve().parent.parent


class HudiError(Exception):
    """Hudi refused or failed; the message is Java's."""


class InteropMissing(Exception):
    """The interop environment is not there; the message says how to make it."""


def interop_home() -> Path:
    if chosen := os.environ.get("INTEROP_HOME"):
        return Path(chosen)
    return Path(os.environ.get("HUDI_ASSETS_HOME", ROOT / ".hudi-assets")) / "interop"


def bundle(release: str) -> Path:
    """The bundle jar of a release. Raises InteropMissing."""
    return _existing(interop_home() / "jars" / f"hudi-spark3.5-bundle_2.12-{release}.jar")


def interop_python() -> Path:
    """The Python that has PySpark 3.5. Raises InteropMissing."""
    return _existing(interop_home() / "venv" / "bin" / "python")


def _existing(path: Path) -> Path:
    if not path.exists():
        raise InteropMissing(f"{path} is missing: run scripts/interop-setup first")
    return path


class Hudi:
    """A running Hudi release. Start is about ten seconds; afterwards a small query takes under one."""

    def __init__(
        self,
        release: str,
        *,
        log: Path | None = None,
        jars: Sequence[Path] = (),
        settings: Mapping[str, str] | None = None,
        script: Path = ROOT / "scripts" / "hudi_server.py",
    ) -> None:
        """`jars` stand beside the bundle on Spark's class path; `settings` are Spark's, over those of the server.

        `script`: one that answers more requests than the server does.
        """
        self.release = release
        self._scratch = Path(tempfile.mkdtemp(prefix="hudi-interop-"))
        self._log = (log or self._scratch / "server.log").open("ab")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        self._process = subprocess.Popen(
            [
                str(interop_python()),
                str(script),
                ",".join(map(str, (bundle(release), *jars))),
                json.dumps(dict(settings or {})),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=self._scratch,
            env=environment,
            text=True,
        )
        self._count = 0
        self._answer()

    def __enter__(self) -> Hudi:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM and remove what it left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """One request, its answer. Raises HudiError with Java's message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}, default=str) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def read(self, path: Path | str, query: str = "snapshot", **fields: Any) -> pa.Table:
        """Rows of one query (snapshot, read_optimized, time_travel as_of=, incremental begin= end=)."""
        out = self._file()
        self.ask("read", path=str(path), query=query, out=str(out), **fields)
        table = pq.read_table(out)
        shutil.rmtree(out)
        return table

    def answers(
        self, path: Path | str, questions: Sequence[Mapping[str, Any]], options: Mapping[str, str] | None = None
    ) -> list[pa.Table]:
        """The rows of each question, all asked in one job. A question has the fields that `read` takes."""
        out = self._file()
        self.ask("answers", path=str(path), questions=list(questions), options=dict(options or {}), out=str(out))
        rows = pq.read_table(out)
        shutil.rmtree(out)
        number = rows["question"]
        return [rows.filter(pc.equal(number, n)).drop_columns("question") for n in range(len(questions))]

    def write(self, path: Path | str, rows: pa.Table, options: Mapping[str, str], mode: str = "append") -> None:
        """Write rows as one Hudi commit, with the DataSource options given."""
        file = self._file()
        pq.write_table(rows, file)
        self.ask("write", path=str(path), rows=str(file), options=dict(options), mode=mode)
        file.unlink()

    def compaction(self, path: Path | str, op: str, **options: str) -> Sequence[Mapping[str, Any]]:
        """Hudi's `run_compaction`: op is schedule, execute or run."""
        answer = self.ask("compaction", path=str(path), op=op, options=options)
        compactions: list[dict[str, Any]] = answer["compactions"]
        return compactions

    def clean(self, path: Path | str, retained: int = 1) -> None:
        """Hudi's cleaner, keeping `retained` file versions of each file group."""
        self.ask("clean", path=str(path), retained=retained)

    def sync(self, path: Path | str, options: Mapping[str, str]) -> None:
        """Hudi's Hive sync, with these options of hoodie.datasource.hive_sync."""
        self.ask("sync", path=str(path), options=dict(options))

    def timeline(self, path: Path | str) -> list[tuple[str, str, str]]:
        """(instant, action, state) of the active timeline, as Hudi's classes read it."""
        return [(i[0], i[1], i[2]) for i in self.ask("timeline", path=str(path))["instants"]]

    def _file(self) -> Path:
        self._count += 1
        return self._scratch / f"{self._count}.parquet"

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise HudiError(f"Hudi {self.release} ended (exit code {self._process.poll()}), see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise HudiError(answer["error"])
        return answer
