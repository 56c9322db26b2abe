"""Evaluation at the boundaries of its rules: the largest request, the last position, the first length left out."""

import math
from fractions import Fraction

import pytest
import torch

from lengthwise.conventions import IGNORE
from lengthwise.evaluation import length_curve as length_curve_module
from lengthwise.evaluation import perplexity as perplexity_module
from lengthwise.evaluation.interval import accuracy_interval, are_equal, correlation_interval, difference_from_zero
from lengthwise.evaluation.length_curve import (
    LengthCurve,
    LengthPoint,
    draw_labeled,
    final_answers,
    labeled,
    length_curve,
    supervised_answers,
)
from lengthwise.evaluation.perplexity import chunk_ends, perplexity_curve, token_nlls
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel
from lengthwise.tasks import Batch, make_task
from lengthwise.tasks.base import SymbolTask
from lengthwise.tasks.regular.parity import Parity

TASK = make_task("parity")


class LastSymbolOnly(SequenceModel):
    """Answers the symbol at each position; `forward` is an error unless it is expected."""

    name = "last-symbol-only"
    may_read_prefixes = False

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def reset_parameters(self, generator: torch.Generator) -> None:
        """It has none."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        assert self.may_read_prefixes
        self.sizes.append(len(inputs))
        return torch.nn.functional.one_hot(inputs, 2).float()

    def last_state(self, inputs: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(inputs))
        return torch.nn.functional.one_hot(inputs[:, -1:], 2).float()[:, 0]

    def readout(self, states: torch.Tensor) -> torch.Tensor:
        return states


@pytest.mark.parametrize(("limit", "longest"), [("MAX_LENGTH", 5), ("MAX_SYMBOLS", 10)])
def test_the_lower_of_two_limits_counts(limit: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length_curve_module, limit, longest)
    model = make_model("rnn", TASK, d_model=2)
    assert len(length_curve(model, TASK, [5], num_strings=2).points) == 1
    with pytest.raises(ValueError, match="lengths: expected at most 5 symbols in each of 2 strings, got 6; "):
        length_curve(model, TASK, [5, 6], num_strings=2)


@pytest.mark.unchecked
def test_requests_of_another_kind_are_rejected() -> None:
    model = make_model("rnn", TASK, d_model=2)
    for lengths, sentence in ((7, "expected a list of lengths, such as"), ([2.5], "expected whole numbers, got 2.5")):
        with pytest.raises(ValueError, match=sentence):
            length_curve(model, TASK, lengths)
    with pytest.raises(ValueError, match="set_progress: expected a function"):
        length_curve(model, TASK, [5], set_progress=0.5)
    own = type("Own", (Parity,), {"baseline": lambda self, length: 0.99, "__module__": "own"})()
    with pytest.raises(ValueError, match=r"Own\.baseline: expected about 0\.5"):
        length_curve(model, own, [5])


def test_only_rows_that_end_early_cost_all_prefixes() -> None:
    model = LastSymbolOnly()
    model.eval()
    inputs = torch.tensor([[0, 1, 0], [1, 1, 0]])
    at_the_end = torch.tensor([[IGNORE, IGNORE, 1], [1, IGNORE, 1]])
    assert supervised_answers(model, inputs, Batch(inputs, at_the_end).last_supervised).tolist() == [0, 0]
    model.may_read_prefixes = True
    before_the_end = torch.tensor([[IGNORE, 1, IGNORE], [1, IGNORE, IGNORE]])
    assert supervised_answers(model, inputs, Batch(inputs, before_the_end).last_supervised).tolist() == [1, 1]
    one_of_both = torch.tensor([[IGNORE, IGNORE, 1], [IGNORE, 1, IGNORE]])
    assert supervised_answers(model, inputs, Batch(inputs, one_of_both).last_supervised).tolist() == [0, 1]


@pytest.mark.parametrize(("limit", "whole", "prefixes"), [(1, 1, 1), (3 * 8, 8, 1), (3 * 8 * 2, 9, 2), (1 << 18, 9, 9)])
def test_parts_have_as_many_strings_as_fit(
    limit: int, whole: int, prefixes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All prefixes of a string take eight times its memory, and one string is always read."""
    monkeypatch.setattr(length_curve_module, "MAX_SYMBOLS_PER_CHUNK", limit)
    model = LastSymbolOnly()
    model.eval()
    model.may_read_prefixes = True
    inputs = torch.ones(9, 3, dtype=torch.int64)
    assert final_answers(model, inputs).tolist() == [1] * 9
    assert max(model.sizes) == whole
    early = torch.tensor([1, IGNORE, IGNORE]).expand(9, 3)
    one_pass = lambda: length_curve(model, TASK, [2, 3], num_strings=9, protocol="one-pass")  # noqa: E731
    expected = [len(part) for part in inputs.split(prefixes)]
    for read in (lambda: supervised_answers(model, inputs, Batch(inputs, early).last_supervised), one_pass):
        read()
        assert model.sizes[-len(expected) :] == expected


