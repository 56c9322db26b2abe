"""Records that are small files and large texts."""

import gzip
import sys
from pathlib import Path

import pytest
from limited_memory import run_limited

from lengthwise.runs import records
from lengthwise.runs.records import read_diverged, read_records


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
def test_a_compressed_text_of_any_size_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(260):  # more than the memory that the process may take
            file.write(b" " * 1_000_000)
    imports = "from pathlib import Path\nfrom lengthwise.runs.records import read_diverged, read_records"
    works = [f"{reader}(Path({str(path)!r}))" for reader in ("read_records", "read_diverged")]
    for outcome in run_limited(imports, works, 200):
        assert outcome.startswith(f"refused: {path}: expected at most 10,000,000 bytes in a line and 500,000,000 in")


def test_the_size_of_all_lines_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n" * 4))
    assert read_diverged(path) == []
    with pytest.raises(ValueError, match="not results of this version"):
        read_records(path)
    monkeypatch.setattr(records, "MAX_SIZE", 12)
    monkeypatch.setattr(records, "MAX_LINE", 3)
    assert read_diverged(path) == [], "each line has 3 bytes, and all lines have 12"
    monkeypatch.setattr(records, "MAX_LINE", 2)
    with pytest.raises(ValueError, match="expected at most 2 bytes in a line and 12 in all lines"):
        read_diverged(path)
    monkeypatch.setattr(records, "MAX_LINE", 10_000_000)
    monkeypatch.setattr(records, "MAX_SIZE", 11)
    with pytest.raises(
        ValueError, match=r"expected at most 10,000,000 bytes in a line and 11 in all lines, got more; run"
    ):
        read_diverged(path)
