"""The three forms of RegularGPT's function are one: values and every gradient, at awkward lengths."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.ops.dilated_attention import attend_masked
from lengthwise.ops.tree import Tree, num_levels
from lengthwise.ops.tree_attention import attend, last_state, merge_windows, prefix_states

LENGTHS = (1, 2, 7, 16, 40, 63, 125, 200)
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-4}


def make_model(dtype: torch.dtype = torch.float64, **config) -> RegularGPT:
    generator = torch.Generator().manual_seed(1)
    sizes = {"d_model": 12, "num_heads": 3} | config
    model = RegularGPT(RegularGPTConfig(**sizes), vocab_size=2, num_classes=3, generator=generator)
    with torch.no_grad():
        for layer in model.layers:
            layer.bias.normal_(generator=generator)
            for feed_forward in layer.feed_forwards:
                for linear in (feed_forward.widen, feed_forward.narrow):
                    linear.bias.normal_(std=0.1, generator=generator)
    return model.to(dtype)


def draw_inputs(length: int, batch_size: int = 3) -> torch.Tensor:
    """Strings with pads inside."""
    return torch.randint(-1, 2, (batch_size, length), generator=torch.Generator().manual_seed(length))


def gradients(model: RegularGPT, output: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad((output * weight).sum(), list(model.parameters()), materialize_grads=True))


def assert_same(actual: list[torch.Tensor], expected: list[torch.Tensor], dtype: torch.dtype) -> None:
    for one, other in zip(actual, expected, strict=True):
        scale = max(1.0, float(other.detach().abs().max()))
        assert float((one - other).detach().abs().max()) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    ("chunk_size", "dtype"), [(3, torch.float32), *((chunk_size, torch.float64) for chunk_size in (2, 3, 4, 5, 8))]
)
@pytest.mark.sampled
def test_forms_are_equal(chunk_size: int, length: int, dtype: torch.dtype) -> None:
    model, inputs = make_model(dtype, chunk_size=chunk_size), draw_inputs(length)
    defined, passed = model.forward_by_definition(inputs), model(inputs)
    weight = torch.randn(defined.shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert_same([passed], [defined], dtype)
    assert_same(gradients(model, passed, weight), gradients(model, defined, weight), dtype)
    last = model.last(inputs)
    expected = gradients(model, model.forward_by_definition(inputs)[:, -1], weight[:, -1])
    assert_same([last], [defined[:, -1]], dtype)
    assert_same(gradients(model, last, weight[:, -1]), expected, dtype)


def assert_forms_equal(model: RegularGPT, length: int) -> None:
    inputs = draw_inputs(length, batch_size=2)
    defined, passed, last = model.forward_by_definition(inputs), model(inputs), model.last(inputs)
    weight = torch.randn(defined.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_same([passed, last], [defined, defined[:, -1]], torch.float64)
    expected = gradients(model, defined, weight)
    assert_same(gradients(model, passed, weight), expected, torch.float64)
    expected = gradients(model, model.forward_by_definition(inputs)[:, -1], weight[:, -1])
    assert_same(gradients(model, last, weight[:, -1]), expected, torch.float64)
    evaluated = model.eval().last(inputs)
    assert_same([evaluated], [last], torch.float64)
    assert_same(gradients(model, evaluated, weight[:, -1]), expected, torch.float64)


@pytest.mark.parametrize("length", [1, 7, 125])
@pytest.mark.parametrize("thickness", [1, 2])
@pytest.mark.parametrize("chunk_size", [2, 3])
@pytest.mark.parametrize("variant", ["merge", "paper", "code"])
@pytest.mark.sampled
def test_forms_are_equal_in_every_variant(variant: str, chunk_size: int, thickness: int, length: int) -> None:
    model = make_model(variant=variant, chunk_size=chunk_size, thickness=thickness)
    assert_forms_equal(model, length)


MIXED = [(2, (4,)), (2, (3, 2, 4)), (3, (2,)), (4, (2, 2, 2, 2, 2))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("length", [1, 2, 4, 5, 63, 125, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("thickness", [1, 2])
@pytest.mark.parametrize(("chunk_size", "lower"), MIXED)
@pytest.mark.parametrize("variant", ["merge", "code"])
def test_forms_are_equal_where_lower_levels_have_chunks_of_their_own(
    variant: str, chunk_size: int, lower: tuple[int, ...], thickness: int, length: int
) -> None:
    model = make_model(variant=variant, chunk_size=chunk_size, lower_chunk_sizes=lower, thickness=thickness)
    assert_forms_equal(model, length)


@pytest.mark.parametrize(("chunk_size", "lower"), MIXED)
@pytest.mark.parametrize("variant", ["merge", "paper", "bare"])
@pytest.mark.parametrize("length", [1, 3, 4, 21, 50])
def test_chunks_of_each_level_are_what_a_merge_of_its_parts_says(
    variant: str, chunk_size: int, lower: tuple[int, ...], length: int
) -> None:
    """By hand, one node after another: chunks from the end, pads in front, a level's own number of parts."""
    model = make_model(variant=variant, chunk_size=chunk_size, lower_chunk_sizes=lower)
    (layer,), string = model.layers, draw_inputs(length, batch_size=1)
    nodes, pad, level = list(model.tree.leaves[string[0] + 1]), model.tree.leaves[0], 0
    while len(nodes) > 1 or level == 0:
        size = (*lower, *[chunk_size] * 9)[level]
        nodes = [pad] * (-len(nodes) % size) + nodes
        nodes = [merge_windows(layer, torch.stack(nodes[start : start + size])) for start in range(0, len(nodes), size)]
        pad, level = merge_windows(layer, torch.stack([pad] * size)), level + 1
    assert level == model.tree.num_levels(length)
    assert_same([model.last_state(string)], [nodes[0][None]], torch.float64)


