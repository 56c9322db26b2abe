"""Recurrences that preserve distances: how far states drift, and nets that err after 25 to 60 symbols."""

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lengthwise import certify
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.confirm import confirm
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.isometries.prover import (
    FREE_FRACTION,
    Balls,
    Drift,
    IsometryProver,
    check_isometric,
    drift_of,
    longest,
    transition_bounds,
)
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.models import make_model
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.tasks import make_task

PARITY = make_task("parity")


def parity_net(angle: float = 0.0, *, gates: tuple[float, float] = (-1.0, 1.0), temperature: float = 0.0, **config):
    """b reflects the state at the plane orthogonal to it; a, where its gate is open, almost along it.

    Two reflections are a rotation by twice the angle between them: `angle` off a right one, they turn the state by as
    much more than half a turn. Answers are the signs of the state's first number less the mean of all.
    """
    model = make_model(
        "block-linear-rnn", PARITY, d_model=4, block_dim=4, hidden=0, columns="reflected", **config
    ).requires_grad_(False)
    assert isinstance(model, BlockLinearRNN)
    along = torch.tensor([1.0, 0.0, 0.0, 0.0])
    across = torch.tensor([math.sin(angle / 2), math.cos(angle / 2), 0.0, 0.0])
    model.embedding.weight.copy_(
        torch.stack([torch.cat([across, torch.tensor([gates[0]])]), torch.cat([along, torch.tensor([gates[1]])])])
    )
    layer, (_, norm, hidden, _, logits) = model.layers[0], model.readout
    layer.temperature.fill_(temperature)
    layer.first_state.copy_(along)
    norm.reset_parameters()
    for linear in (hidden, logits):
        linear.weight.zero_()
        linear.bias.zero_()
    hidden.weight[0, 0], hidden.weight[1, 0] = 1.0, -1.0
    even, odd = PARITY.transducer.outputs.tolist()
    logits.weight[even, 0], logits.weight[odd, 1] = 1.0, 1.0
    return model


def extraction_of(model: BlockLinearRNN, radius: float = 0.5) -> Extraction:
    return mask_unsupervised(extract_recurrent(model, PARITY.symbols, radius=radius), PARITY.transducer)


def first_error(model: BlockLinearRNN, length: int) -> int | None:
    """The length of the shortest alternating string that is answered wrongly.

    A reflection undoes itself: after every string the state is then that after an alternating one, which is no longer.
    """
    wrong = []
    for first in (0, 1):
        string = (torch.arange(length) + first)[None] % 2
        right = PARITY.solve(string)
        wrong += (model(string).argmax(-1) != right)[0].nonzero().flatten().tolist()
    return min(wrong) + 1 if wrong else None


@given(
    st.integers(1, 60), st.floats(0, 1e-3), st.floats(0, 1e-2), st.floats(1, 1.01), st.randoms(use_true_random=False)
)
def test_drift_holds_for_any_order_of_products(
    length: int, error: float, rounding: float, growth: float, chance: random.Random
) -> None:
    """Against the definition: distances step by step, and errors of products of computed products, in any order."""
    drift, distance = Drift(error, rounding, growth, 2.0), 0.0
    for _ in range(length):
        distance = growth * distance + error

    def product(count: int) -> tuple[float, float]:
        """A bound on the norm of what is computed of so many factors, and on its error."""
        if count == 1:
            return growth, 0.0
        split = chance.randint(1, count - 1)
        (one, wrong), (other, also) = product(split), product(count - split)
        return one * other * (1 + rounding), rounding * one * other + wrong * other + growth**split * also

    _, wrong = product(length + 1)
    # Of a state, the last factor, the norm is `size` and not `growth`.
    assert distance + drift.size * wrong / growth <= drift.after(length) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_rounding_of_matrices_and_of_products_is_held(seed: int, temperature: float) -> None:
    """What a layer computes in float32 against the same in float64; of products, Higham's n u |P| |Q| (2002, 3.5)."""
    model = make_model("block-linear-rnn", PARITY, d_model=16, block_dim=8, hidden=0, columns="reflected", seed=seed)
    model.requires_grad_(False)
    assert isinstance(model, BlockLinearRNN)
    (layer,) = model.layers
    layer.temperature.fill_(temperature)
    exact, rounded = transition_bounds(model)
    computed = layer.transitions(model.embedding.weight).double()
    assert bool((torch.linalg.matrix_norm(computed - exact) <= rounded).all())
    if not temperature:
        is_identity = model.embedding.weight.unflatten(-1, (2, 9))[..., -1] <= 0
        assert torch.equal(rounded == 0, is_identity)
    points = torch.ones(1, 16, dtype=torch.float64)
    drift = drift_of(model, torch.zeros(1, 2, dtype=torch.int64), points)
    assert drift.growth >= float(torch.linalg.matrix_norm(computed, ord=2).max())
    assert drift.rounding >= 8 * 8 * 2.0**-24
    images = torch.einsum("vnij,nj->vni", exact, points.view(2, 8))
    exact_drift = (images - points.view(2, 8)).flatten(1).norm(dim=1).max()
    assert drift.error > float(exact_drift) + 0.1 * float(rounded.max())


