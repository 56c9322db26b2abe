"""A clock that counts the seconds of a run, across all interruptions."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lengthwise.runs.result import RunStatus

AFTER = ", then "
"""The text between the names of devices, if a run was trained on several devices in turn."""


class Clock:
    """A clock of a run's wall and CPU seconds that continues from an earlier status, and lists the run's devices."""

    def __init__(self, before: RunStatus, device: str) -> None:
        # If a run continues on its last device, this device is not listed again.
        earlier = [device_name for device_name in before.device.split(AFTER) if device_name]
        self._before = before
        self._device = AFTER.join(earlier if earlier[-1:] == [device] else [*earlier, device])
        self.rewind()

    def rewind(self) -> None:
        """Set the clock back to the earlier status, because this process only repeated work already counted."""
        # `perf_counter` and `process_time` never go back, whereas a machine may set its date back during a run.
        self._wall = time.perf_counter() - self._before.wall_seconds
        self._cpu = time.process_time() - self._before.cpu_seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock during the `with` block."""
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
