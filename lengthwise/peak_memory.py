"""The peak memory of this process."""

import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_megabytes() -> float:
    """Return the largest memory of this process so far, in megabytes.

    On Linux the kernel's status file is read, because Linux's getrusage may report the peak of the parent process.
    Elsewhere getrusage is used, in bytes.
    """
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    (line,) = (line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
