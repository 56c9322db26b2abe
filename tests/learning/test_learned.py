"""Machines from examples: recovered, proved, compared with others, and honest about what contradicts them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from automaton_strategies import all_strings, checked_strategies, transducers
from command import exit_code
from hypothesis import given
from searched import as_if_searched, last_digit, pairs_of, same

from lengthwise import learn, load_compiled
from lengthwise.automata import library
from lengthwise.automata.labeled import difference
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.verify import check
from lengthwise.conventions import IGNORE
from lengthwise.formats.files import read_machine
from lengthwise.learning import held_out as held_out_module
from lengthwise.learning import learned as learned_module
from lengthwise.learning.baselines import (
    accuracy,
    answers_of_machine,
    last_symbols,
    majority_answer,
    merged_states,
)
from lengthwise.learning.description_length import description_length
from lengthwise.learning.search import SearchResult
from lengthwise.learning.separators import likely_separator
from lengthwise.runs.machine_sources import given_machines
from lengthwise.studies.ours.experiments.learning import (
    CLASSES,
    Recovery,
    random_machine,
)
from lengthwise.studies.ours.pages.learning import recovery_chart
from lengthwise.tasks.given.examples import Examples
from lengthwise.tasks.given.reading import read_examples

pytestmark = [checked_strategies, pytest.mark.usefixtures("fewer_strings")]


# It trains two nets for a thousand steps; the tests below learn machines and traces in fewer steps.
@pytest.mark.slow
@pytest.mark.unchecked
def test_a_machine_is_recovered_and_proved(tmp_path: Path) -> None:
    learned = learn(pairs_of(random_machine(6, 3), 1_000, 20))
    assert same(learned, random_machine(6, 3))
    assert learned.certificate.level == "proved"
    assert learned.search.num_alike == 1  # without errors, one setting of state merging is trusted
    assert not learned.contradictions
    for part in ("trained on", "longest", "at random"):
        scores = learned.accuracies[part]
        assert scores["machine"].num_correct == scores["machine"].num_labels > 0
        assert scores["machine"].num_correct >= scores["RPNI"].num_correct >= scores["majority answer"].num_correct
    learned.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *(
            "machine.json",
            "machine.dot",
            "machine.svg",
            "model.safetensors",
            "compiled.json",
            "certificate.json",
            "learned.json",
        )
    }
    check(Certificate.read(tmp_path / "certificate.json"))
    for kind in ("json", "dot"):
        assert difference(read_machine(tmp_path / f"machine.{kind}"), learned.labeled) is None
    for index, answer in enumerate(CLASSES):
        accepted = dfa_from_regex(learned.expression(answer), learned.machine.symbols)
        strings = all_strings(2, 9)
        assert np.array_equal(accepted.accepts(strings), learned.machine.run(strings)[:, -1] == index)
    loaded = load_compiled(tmp_path)
    assert torch.equal(loaded.model(torch.from_numpy(strings)), learned.model(torch.from_numpy(strings)))
    with pytest.raises(ValueError, match="answer: expected one of no, yes, got 'maybe'"):
        learned.expression("maybe")
    (saved,) = given_machines([str(tmp_path)])
    assert (saved.labeled.machine.to_json(), saved.labeled.classes) == (learned.machine.to_json(), learned.classes)
    assert not saved.answers_empty


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share_wrong", [0.0, 0.05])
def test_twenty_random_machines_are_recovered(seed: int, share_wrong: float) -> None:
    """Or, of those that answer the strings trained on as it does, one that is no larger: the labels say no more."""
    machine = random_machine(5 + seed % 11, seed)
    pairs = pairs_of(machine, 2_000, 20, seed, share_wrong)
    result = learn(pairs)
    trained_on = held_out_module.split_parts(read_examples(pairs), 0)["trained on"]
    labeled = trained_on.targets != IGNORE
    ours, expected = (answers_of_machine(one)(trained_on)[labeled] for one in (result.machine, machine))
    assert np.array_equal(ours, expected)
    assert same(result, machine) or result.machine.num_states <= machine.num_states
    assert share_wrong or same(result, machine)
    assert result.certificate.level == "proved"


def test_wrong_labels_are_contradicted(tmp_path: Path, monkeypatch) -> None:
    machine = random_machine(5, 1).minimize_nonempty()
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(machine, examples))
    rows = pairs_of(machine, 800, 20, share_wrong=0.05)
    result = learn(rows)
    assert same(result, machine)
    assert result.certificate.level == "proved"
    assert len(result.contradictions) > 20
    right = answers_of_machine(machine)
    for one in result.contradictions:
        assert (one.string, one.label) in rows
        examples = read_examples([(one.string, one.label), (one.string + "a", one.answer)])
        assert CLASSES[right(examples)[len(one.string) - 1]] == one.answer != one.label
    assert result.notes == (
        "no other attempt found this machine: give a larger budget, or more examples",
        f"the machine contradicts {result.search.attempts[0].num_errors} labels of the training examples; set exact "
        "if all labels are right",
    )
    longest = result.accuracies["longest"]
    assert longest["machine"].num_correct > longest["RPNI"].num_correct
    result.save(tmp_path)
    assert read_examples(tmp_path / "contradicted.csv").counts.num_rows == len(result.contradictions)


@pytest.mark.unchecked
@pytest.mark.usefixtures("fewer_steps")
def test_traces_are_learned_symbol_by_symbol() -> None:
    machine = library.cycle(5)
    chance = np.random.default_rng(0)
    strings = [chance.integers(3, size=length) for length in chance.integers(1, 30, size=100)]
    rows = [(["abc"[v] for v in string], list(map(str, machine.run(string[None])[0]))) for string in strings]
    result = learn(rows, supervision="prefix", budget=0.0)  # the first net
    assert result.machine.num_states == 5
    assert result.certificate.level == "proved"
    assert result.classes == ("0", "1", "2", "3", "4")


def test_unknown_symbols_are_named(monkeypatch) -> None:
    monkeypatch.setattr(learned_module, "search", lambda examples, **_: as_if_searched(last_digit("x"), examples))
    rows = [(f"{number:b}", str(number % 2)) for number in range(1, 64)]
    result = learn([*rows, ("10101010101x", "1"), ("10101010101xx", "1")])
    assert "symbols only in held-out strings, about which nothing was learned: x" in result.notes


def test_labels_without_a_rule_are_named(monkeypatch) -> None:
    """A machine of many states that is right by chance has a longer message than the most frequent answer."""
    machine = random_machine(9, 0).minimize_nonempty()
    chance = np.random.default_rng(0)
    rows = [(string, CLASSES[int(chance.integers(2))]) for string, _ in pairs_of(machine, 200, 20)]

    def as_if_searched_with_bits(examples: Examples, **_: object) -> SearchResult:
        result = as_if_searched(machine, examples)
        (attempt,) = result.attempts
        bits = description_length(machine, examples)
        attempt = attempt._replace(num_bits=bits)
        return result._replace(best=attempt, attempts=(attempt,))

    monkeypatch.setattr(learned_module, "search", as_if_searched_with_bits)
    assert learn(rows).notes[0].startswith("the labels are too few to support this machine: a constant answer")
    machine = Transducer(Semiautomaton(machine.semiautomaton.table, ("a", " ")), machine.start, machine.outputs)
    spaced = [(string.replace("b", " "), label) for string, label in rows]
    with pytest.warns(UserWarning, match="strings look like words with"):
        notes = learn(spaced).notes
    assert "each character is read as a symbol, also spaces; if symbols are words, give a separator" in notes


def test_too_few_are_refused() -> None:
    with pytest.raises(ValueError, match="examples: expected at least 8 strings to train on, got"):
        learn([("a", "x"), ("b", "y"), ("ab", "x")])


@pytest.mark.parametrize("budget", [-1.0, float("nan"), float("inf")])
def test_budgets_and_seeds_that_are_none_are_refused(budget: float) -> None:
    with pytest.raises(ValueError, match=f"budget: expected a number of CPU seconds, 0 or more, got {budget}"):
        learn([], budget=budget)
    with pytest.raises(ValueError, match="seed: expected a whole number of at least 0, got -1"):
        learn([], seed=-1)


def test_folders_of_others_are_left_alone(tmp_path: Path, capsys) -> None:
    """Before anything is trained."""
    rows = tmp_path / "rows.csv"
    rows.write_text("".join(f"{number:b},{number % 2}\n" for number in range(1, 64)))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "report.html").write_text("mine")
    for out, sentence in (
        ("rows.csv", "rows.csv: expected a folder, got a file; name another"),
        ("rows.csv/below", "rows.csv: expected a folder, got a file; name another"),
        (
            "other",
            "other: expected a new or empty folder, or one that `learn` wrote, got a folder with other files; name",
        ),
    ):
        assert exit_code("learn", str(rows), "--out", str(tmp_path / out)) == 2
        assert sentence in capsys.readouterr().err
    assert (tmp_path / "other" / "report.html").read_text() == "mine"


@pytest.mark.unchecked
@given(transducers(symbols=("a", "b"), max_states=5))
def test_machines_for_strings_that_are_not_empty(machine: Transducer) -> None:
    """They answer these alike, are no larger, and the same for all machines that do."""
    smallest = machine.minimize_nonempty()
    for length in range(1, 6):
        strings = all_strings(2, length)
        assert np.array_equal(smallest.run(strings), machine.run(strings))
    assert smallest.num_states <= machine.minimize().num_states
    copies = Semiautomaton(
        np.concatenate([machine.semiautomaton.table[[machine.start]] + 1, machine.semiautomaton.table + 1]), ("a", "b")
    )
    other = Transducer(copies, 0, np.concatenate([[7], machine.outputs]))
    assert other.minimize_nonempty().to_json() == smallest.to_json()


def test_baselines_answer_as_they_say() -> None:
    rows = [("aab", "x"), ("bab", "x"), ("ba", "y"), ("aa", "y"), ("b", "x"), ("abb", "x")]
    examples = read_examples(rows)
    others = read_examples([("bbbb", "x"), ("aaaa", "y"), ("bbab", "y")])
    assert accuracy(majority_answer(examples), others) == (1, 3)
    assert accuracy(last_symbols(examples), others) == (2, 3)
    merged = merged_states(examples)
    assert merged is not None
    assert accuracy(answers_of_machine(merged), examples) == (6, 6)


@pytest.mark.unchecked
def test_the_command_writes_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """The search itself is tested above: here it ends with the machine of the numbers that 3 divides."""
    states = np.arange(3)
    divides = Transducer(Semiautomaton(np.stack([2 * states, 2 * states + 1], 1) % 3, ("0", "1")), 0, 1 - (states > 0))
    searched = as_if_searched(divides, read_examples([("11", "True"), ("1", "False")]))._replace(num_alike=2)
    monkeypatch.setattr(learned_module, "search", lambda *_, **__: searched)
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{number:b},{number % 3 == 0}\n" for number in range(1, 600)))
    assert exit_code("learn", str(path), "--out", str(tmp_path / "out")) == 0
    out = capsys.readouterr().out
    assert "machine: 3 states, 2 symbols; 2 of " in out
    assert "expression: True if the string matches (" in out
    assert "proved: the net answers like this machine at every length; nothing is proved about the world\n" in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in page
    assert "<td>majority answer</td>" in page
    assert "://" not in page.replace("http://www.w3.org", ""), "nothing is loaded from outside"
    assert exit_code("predict", str(tmp_path / "out"), "110", "111") == 0
    answers = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(text, answer, verdict) for text, answer, _, verdict in answers] == [
        ("110", "True", "its machine agrees"),
        ("111", "False", "its machine agrees"),
    ]
    assert exit_code("evaluate", str(tmp_path / "out"), "--lengths", "100", "--strings", "16") == 0
    assert "16/16" in capsys.readouterr().out.replace(" of ", "/")
    certificate = str(tmp_path / "out" / "certificate.json")
    assert exit_code("certify", "--check", certificate, "--min-level", "proved") == 0
    assert exit_code("learn", str(tmp_path / "none.csv"), "--out", str(tmp_path / "out")) == 2
    assert "none.csv: expected a file of examples, found no such file" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "others"), [("a\nb", ("a b", "b a", "a")), ("\tclose", ("open shut", "shut"))])
def test_names_that_no_file_could_hold_are_refused_before_nets_are_trained(name: str, others: tuple[str, ...]) -> None:
    pairs = [((*other.split(), name), "in") for other in others] + [(("x", "y"), "out")]
    with pytest.raises(ValueError, match=r"expected printable symbols without blanks, got"):
        learn(pairs, budget=1e9)


def test_two_examples_are_too_few_whichever_is_held_out() -> None:
    for seed in range(130, 160):
        with pytest.raises(
            ValueError, match=r"examples: expected at least \d+ strings to train on, got [012] .*; give more"
        ):
            learn([("a", "x"), ("b", "y")], seed=seed)


def test_a_learner_that_was_not_run_has_no_bar() -> None:
    """RPNI where AALpy is not installed."""
    run, not_run = (
        Recovery("machine 0", 0.05, 5, 9, True, 5, "proved", 1, 1.0, *merged) for merged in ((True, 5), (None,) * 2)
    )
    for recoveries, learners in (([run, not_run], ["lengthwise learn", "RPNI"]), ([not_run], ["lengthwise learn"])):
        (values,) = recovery_chart(recoveries).to_dict()["datasets"].values()
        assert [(value["learner"], value["share"]) for value in values] == [(learner, 1.0) for learner in learners]


@pytest.mark.parametrize("separator", [" ", ",", " > ", "|"])
def test_logs_without_a_separator_are_named_before_the_search(separator: str, monkeypatch) -> None:
    def too_late(*_: object, **__: object) -> None:
        raise AssertionError("the search has begun without a warning")

    monkeypatch.setattr(learned_module, "search", too_late)
    words = ("open", "read", "close")
    chance = np.random.default_rng(0)
    rows = [
        (separator.join(words[v] for v in chance.integers(3, size=length % 9 + 1)), str(length % 2))
        for length in range(200)
    ]
    with pytest.raises(UserWarning, match="look like words"):  # warnings are errors in tests
        learn(rows)
    with pytest.raises(AssertionError):
        learn(rows, separator=separator)


@pytest.mark.parametrize("alphabet", ["ab", "()[]", "01+-", "abcdefghij.", "a_", "0123456789/"])
def test_strings_of_characters_are_no_logs(alphabet: str) -> None:
    chance = np.random.default_rng(0)
    rows = [
        ("".join(alphabet[v] for v in chance.integers(len(alphabet), size=1 + length % 12)), str(length % 2))
        for length in range(300)
    ]
    assert likely_separator(read_examples(rows)) is None
