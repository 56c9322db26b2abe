"""MLflow: a server, or a database in a file."""

import os
import time
from collections.abc import Sequence
from typing import Any

from lengthwise.runs.tracking.base import TRACKERS, About, Entry, Measured, Tracker

MAX_METRICS, MAX_PARAMETERS = 1_000, 100
"""The largest numbers of metrics and of parameters that MLflow accepts in one call."""


@TRACKERS.register("mlflow")
class MLflow(Tracker):
    """A run of MLflow: on the server in ``MLFLOW_TRACKING_URI`` or, by default, in a database in the tracker's folder.

    Curves against length have the length as MLflow's step.
    """

    modules = ("mlflow", "sqlalchemy")

    def __init__(self, about: About) -> None:
        mlflow, _ = self.load()
        self._entities: Any = mlflow.entities
        self._where = os.environ.get("MLFLOW_TRACKING_URI", "")
        if not self._where:
            about.folder.mkdir(parents=True, exist_ok=True)
            self._where = f"sqlite:///{(about.folder / 'mlflow.db').absolute()}"
        self._client: Any = mlflow.MlflowClient(tracking_uri=self._where)
        experiment = self._client.get_experiment_by_name(about.project)
        number = self._client.create_experiment(about.project) if experiment is None else experiment.experiment_id
        self._run_id = self._client.create_run(number, run_name=about.run_id).info.run_id
        settings = [self._entities.Param(name, str(setting)) for name, setting in about.settings.items()]
        # MLflow rejects a whole batch if the batch exceeds this limit.
        for start in range(0, len(settings), MAX_PARAMETERS):
            self._client.log_batch(self._run_id, params=settings[start : start + MAX_PARAMETERS])

    def log(self, entries: Sequence[Entry]) -> None:
        now = int(1_000 * time.time())
        metrics = [
            self._entities.Metric(name, float(number), now, step)
            for step, numbers in entries
            for name, number in numbers.items()
        ]
        for start in range(0, len(metrics), MAX_METRICS):
            self._client.log_batch(self._run_id, metrics=metrics[start : start + MAX_METRICS])

    def summarize(self, measured: Measured, step: int) -> None:
        self.log([(step, measured.numbers)])
        for name, word in measured.words.items():
            self._client.set_tag(self._run_id, name, word)
        self.log([(length, {name: number}) for name, points in measured.by_length.items() for length, number in points])

    def finish(self) -> None:
        self._client.set_terminated(self._run_id)

    @property
    def location(self) -> str:
        return self._where
