"""Weights & Biases."""

from collections.abc import Mapping
from typing import Any

from lengthwise.runs.tracking.base import TRACKERS, About
from lengthwise.runs.tracking.module import LENGTH, ModuleTracker


@TRACKERS.register("wandb")
class WeightsAndBiases(ModuleTracker):
    """A run of Weights & Biases. Whether it is sent, and as whom, is what its own settings and variables say."""

    modules = ("wandb",)

    def __init__(self, about: About) -> None:
        self.load()  # a package that is not installed leaves no folder
        about.folder.mkdir(parents=True, exist_ok=True)  # else it writes into a temporary one
        super().__init__(about)
        self._run.define_metric("by_length/*", step_metric=LENGTH)

    def options(self, about: About) -> Mapping[str, Any]:
        return {"dir": str(about.folder), "reinit": "create_new"}  # runs of one process do not end one another

    @property
    def location(self) -> str:
        return f"its page, and {self._folder / 'wandb'}"
