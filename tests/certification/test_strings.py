"""The strings on which models are tested, and how many of them are read."""

from types import SimpleNamespace

import pytest
import torch

from lengthwise.certification import traces
from lengthwise.certification.certify import certify
from lengthwise.certification.counterexample import shrunk_error
from lengthwise.certification.searches import search_samples
from lengthwise.certification.traces import TracedStrings
from lengthwise.models import make_model
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


def test_without_traces_few_strings_are_read_first_and_never_more_pairs_than_may_be() -> None:
    """Of a model that errs everywhere 8 strings are read; of one that errs nowhere, all that there are time for."""
    task = make_task("parity")
    strings = [TracedStrings(torch.ones(1_000, length, dtype=torch.int64), None) for length in (41, 10_001)]
    for right_up_to, expected in ((0, {41: 8}), (41, {41: 1_000, 10_001: 8}), (10_001, {41: 1_000, 10_001: 22})):
        model = RightUpTo(right_up_to)
        wrong, tested, _ = search_samples(model, task, strings)
        assert model.num_read == expected
        assert {part.length: part.num_strings for part in tested} == expected
        assert (wrong is None) == (right_up_to == 10_001)
        assert sum(part.num_correct for part in tested) == sum(n for t, n in expected.items() if t <= right_up_to)


def test_parts_of_a_wrong_string_are_left_out_for_as_long_as_there_is_work_left() -> None:
    """Of 1,000 symbols the first wrong prefix has 11; to see that costs the string twice and a prefix, 2,000,242."""
    task, string = make_task("parity"), torch.ones(1_000, dtype=torch.int64)
    for max_pairs, expected in ((None, 11), (10**9, 11), (1_000_121, 11), (1_000_120, 1_000), (0, 1_000)):
        model = PrefixesToo(10)
        shrunk = shrunk_error(model, task, string, max_pairs=max_pairs)
        assert len(shrunk) == expected
        if max_pairs is not None:
            assert sum(count * length**2 for length, count in model.num_read.items()) <= max_pairs


class PrefixesToo(RightUpTo):
    """Also answers all prefixes, each by itself; these are not counted."""

    def forward(self, inputs):
        counts, self.num_read = self.num_read, {}
        states = torch.stack([self.last_state(inputs[:, :stop]) for stop in range(1, inputs.shape[1] + 1)], 1)
        self.num_read = counts
        return states


@pytest.mark.usefixtures("fewer_long_strings")
@pytest.mark.parametrize(
    ("positions", "tested"),
    [
        ({"positions": "learned", "learned_positions": 512}, (40, 500)),
        ({"positions": "learned", "learned_positions": 9}, (9,)),
        ({"positions": "randomized", "position_range": 600}, (40, 500)),
    ],
)
def test_a_model_that_reads_strings_up_to_a_length_is_tested_up_to_it(
    positions, tested, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a net that is right, nothing more is said; what is no defect of the net must not end a run in an error."""
    task = make_task("parity")
    model = make_model("transformer", task, d_model=8, num_heads=2, **positions)
    assert traces.tested_lengths(model, task) == tested
    for name in ("last", "forward"):
        monkeypatch.setattr(type(model), name, right_answers(name))
    certificate = certify(model, task)
    assert certificate.level == "tested"
    assert tuple(part.length for part in certificate.tested) == tested
    assert certificate.reason == f"the model reads strings of at most {model.max_length} symbols"


def right_answers(name: str):
    """What a transformer's `last` or `forward` would say if it were right on every string that it reads."""

    def answer(model, inputs):
        model._read(inputs)
        counts = inputs.cumsum(1) if name == "forward" else inputs.sum(1)
        return torch.nn.functional.one_hot(counts % 2, 2).float()

    return answer


@pytest.mark.unchecked
def test_stages_compare_few_strings_first() -> None:
    """Of the two shorter lengths: 25 strings, then 100 evenly spread ones, then all of all lengths."""
    strings = [TracedStrings(torch.arange(1_000)[:, None].expand(1_000, length), None) for length in (2, 3, 4)]
    reader = SimpleNamespace(traces=lambda part: None)
    smallest, subsample, complete = traces.stages(strings, reader)
    for stage, stride in ((smallest, 40), (subsample, 10)):
        assert [part.strings.shape for part in stage] == [(1_000 // stride, 2), (1_000 // stride, 3)]
        assert all(torch.equal(part.strings[:, 0], torch.arange(0, 1_000, stride)) for part in stage)
    assert complete == strings
    few = [TracedStrings(torch.zeros(7, 2, dtype=torch.int64), None)]
    assert [len(part.strings) for stage in traces.stages(few, reader) for part in stage] == [7, 7, 7]
