"""What counts as an answer."""

import math

import torch

from lengthwise.ops.answers import answers_of


def test_a_logit_that_is_not_finite_answers_nothing() -> None:
    logits = torch.tensor([[0.0, 1.0], [math.inf, 0.0], [math.nan, 0.0]])
    assert answers_of(logits).tolist() == [1, -1, -1]


def test_of_equal_logits_the_first_is_the_answer() -> None:
    assert answers_of(torch.tensor([[[2.0, 2.0]], [[1.0, 3.0]]])).tolist() == [[0], [1]]
