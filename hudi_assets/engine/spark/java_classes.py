"""The classes of `java/`, in a Spark's driver.

They take part in Spark's planning, which Python cannot. Spark's own compiler of generated code compiles them once in a
session; where a Spark lacks what one takes, it is not there, and its user does without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary


@dataclass(frozen=True, slots=True)
class Compiled:
    """The classes of one Spark context by name, and of each that is not there, why."""

    classes: Mapping[str, Any]
    missing: Mapping[str, str]


_COMPILED: WeakKeyDictionary[Any, Compiled] = WeakKeyDictionary()  # by Spark context
_ONE_AT_A_TIME = Lock()
_NAMES = ("Slices", "TaskRelation", "BaseFiles")  # each may use those before it
_SEQ = "scala.collection.immutable.Seq"  # Scala 2.13's; in 2.12 (Spark 3.5) `Seq` means a wider type


def jvm_offset_ms(session: Any, at_ms: int) -> int:
    """How far the default zone of the session's JVM is ahead of UTC at a time (both in ms)."""
    return int(session._jvm.java.util.TimeZone.getDefault().getOffset(at_ms))


def new(session: Any, name: str, *values: Any) -> Any | None:
    """A new object of one of the classes; None where it could not be compiled, or Spark is reached by Spark Connect."""
    try:
        context = session.sparkContext
    except (AttributeError, NotImplementedError):  # Spark Connect
        return None
    made = compiled(context).classes.get(name)
    if made is None:
        return None
    # A class that was compiled at run time is no name that py4j knows.
    gateway = context._gateway
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, len(values))
    for place, value in enumerate(values):
        arguments[place] = value
    return made.getConstructors()[0].newInstance(arguments)


def compiled(context: Any) -> Compiled:
    """The classes in a Spark context: compiled once, by whoever asks first."""
    with _ONE_AT_A_TIME:  # classes of two compilations do not know each other
        if context not in _COMPILED:
            _COMPILED[context] = _compile(context._jvm)
        return _COMPILED[context]


def missing(session: Any) -> Mapping[str, str]:
    """The classes that this Spark cannot have, and why; compiles them where that has not been tried."""
    return compiled(session.sparkContext).missing


def _compile(jvm: Any) -> Compiled:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    loader, classes, reasons = jvm.java.lang.Thread.currentThread().getContextClassLoader(), {}, {}
    for name in _NAMES:
        try:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook(_source(jvm, name))
            classes[name] = compiler.getClassLoader().loadClass(f"hudi_assets.{name}")
            loader = classes[name].getClassLoader()  # the next class may use it
        except (Py4JError, PySparkException, TypeError, OSError) as error:  # without Janino; without these files
            reasons[name] = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return Compiled(classes, reasons)


def _source(jvm: Any, name: str) -> str:
    text = Path(__file__).with_name("java").joinpath(f"{name}.java").read_text("utf-8")
    scala: str = jvm.scala.util.Properties.versionNumberString()
    return text.replace(_SEQ, "scala.collection.Seq") if scala.startswith("2.12.") else text
