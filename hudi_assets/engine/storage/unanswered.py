"""What every store that is reached by a network can say: nothing."""

from __future__ import annotations


class Unanswered(OSError):
    """No answer came, or none that says what was done: a change may have been made all the same."""
