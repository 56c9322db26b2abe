"""The peak memory of this process."""

import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_megabytes() -> float:
    """Return the peak memory of this process so far, in megabytes.

    On Linux, the function reads the kernel's status file, because getrusage may report the parent process's peak.
    """
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # bytes, as on macOS
    (line,) = (line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
