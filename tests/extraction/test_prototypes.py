"""The nearest of some prototypes, against every distance, computed from differences."""

from unittest.mock import Mock

import pytest
import torch
from torch import nn

from lengthwise.extraction.prototypes import NotFinite, nearest_prototypes, nearest_prototypes_by_definition
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.models.base import SequenceModel
from lengthwise.models.wrapped import wrap


def answering_by_first_two_numbers() -> SequenceModel:
    """Anything with a read-out, which is all of a model that is looked at."""
    model = Mock(spec=SequenceModel)
    model.readout = lambda states: states[:, :2]
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize(("width", "number"), [(2, 1), (7, 5), (64, 63), (300, 12)])
def test_the_nearest_prototype_of_the_same_answer_is_given(
    width: int, number: int, offset: float, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(width)
    states = offset + torch.randn(101, width, generator=generator, dtype=dtype)
    prototypes = offset + torch.randn(number, width, generator=generator, dtype=dtype)
    model = answering_by_first_two_numbers()
    indices, distances = nearest_prototypes(model, states, prototypes)
    _, least = nearest_prototypes_by_definition(model, states.double(), prototypes.double())
    is_none = least.isinf()
    assert bool((indices[is_none] == number).all())
    assert bool(distances[is_none].isinf().all())
    given = (states[~is_none].double() - prototypes[indices[~is_none]].double()).norm(dim=1)
    assert torch.equal(states[~is_none, :2].argmax(1), prototypes[indices[~is_none], :2].argmax(1))
    eps = torch.finfo(dtype).eps
    # Distances of differences are right to rounding; squares of them are ordered to that of products as large as norms.
    torch.testing.assert_close(distances[~is_none].double(), given, rtol=width * eps, atol=0.0)
    norms = states.double().norm(dim=1).amax() + prototypes.double().norm(dim=1).amax()
    assert bool((given.square() <= least[~is_none].square() + 4 * width * eps * norms.square()).all())
    assert number < 5 or bool((~is_none).all())


def test_no_prototype_is_given_where_there_is_none_or_a_state_is_not_finite() -> None:
    states = torch.ones(5, 3)
    states[1, 2], states[2, 0], states[3], states[4, 2] = torch.nan, torch.inf, -torch.inf, 1e38
    huge = torch.tensor([[1.0, 1.0, 2.0]]) * 1e38
    # The last state is finite, but the square of its distance overflows; so do those of all to the huge prototype.
    cases = ((torch.zeros(0, 3), [0] * 5), (torch.zeros(1, 3), [0, 1, 1, 1, 1]), (huge, [1] * 5))
    for prototypes, expected in cases:
        for nearest in (nearest_prototypes, nearest_prototypes_by_definition):
            indices, distances = nearest(answering_by_first_two_numbers(), states, prototypes)
            assert indices.tolist() == expected
            assert distances.isfinite().tolist() == (indices < len(prototypes)).tolist()


def test_states_whose_distances_are_infinite_found_no_classes() -> None:
    """Finite states of 1e25 are infinitely far apart in float32, and every radius between them holds all states."""
    net = wrap(nn.Embedding(2, 1), nn.RNN(1, 1, batch_first=True, nonlinearity="relu"), nn.Linear(1, 2))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1.0)
        net.core.bias_ih_l0.fill_(1e25)
        net.readout[-1].bias.copy_(torch.tensor([1.0, 0.0]))
    with pytest.raises(NotFinite, match="so far apart that distances between them are infinite"):
        extract_recurrent(net, ("a", "b"), radius=torch.inf)
