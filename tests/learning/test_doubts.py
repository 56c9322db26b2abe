"""Held-out labels confirm a machine, or the result names a doubt, which every written file repeats."""

import numpy as np
import pytest
from command import exit_code
from searched import as_if_searched, last_digit, pairs_of

from lengthwise import learn
from lengthwise.learning import learned as learned_module
from lengthwise.learning.baselines import Accuracy
from lengthwise.studies.ours.experiments.learning import CLASSES, random_machine

pytestmark = pytest.mark.usefixtures("fewer_strings")


def test_a_machine_that_is_no_better_than_the_last_symbols_is_not_confirmed(monkeypatch, tmp_path, capsys) -> None:
    machine = random_machine(9, 0).minimize_nonempty()
    chance = np.random.default_rng(0)
    rows = [(string, CLASSES[int(chance.integers(2))]) for string, _ in pairs_of(machine, 400, 20)]
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(machine, examples))
    learned = learn(rows)
    assert learned.certificate.level == "proved"
    assert learned.doubt is not None
    assert str(learned).startswith("NOT CONFIRMED: on ")
    assert "baseline" in learned.doubt
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{string},{label}\n" for string, label in rows if string))
    assert exit_code("learn", str(path), "--out", str(tmp_path / "out")) == 0
    assert capsys.readouterr().out.startswith("NOT CONFIRMED: on ")
    assert "NOT CONFIRMED" in (tmp_path / "out" / "report.html").read_text()
    assert "NOT CONFIRMED: on " in (tmp_path / "out" / "machine.dot").read_text()
    # An exported file contains the level of the net's certificate, and must not look like a proof about the world.
    for kind, name in (("c", "m.h"), ("js", "m.js"), ("hub-folder", "hub"), ("torch", "m.pt2")):
        assert exit_code("export", str(tmp_path / "out"), "--to", kind, "--out", str(tmp_path / name)) == 0
    for file in ("m.h", "m.js", "hub/README.md"):
        assert "NOT CONFIRMED: on " in (tmp_path / file).read_text()
    assert b"not_confirmed" in (tmp_path / "m.pt2").read_bytes()
    (tmp_path / "out" / "learned.json").write_text("{}x")
    assert exit_code("export", str(tmp_path / "out"), "--to", "c", "--out", str(tmp_path / "m.h")) == 2
    assert "learned.json: damaged file" in capsys.readouterr().err


def test_a_machine_that_is_right_on_all_held_out_labels_is_confirmed_and_printed_in_sentences(monkeypatch) -> None:
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(last_digit(), examples))
    rows = [(f"{number:b}", "even" if number % 2 == 0 else "odd") for number in range(1, 400)]
    learned = learn(rows)
    assert learned.doubt is None  # although the last symbols answer as well
    assert (
        str(learned)
        == repr(learned)
        == (
            "A machine of 2 states over 2 symbols, learned from 399 rows. On held-out labels: 37 of 37 right; up to "
            "8 % of answers to similar strings may be wrong (95 % confidence). "
            "proved: the net answers like this machine at every length; nothing is proved about the world."
        )
    )


@pytest.mark.parametrize(("num_correct", "trained", "is_confirmed"), [(600, 1_000, False), (600, 650, True)])
def test_a_machine_that_memorized_its_training_labels_is_not_confirmed(
    num_correct: int, trained: int, is_confirmed: bool, monkeypatch
) -> None:
    """The machine is above the baseline either way, and only one of the two is as good on other strings."""
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(last_digit(), examples))
    shallow = dict.fromkeys(("majority answer", "last 3 symbols"), Accuracy(450, 1_000))
    learned = learn([(f"{number:b}", "even" if number % 2 == 0 else "odd") for number in range(1, 400)])._replace(
        accuracies={
            "trained on": {"machine": Accuracy(trained, 1_000), **shallow},
            "at random": {"machine": Accuracy(num_correct, 1_000), **shallow},
        }
    )
    assert (learned.doubt is None) == is_confirmed
    if not is_confirmed:
        assert "right on 60.00 %, which is not clearly above the midpoint between the baseline" in str(learned)


def test_a_handful_of_held_out_labels_confirms_no_machine(monkeypatch) -> None:
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(last_digit(), examples))
    rows = [(f"{number:b}", "even" if number % 2 == 0 else "odd") for number in range(1, 31)]
    learned = learn(rows)
    assert learned.held_out() == (2, 2)
    assert learned.doubt == (
        "only 2 labels could be held out: 2 of 2 right; up to 78 % of answers to similar strings may be wrong "
        "(95 % confidence); give more examples"
    )
