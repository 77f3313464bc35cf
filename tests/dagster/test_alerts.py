"""The sensor of docs/how-to/alerts.md: what was posted is not posted again while a later message is refused. A check
that is gone does not pass."""

from __future__ import annotations

import json
from http.client import BadStatusLine
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    DagsterInstance,
    Definitions,
    asset,
    asset_check,
    build_sensor_context,
)

from tests.dagster.alerts import documented


@pytest.mark.parametrize("problem", [OSError("HTTP Error 500"), BadStatusLine("nonsense")])
def test_each_message_is_posted_once_though_another_is_refused(problem: Exception) -> None:
    @asset
    def a() -> None: ...

    @asset_check(asset=a, name="first")
    def first() -> Any: ...

    @asset_check(asset=a, name="second")
    def second() -> Any: ...

    names = documented()
    posted: list[str] = []
    refused = {"a second: broken"}

    def post(text: str) -> None:
        if text in refused:
            raise problem
        posted.append(text)

    names["post"].__globals__["post"] = post
    definitions = Definitions(assets=[a], asset_checks=[first, second], sensors=[names["check_alerts"]])
    with DagsterInstance.ephemeral() as instance:
        for check in ("first", "second"):
            instance.report_runless_asset_event(
                AssetCheckEvaluation(asset_key=AssetKey("a"), check_name=check, passed=False, description="broken")
            )
        cursor = None
        for _ in range(3):
            context = build_sensor_context(instance=instance, cursor=cursor, definitions=definitions)
            cursor = names["check_alerts"].evaluate_tick(context).cursor
        assert posted == ["a first: broken"]
        refused.clear()
        context = build_sensor_context(instance=instance, cursor=cursor, definitions=definitions)
        cursor = names["check_alerts"].evaluate_tick(context).cursor
    assert posted == ["a first: broken", "a second: broken"]
    assert json.loads(cursor) == ["a first", "a second"]


def test_a_check_that_is_gone_does_not_pass() -> None:
    """As those of a table whose block is wrong now."""

    @asset
    def a() -> None: ...

    @asset_check(asset=a, name="first")
    def first() -> Any: ...

    @asset_check(asset=a, name="second")
    def second() -> Any: ...

    names = documented()
    posted: list[str] = []
    names["post"].__globals__["post"] = posted.append

    def report(instance: DagsterInstance, check: str, passed: bool) -> None:
        event = AssetCheckEvaluation(asset_key=AssetKey("a"), check_name=check, passed=passed, description="broken")
        instance.report_runless_asset_event(event)

    with DagsterInstance.ephemeral() as instance:
        cursor = None

        def tick(*checks: Any) -> None:
            nonlocal cursor
            definitions = Definitions(assets=[a], asset_checks=checks, sensors=[names["check_alerts"]])
            context = build_sensor_context(instance=instance, cursor=cursor, definitions=definitions)
            cursor = names["check_alerts"].evaluate_tick(context).cursor
            posted.append("--")

        report(instance, "first", False)
        report(instance, "second", False)
        tick(first, second)
        report(instance, "first", True)
        tick(first)
        tick(first)
        tick(first, second)
    assert posted == [
        *("a first: broken", "a second: broken", "--"),
        *("a first: passes again", "a second: is gone, and looked at no more", "--", "--"),
        *("a second: broken", "--"),
    ]
