"""Transformers of several layers: states and masses of all short strings against their bounds, and forged proofs."""

import copy
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attending_net import OCCURS, deeper_net
from automaton_strategies import all_strings
from proved_nets import Proof, accepts, prove

from lengthwise.automata.transducer import Transducer
from lengthwise.certification import checker
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.methods.attention import distances, pieces, prover
from lengthwise.certification.methods.attention.distances import scores_of
from lengthwise.certification.methods.attention.masses import Blocks, Pairs, mass_bounds
from lengthwise.certification.methods.attention.pieces import Pieces, head_of, state_in, states_after
from lengthwise.certification.methods.attention.prover import AttentionProver, Search
from lengthwise.certification.methods.attention.scores import heads_of
from lengthwise.certification.methods.base import task_extraction
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.ops.intervals import Intervals
from lengthwise.tasks import make_task

POSITIONS = tuple(distances.names())
OCCURS_EXTRACTION = mask_unsupervised(task_extraction(OCCURS.reference), OCCURS.reference)
LENGTH = 7


@pytest.fixture(autouse=True)
def few_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer pieces and shorter strings take a tenth of the time, and their bounds are looser, not less sound."""
    monkeypatch.setattr(pieces, "NUM_ROUNDS", 4)
    monkeypatch.setattr(checker, "HALVINGS", 4)
    monkeypatch.setattr(prover, "MAX_LENGTH", 100)


def drawn_net(positions: str, num_heads: int) -> SequenceModel:
    """A net of two layers whose scores differ by a few units."""
    sizes = {"d_model": 8, "num_heads": num_heads, "num_layers": 2}
    model = make_model("transformer", OCCURS, positions=positions, **sizes).requires_grad_(False)
    for layer in model.layers:
        layer.query_key_value.weight.mul_(3.0)
    return model.eval()


def states_and_masses(model: SequenceModel, strings: torch.Tensor, kinds: torch.Tensor) -> list[torch.Tensor]:
    """Return the first layer's results [B, T, D] and the second layer's weights by kind [B, H, K], in float64."""
    model = copy.deepcopy(model).double()
    read = model.read_in(strings)
    first, second = model._attention(read)
    states, layer = model.layers[0](read, attention=first), model.layers[1]
    query, key, _ = layer._heads(layer.query_key_value(layer.norms[0](states)), 3)
    weights = second.scores(query, key)[:, :, -1].softmax(-1)
    return [states, torch.einsum("bht,btk->bhk", weights, F.one_hot(kinds, int(kinds.max()) + 1).double())]


def kinds_of(pairs: Pairs, strings: np.ndarray) -> np.ndarray:
    """Return the kind of each position: the number of the pair of its symbol and its state."""
    semiautomaton, start = pairs.machine.semiautomaton, pairs.machine.start
    ends = [semiautomaton.final_states(strings[:, : t + 1], start) for t in range(strings.shape[1])]
    is_pair = (strings[..., None] == pairs.symbols) & (np.stack(ends, 1)[..., None] == pairs.states)
    assert (is_pair.sum(-1) == 1).all()
    return is_pair.argmax(-1)


@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("positions", POSITIONS)
def test_states_and_masses_of_all_short_strings_lie_within_bounds(positions: str, num_heads: int) -> None:
    model, machine = drawn_net(positions, num_heads), make_task("tomita", index=4).reference
    assert isinstance(machine, Transducer)
    search, block = Search(model, machine), Blocks(np.array([1]), np.array([LENGTH]))
    heads, paths = search.first
    masses = search._regions_up_to(0, mass_bounds(paths, block))
    enclosures = states_after(head_of(model.layers[0], heads, LENGTH), masses)
    heads, paths = search._heads(1, enclosures, LENGTH)
    pairs, bounds = search.pairs[1], mass_bounds(paths, block)
    num_pairs, largest = len(pairs.last), np.zeros_like(bounds.high[0])
    for length in range(1, LENGTH + 1):
        strings = all_strings(2, length)
        kinds = kinds_of(pairs, strings)
        states, mass = states_and_masses(model, torch.from_numpy(strings), torch.from_numpy(kinds))
        mass = F.pad(mass, (0, num_pairs - mass.shape[-1])).numpy()
        for pair in range(num_pairs):
            own, sides = states[torch.from_numpy(kinds == pair)][:, None], enclosures[pair]
            is_inside = ((sides.low <= own) & (own <= sides.high)).all(-1)
            assert bool(is_inside.any(1).all()), "each state is in a piece"
            of_pair = mass[kinds[:, -1] == pair]
            assert (bounds.low[0, pair] - 1e-9 <= of_pair).all()
            assert (of_pair <= bounds.high[0, pair] + 1e-9).all()
            largest[pair] = np.maximum(largest[pair], of_pair.max(0, initial=0.0))
    assert (bounds.high[0] - largest).mean() < 0.75 * (1 - largest).mean(), "bounds are not trivial"


@cache
def proved(positions: str, num_heads: int) -> Proof:
    model = deeper_net(5.0, positions=positions, num_heads=num_heads)
    for name, parameter in model.read_in.positions.named_parameters():
        if "limit" not in name:
            parameter.copy_(torch.arange(float(parameter.numel())).sin().view(parameter.shape) / 8)
    return prove(model, OCCURS)


@pytest.mark.sampled(4)  # each takes a second or two
@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("positions", POSITIONS)
def test_proofs_are_accepted_and_no_bound_can_be_moved(positions: str, num_heads: int) -> None:
    """A bound below a mass that some string has is rejected, in either layer, and so are bounds of another layer."""
    proof = proved(positions, num_heads)
    assert accepts(proof)
    assert proof.certificate["max_length"] >= 15
    # After "1", then "0", then "1": in state 0 and 1 of the machine, by the transducer itself.
    table, start = proof.arrays["sets.table"], int(proof.arrays["sets.start"])
    string = [1, 0, 1]
    states = [start := int(table[start, symbol]) for symbol in string]
    for name, kind in (("low.0", 0), ("high.0", 0), ("low", 0 * len(table) + states[1]), ("high", states[1])):
        arrays = {key: array.copy() for key, array in proof.arrays.items()}
        bounds = arrays[f"sets.{name}"]
        block = int(np.searchsorted(arrays["sets.lengths"], len(string)))
        index = (block, string[-1], states[-1], 0, kind)
        bounds[index] = bounds[index] * 0.5 if name.startswith("high") else (bounds[index] + 1) / 2
        assert not accepts(proof, arrays=arrays), name
    swapped = proof.arrays | {
        f"weights.layers.{i}.{part}": proof.arrays[f"weights.layers.{1 - i}.{part}"]
        for i in range(2)
        for part in ("query_key_value.weight", "query_key_value.bias", "output.weight")
    }
    assert not accepts(proof, arrays=swapped)


@pytest.mark.parametrize("length", [13, 40, 90])
def test_no_bound_covers_a_planted_error(length: int) -> None:
    """The gap is moved until one 0 before `length` - 1 other symbols is the shortest string with an error."""
    string = torch.tensor([[0] + [1] * (length - 1)])
    low, high = 1.0, 12.0
    for _ in range(40):
        middle = (low + high) / 2
        is_right = deeper_net(middle).last(string).argmax(1).tolist() == OCCURS.solve(string)[:, -1].tolist()
        low, high = (low, middle) if is_right else (middle, high)
    for gap in (low, high):
        try:
            assert AttentionProver().prove(deeper_net(gap), OCCURS_EXTRACTION).max_length < length + (gap == high)
        except ValueError:  # no bound at all
            continue


def inside(low: torch.Tensor, high: torch.Tensor, numbers: torch.Tensor) -> bool:
    return bool(((low - 1e-9 <= numbers) & (numbers <= high + 1e-9)).all())


def test_scores_are_bounded_over_all_queries_and_keys_of_a_kind() -> None:
    """The largest score is at corners: a query and a key whose numbers are all at their ends."""
    ends = [torch.tensor([1.0, -2.0]), torch.tensor([1.5, 1.0]), torch.tensor([3.0, -1.0]), torch.tensor([3.25, 0.5])]
    query, key = (Intervals(*(end.double()[None, None, None] for end in pair)) for pair in (ends[:2], ends[2:]))
    corners = [torch.cartesian_prod(*torch.stack(pair).double().T) for pair in (ends[:2], ends[2:])]
    scores = corners[0] @ corners[1].T / 2**0.5
    bounds = scores_of(query, key)
    assert float(bounds.low) <= float(scores.min())
    assert float(scores.max()) <= float(bounds.high)
    assert float(bounds.high - scores.max()) < 0.5


@pytest.mark.parametrize("is_mixed", [True, False])
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("num_heads", [1, 2])
def test_bounds_hold_for_inputs_values_and_masses_drawn_from_their_sets(
    num_heads: int, positions: str, is_mixed: bool
) -> None:
    """Queries, keys and values of inputs in enclosures, and the layer's results for masses and values in their sets."""
    model, generator = drawn_net(positions, num_heads).double(), torch.Generator().manual_seed(num_heads)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    layer, num_kinds, num_pieces = model.layers[1], 3, 4
    if not is_mixed:  # results depend on the last position's input alone
        layer.output.weight.zero_()
    center = 2 * drawn(num_kinds, 1, 8) - 1 + 0.01 * drawn(num_kinds, num_pieces, 8)
    radius = 0.002 * drawn(num_kinds, num_pieces, 8)
    enclosures = Intervals(center - radius, center + radius)
    weights = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    net = checker.Net("", model.config.model_dump() | {"positions": positions}, weights, 2, 2)
    heads = heads_of(model, 1, enclosures, LENGTH)
    checked = checker.heads_of(net, 1, checker.between(enclosures.low.numpy(), enclosures.high.numpy()), LENGTH)
    kind, piece = torch.arange(100) % num_kinds, torch.arange(100) % num_pieces
    states = center[kind, piece] + radius[kind, piece] * (2 * drawn(100, 8).round() - 1)  # corners
    query, key, value = layer._heads(layer.query_key_value(layer.norms[0](states))[:, None], 3)
    attention = model.read_in.positions.attention(query.new_zeros(1, 1, 8))[1]
    scores = attention.scores(query.repeat_interleave(100, 0), key.repeat(100, 1, 1, 1)).view(100, 100, num_heads)
    pairs = kind[:, None], kind[None]
    assert inside(*(end[..., 0][pairs] for end in (heads.scores.low, heads.scores.high)), scores)
    assert inside(*(torch.from_numpy(end)[..., 0][pairs] for end in checked.scores.ends), scores)
    for middle, sides in (heads.values, map(torch.from_numpy, (checked.center, checked.sides))):
        parts = torch.linalg.solve(sides[kind], (value[:, :, 0] - middle[kind])[..., None])
        assert float(parts.abs().max()) <= 1 + 1e-6
        assert float(parts.abs().max()) > 0.1, "a corner is not far from a side"

    mass = drawn(100, num_heads, num_kinds)
    mass = mass / mass.sum(-1, keepdim=True)
    off = 0.01 * drawn(*mass.shape)
    low, high = (mass - off).clamp(min=0), (mass + off).clamp(max=1)
    of_kinds = torch.stack([value[kind == k][: 100 // num_kinds, :, 0] for k in range(num_kinds)], 2)  # N H K E
    mixed = (mass[: len(of_kinds), ..., None] * of_kinds).sum(2).flatten(1)
    count = len(mixed)
    state = states[:count] + layer.output(mixed)
    results = state + layer.narrow(layer.activation(layer.widen(layer.norms[1](state))))
    none = torch.zeros(count, dtype=torch.int64)
    form = state_in(head_of(layer, heads, LENGTH), Pieces(low[:count], high[:count], kind[:count], piece[:count], none))
    assert inside(form.center - form.radius, form.center + form.radius, results)
    regions = checker.Regions(*(part[:count].numpy() for part in (low, high, kind, piece, none)))
    ends = checker.result(net, 1, checked, regions, checker.attention_error(checked, LENGTH)).ends
    assert inside(*map(torch.from_numpy, ends), results)
    assert float((form.radius.mean(1) / (results - form.center).abs().mean(1)).median()) < 100, "bounds are not trivial"
