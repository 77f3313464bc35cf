"""What a Spark session can do for the engine: which kind it is, and what it lacks.

Ask before work begins. A session that cannot work is refused by name. What a session merely lacks costs speed, and is
said once for each session, as a warning.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from weakref import WeakKeyDictionary

from hudi_assets.engine.errors import EnvironmentProblem
from hudi_assets.engine.spark import java_classes

log = logging.getLogger(__name__)


class Kind(StrEnum):
    """How a session reaches Spark."""

    CLASSIC = "classic"
    CONNECT = "connect"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a session is and lacks. `missing`: a sentence for each thing that queries do without."""

    kind: Kind
    missing: tuple[str, ...] = ()


_SLOW_BEHIND_CONNECT = (
    "Behind Spark Connect the engine's classes cannot be compiled: queries that merge read all columns and partitions."
)
_KNOWN: WeakKeyDictionary[Any, Capabilities] = WeakKeyDictionary()  # session → what it can do


def capabilities(spark: Any) -> Capabilities:
    """What the session can do; what is missing is logged, at WARNING, the first time that it is asked."""
    found = _KNOWN.get(spark)
    if found is None:
        found = _KNOWN[spark] = _capabilities(spark)
        for sentence in found.missing:
            log.warning(sentence)
    return found


def _capabilities(spark: Any) -> Capabilities:
    if is_connect(spark):
        return Capabilities(Kind.CONNECT, (_SLOW_BEHIND_CONNECT,))
    lacking = java_classes.missing(spark)
    reasons = "; ".join(f"{name}: {why}" for name, why in lacking.items())
    if not lacking:
        return Capabilities(Kind.CLASSIC)
    slow = f"This Spark does not compile the engine's classes: queries read all columns and partitions ({reasons})."
    return Capabilities(Kind.CLASSIC, (slow,))


def is_connect(spark: Any) -> bool:
    """True for a session of Spark Connect, which has no JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def check_classic(spark: Any) -> None:
    """Raise `EnvironmentProblem` for a session of Spark Connect, for what asks Spark's Java for something."""
    if is_connect(spark):
        raise EnvironmentProblem(
            "This session is one of Spark Connect, through which Apache Hudi's own classes cannot be called.",
            hint="Give a classic session: SparkSession.builder.master(...).getOrCreate(), or without SPARK_REMOTE and "
            "HUDI_ASSETS_SHARED_SPARK the one that a command or a block brings.",
        )
