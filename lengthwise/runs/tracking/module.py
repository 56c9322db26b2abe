"""The base class of trackers such as Weights & Biases: `init` of a module returns a run with `log` and `finish`."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from lengthwise.runs.tracking.base import About, Entry, Measured, Tracker


class ModuleTracker(Tracker):
    """A run that the tracker's Python module records; subclasses give further arguments of the module's `init`."""

    def __init__(self, about: About) -> None:
        self._folder = about.folder
        (module,) = self.load()
        self._run: Any = module.init(
            project=about.project, name=about.run_id, config=dict(about.settings), **self.options(about)
        )

    @abstractmethod
    def options(self, about: About) -> Mapping[str, Any]:
        """Return the arguments that the tracker module's `init` gets in addition to project, name and config."""

    def log(self, entries: Sequence[Entry]) -> None:
        for step, numbers in entries:
            self._run.log(dict(numbers), step=step)

    def summarize(self, measured: Measured, step: int) -> None:
        """Log the numbers and words of `measured` at `step`, and each point of a curve with the length of the point."""
        self._run.log({**measured.numbers, **measured.words}, step=step)
        # Each point has its own call without a step, because lengths are not steps and these trackers reject earlier
        # steps.
        for name, points in measured.by_length.items():
            for length, number in points:
                self._run.log({LENGTH: length, name: number})

    def finish(self) -> None:
        self._run.finish()


LENGTH = "by_length/length"
"""The name of the logged number that is the axis of curves against length."""
