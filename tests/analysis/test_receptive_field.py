"""Gradients and replacements on models whose answers are known."""

from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.analysis.receptive_field import (
    cumulative_field,
    flip_test,
    gradient_norms,
    receptive_window,
    tree_answer,
)
from lengthwise.conventions import PAD
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel
from lengthwise.tasks import make_task


def linear(weights: torch.Tensor):
    """Logits ``sum_t weights[t] @ e_t``, for weights [T, Y, D]."""
    return lambda embedded: torch.einsum("tyd,btd->by", weights, embedded)


@given(st.integers(0, 999), st.integers(1, 9), st.integers(2, 4))
def test_gradients_of_a_linear_model_are_its_weights(seed: int, length: int, num_classes: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(length, num_classes, 5, generator=generator, dtype=torch.float64)
    embedded = torch.randn(3, length, 5, generator=generator, dtype=torch.float64)
    targets = torch.randint(num_classes, (3,), generator=generator)
    norms = gradient_norms(linear(weights), embedded, targets)
    for row, target in enumerate(targets.tolist()):
        others = [k for k in range(num_classes) if k != target]
        share = torch.einsum("tyd,td->y", weights, embedded[row])[others].softmax(0)
        expected = weights[:, target] - torch.einsum("y,tyd->td", share, weights[:, others])
        torch.testing.assert_close(norms[row], expected.norm(dim=1))


def test_gradients_in_parts_are_those_of_the_whole(monkeypatch) -> None:
    generator = torch.Generator().manual_seed(0)
    answer = linear(torch.randn(6, 3, 4, generator=generator))
    embedded, targets = torch.randn(5, 6, 4, generator=generator), torch.randint(3, (5,), generator=generator)
    whole = gradient_norms(answer, embedded, targets)
    for symbols in (1, 13):
        monkeypatch.setattr("lengthwise.analysis.receptive_field.MAX_SYMBOLS_PER_CHUNK", symbols)
        torch.testing.assert_close(gradient_norms(answer, embedded, targets), whole)


@given(st.integers(0, 999))
def test_the_field_is_that_of_cross_entropy(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    answer = linear(torch.randn(6, 3, 4, generator=generator, dtype=torch.float64))
    embedded = torch.randn(5, 6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(3, (5,), generator=generator)
    loss = torch.nn.functional.cross_entropy(answer(embedded), targets, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, embedded)
    torch.testing.assert_close(
        cumulative_field(gradient_norms(answer, embedded, targets)), cumulative_field(gradient.norm(dim=2))
    )


def test_a_sure_answer_still_has_a_field() -> None:
    """The gradient of cross-entropy is exactly 0 in float32 here."""
    weights = torch.tensor([[[900.0], [-900.0]], [[300.0], [-300.0]]])
    norms = gradient_norms(linear(weights), torch.ones(1, 2, 1), torch.tensor([0]))
    assert cumulative_field(norms).tolist() == [[1.0, 0.25]]


def test_the_field_of_equal_positions_is_a_straight_line() -> None:
    field = cumulative_field(torch.ones(2, 200))
    torch.testing.assert_close(field, torch.arange(200, 0, -1).expand(2, -1) / 200)
    assert receptive_window(field, 0.5).tolist() == [101, 101]


@given(st.integers(1, 60), st.integers(1, 60))
def test_the_window_is_where_the_gradient_is(length: int, reach: int) -> None:
    norms = (torch.arange(length, 0, -1) <= reach).double()[None]
    assert receptive_window(cumulative_field(norms)).tolist() == [min(length, reach)]


@pytest.mark.parametrize("value", [0.0, torch.inf, torch.nan])
def test_no_gradient_is_no_field(value: float) -> None:
    with pytest.raises(
        ValueError, match=r"norms: expected a positive, finite sum of gradient norms in every string.* in string 1;"
    ):
        cumulative_field(torch.tensor([[1.0, 2.0], [value, value]]))


def test_one_class_and_a_whole_share_are_refused() -> None:
    with pytest.raises(ValueError, match="expected logits of at least 2 classes, got 1"):
        gradient_norms(linear(torch.ones(2, 1, 3)), torch.ones(1, 2, 3), torch.tensor([0]))
    with pytest.raises(ValueError, match="share: expected a fraction of at least 0 and below 1, got 1"):
        receptive_window(torch.ones(1, 2), 1.0)


@pytest.mark.parametrize("changes", [{}, {"thickness": 2}, {"lower_chunk_sizes": (3,)}])
@pytest.mark.parametrize("variant", ["merge", "paper", "code"])
@pytest.mark.parametrize("length", [1, 2, 27, 63])
def test_a_tree_on_embeddings_is_the_model(variant: str, changes: dict, length: int) -> None:
    task = make_task("cycle-navigation")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2, variant=variant, **changes).double()
    inputs = task.sample(4, length, torch.Generator().manual_seed(0)).inputs
    embedded = model.tree.leaves[inputs - PAD].detach().requires_grad_()
    logits = tree_answer(model)(embedded)
    torch.testing.assert_close(logits, model.last(inputs))
    # What positions get one by one, their symbols get together.
    (by_position,) = torch.autograd.grad(logits.square().sum(), embedded)
    (by_symbol,) = torch.autograd.grad(model.last(inputs).square().sum(), model.embedding.weight)
    together = torch.zeros_like(by_symbol).index_add(0, (inputs - PAD).flatten(), by_position.flatten(0, 1))
    torch.testing.assert_close(together[1:], by_symbol[1:])


class Known(SequenceModel):
    """Answers what `rule` says of the inputs [B, T]."""

    name: ClassVar[str] = "known"

    def __init__(self, rule) -> None:
        super().__init__()
        self.rule = rule

    def reset_parameters(self, generator):
        """It has none."""

    def forward(self, inputs):
        raise NotImplementedError

    def last_state(self, inputs):
        return torch.nn.functional.one_hot(self.rule(inputs), 5).float()

    def readout(self, states):
        return states


def flips_of(rule, task_name: str = "parity", length: int = 20, num_strings: int = 30):
    task, generator = make_task(task_name), torch.Generator().manual_seed(0)
    inputs = task.sample(num_strings, length, generator).inputs
    return flip_test(Known(rule), task, inputs, range(length), generator)


def test_in_a_group_every_replacement_counts() -> None:
    for name in ("parity", "cycle-navigation"):
        task = make_task(name)
        points = flips_of(lambda inputs, task=task: task.solve(inputs)[:, -1], name)
        assert [point.distance for point in points] == list(range(20))
        assert all(point.changed == point.expected == 1 for point in points)


def test_a_model_that_reads_a_window_only_is_found_out() -> None:
    points = flips_of(lambda inputs: inputs[:, -7:].sum(1) % 2)
    assert [point.num_changed for point in points] == [30] * 7 + [0] * 13
    assert [point.num_expected for point in points] == [30] * 20
    assert points[0].interval[1] == 1.0
    assert points[7].interval[0] == 0.0


def test_a_constant_answer_never_changes() -> None:
    assert not any(point.num_changed for point in flips_of(lambda inputs: inputs[:, 0] * 0, "even-pairs"))


def test_even_pairs_depends_on_both_ends() -> None:
    points = flips_of(lambda inputs: inputs[:, 0] * 0, "even-pairs")
    assert [point.expected for point in points] == [1.0] + [0.0] * 18 + [1.0]


def test_only_supervised_pairs_count() -> None:
    """A digit replaced by another digit leaves an expression; by a sign, none."""
    task = make_task("modular-arithmetic")
    inputs = task.encode("1+2")[None].repeat(200, 1)
    points = flip_test(
        Known(lambda inputs: inputs[:, 0] * 0), task, inputs, [0, 1, 2], torch.Generator().manual_seed(0)
    )
    other_digits, other_signs, others = 4, 2, 7
    expected = [other_digits / others, other_signs / others, other_digits / others]
    for point, share in zip(points, expected, strict=True):
        assert point.num_strings / 200 == pytest.approx(share, abs=0.12)
        assert point.num_expected <= point.num_strings < 200


def test_distances_beyond_the_string_are_refused() -> None:
    task, model = make_task("parity"), Known(lambda inputs: inputs[:, 0])
    for distance in (-1, 3):
        with pytest.raises(ValueError, match=rf"distances: expected 0 \(the last symbol\) to 2, got {distance}"):
            flip_test(model, task, task.encode("aba")[None], [distance], torch.Generator())