@pytest.mark.parametrize("length", [1, 7, 64, 125])
@pytest.mark.parametrize("size", [2, 3])
def test_equal_chunks_written_out_are_those_of_one_size(size: int, length: int) -> None:
    model, spelled = make_model(chunk_size=size), make_model(chunk_size=size, lower_chunk_sizes=(size, size))
    inputs = draw_inputs(length)
    assert torch.equal(model(inputs), spelled(inputs))
    assert torch.equal(model.last(inputs), spelled.last(inputs))


@pytest.mark.sampled
@pytest.mark.parametrize("perturbed", [False, True])
@pytest.mark.parametrize("thickness", [1, 2])
@pytest.mark.parametrize(("chunk_size", "lower"), [(2, ()), (3, ()), (2, (4, 3))])
@pytest.mark.parametrize("variant", ["merge", "code"])
def test_batches_read_side_by_side_are_read_alike(
    variant: str, chunk_size: int, lower: tuple[int, ...], thickness: int, perturbed: bool
) -> None:
    """The definition, one batch after another: lengths that end within the tables, above them and together."""
    model = make_model(variant=variant, chunk_size=chunk_size, lower_chunk_sizes=lower, thickness=thickness)
    batches = [draw_inputs(length, batch_size=size) for length, size in ((63, 2), (1, 3), (2, 1), (125, 1), (63, 4))]
    batches.append(torch.nn.functional.pad(batches[0], (200, 0), value=-1))
    if perturbed:
        model = model.perturbed(lambda states: states * 1.5)
    together, alone = model.last_states(batches), [model.last_state(inputs) for inputs in batches]
    assert_same(together, alone, torch.float64)
    joined = torch.cat(together)
    weight = torch.randn(joined.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_same(gradients(model, joined, weight), gradients(model, torch.cat(alone), weight), torch.float64)
    assert model.last_states([]) == []


@pytest.mark.parametrize("table_rows", [0, 9, 81, 10_000])
@pytest.mark.parametrize("form", [last_state, prefix_states])
def test_content_tables_change_nothing(form, table_rows: int) -> None:
    model, inputs = make_model(), draw_inputs(63) + 1
    plain = form(inputs, model.tree, perturb=lambda states: states, table_rows=0)
    tabled = form(inputs, model.tree, perturb=lambda states: states, table_rows=table_rows)
    weight = torch.randn(plain.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_same([tabled], [plain], torch.float64)
    assert_same(gradients(model, tabled, weight), gradients(model, plain, weight), torch.float64)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("chunk_size", [2, 3, 4])
def test_training_and_evaluation_are_one_function(chunk_size: int, length: int) -> None:
    """In training a layer has its value in one piece, in evaluation it is taken apart."""
    model, inputs = make_model(chunk_size=chunk_size), draw_inputs(length)
    weight = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    outputs = [model.train(training).last(inputs) for training in (True, False)]
    assert_same(outputs[:1], outputs[1:], torch.float64)
    assert_same(*(gradients(model, output, weight) for output in outputs), torch.float64)


@pytest.mark.parametrize("variant", ["merge", "code"])
@pytest.mark.parametrize("length", [1, 2, 40, 63])
def test_windows_that_repeat_are_merged_once(length: int, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred copies of a string need no more merges than one of them, and one of pads on each level."""
    model = make_model(variant=variant).eval()
    (layer,), counts = model.layers, []
    output = type(layer).output

    def counted(self, newest: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        counts.append(attended.numel() // attended.shape[-1])
        return output(self, newest, attended)

    monkeypatch.setattr(type(layer), "output", counted)
    model.last(draw_inputs(length, batch_size=1).repeat(100, 1))
    nodes = [-(-length // 2**level) for level in range(1, num_levels(length, 2) + 1)]
    assert sum(counts) <= sum(nodes) + len(nodes)


@given(
    st.integers(1, 40),
    st.integers(0, 90),
    st.sampled_from([(2, ()), (3, ()), (5, ()), (2, (5,)), (3, (2, 4))]),
    st.sampled_from(["merge", "code"]),
)
def test_leading_pads_cost_nothing_and_change_nothing(
    length: int, num_pads: int, chunks: tuple[int, tuple[int, ...]], variant: str
) -> None:
    model = make_model(chunk_size=chunks[0], lower_chunk_sizes=chunks[1], variant=variant)
    inputs = draw_inputs(length, batch_size=2)
    padded = torch.cat([inputs.new_full((2, num_pads), -1), inputs], 1)
    defined, passed, last = model.forward_by_definition(padded), model(padded), model.last(padded)
    weight = torch.randn(defined.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_same([passed, last], [defined, defined[:, -1]], torch.float64)
    assert_same(gradients(model, passed, weight), gradients(model, defined, weight), torch.float64)


def test_a_string_of_pads_alone_has_a_state() -> None:
    model = make_model()
    inputs = torch.full((2, 9), -1)
    torch.testing.assert_close(model.last(inputs), model.forward_by_definition(inputs)[:, -1])


def test_noise_acts_above_the_tables_on_every_level_and_on_pads() -> None:
    model = make_model()
    seen = []

    def perturb(states: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(states.shape))
        return states

    # 3 symbols: windows of 2 and 4 are tabled (9 and 81 rows), of 8 are not
    model.perturbed(perturb).last(draw_inputs(63))
    assert seen == [(3, 8, 12), (12,), (3, 4, 12), (12,), (3, 2, 12), (12,), (3, 1, 12), (12,)]


def test_x_and_xx_are_told_apart() -> None:
    """With pads masked away instead of attended to, the two could not differ."""
    model = make_model()
    assert not torch.allclose(model.last(torch.tensor([[1]])), model.last(torch.tensor([[1, 1]])))


@given(st.integers(1, 10**7), st.integers(2, 200))
def test_num_levels_is_exact(length: int, chunk_size: int) -> None:
    levels = num_levels(length, chunk_size)
    assert chunk_size**levels >= length
    assert levels == 1 or chunk_size ** (levels - 1) < length


@given(st.integers(1, 10**6), st.integers(2, 9), st.lists(st.integers(2, 9), max_size=5))
def test_num_levels_counts_chunks_of_each_level(length: int, chunk_size: int, lower: list[int]) -> None:
    levels = num_levels(length, chunk_size, lower)
    tree = Tree(torch.zeros(2, 2), [], chunk_size, lower_chunk_sizes=tuple(lower))
    assert levels == tree.num_levels(length)
    assert tree.reach(levels) == math.prod(map(tree.chunk_size_at, range(levels))) >= length
    assert levels == 1 or tree.reach(levels - 1) < length


@pytest.mark.parametrize(("power", "chunk_size"), [(3, 5), (7, 8), (29, 2), (5, 128)])
def test_num_levels_where_floating_logarithms_err(power: int, chunk_size: int) -> None:
    assert num_levels(chunk_size**power, chunk_size) == power
    assert num_levels(chunk_size**power + 1, chunk_size) == power + 1


@pytest.mark.parametrize(("length", "chunk_size", "word"), [(0, 2, "length"), (-3, 2, "length"), (5, 1, "chunk_size")])
def test_num_levels_rejects_what_has_no_depth(length: int, chunk_size: int, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        num_levels(length, chunk_size)


def test_masked_attention_is_equation_1() -> None:
    """By hand for one head: position m sees m, m-2, m-4 with biases r_0, r_1, r_2 (C = 3, level with stride 2)."""
    generator = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(1, 7, 1, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    bias = torch.tensor([[0.3, -0.2, 0.9]], dtype=torch.float64)
    out = attend_masked(query, key, value, bias, stride=2)
    for m in range(7):
        seen = [(j, m - 2 * j) for j in range(3) if m - 2 * j >= 0]
        weights = torch.stack([(query[0, m, 0] @ key[0, n, 0]) / 2 + bias[0, j] for j, n in seen]).softmax(0)
        by_hand = sum(weight * value[0, n, 0] for weight, (_, n) in zip(weights, seen, strict=True))
        torch.testing.assert_close(out[0, m], by_hand)


@given(st.integers(1, 6), st.integers(1, 3))
def test_attention_over_equal_states_returns_their_value(chunk_size: int, num_heads: int) -> None:
    generator = torch.Generator().manual_seed(chunk_size)
    query, key, value = (torch.randn(2, num_heads, 4, generator=generator) for _ in range(3))
    out = attend(
        query, [key] * chunk_size, [value] * chunk_size, torch.randn(num_heads, chunk_size, generator=generator)
    )
    torch.testing.assert_close(out, value.flatten(-2))


def test_gradients_are_derivatives() -> None:
    model = make_model(d_model=4, num_heads=2)
    inputs = draw_inputs(11, batch_size=1) + 1
    tree = model.tree

    def function(leaves: torch.Tensor) -> torch.Tensor:
        return last_state(inputs, Tree(leaves, tree.layers, 2))

    leaves = tree.leaves.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(function, (leaves,))


def test_a_long_string_costs_memory_in_proportion_to_its_length() -> None:
    model = make_model(torch.float32)
    with torch.no_grad():
        assert math.isfinite(float(model.last(draw_inputs(100_000, batch_size=1)).sum()))
