"""Length curves against models whose accuracy is known beforehand."""

import math
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from lengthwise.conventions import IGNORE, PAD
from lengthwise.evaluation.curve import MAX_REPR_POINTS
from lengthwise.evaluation.interval import correlation_interval, mean_interval, wilson_interval
from lengthwise.evaluation.length_curve import (
    LengthCurve,
    LengthPoint,
    final_answers,
    length_curve,
    parse_protocol,
    prefix_answers,
    supervised_answers,
)
from lengthwise.evaluation.plan import EvaluationPlan, parse_lengths
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel
from lengthwise.randomness import generator_for
from lengthwise.tasks import Batch, make_task


class Oracle(SequenceModel):
    """Answers right up to a length, and 0 beyond."""

    name: ClassVar[str] = "oracle"

    def __init__(self, task, right_up_to: float = math.inf) -> None:
        super().__init__()
        self.task, self.right_up_to = task, right_up_to
        self.max_symbols = 0

    def reset_parameters(self, generator):
        """It has none."""

    def forward(self, inputs):
        assert not self.training
        self.max_symbols = max(self.max_symbols, inputs.numel())
        answers = self.task.solve(inputs).clamp(min=0)
        answers[:, torch.arange(inputs.shape[1]) >= self.right_up_to] = 0
        return torch.nn.functional.one_hot(answers, len(self.task.classes)).float()

    def last_state(self, inputs):
        return self.forward(inputs)[:, -1]

    def readout(self, states):
        return states


def test_a_planned_length_is_one_symbol_less_only_where_it_was_not_measured() -> None:
    points = [LengthPoint(length=n, num_strings=n, num_correct=0, baseline=0.5) for n in (9, 10, 20)]
    curve = LengthCurve(protocol="independent", points=tuple(points))
    assert [point and point.length for point in map(curve.nearest_point, (9, 10, 11, 12, 21))] == [9, 10, 10, None, 20]
    assert curve.num_independent == 39
    assert curve.model_copy(update={"protocol": "one-pass"}).num_independent == 9


@pytest.mark.parametrize("protocol", ["independent", "one-pass", "structured"])
def test_an_oracle_is_always_right(protocol: str) -> None:
    task = make_task("cycle-navigation")
    curve = length_curve(Oracle(task), task, [1, 7, 40, 99], num_strings=32, protocol=protocol)
    assert curve.mean() == curve.min() == 1.0
    assert {point.length for point in curve.points} == {1, 7, 40, 99}


class Overflows(Oracle):
    """Its states overflow at symbol 21 of strings that begin with b."""

    def forward(self, inputs):
        logits = super().forward(inputs)
        logits[inputs[:, 0] == 1, 20:] = math.nan
        return logits


@pytest.mark.parametrize("protocol", ["independent", "one-pass"])
def test_an_overflow_costs_its_own_string_from_there_on(protocol: str) -> None:
    task = make_task("parity")
    curve = length_curve(Overflows(task), task, [1, 20, 21, 50], num_strings=64, protocol=protocol)
    accuracy = {point.length: point.accuracy for point in curve.points}
    assert accuracy[1] == accuracy[20] == 1.0
    for length in (21, 50):
        drawn = length if protocol == "independent" else 50
        strings = task.sample(64, drawn, generator_for(0, "evaluation", drawn)).inputs
        assert accuracy[length] == float((strings[:, 0] == 0).double().mean())


@torch.no_grad()
def test_strings_overflow_in_a_batch_where_they_do_alone() -> None:
    """States double from the first b on: 2^128 is beyond float32. Two layers, read in parts of 100 positions."""
    task = make_task("parity")
    model = make_model("linear-rnn", task, d_model=4, d_state=4, num_layers=2).eval()
    model.positions_per_chunk = 100
    model.embedding.weight[0] = 0.0
    for layer in model.layers:
        layer.a.copy_(0.5 * torch.eye(4))
    model.layers[0].a.mul_(4)
    alone = torch.tensor([0] * 5 + [1] + [0] * 160)
    strings = torch.stack([alone.roll(position) for position in range(0, 60, 2)])
    one_by_one = torch.cat([prefix_answers(model, string[None]) for string in strings])
    overflows = (one_by_one < 0).int()
    assert len(set(overflows.sum(1).tolist())) > 20
    assert bool((overflows.diff(dim=1) >= 0).all())
    assert torch.equal(prefix_answers(model, strings), one_by_one)
    assert torch.equal(final_answers(model, strings), one_by_one[:, -1])


