"""RegularGPT with several layers a level as its published code computes it: the left edge cuts windows."""

import math

import pytest
import torch

from lengthwise.models import make_model
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.ops.cut_tree import cut_last_states, cut_prefix_states, cut_prefix_states_by_definition
from lengthwise.ops.tree import Tree
from lengthwise.ops.tree_attention import attend, last_states
from lengthwise.playground.nets import net_json
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task


def make(**settings) -> RegularGPT:
    generator = torch.Generator().manual_seed(1)
    sizes = {"d_model": 12, "num_heads": 3, "variant": "code", "thickness": 2, "left_edge": "cut"} | settings
    model = RegularGPT(RegularGPTConfig(**sizes), vocab_size=2, num_classes=3, generator=generator)
    with torch.no_grad():
        for layer in model.layers:
            layer.bias.normal_(generator=generator)
    return model.double()


def draw(length: int, batch_size: int = 2) -> torch.Tensor:
    return torch.randint(-1, 2, (batch_size, length), generator=torch.Generator().manual_seed(length))


def by_hand(tree: Tree, string: torch.Tensor) -> torch.Tensor:
    """Return the state of one string, node after node: pads fill the first chunk, and windows have what exists."""
    nodes, level = list(tree.leaves[string + 1]), 0
    while len(nodes) > 1 or level == 0:
        size = tree.chunk_size_at(level)
        nodes = [tree.leaves[0]] * (-len(nodes) % size) + nodes
        for layer in tree.layers:
            windows = [nodes[max(0, end - size + 1) : end + 1][::-1] for end in range(len(nodes))]
            nodes = []
            for window in windows:
                keys, values = zip(*(layer.key_value(layer.normalize(node)) for node in window), strict=True)
                query = layer.query(layer.normalize(window[0]))
                nodes.append(layer.output(window[0], attend(query, keys, values, layer.window_bias())))
        nodes, level = nodes[size - 1 :: size], level + 1
    return nodes[0]


@pytest.mark.sampled
@pytest.mark.parametrize("length", [1, 2, 5, 14])
@pytest.mark.parametrize("thickness", [2, 3])
@pytest.mark.parametrize(("chunk_size", "lower"), [(2, ()), (3, ()), (5, ()), (2, (4, 3))])
def test_all_forms_are_what_is_computed_node_after_node(
    chunk_size: int, lower: tuple[int, ...], thickness: int, length: int
) -> None:
    model = make(chunk_size=chunk_size, lower_chunk_sizes=lower, thickness=thickness)
    inputs = draw(length)
    expected = torch.stack(
        [torch.stack([by_hand(model.tree, row[:stop]) for stop in range(1, length + 1)]) for row in inputs]
    )
    expected = model.readout(expected)
    torch.testing.assert_close(model.forward_by_definition(inputs), expected)
    torch.testing.assert_close(model(inputs), expected)
    torch.testing.assert_close(model.last(inputs), expected[:, -1])


