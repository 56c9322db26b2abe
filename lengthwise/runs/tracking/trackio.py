"""trackio, which keeps runs in a local database."""

from collections.abc import Mapping
from typing import Any

from lengthwise.runs.tracking.base import TRACKERS, About
from lengthwise.runs.tracking.module import ModuleTracker


@TRACKERS.register("trackio")
class Trackio(ModuleTracker):
    """A run of trackio, in trackio's own folder.

    By default, nothing is sent over the network. Users can choose a Space of the Hugging Face Hub with trackio's
    environment variables; a new Space is private.
    """

    modules = ("trackio",)

    def __init__(self, about: About) -> None:
        super().__init__(about)
        self._project = about.project

    def options(self, about: About) -> Mapping[str, Any]:
        # The machine that replays a run may not be the machine that trained it, so a record of the load would be
        # misleading.
        return {"private": True, "embed": False, "auto_log_cpu": False, "auto_log_gpu": False}

    @property
    def location(self) -> str:
        return f"project {self._project} of trackio's own folder"