@pytest.mark.parametrize("protocol", ["independent", "one-pass"])
def test_a_constant_answer_scores_the_baseline(protocol: str) -> None:
    task = make_task("parity", p=0.02)
    curve = length_curve(Oracle(task, right_up_to=0), task, [3, 30], num_strings=4000, protocol=protocol)
    for point in curve.points:
        assert point.accuracy == pytest.approx(point.baseline, abs=0.03)


def test_a_net_that_fails_beyond_a_length_is_seen_to() -> None:
    task = make_task("parity")
    curve = length_curve(Oracle(task, right_up_to=20), task, range(10, 31), num_strings=400, protocol="one-pass")
    assert curve.between(1, 20).min() == 1.0
    assert curve.between(21, 30).mean() == pytest.approx(0.5, abs=0.1)


def test_one_pass_needs_exchangeable_prefixes() -> None:
    task = make_task("tomita", index=3)
    with pytest.raises(ValueError, match=r"independent.*tomita.*one-pass"):
        length_curve(Oracle(task), task, [5], protocol="one-pass")


def test_strings_depend_on_seed_and_length_only() -> None:
    task = make_task("parity")
    one, same, other = (
        length_curve(Oracle(task, right_up_to=0), task, [50], num_strings=300, seed=seed) for seed in (0, 0, 1)
    )
    assert one == same != other


def test_memory_is_bounded_by_parts() -> None:
    task, model = make_task("parity"), Oracle(make_task("parity"))
    length_curve(model, task, [10_000], num_strings=100)
    assert model.max_symbols <= 1 << 18


def test_unbalanced_lengths_are_marked() -> None:
    task = make_task("bounded-dyck", depth=2)
    curve = length_curve(Oracle(task), task, range(1, 9), num_strings=8)
    assert [point.balanced for point in curve.points] == [False, True] * 4
    assert [point.length for point in curve.balanced().points] == [2, 4, 6, 8]


def test_structured_strings_skip_malformed_ones() -> None:
    """No constant string is an expression; "1+1+1..." is."""
    task = make_task("modular-arithmetic")
    curve = length_curve(Oracle(task), task, [31], num_strings=400, protocol="structured")
    assert "constant" not in {point.family for point in curve.points}
    assert "alternating" in {point.family for point in curve.points}


@pytest.mark.parametrize("family", STRUCTURED)
@given(st.integers(1, 6), st.integers(1, 60), st.integers(0, 10**6))
def test_structured_strings_are_strings(family: str, num_symbols: int, length: int, seed: int) -> None:
    strings = STRUCTURED[family](num_symbols, 9, length, torch.Generator().manual_seed(seed))
    assert strings.shape == (9, length)
    assert strings.dtype == torch.int64
    assert 0 <= int(strings.min()) <= int(strings.max()) < num_symbols


def test_structured_families_are_what_they_say() -> None:
    draws = {name: family(2, 50, 40, torch.Generator().manual_seed(0)) for name, family in STRUCTURED.items()}
    changes = {name: (strings[:, 1:] != strings[:, :-1]).sum(1) for name, strings in draws.items()}
    assert (changes["constant"] == 0).all()
    assert (changes["alternating"] == 39).all()
    assert int(changes["few-runs"].max()) <= 4
    assert int(changes["sparse"].max()) <= 8
    periods = [next(p for p in range(1, 17) if torch.equal(row[p:], row[:-p])) for row in draws["periodic"]]
    assert max(periods) > 8


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_interval_contains_the_share(right: int, more: int) -> None:
    low, high = wilson_interval(right, right + more)
    assert 0 <= low <= right / (right + more) <= high <= 1
    center, spread = (low + high) / 2, high - low
    fewer, greater = wilson_interval(4 * right, 4 * (right + more))
    assert greater - fewer < spread
    assert abs(center - 0.5) <= abs(right / (right + more) - 0.5) + 1e-9


