"""Transformers of one layer: masses of attention against all short strings, and nets that err at a chosen length."""

import copy
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attending_net import OCCURS, WIDTH, attending_net
from automaton_strategies import all_strings
from proved_nets import accepts, proof_of, prove

from lengthwise import certify
from lengthwise.automata.transducer import Transducer
from lengthwise.certification import checker, traces
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.confirm import confirm
from lengthwise.certification.machine_model import machine_model
from lengthwise.certification.methods.attention import distances
from lengthwise.certification.methods.attention.masses import Blocks, mass_bounds, pairs_of, paths_of
from lengthwise.certification.methods.attention.pieces import Pieces, head_of, margins_in, narrowed
from lengthwise.certification.methods.attention.prover import AttentionProver
from lengthwise.certification.methods.attention.scores import (
    Heads,
    Values,
    heads_of,
    states_of_symbols,
)
from lengthwise.certification.methods.base import highest_level, task_extraction
from lengthwise.certification.proof_file import write_proof
from lengthwise.certification.verify import check
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.ops.intervals import Intervals
from lengthwise.tasks import make_task

POSITIONS = tuple(distances.names())
OCCURS_EXTRACTION = mask_unsupervised(task_extraction(OCCURS.reference), OCCURS.reference)


def drawn_net(positions: str, *, seed: int = 0, num_heads: int = 2) -> SequenceModel:
    """A net whose scores differ by a few units, and whose biases are not all alike."""
    sizes = {"d_model": 8, "num_heads": num_heads, "num_layers": 1}
    model = make_model("transformer", OCCURS, seed=seed, positions=positions, **sizes).requires_grad_(False)
    model.layers[0].query_key_value.weight.mul_(3.0)
    return model.eval()


def first_heads(model: SequenceModel, max_length: int) -> Heads:
    """The bounds of the first layer, for strings over two symbols."""
    return heads_of(model, 0, states_of_symbols(model, 2), max_length)


def masses_of(model: SequenceModel, strings: torch.Tensor) -> torch.Tensor:
    """The masses [B, H, V] of symbols at the last position, by definition in float64."""
    model = copy.deepcopy(model).double()
    layer, positions = model.layers[0], model.read_in.positions
    states = layer.norms[0](model.read_in(strings))
    query, key, _ = layer._heads(layer.query_key_value(states), 3)
    weights = positions.attention(states)[0].scores(query, key)[:, :, -1].softmax(-1)
    return torch.einsum("bht,btv->bhv", weights, F.one_hot(strings, 2).double())


@pytest.mark.parametrize("positions", POSITIONS)
def test_masses_of_all_short_strings_lie_within_bounds_and_reach_them(positions: str) -> None:
    model, machine = drawn_net(positions), make_task("tomita", index=3).reference
    assert isinstance(machine, Transducer)
    pairs = pairs_of(machine, is_first=True)
    paths = paths_of(first_heads(model, 8), pairs)
    bounds = mass_bounds(paths, Blocks(np.array([1, 2, 6]), np.array([1, 5, 7])))
    low, high = np.ones_like(bounds.low), np.zeros_like(bounds.high)
    for length in range(1, 8):
        strings = all_strings(2, length)
        masses, block = (
            masses_of(model, torch.from_numpy(strings)).numpy(),
            [1, 5, 7].index(min(last for last in (1, 5, 7) if last >= length)),
        )
        ends = machine.semiautomaton.final_states(strings, machine.start)
        for pair, (symbol, state) in enumerate(zip(pairs.symbols, pairs.states, strict=True)):
            ending = masses[(strings[:, -1] == symbol) & (ends == state)]
            if len(ending):
                low[block, pair] = np.minimum(low[block, pair], ending.min(0))
                high[block, pair] = np.maximum(high[block, pair], ending.max(0))
    exists = (low <= high).all((2, 3))
    assert np.array_equal(exists, bounds.exists)
    assert (bounds.low[exists] <= low[exists] + 1e-9).all()
    assert (bounds.high[exists] >= high[exists] - 1e-9).all()
    assert max((low - bounds.low)[exists].max(), (bounds.high - high)[exists].max()) < 2e-3, "up to rounding"


