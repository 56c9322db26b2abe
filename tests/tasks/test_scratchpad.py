"""Scratchpads of several base tasks; those of parity are checked by the contract."""

import re
from typing import Any

import pytest
import torch
from task_strings import check_against_transducer, seeded

from lengthwise.conventions import IGNORE
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.tasks import RegularTask, make_task
from lengthwise.tasks.regular.scratchpad import Scratchpad

BASES: list[dict[str, Any]] = [
    {"name": "cycle-navigation", "size": 3},
    {"name": "tomita", "index": 6},
    {"name": "word-problem", "group": "S3"},
    {"name": "machine"},
]


@pytest.fixture(params=BASES, ids=lambda base: base["name"])
def task(request) -> Scratchpad:
    made = make_task("scratchpad", base=request.param)
    assert isinstance(made, Scratchpad)
    return made


def test_formula_and_machine_agree(task: Scratchpad) -> None:
    check_against_transducer(task, longest=4)


def test_answers_are_those_of_the_base_task_symbol_by_symbol(task: Scratchpad) -> None:
    """Spelled out from names: each symbol, then `=` and the answer to all symbols so far."""
    base, length = task.base, 9
    inputs, targets = task.sample(32, 2 * length - 1, seeded(0))
    for string, answers in zip(inputs, targets, strict=True):
        names = [task.symbols[index] for index in string]
        symbols = torch.tensor([base.symbols.index(name) for name in names[::2]])
        answered = base.transducer.run(symbols[None].numpy())[0]
        expected = ["=" + base.classes[answer].replace(" ", "_") for answer in answered]
        assert names[1::2] == expected[:-1]
        assert answers[::2].tolist() == answered.tolist()
        assert answers[1::2].tolist() == [IGNORE] * (length - 1)


def test_a_wrong_answer_spoils_all_that_comes_after_it_and_nothing_before(task: Scratchpad) -> None:
    inputs, targets = task.sample(64, 19, seeded(0))
    num_symbols, num_answers = len(task.base.symbols), len(task.base.classes)
    inputs[:, 7] = num_symbols + (inputs[:, 7] - num_symbols + 1) % num_answers
    spoiled = torch.cat([targets[:, :7], torch.full((64, 12), IGNORE)], 1)
    assert torch.equal(task.solve(inputs), spoiled)
    assert task.transducer.run(inputs.numpy()).tolist() == spoiled.tolist()


def test_strings_are_those_that_the_base_task_draws(task: Scratchpad) -> None:
    strings = task.base.sample(16, 10, seeded(3)).inputs
    assert torch.equal(task.sample(16, 19, seeded(3)).inputs[:, ::2], strings)
    assert torch.equal(task.write(strings)[:, ::2], strings)


def test_chance_balance_and_exchangeability_are_the_base_tasks(task: Scratchpad) -> None:
    base: RegularTask = task.base
    for length in range(1, 10):
        assert task.baseline(2 * length - 1) == base.baseline(length)
        assert task.is_balanced_length(2 * length - 1) == base.is_balanced_length(length)
        assert not task.is_legal_length(2 * length)
    assert task.prefix_exchangeable == base.prefix_exchangeable


def test_specifications_come_back_with_the_base_task(task: Scratchpad) -> None:
    spec = make_spec("scratchpad", "transformer", {"task": task.model_dump(mode="json")})
    assert spec.task == task
    assert spec_from_json(spec.to_json()) == spec
    other = make_spec("scratchpad", "transformer", {})
    assert other.id != spec.id
    assert other.task == make_task("scratchpad", base=make_task("parity", p=0.5))


def test_answers_with_spaces_in_their_names_become_one_word() -> None:
    symbols = make_task("scratchpad", base="word-problem").symbols
    assert symbols == ("a", "b", "=()", "=(1_2)", "=(0_1)", "=(0_1_2)", "=(0_2_1)", "=(0_2)")


@pytest.mark.parametrize(
    ("base", "sentence"),
    [
        ("paritty", "task.base.name: unknown task 'paritty'; did you mean 'parity'?"),
        ({"name": "tomita", "index": 9}, "task.base.index: expected a number less than or equal to 7, got 9"),
        ({"name": "tomita", "indx": 9}, "task.base.indx: no such setting; did you mean 'index'?"),
        ("knapsack", "task.base.name: expected a regular task, got 'knapsack'; choose for example tomita"),
        (3, "task.base: expected a section of settings such as task.base.key, got 3"),
        (
            "modular-arithmetic",
            "task.base: expected a task that answers every prefix, because an answer follows each symbol, got "
            "modular-arithmetic, which",
        ),
        (
            "scratchpad",
            "task.base: expected a task that answers every prefix, because an answer follows each symbol, got "
            "scratchpad, which leaves",
        ),
        (
            {"name": "machine", "alphabet": ["a", "=no"]},
            "task.base: expected different names without spaces for all symbols and answers, got ('a', "
            "'=no', '=no', '=yes')",
        ),
        ({"name": "machine", "alphabet": ["a", " "]}, "task.base: expected different names without spaces"),
    ],
)
def test_bases_that_do_not_fit_are_one_sentence(base: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}") as caught:
        make_task("scratchpad", base=base)
    assert "\n" not in str(caught.value)