def test_two_values_have_an_interval_and_one_has_none() -> None:
    """With one degree of freedom t = tan(0.475 pi), the quantile of Cauchy's distribution."""
    low, high = mean_interval([1.0, 3.0])
    assert (low + high) / 2 == pytest.approx(2)
    assert (high - low) / 2 == pytest.approx(math.tan(0.475 * math.pi))
    assert all(map(math.isnan, mean_interval([1.0])))


def test_a_range_may_be_one_length() -> None:
    assert parse_lengths("5-5,10000000") == [5, 10_000_000]
    assert EvaluationPlan(dense=(5, 5)).dense == (5, 5)


def test_wilson_interval_solves_its_equation() -> None:
    """Its ends are the p with |share - p| = z sqrt(p (1-p) / n)."""
    for end in wilson_interval(37, 50):
        assert abs(37 / 50 - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / 50))


@pytest.mark.parametrize("num_strings", [1, 2, 64, 1_000])
def test_wilson_interval_is_scipys(num_strings: int) -> None:
    from scipy.stats import binomtest  # here, as importing it takes a second

    for num_correct in {0, 1, num_strings // 3, num_strings - 1, num_strings}:
        theirs = binomtest(num_correct, num_strings).proportion_ci(method="wilson")
        assert wilson_interval(num_correct, num_strings) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


@pytest.mark.parametrize(("right", "count"), [(0, 0), (5, 4), (-1, 4)])
def test_an_interval_of_no_share_is_refused(right: int, count: int) -> None:
    with pytest.raises(
        ValueError, match=f"num_correct: expected a count from 0 to num_strings, .* got {right} of {count}; count"
    ):
        wilson_interval(right, count)


def test_an_empty_curve_has_no_mean() -> None:
    empty = LengthCurve(protocol="independent", points=())
    assert math.isnan(empty.mean())
    assert math.isnan(empty.min())


def test_plan_measures_what_the_task_has() -> None:
    task = make_task("modular-arithmetic")
    plan = EvaluationPlan(dense=(41, 60), dense_strings=8, long=((100, 8),), structured=((50, 200),))
    dense, long, structured = dict(plan.measure(Oracle(task), task)).values()
    assert dense.protocol == "one-pass"
    assert [point.length for point in dense.points] == list(range(41, 60, 2))
    assert [point.length for point in long.points] == [99]
    assert {point.length for point in structured.points} == {49}


@pytest.mark.parametrize(
    ("name", "fields", "lengths"),
    [("parity", {}, [41, 50, 59]), ("modular-arithmetic", {}, [41, 51]), ("tomita", {"index": 4}, [41, 50, 59])],
)
def test_plan_leaves_out_lengths_of_the_dense_range(name: str, fields: dict, lengths: list[int]) -> None:
    """The next one measured is the first of the task's that is far enough from the last."""
    task = make_task(name, **fields)
    every = EvaluationPlan(dense=(41, 60), dense_strings=8)
    plan = every.model_copy(update={"dense_every": 9})
    assert [point.length for point in plan.measure_dense(Oracle(task), task).points] == lengths
    assert not plan.covers(every)
    assert plan.covers(plan.restrict_dense(41, 50))
    assert not plan.covers(plan.restrict_dense(50, 60)), "the first length decides the next ones"
    assert "dense_every" not in every.model_dump(), "results of other plans are as they were"


@pytest.mark.parametrize("name", ["long", "structured", "chunk_lengths"])
def test_a_plan_has_all_of_one_with_fewer_lengths(name: str) -> None:
    whole = EvaluationPlan()
    lengths = getattr(whole, name)
    for kept in (lengths[:1], lengths[1:], ()):
        fewer = whole.model_copy(update={name: kept})
        assert whole.covers(fewer)
        assert not fewer.covers(whole)
    other = (lengths[0] + 1,) if name == "chunk_lengths" else ((lengths[0][0], lengths[0][1] - 1),)
    assert not whole.covers(whole.model_copy(update={name: other}))


def test_plan_draws_independent_strings_for_recognition() -> None:
    task = make_task("tomita", index=4)
    plan = EvaluationPlan(dense=(5, 8), dense_strings=8, long=(), structured=())
    assert dict(plan.measure(Oracle(task), task))["dense"].protocol == "independent"


@pytest.mark.parametrize("text", ["", "a", "5-", "-5", "9-3", "1,,2", "1.5"])
def test_bad_lengths_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="lengths: expected"):
        parse_lengths(text)