@pytest.mark.sampled(2)  # each is about a second
@pytest.mark.parametrize("length", [5, 600])
@pytest.mark.parametrize("positions", POSITIONS)
def test_margins_hold_for_the_net_and_masses_stay_when_narrowed(positions: str, length: int) -> None:
    """A region around the masses of a string: the float32 net's lead is at least the bound, on each of its paths."""
    model = drawn_net(positions, seed=1)
    strings = torch.randint(2, (64, length), generator=torch.Generator().manual_seed(length))
    strings[:2] = torch.arange(2)[:, None]
    heads, masses = first_heads(model, length), masses_of(model, strings)
    logits = model.last(strings)
    outputs, symbols = logits.argmax(1), strings[:, -1]
    lead = logits.max(1).values - logits.min(1).values
    masses = masses.clamp(max=1)
    own = torch.tensor([1e-12, 1e-3, 0.1])[torch.arange(64) % 3, None, None]
    regions = Pieces((masses - own).clamp(min=0), (masses + own).clamp(max=1), symbols, 0 * symbols, outputs)
    head = head_of(model.layers[0], heads, length)
    inside = narrowed(regions, head.ratios)
    assert len(inside.low) == 64
    assert bool(((inside.low <= masses + 1e-5) & (masses - 1e-5 <= inside.high)).all())
    for values in (lead, model(strings)[:, -1].sort().values.diff()[:, 0]):
        margins = margins_in(head, model.readout, regions)
        assert bool((margins <= values).all())
        assert float((values - margins)[::3].max()) < 0.05, "around a point, bounds are narrow"


def test_rounding_of_attention_is_within_its_bound() -> None:
    """Scores that rise again and again, so that kernels rescale their sums, and keys of all sizes."""
    generator = torch.Generator().manual_seed(0)
    for length in (3, 64, 1500):
        for scale in (1.0, 20.0):
            key = scale * torch.randn(16, 1, length, 4, generator=generator).sort(2).values
            query, value = (torch.randn(16, 1, size, 4, generator=generator) for size in (1, length))
            scores = query.double() @ key.double().mT / 2
            exact = scores.softmax(-1) @ value.double()
            # Scores round before attention's own rounding begins: here E + 8 units of sums of sizes.
            size = float((query.abs() @ key.abs().mT).max()) / 2
            heads = Heads(Intervals.around(scores), Values(value, value[..., None]), Intervals.around(value))
            allowed = (heads.relative_error(length) + 2 * 12 * 2.0**-23 * size) * float(value.abs().max())
            got = F.scaled_dot_product_attention(query, key, value)
            assert float((got - exact).abs().max()) <= allowed


def first_error(model: SequenceModel, max_length: int) -> int | None:
    """The length of the shortest string of `attending_net`'s worst family that is answered wrongly."""
    for length in range(1, max_length + 1):
        strings = torch.ones(3, length, dtype=torch.int64)
        strings[0, -1] = strings[1, 0] = 0
        if bool((model.last(strings).argmax(1) != OCCURS.solve(strings)[:, -1]).any()):
            return length
    return None


@pytest.mark.sampled(4)  # the last has several chunks of keys, and takes seconds
@pytest.mark.parametrize("length", [40, 13, 100, 700])
def test_no_bound_covers_a_planted_error(length: int) -> None:
    """The gap for which a string of this length is the first to be wrong: one 0 among too many symbols 1."""
    model = attending_net(math.log(length - 1.5))
    strings = torch.ones(2, length, dtype=torch.int64)
    strings[:, 0] = 0
    assert model.last(strings).argmax(1).tolist() != OCCURS.solve(strings)[:, -1].tolist()
    assert model.last(strings[:, 1:]).argmax(1).tolist() == OCCURS.solve(strings[:, 1:])[:, -1].tolist()
    evidence = AttentionProver().prove(model, OCCURS_EXTRACTION)
    assert 0.8 * length <= evidence.max_length < length


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.sampled(15)  # each is about three seconds
@pytest.mark.parametrize("seed", range(5))
def test_no_bound_covers_the_error_of_a_net_with_noise(positions: str, seed: int) -> None:
    """Noise on all weights grows by bisection until a short string is wrong; the net just before that is tried too."""
    generator = torch.Generator().manual_seed(seed)
    right = attending_net(6.0, positions=positions, num_heads=2)
    noise = [torch.randn(parameter.shape, generator=generator) for parameter in right.parameters()]

    def moved(size: float) -> SequenceModel:
        model = copy.deepcopy(right)
        for parameter, change in zip(model.parameters(), noise, strict=True):
            parameter += size * change
        return model

    low, high = 0.0, 2.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if first_error(moved(middle), 30) is None else (low, middle)
    err = first_error(moved(high), 30)
    assert err is not None
    for size in (low, high, 1.5 * high):
        model = moved(size)
        err = first_error(model, 200) or 10**9
        try:
            assert AttentionProver().prove(model, OCCURS_EXTRACTION).max_length < err
        except ValueError:  # no bound at all
            continue


def test_a_proof_is_not_that_of_another_net_or_length() -> None:
    proof = proof_of("attention")
    assert accepts(proof)
    lengths = proof.arrays["sets.lengths"].copy()
    lengths[-1] = 56
    assert not accepts(proof, arrays=proof.arrays | {"sets.lengths": lengths}, max_length=56)
    weights = {f"weights.{name}": tensor.numpy() for name, tensor in attending_net(3.9).state_dict().items()}
    assert not accepts(proof, arrays=proof.arrays | weights)


