"""The likelihood of answers under an input-output hidden Markov model."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.ops.answer_likelihood import (
    MIN_PROBABILITY,
    answer_log_probabilities,
    answer_log_probabilities_by_definition,
)

NUM_STATES, NUM_ANSWERS, NUM_STRINGS = 5, 3, 4


def random_model(num_symbols: int, dtype: torch.dtype, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    shapes = (num_symbols, NUM_STATES, NUM_STATES), (NUM_ANSWERS, NUM_STATES), (NUM_STRINGS, NUM_STATES)
    dims = (1, 0, 1)
    tables = (torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)
    transitions, emissions, initial = (
        table.softmax(dim).requires_grad_() for table, dim in zip(tables, dims, strict=True)
    )
    return transitions, emissions, initial


def random_strings(length: int, num_symbols: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(num_symbols, (NUM_STRINGS, length), generator=generator)
    targets = torch.randint(NUM_ANSWERS, (NUM_STRINGS, length), generator=generator)
    targets[torch.rand(targets.shape, generator=generator) < 0.3] = IGNORE
    return tokens, targets


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 2, 7, 63, 200])
@pytest.mark.parametrize("num_symbols", [2, 40])
def test_values_and_gradients_are_those_of_the_definition(num_symbols: int, length: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(length)
    tables = random_model(num_symbols, dtype, generator)
    tokens, targets = random_strings(length, num_symbols, generator)
    weights = torch.randn(targets.shape, generator=generator, dtype=dtype)
    results = []
    for function in (answer_log_probabilities_by_definition, answer_log_probabilities):
        values = function(tables[0], tables[1], tokens, targets, tables[2])
        results.append((values.detach(), *torch.autograd.grad((weights * values).sum(), tables)))
    # Each gradient sums about 4 x length products, and the messages pass through up to `length` normalized steps.
    unit = torch.finfo(dtype).eps
    for expected, actual in zip(*results, strict=True):
        torch.testing.assert_close(
            actual, expected, rtol=0, atol=32 * length * unit * (1 + float(expected.abs().max()))
        )


def test_the_product_of_probabilities_is_the_sum_over_all_paths_of_states() -> None:
    generator = torch.Generator().manual_seed(0)
    transitions, emissions, initial = (t.detach() for t in random_model(2, torch.float64, generator))
    tokens, targets = torch.tensor([[1, 0, 1]]), torch.tensor([[2, IGNORE, 0]])
    total = 0.0
    for path in product(range(NUM_STATES), repeat=4):
        probability = initial[0, path[0]]
        for before, after, symbol, answer in zip(path, path[1:], tokens[0], targets[0], strict=False):
            probability = probability * transitions[symbol, after, before]
            if answer != IGNORE:
                probability = probability * emissions[answer, after]
        total += float(probability)
    value = answer_log_probabilities(transitions, emissions, tokens, targets, initial[:1])
    assert float(value.sum().exp()) == pytest.approx(total, rel=1e-13)
    assert value[0, 1] == 0


@pytest.mark.parametrize("function", [answer_log_probabilities, answer_log_probabilities_by_definition])
def test_an_impossible_answer_leaves_the_distribution_and_all_gradients_finite(function) -> None:
    transitions = torch.eye(2)[None].clone().requires_grad_()
    emissions, initial = torch.eye(2).requires_grad_(), torch.tensor([[1.0, 0.0]]).requires_grad_()
    # The state never changes, so answer 1 is impossible, and answer 0 is certain again afterwards.
    values = function(transitions, emissions, torch.zeros(1, 3, dtype=torch.int64), torch.tensor([[0, 1, 0]]), initial)
    assert values[0, [0, 2]].tolist() == [0, 0]
    assert float(values[0, 1].detach()) == pytest.approx(math.log(MIN_PROBABILITY))
    for gradient in torch.autograd.grad(values.sum(), (transitions, emissions, initial)):
        assert bool(gradient.isfinite().all())


def test_what_is_no_string_of_symbols_is_refused() -> None:
    transitions, emissions, initial = random_model(2, torch.float32, torch.Generator().manual_seed(0))
    tokens, targets = random_strings(3, 2, torch.Generator().manual_seed(0))
    for changed, sentence in (
        (tokens + 1, r"tokens: expected symbol ids in 0..1, got ids in 1..2"),
        (tokens - 1, r"tokens: expected symbol ids in 0..1, got ids in -1..0"),
        (tokens[:, :0], r"tokens: expected at least 1 step, got 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            answer_log_probabilities(transitions, emissions, changed, targets[:, : changed.shape[1]], initial)
