"""What became of Dagster's runs of tables, asked of its web server: a failed run leaves no trace in a table."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from itertools import islice, takewhile
from typing import Any, Final
from urllib.parse import urlsplit

from hudi_assets.engine import EnvironmentProblem, InvalidInput

# By this tag the sensor's runs, and those that compact, say which table they are of.
_TAG: Final = "hudi_assets/table"
_LATEST: Final = 25
_TABLES: Final = 50  # in one question
_SECONDS: Final = 30
_AS: Final = "Write it as http://127.0.0.1:3000."
_QUERY: Final = """{name}: runsOrError(limit: {limit}, filter: {{tags: [{{key: "{tag}", value: {table}}}],
  statuses: [SUCCESS, FAILURE, CANCELED]}}) {{
  __typename ... on Runs {{ results {{ status endTime }} }} ... on PythonError {{ message }} }}"""


@dataclass(frozen=True, slots=True)
class RunsSeen:
    """Of a table's runs that have ended. `failed_in_a_row`: failed or were cancelled, since the last that succeeded;
    it counts to 25, and is None where Dagster knows no run of the table. Times in seconds since 1970: when the last
    such run ended, None where there is none."""

    failed_in_a_row: int | None
    failed_at: float | None
    succeeded_at: float | None


class DagsterRuns:
    """`url`: of Dagster's web server, as `http://127.0.0.1:3000`. Raises `InvalidInput` where it is none."""

    def __init__(self, url: str) -> None:
        self._url = f"{_checked(url).rstrip('/')}/graphql"

    def of(self, tables: Sequence[str]) -> Mapping[str, RunsSeen]:
        """By the tables' names in Dagster. Raises `EnvironmentProblem` where it does not tell."""
        found: dict[str, RunsSeen] = {}
        names = iter(dict.fromkeys(tables))
        while some := list(islice(names, _TABLES)):
            answers = self._ask(
                "\n".join(
                    _QUERY.format(name=f"t{number}", limit=_LATEST, tag=_TAG, table=json.dumps(name))
                    for number, name in enumerate(some)
                )
            )
            try:
                found |= {name: self._seen(answers[f"t{number}"]) for number, name in enumerate(some)}
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                raise self._problem(f"it answered {str(answers)[:300]}") from error
        return found

    def _ask(self, questions: str) -> dict[str, Any]:
        body = json.dumps({"query": f"{{ {questions} }}"}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                told = json.load(answer)
        except (OSError, ValueError, HTTPException) as error:
            raise self._problem(str(error) or type(error).__name__) from error
        data = told.get("data") if isinstance(told, dict) else None
        if not isinstance(data, dict) or told.get("errors"):
            raise self._problem(f"it answered {str(told)[:300]}")
        return data

    def _seen(self, answer: Mapping[str, Any]) -> RunsSeen:
        if answer["__typename"] != "Runs":
            raise self._problem(str(answer.get("message", answer["__typename"]))[:300])
        runs = answer["results"]  # the newest first
        failed = [_ended(run) for run in runs if run["status"] != "SUCCESS"]
        succeeded = [_ended(run) for run in runs if run["status"] == "SUCCESS"]
        in_a_row = len(list(takewhile(lambda run: run["status"] != "SUCCESS", runs)))
        return RunsSeen(in_a_row if runs else None, next(iter(failed), None), next(iter(succeeded), None))

    def _problem(self, why: str) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"Dagster does not tell of its runs: {why}.",
            where=self._url,
            hint="--dagster is the address of Dagster's web server, as http://127.0.0.1:3000.",
        )


def _ended(run: Mapping[str, Any]) -> float | None:
    return None if run["endTime"] is None else float(run["endTime"])


def _checked(url: str) -> str:
    if "@" in url:  # and it is not printed: others may read the log
        raise InvalidInput("The address in --dagster has a user or a password, which are not sent.", hint=_AS)
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
        _ = parts.port  # raises where it is no port
    except ValueError as error:
        raise InvalidInput(f"--dagster {url} is no address: {error}.", hint=_AS) from error
    if not fits:
        raise InvalidInput(f"--dagster {url} is no address.", hint=_AS)
    return url
