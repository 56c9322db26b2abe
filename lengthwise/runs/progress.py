"""Reports on the progress of a run, which `execute` sends to listeners."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """The progress of a run: its id, its phase, the steps done and in total, and a note.

    Within a long phase, such as measuring, `note` names the current part, and `fraction` is the fraction of this part
    that is done. If `is_decision` is True, the note is a sentence about how the run continues, and why.
    """

    run_id: str
    phase: str
    done: int
    total: int
    note: str = ""
    fraction: float = 0.0
    is_decision: bool = False


Listener = Callable[[Progress], None]
"""A function that is called with each report of a run."""
