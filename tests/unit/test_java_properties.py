"""Settings that are parsed once: whoever reads them has a copy of its own."""

from __future__ import annotations

import pytest

from hudi_assets.engine.table.settings.java_properties import parse_properties


def test_a_change_of_what_was_read_reaches_nobody_else() -> None:
    text = "#as Hudi writes it\na=1\nb=x\\:y\n"
    first = parse_properties(text)
    first["a"] = "2"
    assert parse_properties(text) == {"a": "1", "b": "x:y"}
    assert parse_properties(text + "a=3\n")["a"] == "3"


def test_a_broken_escape_is_an_error_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="u12"):
            parse_properties("a=\\u12")
