"""The machine that is chosen: merged states, exact labels, labels held out, and the length of a message."""

import re
from pathlib import Path

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies
from searched import as_if_searched, pairs_of, same

from lengthwise import construct, learn
from lengthwise.automata.labeled import difference, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.verify import check
from lengthwise.formats.files import read_machine
from lengthwise.learning import learned as learned_module
from lengthwise.learning import search as search_module
from lengthwise.learning.baselines import are_longest
from lengthwise.learning.description_length import description_length
from lengthwise.learning.search import SearchResult, search
from lengthwise.runs.machine_sources import given_machines
from lengthwise.studies.ours.experiments.learning import (
    CLASSES,
    random_machine,
    same_machine,
)
from lengthwise.tasks.given.examples import Examples
from lengthwise.tasks.given.reading import read_examples

pytestmark = [checked_strategies, pytest.mark.usefixtures("fewer_strings")]


@pytest.mark.parametrize(
    ("pattern", "label", "expected"),
    [
        ("(a|b)*a", "yes", "([ab]*a)?"),
        ("(a|b)*a", "no", "[ab]*a"),
        ("a(a|b)*b", "no", "a[ab]*b"),
        ("a(a|b)*b", "yes", "(a[ab]*b)?"),
    ],
)
def test_the_empty_string_is_answered_as_it_is_labeled(
    pattern: str, label: str, expected: str, tmp_path: Path, monkeypatch
) -> None:
    """By the machine, its files and its folder, although no net reads that string; the certificate holds as before."""
    language = dfa_from_regex(pattern, "ab")
    machine = language.transducer.minimize_nonempty()
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(machine, examples))
    strings = [string for length in range(1, 8) for string in all_strings(2, length)]
    rows = [("".join("ab"[v] for v in s), "yes" if language.accepts(s[None])[0] else "no") for s in strings]
    learned = learn([*rows, ("", label)])
    assert learned.certificate.level == "proved"
    assert not learned.contradictions
    truth = labeled_dfa(dfa_from_regex(expected, "ab"))
    learned.save(tmp_path)
    (folder,) = given_machines([str(tmp_path)])
    assert folder.answers_empty
    for read in (folder.labeled, read_machine(tmp_path / "machine.dot")):
        assert read.is_automaton
        assert difference(read, truth) is None
    assert difference(labeled_dfa(dfa_from_regex(learned.expression("yes"), "ab")), truth) is None
    check(Certificate.read(tmp_path / "certificate.json"))
    drawn = (tmp_path / "machine.dot").read_text()
    learned._replace(answers_empty=False).save(tmp_path)
    assert (tmp_path / "machine.dot").read_text() == f"// the answer to the empty string has no meaning\n{drawn}"


@pytest.mark.parametrize("exact", [False, True])
def test_with_exact_labels_a_machine_without_errors_comes_before_all_others(exact: bool, monkeypatch) -> None:
    """A smaller one that contradicts a label, and comes out again and again, has the shorter message."""
    small = Transducer(Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b")), 0, np.array([0, 1]))
    # As that one, but for the string aaaa: states 0 to 4 have read so many a, 5 and 6 are those of the small one.
    table = np.array([[1, 6], [2, 6], [3, 6], [4, 6], [5, 6], [5, 6], [6, 5]])
    large = Transducer(Semiautomaton(table, ("a", "b")), 0, np.array([0, 0, 0, 0, 1, 0, 1]))
    strings = [string for length in range(1, 6) for string in all_strings(2, length)]
    examples = read_examples([("".join("ab"[v] for v in s), CLASSES[large.run(s[None])[0, -1]]) for s in strings])
    drawn = iter([small] * 6 + [large, small, large, *[small] * 40])
    monkeypatch.setattr(search_module, "merged_machines", lambda *_, **__: ())
    monkeypatch.setattr(search_module, "_train_model", lambda *_: construct("block-linear-rnn", small).model)
    monkeypatch.setattr(search_module, "_machine_of", lambda *_: next(drawn).minimize_nonempty())
    kept: list[Transducer] = []
    result = search(examples, budget=1_000.0, seed=0, exact=exact, keep=lambda model, machine: kept.append(machine))
    assert result.best.num_errors == (0 if exact else 1)
    assert [same_machine(machine, small) for machine in kept] == ([True, False] if exact else [True])
    assert same_machine(result.machine, large if exact else small)
    assert len(result.attempts) == (9 if exact else 4)
    assert min(result.attempts, key=lambda attempt: attempt.num_bits).num_errors == 1


def test_with_exact_labels_merged_states_stand_in_for_nets_that_err(monkeypatch) -> None:
    """Labels at random, which no small machine gives: RPNI's contradicts none, and the net of it is proved."""
    machine = random_machine(5, 1).minimize_nonempty()
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(machine, examples))
    chance = np.random.default_rng(0)
    rows = [("".join("ab"[v] for v in s), CLASSES[chance.integers(2)]) for s in all_strings(2, 6)]
    learned = learn(rows, exact=True)
    trained_on = learned.accuracies["trained on"]
    assert trained_on["machine"] == trained_on["RPNI"]
    assert (
        trained_on["machine"].num_correct
        == trained_on["machine"].num_labels
        > trained_on["majority answer"].num_correct
    )
    assert (learned.certificate.level, learned.search.num_alike) == ("proved", 0)
    assert any("this is RPNI's machine (AALpy) with a net" in note for note in learned.notes)

    def too_large(*_: object) -> None:
        raise ValueError("machine: more weights than fit")

    monkeypatch.setattr(learned_module, "compiled_model", too_large)
    kept = learn(rows, exact=True)
    assert kept.search.num_alike == 1
    assert any("no machine without errors was learned" in note for note in kept.notes)


