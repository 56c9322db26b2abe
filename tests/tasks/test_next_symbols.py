"""Which symbols may come next: several languages, against the definition; Tomita 4 is checked by the contract."""

import re
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from task_strings import all_strings, seeded

from lengthwise.conventions import IGNORE
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.tasks import make_task
from lengthwise.tasks.regular.bhattamishra2020 import LANGUAGES, PATTERNS
from lengthwise.tasks.regular.next_symbols import NextSymbols
from lengthwise.tasks.regular.recognition import IN, REPEAT_WEIGHT

BASES: list[tuple[dict[str, Any], bool]] = [
    *(({"name": "tomita", "index": index}, with_end) for index in (2, 3, 4, 7) for with_end in (False, True)),
    *(({"name": "tomita", "index": index}, True) for index in (5, 6)),
    *(({"name": "bounded-dyck", "depth": depth}, with_end) for depth in (1, 2, 3, 4) for with_end in (False, True)),
    ({"name": "regex", "pattern": "ab(a|b)?"}, False),
    ({"name": "regex", "pattern": "(a|b)*abb"}, True),
]


@pytest.fixture(params=BASES, ids=lambda given: f"{given[0]}-{given[1]}")
def task(request) -> NextSymbols:
    base, with_end = request.param
    made = make_task("next-symbols", base=base, with_end=with_end)
    assert isinstance(made, NextSymbols)
    return made


def members(task: NextSymbols, longest: int) -> set[tuple[int, ...]]:
    """All strings of the language up to a length, by the base task's own rule; the empty one is left out."""
    inside_all: set[tuple[int, ...]] = set()
    for length in range(1, longest + 1):
        strings = all_strings(len(task.symbols), length)
        inside = strings[task.base.solve(strings)[:, -1] == IN]
        inside_all |= set(map(tuple, inside.tolist()))
    return inside_all


def test_answers_are_what_the_members_of_the_language_say(task: NextSymbols) -> None:
    """By the definition: after w may come what comes after w in a member; five more symbols complete any of these."""
    longest = 5
    known = members(task, longest + 5)
    prefixes = {string[:end] for string in known for end in range(1, len(string) + 1)}
    num_symbols = len(task.symbols)
    for length in range(1, longest + 1):
        answers = task.solve(all_strings(num_symbols, length))[:, -1].tolist()
        for string, answer in zip(product(range(num_symbols), repeat=length), answers, strict=True):
            if string not in prefixes:
                assert answer == IGNORE
                continue
            legal = ", ".join(task.symbols[s] for s in range(num_symbols) if (*string, s) in prefixes) or "no symbol"
            assert task.classes[answer] == legal + " or end" * (task.with_end and string in known)


def test_samples_are_prefixes_and_all_of_them(task: NextSymbols) -> None:
    for length in range(1, 7):
        if not task.is_legal_length(length):
            assert (task.solve(all_strings(len(task.symbols), length))[:, -1] == IGNORE).all()
            continue
        inputs, targets = task.sample(4_000, length, seeded(length))
        assert (targets != IGNORE).all()
        every = all_strings(len(task.symbols), length)
        legal = every[task.solve(every)[:, -1] != IGNORE]
        assert set(map(tuple, inputs.tolist())) == set(map(tuple, legal.tolist()))


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_the_baseline_is_that_of_the_odds_spelled_out(task: NextSymbols, length: int) -> None:
    if not task.is_legal_length(length):
        with pytest.raises(ValueError, match="next-symbols has no strings of length"):
            task.baseline(length)
        return
    strings = all_strings(len(task.symbols), length)
    answers = task.solve(strings)[:, -1]
    strings, answers = strings[answers != IGNORE], answers[answers != IGNORE]
    persistent = REPEAT_WEIGHT ** (strings[:, 1:] == strings[:, :-1]).sum(1).double()
    odds = (1 / len(strings) + persistent / persistent.sum()) / 2
    shares: Counter[int] = Counter()
    for answer, share in zip(answers.tolist(), odds.tolist(), strict=True):
        shares[answer] += share
    assert task.baseline(length) == pytest.approx(max(shares.values()), rel=1e-12)
    assert task.is_balanced_length(length) == (len(shares) == len(task.classes))


