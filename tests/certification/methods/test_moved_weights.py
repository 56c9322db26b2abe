"""Single weights of transformers that move until a string is answered wrongly: no bound covers this string."""

import copy

import pytest
import torch
from attending_net import OCCURS, attending_net, deeper_net

from lengthwise.certification import checker
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.methods.attention import pieces, prover
from lengthwise.certification.methods.attention.prover import AttentionProver
from lengthwise.certification.methods.base import task_extraction
from lengthwise.models.base import SequenceModel

EXTRACTION = mask_unsupervised(task_extraction(OCCURS.reference), OCCURS.reference)
MAX_LENGTH = 60
NUM_FAULTS = 25
"""The number of faults in a case. All cases together plant 1,000."""


ONE_ZERO = 1 - torch.eye(MAX_LENGTH, dtype=torch.int64)
"""Symbols 1 with a 0 at each position. Their prefixes contain all strings without a 0."""


def first_error(model: SequenceModel) -> int | None:
    """The length of the shortest prefix of `ONE_ZERO` with a wrong answer."""
    is_wrong = (model(ONE_ZERO).argmax(2) != OCCURS.solve(ONE_ZERO)).any(0)
    return int(is_wrong.nonzero()[0]) + 1 if bool(is_wrong.any()) else None


def planted(right: SequenceModel, generator: torch.Generator) -> tuple[SequenceModel, int] | None:
    """Return a net of which one weight moved by bisection until it errs, and the length of its error.

    None if the weight can move by 64 in both directions without an error.
    """
    index = int(torch.randint(sum(parameter.numel() for parameter in right.parameters()), (), generator=generator))
    sign = 2 * int(torch.randint(2, (), generator=generator)) - 1

    def moved(size: float) -> SequenceModel:
        model, left = copy.deepcopy(right), index
        for parameter in model.parameters():
            if left < parameter.numel():
                parameter.view(-1)[left] += sign * size
                return model
            left -= parameter.numel()
        raise AssertionError(index)

    low, high = 0.0, 64.0
    if first_error(moved(high)) is None:
        return None
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if first_error(moved(middle)) is None else (low, middle)
    err = first_error(moved(high))
    assert err is not None
    return moved(high), err


@pytest.mark.slow  # bisection and bounds of 1,000 nets take minutes
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("positions", ["none", "t5", "kerple-log", "rotary"])
def test_no_bound_covers_a_moved_weight(positions: str, num_layers: int, seed: int, monkeypatch) -> None:
    monkeypatch.setattr(pieces, "NUM_ROUNDS", 4)
    monkeypatch.setattr(checker, "HALVINGS", 4)
    monkeypatch.setattr(prover, "MAX_LENGTH", MAX_LENGTH + 4)
    right = (attending_net if num_layers == 1 else deeper_net)(5.0, positions=positions, num_heads=2)
    generator, num_planted, num_bounded = torch.Generator().manual_seed(seed), 0, 0
    while num_planted < NUM_FAULTS:
        if fault := planted(right, generator):
            model, length = fault
            num_planted += 1
            try:
                assert AttentionProver().prove(model, EXTRACTION).max_length < length
                num_bounded += 1
            except ValueError:  # no bound at all
                continue
    assert num_bounded > 0, "some faults are beyond a bound"
