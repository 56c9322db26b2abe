"""Proofs of compiled trees: their merges are exact, and where one is not they prove nothing."""

import pytest
import torch

from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.exact.prover import ExactMerges, ExactProver
from lengthwise.certification.verify import check
from lengthwise.constructions import construct
from lengthwise.constructions.regular_gpt import compile_regular_gpt
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.tree import extract_tree
from lengthwise.models import make_model
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.tasks import make_task

TASK = make_task("even-pairs")


def compiled(chunk_size: int = 2) -> RegularGPT:
    model = compile_regular_gpt(TASK.transducer, chunk_size=chunk_size).model
    assert isinstance(model, RegularGPT)
    return model


def extracted(model: RegularGPT) -> Extraction:
    return mask_unsupervised(extract_tree(model, TASK.symbols, radius=0.1), TASK.transducer)


@pytest.mark.parametrize("chunk_size", [2, 3])
def test_merges_are_those_of_the_model_to_the_last_bit(chunk_size: int) -> None:
    model = compiled(chunk_size)
    states = torch.randint(-3, 4, (50, chunk_size, model.config.d_model), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = merge_windows(model.layers[0], states.float())
        merges = ExactMerges(model.layers[0], states.flatten(0, 1).double())
        assert torch.equal(merges(torch.arange(50 * chunk_size).view(50, chunk_size)).T.float(), expected)


@pytest.mark.parametrize("number", [1 / 3, 2.0**-13, 2.0**22, float("inf"), float("nan")])
@torch.no_grad()
def test_merges_of_states_that_float32_may_round_are_refused(number: float) -> None:
    """Of no short binary fraction; too large; none at all."""
    model = compiled()
    points = extracted(model).prototypes.double()
    windows = torch.tensor([[0, 1]])
    assert ExactMerges(model.layers[0], points)(windows).shape == (model.config.d_model, 1)
    points[-1, 0] = number
    with pytest.raises(Unproved):
        ExactMerges(model.layers[0], points)(windows)


@torch.no_grad()
def test_sums_that_grow_inside_a_merge_are_refused() -> None:
    """Each state and weight is small enough, and the sum of their products is not."""
    model = compiled()
    points = extracted(model).prototypes.double()
    model.layers[0].feed_forwards[0].widen.weight.fill_(2.0**11)
    model.layers[0].feed_forwards[0].narrow.weight.fill_(2.0**10)
    with pytest.raises(Unproved, match="float32 may round the merged states"):
        ExactMerges(model.layers[0], points)(torch.tensor([[1, 2]]))


@pytest.mark.parametrize(
    ("name", "fields", "dtype"),
    [
        ("parity", {}, torch.float32),
        ("parity", {}, torch.float64),
        ("tomita", {"index": 5}, torch.float32),
        ("cycle-navigation", {}, torch.float64),
    ],
)
@pytest.mark.usefixtures("fewer_strings")
def test_compiled_nets_are_proved(name: str, fields: dict, dtype: torch.dtype) -> None:
    task = make_task(name, **fields)
    certificate = Certificate.from_text(certify(construct("regular-gpt", task).model.to(dtype), task).to_text())
    assert certificate.level == "proved"
    assert certificate.evidence.method == "exact"
    assert any("without rounding errors" in sentence for sentence in check(certificate).taken_on_trust)


def test_what_is_not_exact_is_not_proved() -> None:
    """A third; a key; positions that lead by little; an infinite query, which makes scores that are no numbers."""
    for name, index, value in (
        ("to_output.weight", (0, 0), 1 / 3),
        ("to_key_value.weight", (0, 0), 1.0),
        ("to_key_value.bias", (0,), 1.0),
        ("bias", slice(None), 0.0),
        ("to_query.weight", (0, 0), float("inf")),
        ("feed_forwards.0.narrow.bias", (0,), float(2**24)),
    ):
        model = compiled()
        extraction = extracted(model)
        assert ExactProver().prove(model, extraction).num_prototypes == len(extraction.prototypes)
        with torch.no_grad():
            model.layers[0].get_parameter(name)[index] = value
        with pytest.raises(Unproved):
            ExactProver().prove(model, extraction)


def test_answers_that_are_level_prove_nothing() -> None:
    model = compiled()
    extraction = extracted(model)
    with torch.no_grad():
        model.readout[1].weight.zero_()
    with pytest.raises(Unproved, match="too close"):
        ExactProver().prove(model, extraction)


def test_other_models_are_refused() -> None:
    read = compiled()
    read.readout.append(torch.nn.Identity())
    for model, sentence in (
        (make_model("regular-gpt", TASK), "with a single BareLayer, got a RegularGPT with a MergeLayer"),
        (read, "model.readout to be one linear map"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ExactProver().prove(model, extracted(compiled()))
