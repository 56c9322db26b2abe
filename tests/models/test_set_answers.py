"""Nets that answer with sets of symbols: the class of the set, other sets, thresholds, ties, and margins."""

from itertools import product

import pytest
import torch
from torch import Tensor

from lengthwise import SetAnswers, attack, make_task, wrap_module
from lengthwise.certification.attacks.grading import margins_of
from lengthwise.ops.answers import answers_of
from lengthwise.runs.spec import make_spec
from lengthwise.tasks.regular.next_symbols import OTHER, NextSymbols

LANGUAGES = [(pattern, True) for pattern in ("[012]*02*", "(a|b)*abb", "ab(a|b)?")] + [("aa*bb*cc*", False)]


def task_of(pattern: str, *, with_end: bool = True) -> NextSymbols:
    base = {"name": "regex", "pattern": pattern}
    task = make_task("next-symbols", base=base, with_end=with_end, with_other=True)
    assert isinstance(task, NextSymbols)
    return task


def by_definition(task: NextSymbols, scores: Tensor, above: float) -> int:
    """Return the class of one net's set, found by comparing sets."""
    own = {index for index, score in enumerate(scores.tolist()) if score > above}
    sets = [{index for index, is_in in enumerate(row) if is_in} for row in task.members.tolist()]
    return sets.index(own) if own in sets else len(sets)


@pytest.mark.parametrize(("pattern", "with_end"), LANGUAGES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_logit_is_the_class_of_the_set(pattern: str, with_end: bool, dtype: torch.dtype) -> None:
    """Scores on a grid around the threshold, so that all sets occur and scores often equal the threshold."""
    task, above = task_of(pattern, with_end=with_end), 0.25
    grid = torch.tensor([*product((0.0, 0.25, 1.0), repeat=task.members.shape[1])], dtype=dtype)
    logits = SetAnswers(task, above=above)(grid)
    assert answers_of(logits).tolist() == [by_definition(task, scores, above) for scores in grid]
    # The margin of the answer is the smallest distance to the threshold, and a tie leads by the least number.
    right = answers_of(logits)
    is_a_set = right < len(task.members)
    distances = (grid - above).abs().amin(1)
    margins = margins_of(logits, right)
    assert torch.equal(margins[is_a_set & (distances > 0)], distances[is_a_set & (distances > 0)])
    assert bool((margins > 0).all())


@pytest.mark.parametrize("score", ["logit", "sigmoid", "softmax"])
def test_a_probability_is_compared_among_all_outputs(score: str) -> None:
    task, columns = task_of("(a|b)*abb"), [4, 2, 0]
    torch.manual_seed(0)
    outputs = torch.randn(200, 6)
    numbers = {"logit": outputs, "sigmoid": outputs.sigmoid(), "softmax": outputs.softmax(1)}[score]
    above = 0.15
    logits = SetAnswers(task, score=score, above=above, tokens=columns)(outputs)
    expected = [by_definition(task, one, above) for one in numbers[:, columns]]
    assert answers_of(logits).tolist() == expected
    assert len(set(expected)) == len(task.classes)


def test_a_score_that_is_not_finite_is_a_wrong_answer() -> None:
    answers = SetAnswers(task_of("(a|b)*abb"), above=0.0)
    assert answers_of(answers(torch.tensor([[1.0, torch.nan, 1.0], [1.0, 1.0, torch.inf]])))[0] == -1


class Scores:
    """The right scores of a task, except for one member of the set after b^13, one symbol longer than short strings."""

    def __init__(self, task: NextSymbols, wrong_member: int) -> None:
        self.task, self.wrong_member = task, wrong_member

    def __call__(self, ids: Tensor) -> Tensor:
        scores = 2.0 * torch.from_numpy(self.task.members.copy()).float()[self.task.solve(ids)] - 1
        is_wrong = (ids.cumsum(1) == 13) & (torch.arange(1, ids.shape[1] + 1) == 13)
        scores[is_wrong, self.wrong_member] *= -1
        return scores


@pytest.mark.parametrize(("member", "got"), [(2, "a, b or end"), (1, OTHER)])
def test_a_wrong_set_and_a_set_that_is_never_right_are_refuted(member: int, got: str) -> None:
    task = task_of("(a|b)*ab*")
    net = wrap_module(Scores(task, member), answers=SetAnswers(task, above=0.0), num_symbols=2)
    result = attack(net, task, budget=60.0)
    assert result.string == ("b",) * 13
    assert (result.expected, result.got, result.margin) == ("a, b", got, -2.0 if member == 2 else -1.0)


def test_a_net_for_other_sets_is_refused() -> None:
    ends, other = task_of("(a|b)*abb"), task_of("(a|b)*b")
    net = wrap_module(lambda ids: torch.zeros(*ids.shape, 3), answers=SetAnswers(ends, above=0.0), num_symbols=2)
    assert attack(net, ends, budget=0.1).is_refuted
    sets = task_of("ab(a|b)?")
    with pytest.raises(
        ValueError, match=r"the task's sets of symbols \(.*\), got a model with other sets \(.*\); construct"
    ):
        attack(net, sets, budget=0.1)
    # The sets of these two languages are equal, so the net's answers fit both.
    assert ends.classes == other.classes
    assert attack(net, other, budget=0.1).is_refuted


@pytest.mark.unchecked  # the package itself refuses them, without beartype
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"task": make_task("parity")}, "task: expected the task next-symbols with with_other=True, .* got parity"),
        ({"task": make_task("next-symbols")}, "task: expected the task next-symbols with with_other=True"),
        ({"score": "argmax"}, "score: expected 'logit' or 'sigmoid' or 'softmax', got 'argmax'"),
        ({"score": "softmax", "above": 1.5}, "above: expected a probability from 0 to 1 as the threshold"),
        ({"above": float("nan")}, "above: expected a number as the threshold for score='logit', got nan"),
        (
            {"tokens": [0, 1]},
            "tokens: expected the indices of 3 different outputs, one for each symbol and one for the end, got",
        ),
        ({"tokens": [0, 1, 1]}, "tokens: expected tokens that differ, got 1 more than once"),
    ],
)
def test_what_does_not_fit_is_named(settings, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SetAnswers(**{"task": task_of("(a|b)*abb"), "above": 0.0} | settings)


@pytest.mark.parametrize(
    ("num_outputs", "tokens", "sentence"),
    [
        (2, None, "outputs: expected 3 outputs of the net, got 2; pass tokens=, the index of"),
        (4, None, "outputs: expected 3 outputs of the net, got 4; pass tokens=, the index of"),
        (4, [1, 2, 4], "outputs: expected at least 5 outputs of the net, got 4; pass only tokens below 4"),
    ],
)
def test_another_number_of_outputs_is_named(num_outputs: int, tokens, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SetAnswers(task_of("(a|b)*abb"), above=0.0, tokens=tokens)(torch.zeros(1, num_outputs))


def test_the_class_of_other_sets_is_left_out_of_specifications_by_default() -> None:
    base = {"name": "tomita", "index": 4}
    plain, other = (
        make_spec("next-symbols", "gru", {"task": {"base": base, **given}}) for given in ({}, {"with_other": True})
    )
    assert "with_other" not in plain.to_json()["task"]
    assert other.to_json()["task"]["with_other"] is True
    assert other.task.classes == (*plain.task.classes, OTHER)
    assert other.task.is_balanced_length(5) == plain.task.is_balanced_length(5)
    assert other.task.baseline(5) == plain.task.baseline(5)