def test_recurrent_models_read_many_strings_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length_curve_module, "MAX_SYMBOLS_PER_CHUNK", 1)
    monkeypatch.setattr(length_curve_module, "MIN_STRINGS_PER_CHUNK", 4)
    model = make_model("rnn", TASK, d_model=2)
    sizes: list[int] = []
    model.recurrence.register_forward_hook(lambda module, given, result: sizes.append(given[1].shape[1]))
    final_answers(model, torch.ones(9, 3, dtype=torch.int64))
    assert sizes == [4, 4, 1]


def test_counts_do_not_exceed_the_number_of_strings() -> None:
    assert LengthPoint(length=3, num_strings=4, num_correct=3, num_overflowed=1, baseline=0.5).accuracy == 0.75
    with pytest.raises(ValueError, match=r"expected a sum of at most num_strings=4, got 4 [+] 1; correct"):
        LengthPoint(length=3, num_strings=4, num_correct=4, num_overflowed=1, baseline=0.5)


def test_a_curve_has_the_mean_baseline_of_its_points() -> None:
    points = [LengthPoint(length=n, num_strings=1, num_correct=1, baseline=b) for n, b in ((1, 0.25), (2, 0.75))]
    assert LengthCurve(protocol="independent", points=tuple(points)).baseline() == 0.5
    assert math.isnan(LengthCurve(protocol="independent", points=()).baseline())
    assert LengthCurve(protocol="one-pass", points=()).num_independent == 0
    assert LengthCurve(protocol="independent", points=()).num_independent == 0


def test_plans_keep_the_largest_length() -> None:
    plan = EvaluationPlan(dense=(2, 9), long=((5, 1), (6, 1)), structured=((5, 1), (6, 1)), chunk_lengths=(5, 6))
    assert plan.limit_lengths(5) == EvaluationPlan(
        dense=(2, 5), long=((5, 1),), structured=((5, 1),), chunk_lengths=(5,)
    )
    assert plan.limit_lengths(2).dense == (2, 2)
    assert plan.limit_lengths(3).chunk_lengths == (3,)
    assert plan.usable_chunk_lengths(6) == [5, 6]
    assert plan.usable_chunk_lengths(5) == [5]
    assert plan.usable_chunk_lengths(4) == [4]
    assert plan.restrict_dense(9, 12).dense == (9, 9)
    assert plan.restrict_dense(10, 12) == plan
    for dense, way_out in (((0, 5), (1, 5)), ((6, 5), (5, 6)), ((-3, 0), (1, 1))):
        with pytest.raises(ValueError, match="dense: expected two lengths of at least 1, in order, got ") as caught:
            EvaluationPlan(dense=dense)
        assert str(caught.value).endswith(f"got {dense}; write for example {way_out}")


