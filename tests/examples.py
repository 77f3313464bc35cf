"""Which examples Hypothesis tries: the same ones on every machine, or new ones where a suite asks for them.

`fixed` is what every run of pytest takes. `make test-property` asks for `random`, with a seed that it prints; what
that finds becomes a fixed example. An example has no time limit of its own: that would be a test of the machine.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

FIXED: Final = "fixed"
RANDOM: Final = "random"
_NONE: Final = Constants()
_of_imported_modules: Final = providers._get_local_constants


def load() -> None:
    """Register both profiles and load the fixed one; pytest's --hypothesis-profile comes after."""
    for name in (RANDOM, FIXED):
        settings.register_profile(
            name,
            derandomize=name == FIXED,
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            print_blob=True,
        )
        settings.load_profile(name)
    providers._get_local_constants = _constants


def _constants() -> Constants:
    """The constants in sources of ours that Hypothesis mixes in, of the modules that are imported at the moment.

    Fixed examples have none: other tests import modules too, and a clone below a folder `tests` counts as no source.
    """
    random = settings.get_current_profile_name().startswith(RANDOM)
    return _of_imported_modules() if random else _NONE
