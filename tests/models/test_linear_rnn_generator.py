"""The generator as a model: its precisions against one another, ties, feedback, and standard RNNs with its weights."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.constructions.memorization.closed_form import complex_rotation, permutation
from lengthwise.constructions.memorization.feedback import counter, cycle
from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.networks import as_elman, as_linear_rnn
from lengthwise.constructions.memorization.rational import memorize_rationally
from lengthwise.constructions.memorization.words import parse_word
from lengthwise.conventions import Tie
from lengthwise.models.linear_rnn_generator import (
    LinearRNNGenerator,
    LinearRNNGeneratorConfig,
    generate_by_definition,
)

words = st.text("abc", min_size=2, max_size=9).filter(lambda text: len(set(text)) > 1)


def generated(model: LinearRNNGenerator, symbols: tuple[str, ...], count: int) -> str:
    return "".join(symbols[letter] for letter in model.generate(count, ties="error"))


@given(words)
def test_says_what_the_arrays_say(text: str) -> None:
    generator = memorize(text).generator
    for dtype in (torch.float64, torch.float32):
        assert generated(as_linear_rnn(generator, dtype), generator.symbols, 60) == generator.generate(60)


def test_reads_its_strings_as_it_generates_them() -> None:
    """With START and what it said before as input, its logits are those from which the next symbols came."""
    model = as_linear_rnn(memorize("abacabad").generator)
    letters = model.generate(30)
    inputs = torch.cat([torch.tensor([4]), letters[:-1]])
    assert torch.equal(model(inputs[None])[0].argmax(-1), letters)


def test_integers_are_said_exactly_in_every_precision() -> None:
    memorized = memorize_rationally("00000111")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        assert generated(as_linear_rnn(memorized.generator, dtype), ("0", "1"), 5_000) == 625 * "00000111"


@pytest.mark.parametrize("n", [2, 5])
def test_feedback_by_definition(n: int) -> None:
    for generator in (cycle(tuple("abcde"[:n])), counter(n)):
        model = as_linear_rnn(generator)
        assert generated(model, generator.symbols, 40) == generator.generate(40)


def test_the_fast_path_is_the_definition() -> None:
    """Beyond the number of states that are read at once, and at 0, 1 and 2 symbols."""
    model = as_linear_rnn(memorize("abcacb").generator)
    for count in (0, 1, 2, 63, 4_500):
        assert torch.equal(model.generate(count), generate_by_definition(model, count))


def test_ties_go_to_the_lowest_index_or_are_an_error() -> None:
    model = LinearRNNGenerator(LinearRNNGeneratorConfig(d_model=1), vocab_size=4, num_classes=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert model.generate(4).tolist() == [0, 0, 0, 0]
    with pytest.raises(Tie, match="step 1: expected one largest logit, got"):
        model.generate(4, ties="error")
    with torch.no_grad():
        model.input_weight[:, 0] = 1.0
    with pytest.raises(Tie, match="step 1"):
        model.generate(4, ties="error")


def test_generating_wants_an_alphabet_with_start() -> None:
    model = LinearRNNGenerator(LinearRNNGeneratorConfig(d_model=2), vocab_size=3, num_classes=3)
    with pytest.raises(ValueError, match="vocab_size: expected 4, a symbol for each class and one for START, got 3"):
        model.generate(2)
    model = LinearRNNGenerator(LinearRNNGeneratorConfig(d_model=2), vocab_size=4, num_classes=3)
    with pytest.raises(ValueError, match="count: expected at least 0 symbols, got -1"):
        model.generate(-1)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("text", ["00000111", "abacabad", "abcacb"])
def test_standard_networks_say_the_same(activation: str, text: str) -> None:
    memorized = memorize(text)
    model = as_elman(memorized.generator, activation, memorized.word.period)
    assert model.config.d_model == memorized.upper
    letters = generate_by_definition(model, 1_000, ties="error")
    assert np.array_equal(letters.numpy(), np.resize(memorized.word.letters, 1_000))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_standard_networks_with_feedback_say_the_same(activation: str) -> None:
    for generator in (cycle(("a", "b", "c")), counter(4), permutation(parse_word("abca"))):
        letters = generate_by_definition(as_elman(generator, activation, 40), 40)
        assert "".join(generator.symbols[letter] for letter in letters) == generator.generate(40)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ValueError, match="expected real numbers, got complex numbers"):
        as_linear_rnn(complex_rotation(2, 1))
    with pytest.raises(ValueError, match="expected at least one dimension, got 0"):
        as_elman(memorize("a").generator, "relu", 3)
