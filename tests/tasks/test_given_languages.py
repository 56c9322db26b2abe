"""Tasks made from a regular expression or a table, against Python's `re` and arithmetic."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from automata.fa import dfa as automata_lib
from automata.fa import nfa
from task_strings import all_strings, seeded

from lengthwise.automata import DFA
from lengthwise.automata.dfa import dfa_from_automata_lib
from lengthwise.automata.labeled import labeled_dfa
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.formats.files import suffixes, write_machine
from lengthwise.models.machine import TransducerModel
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.tasks.regular.machine import _is_positive, _row_after, _row_after_by_definition, _scaled

MULTIPLES = {"alphabet": ["0", "1"], "transitions": [[0, 1], [2, 0], [1, 2]], "accepting": [0], "start": 0}


@pytest.mark.parametrize(
    ("pattern", "alphabet"),
    [("(a|b)*abb", "ab"), ("(ab|c)*a?", "cab"), ("[^a]*a.{2}", "ab"), ("a{2,5}", "a"), ("(.b)*", "ba")],
)
def test_every_prefix_is_answered_as_python_matches_it(pattern: str, alphabet: str) -> None:
    task = make_task("regex", pattern=pattern, alphabet=alphabet)
    assert task.symbols == tuple(alphabet)
    for length in range(1, 8):
        inputs = all_strings(len(alphabet), length)
        for string, answers in zip(inputs, task.solve(inputs).tolist(), strict=True):
            text = task.decode(string)
            assert answers == [int(bool(re.fullmatch(pattern, text[: end + 1]))) for end in range(length)]


@pytest.mark.parametrize("length", [1, 2, 5, 12])
def test_the_default_table_knows_the_multiples_of_three(length: int) -> None:
    task = make_task("dfa")
    inputs = all_strings(2, length)
    assert task.solve(inputs)[:, -1].tolist() == [int(number % 3 == 0) for number in range(2**length)]


def test_a_single_symbol_is_supervised_but_never_balanced() -> None:
    task = make_task("regex", pattern="(aa)*")
    for length in (1, 2, 41, 100):
        assert task.is_legal_length(length)
        assert not task.is_balanced_length(length)
        assert task.baseline(length) == 1.0
        inputs, targets = task.sample(3, length, seeded(0))
        assert torch.equal(inputs, torch.zeros(3, length, dtype=torch.int64))
        assert (targets[:, -1] == (length + 1) % 2).all()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("regex", {"pattern": r"(\(|é|🙂)*\("}),
        ("regex", {"pattern": "a*b", "alphabet": ["b", "a"]}),
        ("dfa", MULTIPLES),
        ("dfa", {"alphabet": "ab", "transitions": [[1, 1], [0, 1]], "accepting": [1], "start": 1}),
    ],
)
def test_a_task_is_its_own_description(name: str, fields: dict[str, object]) -> None:
    task = make_task(name, **fields)
    again = make_task(name, **json.loads(task.model_dump_json()))
    assert again == task
    assert again.language is task.language


def test_an_alphabet_is_a_list_or_a_text() -> None:
    assert make_task("regex", pattern="ab", alphabet="ba") == make_task("regex", pattern="ab", alphabet=["b", "a"])
    assert make_task("dfa", **(MULTIPLES | {"alphabet": "01"})) == make_task("dfa")


def test_a_table_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text(json.dumps(make_task("regex").language.to_json()))
    task = make_task("dfa", **json.loads((tmp_path / "machine.json").read_text()))
    assert task.language.equivalent(make_task("regex").language)
    assert DFA.from_json(task.model_dump()).equivalent(task.language)


@pytest.mark.parametrize("suffix", suffixes(readable=True))
def test_a_table_comes_from_a_file_of_any_format(suffix: str, tmp_path: Path) -> None:
    """And stays when the file is gone: the fields are what a run stores."""
    path = tmp_path / f"m{suffix}"
    language = make_task("regex").language
    write_machine(labeled_dfa(language), path)
    spec = make_spec("dfa", "rnn", {"task": {"file": str(path)}})
    machine = make_task("machine", file=str(path))
    path.unlink()
    assert spec.task == make_task("dfa", **language.to_json(), title="m")
    assert spec.id == make_spec("dfa", "rnn", {"task": language.to_json()}).id
    assert "file" not in json.dumps(spec.to_json())
    assert spec.task.language.equivalent(language)
    assert machine.classes == ("reject", "accept")
    assert machine.transducer.equivalent(language.transducer)
    assert make_task("machine", **json.loads(machine.model_dump_json())) == machine


def test_a_file_is_given_alone_and_holds_an_automaton(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("0 0 a x\n0 1 b y\n1 1 a z\n1 0 b x\n0\n1\n")
    assert make_task("machine", file=str(path)).classes == ("x", "y", "z")
    for name, fields, message in (
        (
            "dfa",
            {"file": str(path)},
            r"^task\.file: classes: expected two answers .*, got 'x', 'y', 'z'; name",
        ),
        (
            "dfa",
            {"file": str(path), "start": 0},
            r"^task\.file: expected no fields but title and accept with a file, got start; leave",
        ),
        (
            "machine",
            {"file": 3},
            r"^task\.file: expected the file's path as a text, got 3; give for",
        ),
        (
            "machine",
            {"file": "none.dot"},
            r"^task\.file: none\.dot: expected a machine's file, found no such file; c",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make_task(name, **fields)


def test_a_table_comes_from_automata_lib() -> None:
    machine = automata_lib.DFA.from_nfa(nfa.NFA.from_regex("(a|b)*abb"))
    task = make_task("dfa", **dfa_from_automata_lib(machine).to_json())
    assert task.language.equivalent(make_task("regex").language)


def test_equal_languages_are_drawn_alike() -> None:
    """States that no string reaches, or that behave alike, change nothing."""
    doubled = MULTIPLES | {"transitions": [[3, 1], [2, 0], [1, 2], [0, 4], [5, 3], [1, 2], [6, 6]], "accepting": [0, 3]}
    plain, larger = make_task("dfa", **MULTIPLES), make_task("dfa", **doubled)
    assert larger.language.num_states == 3
    assert torch.equal(plain.sample(64, 40, seeded(0)).inputs, larger.sample(64, 40, seeded(0)).inputs)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"pattern": "(a|b"},
            r"^task\.pattern: expected a closing \) at position 5 of '\(a\|b', got the end; close the",
        ),
        ({"pattern": 7}, r"^task\.pattern: expected a valid string, got 7; give such a value$"),
        ({"pattern": "[^ab]"}, r"^task\.pattern: .* that contains no string of one symbol or more; choose a language"),
        ({"pattern": "", "alphabet": "ab"}, r"^task\.pattern: .* that contains no string of one symbol or more; "),
        (
            {"pattern": "[ab]*"},
            r"^task\.pattern: .* that contains every string of one symbol or more; choose a language",
        ),
        ({"pattern": "a+"}, r"^task\.pattern: .* that contains every string of one symbol or more; "),
        (
            {"pattern": "abc", "alphabet": "ab"},
            r"^task\.alphabet: .* 'abc', got 'ab', without 'c'; add the missing symbols$",
        ),
        ({"alphabet": "aab"}, r"^task\.alphabet: expected distinct single characters, got 'a' twice; give each symbol"),
        (
            {"alphabet": ["a", "bc"]},
            r"^task\.alphabet: expected distinct single characters, got 'bc'; give each symbol",
        ),
        ({"pattern": ""}, r"^task\.alphabet: expected at least one symbol, got none, and pattern '' contains none; g"),
        (
            {"pattern": "a{1100}b"},
            r"^task\.pattern: expected a language of at most 1,000 states, got 1,103; choose a smaller language$",
        ),
        ({"patern": "ab"}, r"^task\.patern: no such setting; did you mean 'pattern'\?"),
    ],
)
def test_bad_patterns_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_task("regex", **fields)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"transitions": [[0, 1], [2], [1, 2]]},
            r"transitions: expected a next state for each of the 2 symbols, got 1 for",
        ),
        (
            {"transitions": [[0, 1], [3, 0], [1, 2]]},
            r"transitions: expected next states in 0\.\.2, got 3 for state 1 and ",
        ),
        (
            {"transitions": [[0, 1], [-1, 0], [1, 2]]},
            r"transitions: expected next states in 0\.\.2, got -1 for state 1 ",
        ),
        ({"transitions": [[0, 10**30]]}, r"transitions: expected next states in 0\.\.0, got 1000"),
        (
            {"transitions": []},
            r"transitions: expected at least one state and one symbol, got 0 states and 2 symbols; give",
        ),
        ({"transitions": [[0, None]]}, r"transitions\.0\.1: expected a valid integer, got None; give such a value$"),
        (
            {"transitions": [[0, 1], [1, 0]], "accepting": [0, 1]},
            r"transitions: .* contains every string of one symbol or",
        ),
        (
            {"accepting": []},
            r"transitions: expected a language with strings inside and outside it, got a language that contains no str",
        ),
        ({"accepting": [3]}, r"accepting: expected a state in 0\.\.2, got 3; number the states from 0$"),
        ({"start": -1}, r"start: expected a state in 0\.\.2, got -1; number the states from 0$"),
        (
            {"alphabet": ["0", "0"]},
            r"alphabet: expected distinct single characters, got '0' twice; give each symbol one character of its own$",
        ),
        (
            {"alphabet": ["0", "1 0"]},
            r"alphabet: expected distinct words without blanks, got '1 0'; give each symbol one word of its own$",
        ),
        ({"alphabet": ""}, r"transitions: expected at least one state and one symbol, got 3 states and 0 symbols; "),
        ({"alphabet": "012"}, r"transitions: expected a next state for each of the 3 symbols, got 2 for state 0; "),
        ({"symbols": "01"}, r"symbols: no such setting"),
    ],
)
def test_bad_tables_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^task\.{message}"):
        make_task("dfa", **(MULTIPLES | changes))


@pytest.mark.parametrize("missing", ["alphabet", "transitions", "accepting"])
def test_part_of_a_table_is_refused(missing: str) -> None:
    fields = {name: value for name, value in MULTIPLES.items() if name != missing}
    sentence = (
        f"^task.{missing}: expected alphabet, transitions and accepting together, got no {missing}; give all three$"
    )
    with pytest.raises(ValueError, match=sentence):
        make_task("dfa", **fields)


@pytest.mark.parametrize(
    ("task", "fields", "sentence"),
    [
        ("cycle-navigation", {"size": 9 * 10**18}, r"task\.size: expected a number less than or equal to 1000, got"),
        ("subset-sum", {"num_range": 10**9}, r"task\.num_range: expected at most 50,000 integers"),
        ("knapsack", {"max_length": 1_000, "max_value": 10_000, "max_capacity": 9_999}, "got 10,000,001"),
        ("regex", {"pattern": "a" * 2_000, "alphabet": [chr(97 + n) for n in range(1_000)]}, "at most 1,000 states"),
        (
            "dfa",
            {"alphabet": "a", "transitions": [[0]] * 2_001, "accepting": [0]},
            "expected at most 2,000 states and 40,000 transitions, got 2,001 states and 2,001 transitions",
        ),
    ],
)
def test_sizes_that_would_fill_the_memory_are_rejected_at_once(task: str, fields: dict, sentence: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=sentence):
        make_task(task, **fields)
    assert time.process_time() - began < 5


def test_a_machine_with_states_that_have_no_answer_is_right_on_its_own_task() -> None:
    """Its strings need not have an answer in the end, so that prefixes of long ones are no samples of their length."""
    table, outputs = ((0, 2), (1, 3), (1, 3), (0, 2)), (0, 1, IGNORE, IGNORE)
    task = make_task("machine", alphabet=("a", "b"), table=table, outputs=outputs, answers=("even", "odd"))
    model = TransducerModel(task.transducer, task.classes)
    assert not task.prefix_exchangeable
    _, dense = next(iter(EvaluationPlan(dense=(41, 60)).measure(model, task)))
    assert dense.protocol == "independent"
    assert dense.mean() == 1.0


def test_answers_that_chance_does_not_find_are_drawn() -> None:
    """One string in 2^26 has an answer: a, twenty-six times, and then whatever comes is none."""
    table = (*((state + 1, 27) for state in range(26)), (27, 27), (27, 27))
    outputs = (*(IGNORE for _ in range(26)), 1, IGNORE)
    task = make_task("machine", alphabet=("a", "b"), table=table, outputs=outputs, answers=("no", "yes"))
    batch = task.sample(4, 26, seeded(0))
    assert batch.inputs.tolist() == [[0] * 26] * 4
    assert batch.last_supervised.tolist() == [25] * 4


def test_lengths_are_possible_where_probabilities_are_no_numbers() -> None:
    """Of the strings of 2,000 symbols one is right, with a probability of 2^-2000."""
    labeled = make_task("machine", alphabet=("a", "b"), table=((1, 0), (1, 1)), outputs=(1, 0), answers=("no", "yes"))
    assert [labeled.is_balanced_length(length) for length in (1, 1_074, 1_075, 2_000)] == [True] * 4
    assert labeled.baseline(2_000) == 1.0
    table, outputs = (*((state, state + 1) for state in range(1, 3)), (3, 3), (3, 3)), (IGNORE, 0, 1, IGNORE)
    cut = make_task("machine", alphabet=("a", "b"), table=table, outputs=outputs, answers=("no", "yes"))
    assert [cut.is_legal_length(length) for length in (1, 2, 3)] == [True, True, False]
    assert [cut.is_balanced_length(length) for length in (1, 2, 3)] == [True, False, False]


def test_the_baseline_is_of_the_last_answers_of_the_strings_that_are_drawn() -> None:
    """Where a string has no answer as a whole, it is scored at its last prefix that has one."""
    table, outputs = ((1, 2, 0), (3, 1, 2), (2, 0, 3), (3, 3, 3)), (IGNORE, 0, 1, IGNORE)
    task = make_task("machine", alphabet=("a", "b", "c"), table=table, outputs=outputs, answers=("no", "yes"))
    for length in (1, 2, 5, 7):
        strings = all_strings(3, length)
        answers = [[answer for answer in row if answer != IGNORE] for row in task.solve(strings).tolist()]
        last = [row[-1] for row in answers if row]
        assert 0 < len(last) < len(strings)
        likeliest = max(last.count(answer) for answer in set(last))
        assert task.baseline(length) == pytest.approx(likeliest / len(last), rel=1e-12)


@pytest.mark.parametrize(("table", "outputs"), [(((0, 1), (0,)), (0, 1)), (((0, 1), (0, 1)), (0,)), ((), ())])
def test_tables_with_gaps_are_refused(table: tuple, outputs: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^task\.table: expected (. rows .* of 2 next states|a non-empty)"):
        make_task("machine", alphabet=("a", "b"), table=table, outputs=outputs, answers=("no", "yes"))


@pytest.mark.parametrize("keep", [_is_positive, _scaled])
def test_odds_by_squaring_are_those_of_symbol_after_symbol(keep) -> None:
    task = make_task("machine", table=((1, 2), (1, 3), (4, 2), (3, 3), (0, 4)), outputs=(0, 1, 0, IGNORE, 1))
    for length in (0, 1, 2, 7, 63, 500):
        expected = _row_after_by_definition(task.transducer, length, keep)
        actual = _row_after(task.transducer, length, keep)
        np.testing.assert_allclose(actual / actual.sum(), expected / expected.sum(), rtol=1e-5 if length else 0)


def test_a_machine_of_as_many_states_as_may_be_is_no_matrix() -> None:
    """Of all pairs of its 50,000 states there would be 20 GB of odds."""
    size = 50_000
    table = tuple((min(state + 1, size - 1), 0) for state in range(size))
    task = make_task("machine", table=table, outputs=(0,) * 9 + (1,) * (size - 9))
    assert [length for length in range(1, 20) if task.is_balanced_length(length)] == list(range(9, 20))
    assert task.baseline(9) == pytest.approx(1 - 2**-9)


def test_answers_to_rare_strings_have_their_odds() -> None:
    """b, any number of times, and then a, after which there is no other answer."""
    table = ((3, 1), (2, 1), (3, 3), (3, 3))
    labeled = make_task(
        "machine", alphabet=("a", "b"), table=table, outputs=(IGNORE, 1, 0, IGNORE), answers=("ends", "goes on")
    )
    assert [labeled.baseline(length) for length in (2, 4, 5_000)] == [0.5, 1 - 2**-3, 1.0]


def test_lengths_are_balanced_where_each_answer_occurs_that_any_string_has() -> None:
    """The start has an answer of its own, and one answer is no state's."""
    table, answers = ((1, 2), (1, 2), (2, 1)), ("no", "yes", "idle", "never")
    task = make_task("machine", alphabet=("a", "b"), table=table, outputs=(2, 0, 1), answers=answers)
    assert [task.is_balanced_length(length) for length in (1, 2, 40)] == [True] * 3
    make_spec("machine", "rnn", {"task": task.model_dump(exclude={"name"})})