@pytest.mark.parametrize(("length", "is_noisy"), [(1, False), (2, False), (7, False), (63, False), (7, True)])
@pytest.mark.parametrize("chunk_size", [2, 3])
def test_values_and_gradients_of_all_forms_are_those_of_the_definition(
    chunk_size: int, length: int, is_noisy: bool
) -> None:
    """The gradients of leaves and of all parameters of layers, also through what changes the states of each level."""
    model, ids = make(chunk_size=chunk_size), draw(length) + 1
    perturb = torch.sin if is_noisy else None
    variables = [model.embedding.weight, *model.layers.parameters()]

    def gradients(states: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad((states * weight).sum(), variables, retain_graph=True)

    weight = torch.randn(2, length, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    defined = cut_prefix_states_by_definition(ids, model.tree, perturb)
    passed, (last,) = cut_prefix_states(ids, model.tree, perturb), cut_last_states([ids], model.tree, perturb)
    torch.testing.assert_close(passed, defined)
    torch.testing.assert_close(last, defined[:, -1])
    torch.testing.assert_close(gradients(passed, weight), gradients(defined, weight))
    torch.testing.assert_close(gradients(last, weight[:, -1]), gradients(defined[:, -1], weight[:, -1]))


@pytest.mark.parametrize("length", [1, 7, 40])
def test_logits_and_gradients_of_a_model_are_those_of_the_definition(length: int) -> None:
    model, inputs = make(), draw(length)
    variables = list(model.parameters())
    defined = model.forward_by_definition(inputs)
    for actual, expected in ((model(inputs), defined), (model.last(inputs), defined[:, -1])):
        torch.testing.assert_close(actual, expected)
        slopes, known = (
            torch.autograd.grad(logits.square().sum(), variables, retain_graph=True) for logits in (actual, expected)
        )
        torch.testing.assert_close(slopes, known)


def test_edges_are_two_functions_from_two_layers_on() -> None:
    """Of one layer a level both are one; of two they differ even for a string that fills its chunk."""
    for thickness, differs in ((1, False), (2, True)):
        padded = make(thickness=thickness, left_edge="pads")
        tree = padded.tree._replace(left_edge="cut")
        inputs = torch.tensor([[0, 1]])
        cut, pads = last_states([inputs + 1], tree)[0], padded.last_state(inputs)
        assert (float((cut - pads).detach().abs().max()) > 0.1) == differs


def test_several_batches_and_strings_filled_up_give_the_same_numbers() -> None:
    model = make()
    batches = [draw(3), draw(9, batch_size=3), draw(1)]
    for inputs, state in zip(batches, model.last_states(batches), strict=True):
        torch.testing.assert_close(state, model.last_state(inputs))
        torch.testing.assert_close(model.forward_bounded(inputs, 11), model(inputs))


def test_noise_and_nodes_are_those_of_every_level() -> None:
    """A level of T nodes has ceil(T / C) above it, and noise moves the states of each level."""
    model, seen = make(), {}
    inputs = draw(9)
    model.observed(lambda level, nodes: seen.update({level: nodes[0].shape[1]})).last_states([inputs])
    assert seen == {1: 5, 2: 3, 3: 2, 4: 1}
    calls: list[torch.Size] = []

    def doubled(states: torch.Tensor) -> torch.Tensor:
        calls.append(states.shape)
        return 2 * states

    noisy = model.perturbed(doubled)
    torch.testing.assert_close(noisy.last(inputs), noisy(inputs)[:, -1])
    assert len(calls) == 2 * math.ceil(math.log2(9))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"variant": "code", "left_edge": "cut"}, "left_edge: expected 'pads' with thickness=1, .* got 'cut'"),
        ({"thickness": 2, "left_edge": "cut"}, "left_edge: expected its default, 'pads', .* with variant='merge'"),
        ({"left_edge": "cuts"}, "model.left_edge: expected .*'pads' or 'cut', got 'cuts'"),
    ],
)
def test_an_edge_that_does_nothing_is_refused(settings: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_model("regular-gpt", make_task("parity"), **settings)


def test_runs_have_the_ids_that_they_had_without_the_setting() -> None:
    model = {"variant": "code", "thickness": 2}
    spec = make_spec("parity", "regular-gpt", {"model": model}, preset="chi2023")
    assert "left_edge" not in spec.to_json()["model"]
    assert spec.id == "parity-regular-gpt-seed0-995472ce70"
    assert spec.id != make_spec("parity", "regular-gpt", {"model": {**model, "left_edge": "cut"}}, preset="chi2023").id


def test_the_playground_runs_no_cut_edge() -> None:
    model = make_model("regular-gpt", make_task("parity"), variant="code", thickness=2, left_edge="cut")
    with pytest.raises(ValueError, match="model: expected a regular-gpt with left_edge 'pads', got 'cut'"):
        net_json(model)