@pytest.mark.parametrize("size", [2, 8, 32])
@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_matrices_have_slack_for_the_worst_rounding(size: int, temperature: float) -> None:
    """Each number of b k k^T has two numbers of k, each off by a norm of S squares and a quotient, and two products.

    The difference from the identity rounds where the identity is 1. A gate that is a sigmoid is off by sixteen units.
    """
    unit = 2.0**-24
    model = make_model("block-linear-rnn", PARITY, d_model=size, block_dim=size, hidden=0, columns="reflected")
    model.requires_grad_(False)
    assert isinstance(model, BlockLinearRNN)
    model.layers[0].temperature.fill_(temperature)
    model.embedding.weight[:, -1] = 1.0  # all gates are open
    matrices, rounded = transition_bounds(model)
    subtracted = (torch.eye(size) - matrices).abs()
    operations = 2 * (size / 2 + 2) + 2 + (16 if temperature else 0)
    worst = unit * torch.linalg.matrix_norm(operations * subtracted + torch.eye(size))
    assert bool((rounded >= worst).all())
    assert bool((rounded < 4 * worst).all())


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_drift_is_a_missed_prototype_and_the_worst_rounded_matrix(blocks: int) -> None:
    """A matrix of rank one, as large as the rounding error, moves each block of a prototype in the direction missed."""
    model = make_model("block-linear-rnn", PARITY, d_model=4 * blocks, block_dim=4, hidden=0, columns="reflected")
    model.requires_grad_(False)
    assert isinstance(model, BlockLinearRNN)
    model.embedding.weight[:, 4::5] = 1.0
    exact, rounded = transition_bounds(model)
    points = 100 * torch.randn(2, 4 * blocks, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    table = torch.tensor([[0, 1], [1, 0]])
    states, worst = points.unflatten(1, (blocks, 4)), 0.0
    for state, targets in zip(states, table, strict=True):
        for symbol, target in enumerate(targets.tolist()):
            missed = (exact[symbol] @ state[..., None])[..., 0] - states[target]
            moved = rounded[symbol] * state.norm(dim=-1)
            worst = max(worst, float(missed.norm() + moved.norm()))
    drift = drift_of(model, table, points)
    assert worst <= drift.error <= worst * (1 + 1e-8)
    assert drift.size == float(model.layers[0].first_state.double().norm())


@pytest.mark.parametrize("angle", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("temperature", [0.0, 0.25])
def test_states_stay_within_their_drift(angle: float, temperature: float) -> None:
    """On every path: short strings step by step, long ones in chunks, many of them at once."""
    model = parity_net(angle, gates=(3.0, 3.0), temperature=temperature)
    extraction = extraction_of(model)
    drift = drift_of(model, torch.tensor(extraction.fine.semiautomaton.table), extraction.prototypes.double())
    generator = torch.Generator().manual_seed(0)
    for count, length in ((64, 40), (2, 2_000), (200, 300)):
        strings = torch.randint(0, 2, (count, length), generator=generator)
        strings[0] = torch.arange(length) % 2
        classes = torch.from_numpy(extraction.fine.semiautomaton.run(strings.numpy(), extraction.fine.start))
        states = torch.cat(list(model.states(strings)), 1)
        moved = torch.linalg.vector_norm(states.double() - extraction.prototypes.double()[classes], dim=-1).amax(0)
        allowed = torch.tensor([drift.after(n) for n in range(1, length + 1)], dtype=torch.float64)
        assert bool((moved <= allowed).all())
    if temperature == 0.0 and angle == 1e-2:
        assert float(moved[40]) > 0.1 * drift.after(40), "the bound is not idle"


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(60))
def test_nets_that_err_after_25_to_60_symbols_are_right_up_to_what_is_stated(seed: int) -> None:
    """Each pair of symbols turns the state a little too far; in half of the nets it fades besides."""
    generator = torch.Generator().manual_seed(seed)
    aim = int(torch.randint(25, 61, (), generator=generator))
    temperature = (seed % 2) * (0.3 + 0.2 * float(torch.rand((), generator=generator)))
    model = parity_net(2 * math.atan(3) / aim, gates=(3.0, 3.0), temperature=temperature)
    err = first_error(model, 100)
    assert err is not None
    assert 25 <= err <= 62, "planted"
    assert 0 < IsometryProver().prove(model, extraction_of(model)).max_length < err


def test_a_net_without_drift_is_right_for_many_symbols() -> None:
    """Here states are whole numbers, and nothing is rounded: all drift is what float32 might do."""
    model = parity_net()
    evidence = IsometryProver().prove(model, extraction_of(model))
    assert evidence.max_length > 100_000
    states = torch.cat(list(model.states(torch.ones(1, 100_000, dtype=torch.int64))), 1)
    assert bool((states[0, 1::2] == model.layers[0].first_state.flatten()).all())


@pytest.mark.usefixtures("fewer_strings")
def test_certificates_say_up_to_which_length() -> None:
    model = parity_net()
    certificate = certify(model, PARITY)
    assert certificate.level == "bounded"
    assert certificate.max_length is not None
    assert certificate.max_length > 100_000
    assert f"every string, up to a length of {certificate.max_length:,} symbols" in certificate.claim
    sentences = confirm(certificate, model, PARITY)
    assert certificate.evidence is not None
    assert f"method 'isometries' proves the model again: {certificate.evidence.describe()}" in sentences
    assert certify(parity_net(0.1, gates=(3.0, 3.0)), PARITY).level == "refuted"
    longer = certificate.max_length + 1
    forged = certificate.model_copy(
        update={
            "max_length": longer,
            "evidence": certificate.evidence.model_copy(update={"max_length": longer, "radius": 1.0}),
        }
    )
    with pytest.raises(ValueError, match=f"its new proof, which covers strings of up to {longer - 1:,} symbols"):
        confirm(forged, model, PARITY)


def test_the_margin_that_is_printed_is_the_margin_at_the_prototypes() -> None:
    """At the edge of the largest balls nothing is left but where a bisection stops."""
    model = parity_net(1e-4, gates=(3.0, 3.0))
    extraction = extraction_of(model)
    evidence = IsometryProver().prove(model, extraction)
    outputs = torch.tensor(extraction.fine.outputs)
    logits = model.readout(extraction.prototypes)[outputs != IGNORE]
    own = outputs[outputs != IGNORE, None]
    lead = (logits.gather(1, own) - logits.scatter(1, own, -torch.inf)).min()
    assert evidence.logit_margin == pytest.approx(float(lead), rel=1e-3)
    assert f"the right logit leads by {evidence.logit_margin:.2g}, and up to a distance of" in evidence.describe()
    balls = Balls(model.readout, extraction.prototypes[outputs != IGNORE].double(), outputs[outputs != IGNORE])
    assert balls.margin(evidence.radius) > 0 >= balls.margin(evidence.radius / (1 - FREE_FRACTION) * 1.001), (
        "near the largest"
    )
    drift = drift_of(model, torch.tensor(extraction.fine.semiautomaton.table), extraction.prototypes.double())
    assert evidence.max_length == longest(drift, (1 - FREE_FRACTION) * evidence.radius)


def test_symbols_that_the_machine_has_not_are_left_out() -> None:
    model = parity_net()
    extraction = extract_recurrent(model, PARITY.symbols[:1], radius=0.5)
    table = torch.tensor(extraction.fine.semiautomaton.table)
    assert table.shape[1] == 1
    assert drift_of(model, table, extraction.prototypes.double()).error < 1e-5


def test_the_reason_is_the_drift() -> None:
    model = parity_net(1.0, gates=(3.0, 3.0))
    extraction = extraction_of(model, radius=1.0)
    with pytest.raises(
        Unproved,
        match=r"states drift 0\.\d+ .* step, but a proof allows 0.95 times 0\.\d+, the distance up to",
    ):
        IsometryProver().prove(model, extraction)


def test_other_nets_are_refused() -> None:
    deep = make_model("block-linear-rnn", PARITY, columns="reflected", num_layers=2)
    other = parity_net()
    other.layers[0].columns = "clamped"
    tiny = parity_net()
    tiny.layers[0].first_state.mul_(1e-8)
    normed = parity_net()
    normed.norms[0] = nn.Linear(normed.embedding.embedding_dim, normed.embedding.embedding_dim)
    short = parity_net()
    short.readout = nn.Sequential(*list(short.readout)[:3])
    for model, sentence in (
        (
            deep,
            "num_layers=1, columns='reflected' and hidden=0, got num_layers=2, columns='reflected', hidden=512",
        ),
        (other, "no hidden units in the model's layer, got columns 'clamped', no added inputs and no hidden"),
        (tiny, "a first state of norm 1e-6 to 1e15, got other norms"),
        (normed, "only nn.Identity in model.norms, got Linear"),
    ):
        with pytest.raises(ValueError, match=sentence):
            check_isometric(model)
    with pytest.raises(ValueError, match="LayerNorm, Linear, ReLU, Linear, got Topmost, LayerNorm, Linear"):
        IsometryProver().prove(short, extraction_of(parity_net()))
    moved = extraction_of(parity_net())
    with pytest.raises(ValueError, match="start state, got another prototype"):
        IsometryProver().prove(parity_net(), moved._replace(prototypes=moved.prototypes + 0.1))


def test_lengths_are_found_by_halving() -> None:
    drift = Drift(error=0.1, rounding=0.0, growth=1.0, size=1.0)
    assert longest(drift, 1.05) == 10
    assert longest(drift, 0.05) == 0
