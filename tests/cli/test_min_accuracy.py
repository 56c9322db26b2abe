"""learn --min-accuracy, for continuous integration."""

import json
import random
from pathlib import Path

import pytest
from command import exit_code


def write_rows(path: Path, share_wrong: float) -> None:
    """Strings of a and b, labeled by the parity of b, with labels turned over at random."""
    draws = random.Random(0)
    rows = ["string,label"]
    for number in range(2, 130):
        text = f"{number:b}"[1:].translate(str.maketrans("01", "ab"))
        is_odd = (text.count("b") % 2 == 1) != (draws.random() < share_wrong)
        rows.append(f"{text},{'odd' if is_odd else 'even'}")
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(("share_wrong", "is_reached"), [(0.0, True), (0.5, False)])
def test_the_accuracy_on_all_held_out_labels_decides(
    share_wrong: float, is_reached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("rows.csv"), share_wrong)
    code = exit_code("learn", "rows.csv", "--out", "out", "--budget", "0", "--min-accuracy", "0.95")
    accuracies = json.loads(Path("out/learned.json").read_text())["accuracies"]
    right, total = (sum(accuracies[part]["machine"][index] for part in ("longest", "at random")) for index in (0, 1))
    assert (right >= 0.95 * total) == is_reached, "the case is as named"
    message = f"--min-accuracy: expected 95.00 % of the held-out labels to be right, got {right} of {total} labels"
    assert (code, message in capsys.readouterr().err) == ((0, False) if is_reached else (1, True))


def test_a_percentage_is_rejected_before_the_work(tmp_path: Path, capsys) -> None:
    assert exit_code("learn", str(tmp_path / "none.csv"), "--out", str(tmp_path / "out"), "--min-accuracy", "95") == 2
    assert "--min-accuracy: expected a fraction from 0 to 1, got 95; write 0.95 for 95 %" in capsys.readouterr().err
