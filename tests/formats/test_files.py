"""Files of machines: what is read is bounded, and a plain file."""

import os
from pathlib import Path

import pytest

from lengthwise.formats import files
from lengthwise.formats.files import read_machine, suffixes


@pytest.mark.parametrize("suffix", suffixes(readable=True))
def test_a_file_has_a_largest_size(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    path = tmp_path / f"machine{suffix}"
    path.write_text(" " * 101)
    with pytest.raises(
        ValueError, match=r"machine\.\w+: expected a machine's file of at most 100 bytes, got more; make"
    ):
        read_machine(path)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "machine.dot"
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"machine\.dot: expected a file, got a pipe or a device; name a file"):
        read_machine(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"machine\.dot: expected a file, got a pipe or a device; name a file"):
        read_machine(path)