@pytest.mark.sampled(3)  # each is a second or two
@pytest.mark.parametrize("heads", [2, 1])
@pytest.mark.parametrize("positions", [name for name in POSITIONS if name != "none"])
def test_proofs_with_positions_are_accepted_and_belong_to_their_heads(positions: str, heads: int) -> None:
    model = attending_net(5.0, positions=positions, num_heads=heads)
    move_heads(model)
    proof = prove(model, OCCURS)
    assert accepts(proof)
    if heads == 2:
        swapped = {name: proof.arrays[name][:, :, :, ::-1] for name in ("sets.low", "sets.high")}
        assert not accepts(proof, arrays=proof.arrays | swapped)
    # Other encodings without parameters, and with the same parameters, give other scores.
    without = ("none", "alibi", "rotary")
    others = {"kerple-log": ["kerple-power"], "kerple-power": ["kerple-log"]} | dict.fromkeys(without, without)
    for name in others.get(positions, ()):
        belongs = accepts(proof, model=proof.certificate["model"] | {"positions": name})
        assert belongs == (name == positions), name


def move_heads(model: SequenceModel) -> None:
    """Make the scores of heads differ, and depend on distances, by a fraction of their gap."""
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.read_in.positions.named_parameters():
        if "limit" not in name:
            parameter += 0.3 * torch.rand(parameter.shape, generator=generator)
    model.layers[0].query_key_value.bias[WIDTH // 2 : WIDTH] *= 0.9  # of the second head's queries


@pytest.mark.parametrize("num_heads", [1, 2, 3, 6, 8])
def test_the_checker_has_the_biases_of_the_net(num_heads: int) -> None:
    for positions in ("alibi", "t5"):
        model = make_model("transformer", OCCURS, d_model=24, num_heads=num_heads, num_layers=1, positions=positions)
        weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        settings = {"positions": positions, "num_heads": num_heads}
        expected = model.read_in.positions.by_distance(torch.arange(300)).detach().double().numpy()
        biases = checker.biases(checker.Net("", settings, weights, 2, 2), 0, 300)
        assert np.allclose(biases.center, expected, rtol=1e-15)
        assert not biases.radius.any()


def test_scores_that_may_overflow_are_rejected() -> None:
    """A score of infinity makes the softmax NaN, although its mass would be between 0 and 1."""
    model = attending_net(20.0)
    model.layers[0].query_key_value.weight *= 1e20
    model.layers[0].query_key_value.bias *= 1e20
    assert not bool(model.last(torch.tensor([[0, 1]])).isfinite().all())
    with pytest.raises(ValueError, match="expected finite attention scores and values, got some that may overflow"):
        AttentionProver().prove(model, OCCURS_EXTRACTION)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"readout": "tied"}, "expected a transformer with readout='linear'"),
        ({"positions": "sinusoidal"}, "expected (only parts|positions none, )"),
    ],
)
def test_what_has_no_bounds_is_not_proved(settings: dict[str, str], reason: str) -> None:
    model = make_model("transformer", OCCURS, d_model=8, num_heads=1, num_layers=1, **settings)
    assert highest_level(model) == "tested"
    with pytest.raises(ValueError, match=reason):
        AttentionProver().prove(model, OCCURS_EXTRACTION)


class Doubled(partial):
    """The activation times two, with the function and the arguments of the activation."""

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return 2 * super().__call__(states)


@pytest.mark.parametrize("activation", [F.gelu, Doubled(F.gelu, approximate="tanh")])
def test_another_activation_is_not_proved(activation: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """It is an attribute of the layer alone, and changes no weight."""
    model = attending_net(20.0)
    model.layers[0].activation = activation
    with pytest.raises(ValueError, match="tanh form of GELU"):
        AttentionProver().prove(model, OCCURS_EXTRACTION)


@pytest.mark.parametrize(
    ("gap", "length"),
    # All strings of a certificate take a transformer seconds, and the smaller bound shows the same.
    [(5.5, 200), pytest.param(20.0, 4096, marks=pytest.mark.slow)],
)
def test_a_certificate_is_bounded_checked_and_confirmed(gap: float, length: int, tmp_path, monkeypatch) -> None:
    if length < 4096:
        monkeypatch.setattr(traces, "TESTED_LENGTHS", (40,))
    model = attending_net(gap)
    assert highest_level(model) == "bounded"
    certificate = certify(model, OCCURS)
    assert (certificate.level, certificate.machine, certificate.independently_checked) == ("bounded", None, True)
    assert certificate.max_length == certificate.evidence.max_length >= length
    assert f"up to a length of {certificate.max_length:,} symbols" in certificate.claim
    with pytest.raises(ValueError, match="machine that was extracted from the model, got none at level 'bounded'"):
        machine_model(certificate)
    path = tmp_path / "proof.safetensors"
    assert "one answer leads" in write_proof(certificate, model, OCCURS, path)
    assert "with NumPy alone" in check(certificate, path).verified[0]
    sentence = f"method 'attention' proves the model again: {certificate.evidence.describe()}"
    assert sentence in confirm(certificate, model, OCCURS)
