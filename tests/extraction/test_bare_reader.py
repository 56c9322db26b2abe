"""Reading compiled trees, and nets of the same layer whose states do not close."""

import pytest
import torch

from lengthwise.constructions import construct
from lengthwise.constructions.regular_gpt import compile_regular_gpt
from lengthwise.extraction.base import reader_of
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.extraction.readers.bare import BareReader
from lengthwise.extraction.readers.tree import TreeReader
from lengthwise.models import make_model
from lengthwise.models.base import TreeModel
from lengthwise.tasks import make_task

TASK = make_task("tomita", index=3)


def counter() -> TreeModel:
    """The compiled net of an even number of ones, changed such that a state is the number of ones in its string."""
    model = compile_regular_gpt(make_task("parity").transducer).model
    (layer,) = model.layers
    (block,) = layer.feed_forwards
    with torch.no_grad():
        for parameter in (model.embedding.weight, *block.parameters(), *model.readout.parameters()):
            parameter.zero_()
        model.embedding.weight[1:, 0] = 1.0
        block.widen.weight[0] = 1.0  # the sum of both parts
        block.narrow.weight[0, 0] = 1.0
    return model


def test_it_reads_bare_layers_only() -> None:
    assert type(reader_of(construct("regular-gpt", TASK).model, TASK.symbols)) is BareReader
    assert type(reader_of(make_model("regular-gpt", TASK), TASK.symbols)) is TreeReader


@torch.no_grad()
def test_of_whole_weights_one_radius_below_1_stands_for_all() -> None:
    model = construct("regular-gpt", TASK).model
    strings = TASK.sample(20, 40, torch.Generator().manual_seed(0)).inputs
    reader, usual = BareReader(model, TASK.symbols), TreeReader(model, TASK.symbols)
    radii = reader.radii(strings)
    smaller = [radius for radius in usual.radii(strings) if radius < 1]
    assert [radius for radius in radii if radius < 1] == smaller[:1]
    first, *others = (usual.extract(radius) for radius in smaller)
    assert others
    for other in others:
        assert torch.equal(first.prototypes, other.prototypes)
    model.layers[0].feed_forwards[0].narrow.weight[0, 0] += 0.25
    assert reader.radii(strings) == usual.radii(strings)


@pytest.mark.parametrize(("added", "limit"), [(0.0, 1_000), (0.25, 500)])
def test_more_classes_are_read_where_weights_are_whole(added: float, limit: int) -> None:
    model = counter()
    with torch.no_grad():
        model.readout[1].bias += added  # of both answers alike
    reader = reader_of(model, ("a",))
    assert reader is not None
    with pytest.raises(NotFinite, match=f"do not close within {limit} classes"):
        reader.extract(0.5)
