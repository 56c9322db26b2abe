"""The device of a command's work, and the processes that share it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "LENGTHWISE_DEVICE"


def quiet_processes() -> None:
    """Silence torch's remarks about shared gradients if torchrun runs several processes.

    The function sets an environment variable that torch reads during its import. So call the function before torch is
    imported. Errors are still written.
    """
    if "WORLD_SIZE" in os.environ:
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


@contextmanager
def workers_on(device: str) -> Iterator[None]:
    """Check that a device exists, and let this process and its workers train and measure on this device."""
    from lengthwise.devices import find_device

    # Jobs read the device from the environment and carry it to the workers of every pool.
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
    """Raise a ValueError if torchrun started several processes for a command that runs in a single process."""
    from lengthwise.training.parallel import is_started_by_torchrun

    if is_started_by_torchrun():
        raise ValueError(
            f"{argument}: not allowed with torchrun, whose processes train one run together; {instead}, or start the "
            "command without torchrun"
        )