def test_equal_values_are_equal_relative_to_their_mean() -> None:
    """The standard error of two values is half their distance: here 1e-7 of 1e6, and of 1."""
    assert are_equal([1e6, 1e6 + 2e-7])
    assert not are_equal([1.0, 1.0 + 2e-7])
    assert not are_equal([1.0])
    assert not are_equal([1.0, math.inf])


def test_gaps_whose_test_is_known() -> None:
    """With one degree of freedom, Student's distribution is Cauchy's: p = 1 - 2 atan(|t|) / pi."""
    assert difference_from_zero([1.0, 3.0]) == pytest.approx(1 - 2 * math.atan(2) / math.pi)
    assert difference_from_zero([-1.0, -3.0]) == pytest.approx(1 - 2 * math.atan(2) / math.pi)
    assert difference_from_zero([1e-14, -1e-14]) == 1.0
    for gaps in ([0.5], [0.5, math.nan], [0.5, 0.5]):
        assert math.isnan(difference_from_zero(gaps))


def test_intervals_add_the_squares_of_two_distances() -> None:
    """Four strings with two right answers: Wilson's ends, by solving 4 (p - 1/2)^2 = z^2 p (1 - p)."""
    square = 1.959963984540054**2
    wilson = math.sqrt(square / (4 * (4 + square)))
    student = math.tan(0.475 * math.pi) * 0.125
    low, high = accuracy_interval([0.375, 0.625], 4)
    assert (low, high) == (0.0, 1.0)
    assert math.hypot(wilson, student) > 0.5
    near = accuracy_interval([0.5, 0.5], 4)
    assert near == pytest.approx((0.5 - wilson, 0.5 + wilson))
    assert all(map(math.isnan, accuracy_interval([0.5], 4)))
    assert all(map(math.isnan, correlation_interval(0.5, 3)))
    assert all(map(math.isnan, correlation_interval(1.0, 30)))
    assert not math.isnan(correlation_interval(0.5, 4)[0])


def test_progress_is_the_part_of_all_symbols() -> None:
    seen: list[float] = []
    plan = EvaluationPlan(dense=(2, 4), dense_every=2, dense_strings=2, long=((3, 2), (5, 2)), structured=())
    list(plan.measure(make_model("rnn", TASK, d_model=2), TASK, seen.append))
    assert Fraction(3, 8) in [Fraction(one).limit_denominator(100) for one in seen]
    assert seen[-1] == 1


def test_logits_of_one_position_may_be_more_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task("text")
    model = make_model("rnn", task, d_model=4)
    chunks = torch.randint(len(task.symbols), (2, 6), generator=torch.Generator().manual_seed(0))
    whole = token_nlls(model, chunks)
    sizes: list[int] = []
    model.readout.register_forward_hook(lambda module, states, logits: sizes.append(logits.shape[1:-1].numel()))
    for limit, num_positions in ((1, 1), (2 * 2 * len(task.symbols), 2), (1 << 40, 5)):
        monkeypatch.setattr(perplexity_module, "MAX_LOGITS_PER_CHUNK", limit)
        sizes.clear()
        for actual, expected in zip(token_nlls(model, chunks), whole, strict=True):
            torch.testing.assert_close(actual, expected)
        assert max(sizes) == num_positions