@pytest.mark.parametrize("depth", [1, 2, 3, 12])
def test_of_bounded_brackets_the_depth_says_what_may_come(depth: int) -> None:
    """Section 4 of the source: at depth 0 an opening one, at depth n a closing one, else both."""
    task = make_task("next-symbols", base={"name": "bounded-dyck", "depth": depth})
    inputs, targets = task.sample(64, 200, seeded(0))
    heights = (1 - 2 * inputs).cumsum(1)
    names = np.array([*task.classes])[targets.numpy()]
    expected = np.where(heights == 0, "(", np.where(heights == depth, ")", "(, )"))
    assert (names == expected).all()
    assert set(names.ravel().tolist()) == set(task.classes)


@pytest.mark.parametrize("index", [5, 6])
def test_where_all_symbols_may_always_come_the_end_is_membership(index: int) -> None:
    base = make_task("tomita", index=index)
    task = make_task("next-symbols", base={"name": "tomita", "index": index}, with_end=True)
    strings = torch.randint(2, (50, 100), generator=seeded(0))
    assert task.classes == ("0, 1 or end", "0, 1")
    assert torch.equal(1 - task.solve(strings), base.solve(strings))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"base": "parity"}, "base: expected a task that recognizes a language, got parity; choose for example tomita"),
        ({"base": "tomitta"}, "did you mean 'tomita'"),
        ({"base": {"name": "tomita", "index": 5}}, "the set is always '0, 1'; set with_end=true, or choose another"),
        ({"base": {"name": "tomita", "index": 1}, "with_end": True}, "always '1 or end'; choose another language"),
        ({"with_end": "sometimes"}, "with_end: expected a valid boolean"),
    ],
)
def test_what_has_nothing_to_learn_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make_task("next-symbols", **fields)


def test_a_specification_comes_back() -> None:
    settings = {"task": {"base": {"name": "tomita", "index": 3}}, "train": {"steps": 3}}
    spec = make_spec("next-symbols", "regular-gpt", settings)
    assert spec_from_json(spec.to_json()) == spec


@pytest.mark.parametrize("with_end", [False, True])
def test_balanced_lengths_of_bounded_brackets(with_end: bool) -> None:
    """Heights 0 and n must both be possible, and one between them."""
    for depth in range(1, 8):
        task = make_task("next-symbols", base={"name": "bounded-dyck", "depth": depth}, with_end=with_end)
        balanced = [length for length in range(1, 30) if task.is_balanced_length(length)]
        assert balanced == ([] if depth % 2 or depth == 2 else list(range(depth, 30, 2)))


def test_answers_that_are_rarer_than_any_float_are_answers() -> None:
    """No letter twice in a row until a d: after 1,200 letters a string without d is one in 2^1,200 or so."""
    table = [[1, 2, 3, 4], [5, 2, 3, 4], [1, 5, 3, 4], [1, 2, 5, 4], [4, 4, 4, 4], [5, 5, 5, 5]]
    base = {"name": "dfa", "alphabet": "abcd", "transitions": table, "accepting": [0, 1, 2, 3, 4]}
    task = make_task("next-symbols", base=base)
    for length in (1_000, 1_200, 5_000):
        assert task.is_balanced_length(length)
    string = task.encode("ab" * 600)[None]
    assert "b" not in task.classes[int(task.solve(string)[0, -1])]


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_language_of_the_paper_has_a_task(name: str) -> None:
    task = make_task("next-symbols", base=LANGUAGES[name], with_end=True, with_other=True)
    assert task.classes[-1] == "another set"
    assert (len(task.members) == 1) == (name == "Tomita 1"), "all prefixes of its strings are its strings"
    assert len(set(task.classes)) == len(task.classes) == len(task.members) + 1


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("(aa)*", ["aa", "aaaa"], ["a", "aaa"]),
        ("(aaaa)*", ["aaaa"], ["aa", "aaa", "aaaaaa"]),
        ("(abab)*", ["abab", "abababab"], ["ab", "ababab", "aabb"]),
        ("aa*bb*cc*dd*ee*", ["abcde", "aabcddde"], ["abcd", "abde", "abcdea"]),
        ("{a,b}*d{b,c}*", ["d", "abadbcb"], ["ab", "adad", "cd", "da"]),
        ("{0,1,2}*02*", ["0", "2102", "0022"], ["2", "01", "012", "222222222"]),
    ],
)
def test_the_languages_by_examples(name: str, inside: list[str], outside: list[str]) -> None:
    task = make_task("regex", pattern=PATTERNS[name])
    for text in inside + outside:
        assert bool(task.solve(task.encode(text)[None])[0, -1]) == (text in inside)
