"""Nets side by side: states, generation and training are each net's own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.constructions.memorization.lifetime import fastest_formula, predicted_lifetime
from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.networks import as_linear_rnn
from lengthwise.studies.memorization.experiments.memorization import (
    LOW,
    SIZES,
    frequencies_of,
    rnn_memorization,
    rounded_nets,
    trained_words,
)
from lengthwise.studies.memorization.experiments.standard import KINDS as STANDARD_KINDS
from lengthwise.studies.memorization.experiments.standard import SIZES as STANDARD
from lengthwise.studies.memorization.experiments.standard import Standard
from lengthwise.studies.memorization.experiments.standard import study as standard_study
from lengthwise.studies.memorization.pages.standard import standard_page
from lengthwise.training.memorization import (
    Descent,
    Stack,
    descend,
    draw,
    generate,
    logits,
    states,
    states_by_definition,
)

SHORT = Descent(steps=150, learning_rate=0.05)


@given(st.integers(1, 4), st.integers(1, 5), st.sampled_from([1, 2, 3, 7, 16, 63]), st.integers(0, 99))
def test_states_in_rounds_are_those_one_after_another(count: int, d: int, length: int, seed: int) -> None:
    """Values and gradients."""
    generator = torch.Generator().manual_seed(seed)
    hidden = draw(count, d, 2, generator).hidden.double()
    added = torch.randn(count, d, length, generator=generator, dtype=torch.float64)
    results = []
    for function in (states, states_by_definition):
        leaves = hidden.clone().requires_grad_(), added.clone().requires_grad_()
        memorized = function(*leaves)
        results.append((memorized, *torch.autograd.grad(memorized.sin().sum(), leaves, materialize_grads=True)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def stacked(text: str) -> Stack:
    """A generator that was written down, as a stack of one net."""
    generator = memorize(text).generator
    arrays = (generator.hidden, np.zeros((generator.dimension, len(generator.symbols))))
    tensors = [torch.tensor(array)[None] for array in (*arrays, generator.first, generator.readout, generator.bias)]
    return Stack(*tensors)


def test_generates_as_the_model_does() -> None:
    stack = stacked("abacabad")
    assert torch.equal(generate(stack, 40)[0], as_linear_rnn(memorize("abacabad").generator).generate(40))


def test_answers_are_those_of_the_model() -> None:
    """With W_x learned, and every letter given."""
    stack = Stack(*(tensor.double() for tensor in draw(2, 3, 2, torch.Generator().manual_seed(0))))
    letters = torch.tensor([[0, 1, 1, 0, 1], [1, 1, 0, 0, 0]])
    answers = logits(stack, letters)
    for position in range(2):
        state = stack.first[position]
        for step, letter in enumerate(letters[position]):
            torch.testing.assert_close(answers[position, step], stack.readout[position] @ state + stack.bias[position])
            state = stack.hidden[position] @ state + stack.inputs[position, :, letter]


def test_tanh_nets_are_torchs_rnn() -> None:
    """The same weights in `torch.nn.RNN`: answers to given letters, and what is generated with its own ones."""
    stack = Stack(*(tensor.double() for tensor in draw(1, 3, 2, torch.Generator().manual_seed(0))))
    net = torch.nn.RNN(2, 3, bias=False, batch_first=True).double()
    with torch.no_grad():
        net.weight_hh_l0.copy_(stack.hidden[0])
        net.weight_ih_l0.copy_(stack.inputs[0])
        letters = torch.tensor([[0, 1, 1, 0, 1, 0]])
        one_hot = torch.nn.functional.one_hot(letters[:, :-1], 2).double()
        later, _ = net(one_hot, stack.first[None])
    computed = torch.cat([stack.first[:, None], later], 1)
    expected = computed @ stack.readout[0].T + stack.bias[0]
    torch.testing.assert_close(logits(stack, letters, "tanh"), expected)
    assert not torch.allclose(logits(stack, letters), expected)
    generated = generate(stack, 30, "tanh")
    assert torch.equal(logits(stack, generated, "tanh").argmax(2), generated)


def test_a_saturated_net_says_its_word_for_good() -> None:
    """By construction: tanh(9 W h) of the two corners (1, -1) and (-1, 1), which W swaps."""
    swap = 9 * torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    stack = Stack(swap, torch.zeros(1, 2, 2), torch.tensor([[1.0, -1.0]]), torch.eye(2)[None], torch.zeros(1, 2))
    assert generate(stack, 5_000, "tanh")[0].tolist() == [0, 1] * 2_500


# It trains 24 nets; that training lowers the loss is tested below by default.
@pytest.mark.slow
def test_success_of_standard_nets_is_counted_word_by_word() -> None:
    size = STANDARD["small"]._replace(
        words=("01", "001"), dimensions=range(2, 3), seeds=3, descent=Descent(300, 0.05), length=12, longest=24
    )
    rows = {(row.word, row.kind): row for row in standard_study(size).rows}
    assert len(rows) == 2 * 4
    for row in rows.values():
        assert 0 <= row.num_lasting <= row.num_right <= 3
        assert row.smallest == {"01": 1, "001": 2}[row.word]
    assert sum(row.num_right for row in rows.values()) > 12, (
        "of 24 nets, of which above the smallest dimension most are"
    )
    page = standard_page(Standard(size, list(rows.values())), "page")
    assert all(kind in "".join(page.sections) for kind in STANDARD_KINDS)


def test_nets_do_not_know_of_one_another() -> None:
    letters = torch.tensor([[0, 0, 1] * 4, [0, 1, 1] * 4])
    stack = draw(2, 3, 2, torch.Generator().manual_seed(0))
    together, losses = descend(stack, letters, SHORT, learns_inputs=True)
    for position in range(2):
        alone, loss = descend(
            Stack(*(t[position : position + 1] for t in stack)),
            letters[position : position + 1],
            SHORT,
            learns_inputs=True,
        )
        torch.testing.assert_close(losses[position : position + 1], loss, atol=1e-3, rtol=1e-2)
        assert alone.hidden.shape == together.hidden[position : position + 1].shape


def test_training_lowers_the_loss_and_keeps_w_x_at_0() -> None:
    letters = torch.tensor([[0, 0, 1, 1] * 4] * 8)
    stack = draw(8, 4, 2, torch.Generator().manual_seed(0))
    before = torch.nn.functional.cross_entropy(
        logits(stack._replace(inputs=torch.zeros_like(stack.inputs)), letters).mT, letters, reduction="none"
    ).mean(1)
    learned, losses = descend(stack, letters, SHORT, learns_inputs=False)
    assert (losses < before).all()
    assert not learned.inputs.any()
    assert (generate(learned, 16) == letters).all(1).any()


def test_first_matrices_are_orthogonal() -> None:
    hidden = draw(3, 4, 2, torch.Generator().manual_seed(0)).hidden
    torch.testing.assert_close(hidden @ hidden.mT, torch.eye(4).expand(3, -1, -1))


def test_frequencies_of_written_generators_are_theirs() -> None:
    for text in ("abacabad", "0010111", "0001011"):
        memorized = memorize(text)
        eigenvalues = np.linalg.eigvals(memorized.generator.hidden).tolist()
        frequencies, off = frequencies_of(eigenvalues, memorized.word.period)
        assert frequencies == memorized.frequencies
        assert off == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("precision", LOW)
def test_rounded_nets_live_as_long_as_the_generators_that_they_are(precision: str) -> None:
    for text in ("0010111", "0000011111", "0000001"):
        memorized = memorize(text)
        (net,) = rounded_nets(stacked(text), [memorized], precision, 500)
        predicted = predicted_lifetime(memorized, precision).first_wrong
        assert net.formula == pytest.approx(fastest_formula(memorized, precision), rel=1e-6)
        assert net.first_wrong == (predicted if predicted <= 500 else None)
    (exact,) = rounded_nets(stacked("abac"), [memorize("abac")], precision, 500)
    assert exact.formula > 1e12
    assert exact.first_wrong is None


def test_words_have_the_given_periods() -> None:
    words = trained_words(SIZES["smoke"])
    assert [memorized.word.period for memorized in words] == [2, 3, 3, 3]
    assert all(memorized.lower == memorized.upper for memorized in words)


def test_the_note_has_no_larger_scale() -> None:
    with pytest.raises(ValueError, match=r"^scale: .*the note trains nothing"):
        rnn_memorization("paper")