@pytest.mark.parametrize(("name", "num_chunks"), [("gru", 2), ("transformer", 3)])
def test_parts_have_as_many_chunks_as_fit(name: str, num_chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits of whole chunks are limited, except for recurrent models, which keep few positions."""
    task = make_task("text")
    monkeypatch.setattr(perplexity_module, "MAX_RECURRENT", 2)
    monkeypatch.setattr(perplexity_module, "MAX_LOGITS_PER_CHUNK", 3 * 4 * len(task.classes))
    sizes: list[int] = []

    def counted(model: SequenceModel, chunks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sizes.append(len(chunks))
        return token_nlls(model, chunks)

    monkeypatch.setattr(perplexity_module, "token_nlls", counted)
    fractions: list[float] = []
    model = make_model(name, task, d_model=4, **({} if name == "gru" else {"num_heads": 1}))
    perplexity_curve(model, task, [4], num_chunks=7, set_progress=fractions.append)
    assert sizes == [len(part) for part in torch.arange(7).split(num_chunks)]
    sizes.clear()
    perplexity_curve(model, task, [3, 5], num_chunks=1, set_progress=fractions.append)
    assert fractions == [1.0, 3 / 8, 1.0]


def test_last_tokens_of_short_texts_are_drawn_once() -> None:
    for num_tokens, num_chunks in ((9, 2), (17, 3)):
        assert len(set(chunk_ends(num_tokens, 2, num_chunks, seed=0).tolist())) == num_chunks
    assert sorted(chunk_ends(4, 2, 9, seed=0).tolist()) == [1, 2, 3]
    drawn = [chunk_ends(17, 2, 2, seed=seed).tolist() for seed in range(200)]
    assert {end for ends in drawn for end in ends} == set(range(1, 17))
    assert any(first == second for first, second in drawn), "16 indices are enough to draw 2 with replacement"
    for longest in (1, 5):
        with pytest.raises(ValueError, match="expected lengths from 2 to 4 tokens"):
            chunk_ends(4, longest, 1, seed=0)


def test_structured_strings_have_all_their_forms() -> None:
    """Periods of 3 to 16, up to five runs, and up to four exceptions all occur among 2,000 strings of many symbols."""
    drawn = {name: draw(50, 2_000, 64, torch.Generator().manual_seed(0)) for name, draw in STRUCTURED.items()}
    periods = {next(p for p in range(1, 64) if torch.equal(row[p:], row[:-p])) for row in drawn["periodic"]}
    assert periods == set(range(3, 17))
    runs = {1 + int((row[1:] != row[:-1]).sum()) for row in drawn["few-runs"]}
    assert {2, 3, 4, 5} <= runs <= {1, 2, 3, 4, 5}
    exceptions = {int((row != row.mode().values).sum()) for row in drawn["sparse"]}
    assert {2, 3, 4} <= exceptions <= {0, 1, 2, 3, 4}
    assert bool((drawn["constant"][:, 0] == torch.arange(2_000) % 50).all())
    assert bool((drawn["alternating"][:, 0] != drawn["alternating"][:, 1]).all())
    assert torch.equal(drawn["alternating"][:, :-2], drawn["alternating"][:, 2:])


@pytest.mark.parametrize("name", ["parity", "modular-arithmetic", "reverse-string"])
@pytest.mark.parametrize(("limit", "sizes"), [(1, [1] * 7), (3 * 11, [3, 3, 1]), (7 * 11, [7])])
def test_strings_are_drawn_in_batches_and_keep_their_answers(
    name: str, limit: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task(name)
    assert isinstance(task, SymbolTask)
    drawn: list[Batch] = []
    sample = type(task).sample

    def recorded(self: SymbolTask, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        drawn.append(sample(self, batch_size, length, generator))
        return drawn[-1]

    monkeypatch.setattr(type(task), "sample", recorded)
    monkeypatch.setattr(length_curve_module, "MAX_SYMBOLS_DRAWN", limit)
    strings = draw_labeled(task, 7, 11, torch.Generator().manual_seed(0))
    assert [len(batch.inputs) for batch in drawn] == sizes
    whole = labeled(Batch(*(torch.cat([getattr(batch, part) for batch in drawn]) for part in ("inputs", "targets"))))
    for got, expected in zip(strings, whole, strict=True):
        assert torch.equal(got, expected)
    if name == "parity":  # one draw for each symbol, so batches have the strings of one large batch
        assert torch.equal(strings.inputs, sample(task, 7, 11, torch.Generator().manual_seed(0)).inputs)