@pytest.mark.parametrize(
    ("lengths", "num_strings", "sentence"),
    [
        ([], 4, "at least one length"),
        ([True], 4, "whole numbers, got True"),
        ([5], 0, "num_strings"),
        ([0], 4, "no strings of length 0"),
    ],
)
def test_bad_requests_are_refused(lengths: list, num_strings: int, sentence: str) -> None:
    task = make_task("parity")
    with pytest.raises(ValueError, match=sentence):
        length_curve(Oracle(task), task, lengths, num_strings=num_strings)
    if lengths == [0]:
        with pytest.raises(ValueError, match=sentence):
            length_curve(Oracle(task), task, lengths, num_strings=num_strings, protocol="structured")


def test_unknown_protocols_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'one-pass'"):
        parse_protocol("onepass")


class Counting(Oracle):
    """Answers how many symbols came before."""

    def forward(self, inputs):
        positions = torch.arange(inputs.shape[1])
        return torch.nn.functional.one_hot(positions, 9).float().expand(len(inputs), -1, -1)


def test_rows_are_right_at_their_own_last_supervised_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.evaluation.length_curve.MAX_SYMBOLS_PER_CHUNK", 8 * 7 * 2)  # two rows at once
    sizes = torch.tensor([3, 7, 1, 6])
    inputs, targets = torch.full((4, 7), PAD), torch.full((4, 7), IGNORE)
    for row, size in enumerate(sizes.tolist()):
        inputs[row, :size], targets[row, size - 1] = 0, 1
    model = Counting(make_task("parity"))
    model.eval()
    assert torch.equal(supervised_answers(model, inputs, Batch(inputs, targets).last_supervised), sizes - 1)


@pytest.mark.parametrize("protocol", ["independent", "one-pass", "structured"])
def test_progress_grows_to_one(protocol: str) -> None:
    task = make_task("parity")
    fractions: list[float] = []
    lengths = [4, 2_000, 9_000]
    length_curve(Oracle(task), task, lengths, num_strings=8, protocol=protocol, set_progress=fractions.append)
    assert len(fractions) >= 3
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < fractions[-1] == 1


def test_a_curve_prints_as_a_short_table_and_becomes_rows() -> None:
    task = make_task("parity")
    curve = length_curve(Oracle(task, right_up_to=20), task, range(1, 31), num_strings=100, protocol="one-pass")
    lines = repr(curve).splitlines()
    assert lines[0].startswith("LengthCurve(one-pass, 30 points, mean 0.8")
    assert len(lines) == 13
    assert lines[2].split() == ["1", "100", "1.0000", "0.9630-1.0000", "0.5000"]
    assert repr(curve.between(3, 4)).count("\n") == 3
    assert repr(curve.between(90, 99)) == "LengthCurve(one-pass, no points)"
    rows = curve.to_rows()
    assert [row["length"] for row in rows] == list(range(1, 31))
    assert [row["accuracy"] for row in rows] == [point.accuracy for point in curve.points]


def test_one_string_is_enough_and_a_short_curve_prints_whole() -> None:
    task = make_task("parity")
    curve = length_curve(Oracle(task), task, range(1, MAX_REPR_POINTS + 1), num_strings=1)
    assert [point.num_correct for point in curve.points] == [1] * MAX_REPR_POINTS
    assert "..." not in repr(curve)


@pytest.mark.parametrize("seed", range(4))
def test_an_interval_for_a_correlation_is_that_of_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    first = generator.normal(size=5 + seed)
    second = first + generator.normal(size=5 + seed)
    theirs = pearsonr(first, second)
    ours = correlation_interval(float(theirs.statistic), 5 + seed)
    assert ours == pytest.approx((theirs.confidence_interval().low, theirs.confidence_interval().high), rel=1e-9)
    assert all(map(math.isnan, correlation_interval(0.5, 3)))
    assert all(map(math.isnan, correlation_interval(1.0, 12)))
