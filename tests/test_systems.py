"""What is said on systems that lack what the package needs."""

import subprocess
import sys


def test_a_system_without_posix_is_one_sentence() -> None:
    script = "import os; os.name = 'nt'; import lengthwise"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "ImportError: lengthwise: expected a POSIX system such as Linux, with file locks (fcntl), forkserver and "
        "resource, got 'nt'; on Windows, use the Windows Subsystem for Linux"
    )
