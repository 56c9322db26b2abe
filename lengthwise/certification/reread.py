"""The same strings read in other ways than in batches: what a certificate says has to hold of all of them."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.counterexample import String, all_strings, grade, max_enumerated_length
from lengthwise.certification.strings import AllStrings
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.length_curve import prefix_answers
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import OracleTask
from lengthwise.threads import denormals_kept

MAX_SHORT = 64
"""All strings of a length are read one by one where there are no more of them."""

NUM_LONGEST = 16
"""Of the longest strings that are read where numbers too small for all of float32's digits are kept, which is slow."""

MAX_SYMBOLS_OF_PREFIXES = 4_096
"""Strings of all of whose prefixes the answers are computed at once have no more symbols together."""


def error_when_alone(model: SequenceModel, task: OracleTask, strings: AllStrings) -> String | None:
    """A string that is answered wrongly by itself, as users read it: of the shortest, and of about 100 of each length.

    Of the longest tested strings a reader's model reads `NUM_LONGEST`, all at once.
    """
    with denormals_kept():
        for batch in (*_shortest(model, task), *(traced.subsample for traced in strings[:2])):
            string: Tensor
            for string in batch:
                if bool(grade(model, task, string[None]).wrong):
                    return string
        for traced in strings[2:]:
            if traced.traces is not None:
                longest = traced.strings[:: -(-len(traced.strings) // NUM_LONGEST)]
                wrong = grade(model, task, longest).wrong
                if bool(wrong.any()):
                    return longest[wrong][0]
    return None


def error_of_prefixes(model: SequenceModel, task: OracleTask, strings: AllStrings) -> String | None:
    """A string that is answered wrongly as a prefix of others, where all prefixes are answered at once."""
    for traced in strings[:2]:
        sample = traced.subsample
        sample = sample[:: max(1, sample.numel() // MAX_SYMBOLS_OF_PREFIXES)]
        expected = task.solve(sample)
        with denormals_kept():
            wrong = (expected != IGNORE) & (prefix_answers(model, sample) != expected)
        for row, index in torch.nonzero(wrong)[:1].tolist():
            return sample[row, : index + 1]
    return None


def _shortest(model: SequenceModel, task: OracleTask) -> list[Int64[Tensor, "B T"]]:
    """All strings of the lengths of which there are no more than `MAX_SHORT`."""
    lengths = range(1, max_enumerated_length(model, task) + 1)
    return [all_strings(task, length) for length in lengths if len(task.symbols) ** length <= MAX_SHORT]
