"""The seconds that a run takes, over all interruptions."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lengthwise.runs.result import RunStatus

AFTER = ", then "
"""Between devices that a run was trained on, one after another."""


class Clock:
    """Wall and CPU seconds, going on from an earlier status, and where they were spent."""

    def __init__(self, before: RunStatus, device: str) -> None:
        earlier = [device_name for device_name in before.device.split(AFTER) if device_name]
        self._before = before
        self._device = AFTER.join(earlier if earlier[-1:] == [device] else [*earlier, device])
        self.rewind()

    def rewind(self) -> None:
        """Go on from the earlier status: what was done since was no part of the run."""
        self._wall = time.perf_counter() - self._before.wall_seconds
        self._cpu = time.process_time() - self._before.cpu_seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Leave out what is done meanwhile."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self._wall += time.perf_counter() - wall
            self._cpu += time.process_time() - cpu

    def status(self, status: str, step: int, message: str = "") -> RunStatus:
        return RunStatus(
            status=status,
            step=step,
            wall_seconds=round(time.perf_counter() - self._wall, 3),
            cpu_seconds=round(time.process_time() - self._cpu, 3),
            message=message,
            device=self._device,
        )
