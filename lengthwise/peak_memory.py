"""The most memory that this process has had at once."""

import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_megabytes() -> float:
    """On Linux as its kernel counts it for the process's own memory, elsewhere what getrusage tells, there in bytes.

    Linux's getrusage may tell the peak of the process that started this one.
    """
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    (line,) = (line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
