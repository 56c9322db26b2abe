"""Weights & Biases."""

from collections.abc import Mapping
from typing import Any

from lengthwise.runs.tracking.base import TRACKERS, About
from lengthwise.runs.tracking.module import LENGTH, ModuleTracker


@TRACKERS.register("wandb")
class WeightsAndBiases(ModuleTracker):
    """A run of Weights & Biases.

    The settings and environment variables of Weights & Biases decide whether the run is sent, and for which user.
    """

    modules = ("wandb",)

    def __init__(self, about: About) -> None:
        self.load()  # comes first, so that a package that is not installed leaves no folder
        about.folder.mkdir(parents=True, exist_ok=True)  # W&B would write into a temporary folder otherwise
        super().__init__(about)
        self._run.define_metric("by_length/*", step_metric=LENGTH)

    def options(self, about: About) -> Mapping[str, Any]:
        return {"dir": str(about.folder), "reinit": "create_new"}  # otherwise a second run would end the first one

    @property
    def location(self) -> str:
        return f"its page, and {self._folder / 'wandb'}"
