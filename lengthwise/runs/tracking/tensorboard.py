"""TensorBoard's event files, written by tensorboardX, which needs neither TensorBoard nor TensorFlow."""

import json
from collections.abc import Sequence
from typing import Any

from lengthwise.runs.tracking.base import TRACKERS, About, Entry, Measured, Tracker


@TRACKERS.register("tensorboard")
class TensorBoard(Tracker):
    """A folder of event files for each run; curves against length have the length as TensorBoard's step."""

    modules = ("tensorboardX",)

    def __init__(self, about: About) -> None:
        self._folder = about.folder
        (tensorboard,) = self.load()
        # With `purge_step=0`, TensorBoard hides the events from step 0 on in earlier files of the folder.
        self._writer: Any = tensorboard.SummaryWriter(logdir=str(about.folder / about.run_id), purge_step=0)
        settings = json.dumps(dict(about.settings), indent=1)
        self._writer.add_text("settings", f"```\n{settings}\n```")

    def log(self, entries: Sequence[Entry]) -> None:
        for step, numbers in entries:
            for name, number in numbers.items():
                self._writer.add_scalar(name, number, global_step=step)

    def summarize(self, measured: Measured, step: int) -> None:
        self.log([(step, measured.numbers)])
        for name, word in measured.words.items():
            self._writer.add_text(name, word)
        for name, points in measured.by_length.items():
            self.log([(length, {name: number}) for length, number in points])

    def finish(self) -> None:
        self._writer.close()

    @property
    def location(self) -> str:
        return f"event files below {self._folder}"
