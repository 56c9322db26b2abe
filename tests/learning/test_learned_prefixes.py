"""Labels of prefixes: what counts as held out, what is contradicted, and what is said where nothing is left."""

from pathlib import Path

import numpy as np
import pytest

from lengthwise import construct, learn
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.learning import held_out as held_out_module
from lengthwise.learning import learned as learned_module
from lengthwise.learning.baselines import accuracy, answers_of_machine, majority_answer, merged_states
from lengthwise.learning.learned import Learned
from lengthwise.learning.search import Attempt, SearchResult, count_errors
from lengthwise.report.pages.learned import write_learned_page
from lengthwise.report.tables.learned import accuracy_table, learned_lines
from lengthwise.tasks.given.examples import Examples
from lengthwise.tasks.given.reading import read_examples
from lengthwise.tasks.regular.machine import machine_task

pytestmark = pytest.mark.usefixtures("fewer_strings")

LAST_B = Transducer(Semiautomaton(np.array([[0, 1], [0, 1]]), ("a", "b")), 0, np.array([0, 1]))
"""Answers whether the last symbol is b."""


def with_labels_at_random(count: int, seed: int = 0) -> list[tuple[str, list[str]]]:
    """Strings whose prefixes have labels at random, equal ones the same."""
    chance, labels, rows = np.random.default_rng(seed), {}, {}
    for _ in range(count):
        text = "".join(chance.choice(["a", "b"], chance.integers(1, 9)))
        rows[text] = [labels.setdefault(text[:end], str(chance.integers(2))) for end in range(1, len(text) + 1)]
    return list(rows.items())


def labeled_prefixes(examples: Examples) -> list[str]:
    texts = [examples.text(row, "") for row in range(len(examples))]
    prefixes = [text[:end] for text in texts for end in range(1, len(text) + 1)]
    return [prefix for prefix, target in zip(prefixes, examples.targets.tolist(), strict=True) if target != IGNORE]


def learned_from(rows, monkeypatch: pytest.MonkeyPatch, machine: Transducer = LAST_B, **options) -> Learned:
    """What `learn` makes of these rows, with a search that ends with this machine."""

    def search(examples: Examples, **_: object) -> SearchResult:
        num_errors = count_errors(machine, examples)
        attempt = Attempt(8, 0, machine.num_states, num_errors, 1.0, 0.0)
        model = construct("block-linear-rnn", machine_task(LabeledMachine(machine, examples.classes))).model
        return SearchResult(model, machine, attempt, (attempt,), 2)

    monkeypatch.setattr(learned_module, "search", search)
    return learn(rows, **options)


def test_prefixes_have_one_number_where_they_are_equal() -> None:
    examples = read_examples(with_labels_at_random(60), supervision="prefix")
    numbers: dict[str, set[int]] = {}
    for prefix, number in zip(labeled_prefixes(examples), examples.prefixes.tolist(), strict=True):
        numbers.setdefault(prefix, set()).add(number)
    assert all(len(of_prefix) == 1 for of_prefix in numbers.values())
    assert len(set.union(*numbers.values())) == len(numbers)


@pytest.mark.parametrize("seed", range(3))
def test_no_label_that_was_trained_on_counts_as_held_out(seed: int) -> None:
    rows = with_labels_at_random(300, seed)
    rows += [(text * 3, ["0"] * (3 * len(text))) for text in ("abbabbab", "bbababba", "aabbaabb")]
    parts = held_out_module.split_parts(read_examples(rows, supervision="prefix"), seed)
    known = set(labeled_prefixes(parts["trained on"]))
    assert len(parts) == 3
    for name in ("longest", "at random"):
        held_out = labeled_prefixes(parts[name])
        assert held_out
        assert not known & set(held_out)
        texts = [parts[name].text(row, "") for row in range(len(parts[name]))]
        new = [text[:end] for text in texts for end in range(1, len(text) + 1) if text[:end] not in known]
        assert held_out == new, "all others do"
    merged = merged_states(parts["trained on"])
    if merged is not None:  # it is right by heart on what it was given, and by chance elsewhere
        right, total = accuracy(answers_of_machine(merged), parts["at random"])
        assert right < total
    assert accuracy(majority_answer(parts["trained on"]), parts["longest"]).num_labels == len(
        labeled_prefixes(parts["longest"])
    )


def test_labels_of_whole_strings_count_although_longer_strings_were_trained_on() -> None:
    rows = [(text, labels[-1]) for text, labels in with_labels_at_random(300)]
    parts = held_out_module.split_parts(read_examples(rows), 0)
    assert sum(len(labeled_prefixes(part)) for part in parts.values()) == len(rows)


def test_where_no_label_is_left_to_count_pages_say_so(monkeypatch, tmp_path: Path) -> None:
    text = "abbabaabbaab"
    rows = [(text[:end], [str(int(symbol == "b")) for symbol in text[:end]]) for end in range(1, 13)]
    monkeypatch.setattr(held_out_module, "SHARE_OF_LONGEST", 0.0)  # so that the string of which all are prefixes is in
    learned = next(
        one
        for seed in range(20)
        if "at random" in (one := learned_from(rows, monkeypatch, supervision="prefix", seed=seed)).accuracies
    )
    assert learned.accuracies["at random"]["machine"] == (0, 0)
    assert ("right, held out, at random", "-, because all of its labels were trained on") in list(
        learned_lines(learned)
    )
    table = accuracy_table(learned)
    assert [line[-1] for line in table.lines] == ["-"] * (len(table.lines) - 1) + ["0"]
    write_learned_page(learned, tmp_path / "report.html")
    assert "counts only if no training string begins with the same prefix" in (tmp_path / "report.html").read_text()


def test_a_contradicted_label_is_listed_once_by_the_number_of_its_symbols(monkeypatch) -> None:
    chance = np.random.default_rng(0)
    words = ["a", "longer"]
    strings = {tuple(chance.choice(words, chance.integers(1, 9)).tolist()) for _ in range(60)}
    wrong = {("longer", "longer"): "a", ("a", "a", "a"): "longer"}
    rows = [(list(s), [wrong.get(s[:end], s[end - 1]) for end in range(1, len(s) + 1)]) for s in sorted(strings)]
    machine = Transducer(Semiautomaton(LAST_B.semiautomaton.table, ("a", "longer")), 0, LAST_B.outputs)
    learned = learned_from(rows, monkeypatch, machine, supervision="prefix")
    assert learned.contradictions == (("longer longer", "a", "longer"), ("a a a", "longer", "a"))
    (note,) = learned.notes
    assert note == "the machine contradicts 2 labels of the training examples; set exact if all labels are right"


def test_an_answer_that_no_string_has_gets_no_expression_and_notes_are_sentences(monkeypatch, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    texts = ["".join(chance.choice(["a", "b"], chance.integers(1, 9))) for _ in range(80)]
    rows = [(text, "YES" if text == "abab" else "NO") for text in [*texts, "abab"]]
    constant = Transducer(Semiautomaton(np.array([[0, 0]]), ("a", "b")), 0, np.array([0]))
    learned = learned_from(rows, monkeypatch, constant)
    assert ("expression", "YES: no string") in list(learned_lines(learned))
    write_learned_page(learned, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<dt>YES:</dt><dd>no string</dd>" in page
    assert (
        "of the empty string. The machine contradicts 1 label of the training examples; "
        "set exact if all labels are right." in page
    )
