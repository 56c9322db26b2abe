"""The strings on which models are tested, and how many of them are read."""

import torch

from lengthwise.certification.strings import TracedStrings, grade_all
from lengthwise.models.base import SequenceModel
from lengthwise.tasks import make_task


class RightUpTo(SequenceModel):
    """Answers strings of parity rightly up to a length, and 0 beyond; it counts the strings of each length."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length
        self.num_read: dict[int, int] = {}

    def reset_parameters(self, generator):
        """It has none."""

    def forward(self, inputs):
        raise NotImplementedError

    def last_state(self, inputs):
        count, length = inputs.shape
        self.num_read[length] = self.num_read.get(length, 0) + count
        answers = inputs.sum(dim=1) % 2 if length <= self.length else torch.zeros(count, dtype=torch.int64)
        return torch.nn.functional.one_hot(answers, 2).float()

    def readout(self, states):
        return states


def test_without_traces_few_strings_are_read_first_and_never_more_than_a_million_symbols() -> None:
    """Of a model that errs everywhere 8 strings are read; of one that errs nowhere, all that there are time for."""
    task = make_task("parity")
    strings = [TracedStrings(torch.ones(1_000, length, dtype=torch.int64), None) for length in (41, 10_001)]
    for right_up_to, expected in ((0, {41: 8}), (41, {41: 1_000, 10_001: 8}), (10_001, {41: 1_000, 10_001: 91})):
        model = RightUpTo(right_up_to)
        tested, wrong = grade_all(model, task, strings)
        assert model.num_read == expected
        assert {part.length: part.num_strings for part in tested} == expected
        assert (wrong is None) == (right_up_to == 10_001)
        assert sum(part.num_correct for part in tested) == sum(n for t, n in expected.items() if t <= right_up_to)
