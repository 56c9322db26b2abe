"""Where the work of commands is done: on which device, by one process or by several."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "LENGTHWISE_DEVICE"


def quiet_processes() -> None:
    """Keep torch's remarks on how gradients are shared from the output of each of several processes; errors are said.

    torch reads this when it is imported.
    """
    if "WORLD_SIZE" in os.environ:
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


@contextmanager
def workers_on(device: str) -> Iterator[None]:
    """Let this process and the workers that it starts train and measure on a device, which is there."""
    from lengthwise.devices import find_device

    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = find_device(device).type
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def check_alone(argument: str, instead: str) -> None:
    """Raise a ValueError where torchrun started several processes for what one does."""
    from lengthwise.training.parallel import is_started_by_torchrun

    if is_started_by_torchrun():
        raise ValueError(f"{argument}: expected {instead} with the processes of torchrun, which share a run; start one")