@pytest.mark.parametrize("share_wrong", [0.0, 0.1])
def test_merged_states_stand_in_for_nets_where_their_message_is_shorter(share_wrong: float, monkeypatch) -> None:
    """Where labels are right; a machine that contradicts no label names every wrong one."""
    machine, other = (random_machine(size, 1).minimize_nonempty() for size in (4, 3))

    def searched(examples: Examples, **_: object) -> SearchResult:
        result = as_if_searched(other, examples)
        bits = description_length(other, examples)
        return result._replace(best=result.best._replace(num_bits=bits))

    monkeypatch.setattr(learned_module, "search", searched)
    learned = learn(pairs_of(machine, 2_000, 20, 0, share_wrong))
    assert same(learned, other if share_wrong else machine)
    assert learned.certificate.level == "proved"
    named = [note for note in learned.notes if "so short a description, so this is RPNI's machine" in note]
    assert len(named) == (share_wrong == 0.0)
    assert all(re.search(r"\(\d+ bits; the best attempt has [\d,]+\)$", note) for note in named)


def test_with_exact_labels_a_class_may_be_held_out_alone(monkeypatch) -> None:
    machine = random_machine(5, 1).minimize_nonempty()
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(machine, examples))
    chance = np.random.default_rng(0)
    rows = [("".join("ab"[v] for v in s), CLASSES[chance.integers(2)]) for s in all_strings(2, 6)]
    learned = learn([*rows, *((f"aaaaaaaa{end}", "zzz") for end in ("a", "b", "aa", "ab", "ba", "bb"))], exact=True)
    assert (learned.classes, learned.certificate.level, learned.search.num_alike) == ((*CLASSES, "zzz"), "proved", 0)


@pytest.mark.unchecked
@pytest.mark.usefixtures("fewer_steps")
def test_machines_that_no_task_can_have_are_passed_over(monkeypatch) -> None:
    """Of many symbols: a machine that training ends in, and nobody can use, is no result."""
    monkeypatch.setattr(search_module, "MAX_TABLE", 3)
    rows = [(f"{number:b}", str(number % 2)) for number in range(1, 64)]
    with pytest.raises(ValueError, match=r"^examples: no attempt found a machine of at most 3 transitions; raise the"):
        learn(rows, budget=0.0)


def test_a_label_that_only_the_empty_string_has_is_left_out(monkeypatch) -> None:
    machine = random_machine(5, 1).minimize_nonempty()
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(machine, examples))
    learned = learn([*pairs_of(machine, 200, 9), ("", "none yet")])
    assert learned.classes == CLASSES
    assert not learned.answers_empty
    assert learned.notes[0] == "the machine leaves out the label none yet, which only the empty string has"


def test_a_message_is_longer_for_more_states_and_more_errors() -> None:
    examples = read_examples(pairs_of(random_machine(5, 0), 200, 10))
    small, large = random_machine(4, 0), random_machine(9, 0)
    assert (
        description_length(small, examples, 3)
        < description_length(large, examples, 3)
        < description_length(large, examples, 9)
    )
    all_wrong = description_length(small, examples, len(examples.lengths))
    assert all_wrong > description_length(small, examples, 1), "a machine that is always wrong is no shorter message"


def test_no_more_than_the_longest_fifth_is_held_out() -> None:
    """Strings of the length at which a fifth would begin stay together, and are trained on."""
    rows = [(format(number, "012b"), str(number % 2)) for number in range(85)]
    shorter = [(format(number, "06b"), str(number % 2)) for number in range(15)]
    longer = [(format(number, "014b"), str(number % 2)) for number in range(5)]
    assert not are_longest(read_examples(rows), 0.2).any()
    assert not are_longest(read_examples(rows + shorter), 0.2).any()
    examples = read_examples(rows + shorter + longer)
    assert are_longest(examples, 0.2).tolist() == (examples.lengths == 14).tolist()
