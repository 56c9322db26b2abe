"""Perplexities are those of the last tokens and of whole chunks, at the same positions for all lengths and models."""

import math
from collections.abc import Iterator
from statistics import fmean

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lengthwise.evaluation import perplexity as perplexity_module
from lengthwise.evaluation.perplexity import (
    MAX_NLL,
    chunk_ends,
    frequency_perplexity,
    paired_ratio,
    perplexity_curve,
    token_nlls,
)
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models import RecurrentModel, SequenceModel, make_model
from lengthwise.tasks import make_task
from lengthwise.text.language import LanguageTask

TASK = make_task("text")
assert isinstance(TASK, LanguageTask)
MODELS = {
    "transformer": make_model("transformer", TASK, d_model=8, num_heads=2, positions="alibi"),
    "gru": make_model("gru", TASK, d_model=8),
}


def log_probability(model: SequenceModel, chunk: Tensor, position: int) -> float:
    """The definition: the model reads what stands before a position, and nothing else."""
    with torch.no_grad():
        logits = model.last(chunk[None, :position])[0].double()
    return float(logits.log_softmax(0)[chunk[position]])


@pytest.mark.parametrize("name", ["rnn", "gru"])
def test_logits_are_computed_a_few_positions_at_a_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of states that a model gives a thousand positions of at once, too."""
    model = make_model(name, TASK, d_model=8)
    chunks = torch.randint(len(TASK.symbols), (3, 40), generator=torch.Generator().manual_seed(0))
    whole = token_nlls(model, chunks)
    most = 3 * 7 * len(TASK.symbols)
    monkeypatch.setattr(perplexity_module, "MAX_LOGITS_PER_CHUNK", most)
    sizes: list[int] = []
    model.readout.register_forward_hook(lambda module, states, logits: sizes.append(logits.numel()))
    for actual, expected in zip(token_nlls(model, chunks), whole, strict=True):
        torch.testing.assert_close(actual, expected)
    assert max(sizes) <= most


@pytest.mark.parametrize("name", MODELS)
def test_both_protocols_are_as_defined_and_end_where_all_do(name: str) -> None:
    model, tokens = MODELS[name], TASK.tokens("test")
    curve = perplexity_curve(model, TASK, [2, 7, 20], num_chunks=3, seed=5)
    ends = chunk_ends(len(tokens), 20, 3, seed=5).tolist()
    for point in curve.points:
        chunks = [torch.from_numpy(tokens[end + 1 - point.length : end + 1].astype(np.int64)) for end in ends]
        expected = [-log_probability(model, chunk, point.length - 1) for chunk in chunks]
        assert point.last == pytest.approx(expected, abs=1e-4)
        assert point.perplexity == pytest.approx(math.exp(fmean(expected)), rel=1e-4)
        everything = [-log_probability(model, chunk, t) for chunk in chunks for t in range(1, point.length)]
        assert point.whole == pytest.approx(fmean(everything), abs=1e-4)
    assert [point.length for point in curve.points] == [2, 7, 20]


def test_curves_of_two_models_are_paired_only_where_ends_and_text_agree() -> None:
    one, other = (perplexity_curve(model, TASK, [4, 9], num_chunks=5) for model in MODELS.values())
    assert one.ends == other.ends
    assert one.baseline == other.baseline
    different = [
        perplexity_curve(MODELS["gru"], TASK, [4, 10], num_chunks=5),
        perplexity_curve(MODELS["gru"], TASK, [4, 9], num_chunks=5, seed=1),
        perplexity_curve(MODELS["gru"], TASK, [4, 9], num_chunks=5, split="valid"),
    ]
    assert len({curve.ends for curve in (one, *different)}) == 4


def test_ends_reach_all_of_the_text_but_for_the_longest_chunk() -> None:
    ends = chunk_ends(2_000, 20, 2_000, seed=0)
    assert sorted(ends.tolist()) == list(range(19, 2_000))
    many = chunk_ends(60, 20, 5, seed=0)
    assert set(many.tolist()) <= set(range(19, 60))


def test_no_last_token_of_a_short_text_counts_twice() -> None:
    """Else an interval would be too narrow: that of one token, however often it is measured, would be a point."""
    for num_chunks in (1, 5, 11, 256):
        ends = chunk_ends(30, 20, num_chunks, seed=0).tolist()
        assert len(ends) == len(set(ends)) == min(num_chunks, 11)
    whole = len(TASK.tokens("test"))
    curve = perplexity_curve(MODELS["gru"], TASK, [whole], num_chunks=256)
    assert curve.num_chunks == 1
    assert math.isnan(curve.points[0].interval[0])


class Wide(nn.Module):
    """Counts how many positions its logits are asked for at a time."""

    widest = 0

    def forward(self, states: Tensor) -> Tensor:
        Wide.widest = max(Wide.widest, states.numel() // states.shape[0] // states.shape[-1])
        return states[..., :1] * torch.arange(3.0)


class Sum(RecurrentModel):
    """Keeps the sum of what it has read."""

    def __init__(self) -> None:
        super().__init__()
        self.readout = Wide()

    def reset_parameters(self, generator: torch.Generator) -> None: ...

    def initial_state(self, batch_size: int) -> Tensor:
        return torch.zeros(batch_size, 1)

    def step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = state + token[:, None]
        return self.readout(state), state

    def forward(self, inputs: Tensor) -> Tensor:
        raise AssertionError("reads all positions at once, so that memory grows with the length")


def test_a_recurrent_model_streams() -> None:
    chunks = torch.tensor([[0, 1, 2, 1], [1, 1, 0, 2]])
    last, whole = token_nlls(Sum(), chunks)
    assert Wide.widest == 1
    for row, chunk in enumerate(chunks.tolist()):
        expected = []
        for position in range(1, 4):
            weights = [math.exp(sum(chunk[:position]) * k) for k in range(3)]
            expected.append(-math.log(weights[chunk[position]] / sum(weights)))
        assert float(last[row]) == pytest.approx(expected[-1], rel=1e-5)
        assert float(whole[row]) == pytest.approx(fmean(expected), rel=1e-5)


def test_states_that_overflow_count_as_the_worst_and_no_perplexity_is_infinite() -> None:
    class Overflows(Sum):
        def states(self, inputs: Tensor) -> Iterator[Tensor]:
            yield torch.full((*inputs.shape, 1), math.inf)

    last, _ = token_nlls(Overflows(), torch.tensor([[0, 1, 2]]))
    assert last.tolist() == [MAX_NLL]


def test_pairs_are_closer_than_the_two_alone() -> None:
    """Of equal gaps nothing is uncertain, however different the chunks are."""
    first = [1.0, 5.0, 9.0, 2.0]
    ratio = paired_ratio([nll + 0.1 for nll in first], first)
    assert ratio == pytest.approx((math.exp(0.1),) * 3)
    assert paired_ratio([MAX_NLL, 0.5], [0.5, MAX_NLL]) == pytest.approx((1.0, 0.0, math.inf))
    with pytest.raises(
        ValueError, match=r"^second: expected 4 chunks, as in `first`, got 3; measure both on the same chunks"
    ):
        paired_ratio(first, first[1:])


def test_the_baseline_is_that_of_frequencies() -> None:
    train, targets = np.array([0, 0, 1], dtype=np.uint16), np.array([0, 1, 2], dtype=np.uint16)
    assert frequency_perplexity(train, targets, 3) == pytest.approx((3 / 6 * 2 / 6 * 1 / 6) ** (-1 / 3))


@pytest.mark.parametrize(
    ("lengths", "num_chunks", "sentence"),
    [
        ([], 1, "^lengths: expected at least one length, got none"),
        (5, 1, r"^lengths: expected a list of lengths, such as \[41, 100\], got 5; put the length in brackets"),
        ([4.5], 1, "^lengths: expected whole numbers, got 4.5; give numbers"),
        ([1, 5], 1, "^lengths: expected lengths of at least 2 tokens .*, got 1"),
        ([5, 9_999], 1, "^lengths: expected lengths from 2 to 2,197 tokens .* got 9,999; give"),
        ([5], 0, "^num_chunks: expected a whole number from 1 to 1,000,000, got 0"),
    ],
)
@pytest.mark.unchecked
def test_requests_out_of_bounds_are_refused(lengths: list[int], num_chunks: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        perplexity_curve(MODELS["gru"], TASK, lengths, num_chunks=num_chunks)


@pytest.mark.unchecked
def test_tasks_with_answers_have_no_perplexity() -> None:
    with pytest.raises(
        ValueError, match=r"^task: expected a text, got parity, which has answers; use length_curve, or"
    ):
        perplexity_curve(MODELS["gru"], make_task("parity"), [4])


def test_texts_are_measured_at_lengths_below_those_of_answers() -> None:
    assert EvaluationPlan().limit_lengths(32, TASK).reset_unused(TASK).chunk_lengths == (32,)
    with pytest.raises(ValueError, match=r"^max_length: expected at least 2, the first length that is measured, got 1"):
        EvaluationPlan().limit_lengths(1, TASK)
    with pytest.raises(ValueError, match=r"^max_length: expected at least 41"):
        EvaluationPlan().limit_lengths(32, make_task("parity"))


def test_a_plan_measures_what_the_text_has() -> None:
    plan = EvaluationPlan(num_chunks=2)
    assert [p.length for p in plan.limit_lengths(256).measure_perplexity(MODELS["transformer"], TASK).points] == [
        128,
        256,
    ]
    beyond = plan.model_copy(update={"chunk_lengths": (9_999,)})
    assert [p.length for p in beyond.measure_perplexity(MODELS["transformer"], TASK).points] == [2_197]
    assert plan.limit_lengths(50).chunk_lengths == (50,)
    assert "chunk_lengths" not in EvaluationPlan().model_dump(), "results of other tasks are as they were"
