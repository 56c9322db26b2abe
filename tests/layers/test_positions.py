"""Position encodings against their published equations, and against torch's own attention."""

import pytest
import torch
from position_equations import SCORES, WINDOW, attended, plain, t5_bucket
from position_forms import (
    HEAD_WIDTH,
    HEADS,
    WIDTH,
    by_definition,
    check_equal,
    check_fast_forms,
    draw,
    draw_encoding,
    queries_keys_values,
    top,
)
from torch import nn

import lengthwise.layers.positions.bias as bias_module
import lengthwise.layers.positions.fire as fire_module
import lengthwise.layers.positions.transformer_xl as xl_module
from lengthwise.layers.positions.alibi import alibi_slopes
from lengthwise.layers.positions.base import POSITIONS, PositionEncoding, PositionSizes
from lengthwise.layers.positions.t5 import t5_buckets
from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.ops.sinusoids import position_sinusoids, sinusoids_at

LENGTHS = (1, 2, 41, 500)
ON_SCORES = [name for name in SCORES if SCORES[name] is not plain or name == "none"]
ADDED = ["sinusoidal", "learned", "randomized"]
BIASES = ["alibi", "local", "t5", "kerple-log", "kerple-power", "fire"]
RELATIVE = ["none", "rotary", "xl", "alibi", "local", "t5", "kerple-log", "kerple-power"]


def make(name: str, *, max_positions: int = 600, threshold: float = -0.03) -> PositionEncoding:
    """Of two layers, in float64, every parameter another number; FIRE's threshold is 512 |threshold|, here 15."""
    encoding = draw_encoding(name, WINDOW if name == "local" else max_positions)
    with torch.no_grad():
        for key, parameter in encoding.named_parameters():
            if key.endswith("limit"):
                parameter.fill_(threshold)
            if name == "kerple-power" and key == "p":
                parameter.copy_(torch.tensor([0.6, 1.3]))
    return encoding


@pytest.mark.sampled  # the oracle takes each pair of positions in turn
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ON_SCORES)
def test_attention_is_the_published_equation(name: str, length: int) -> None:
    """The definition, at all positions, or of a long string at those that cost the oracle little, and the last one."""
    encoding, inputs = make(name), queries_keys_values(length)
    rows = list(range(length)) if length <= 41 else [0, 17, length - 1]
    expected = attended(name, encoding, inputs, rows)
    check_equal(by_definition(top(encoding, length), *inputs)[:, :, rows], expected, encoding, inputs)


@pytest.mark.parametrize("length", [41, 500])
@pytest.mark.parametrize("name", ON_SCORES)
def test_fast_forms_of_long_strings_are_the_definition(name: str, length: int) -> None:
    """The contract of positions does the same with short strings and with any parameters."""
    check_fast_forms(make(name), length)


@pytest.mark.parametrize("length", LENGTHS)
def test_fire_computes_each_distance_once_for_each_part_up_to_its_threshold(length: int) -> None:
    """The threshold is 512 at first, and all lengths here are below it."""
    encoding, inputs = make("fire", threshold=1.0), queries_keys_values(length)
    counts: list[int] = []
    encoding.layers[1].net.register_forward_hook(lambda net, given, output: counts.append(output.shape[0]))
    attention = top(encoding, length)
    attended = attention.attend(*inputs)
    ends = range(bias_module.MAX_QUERIES, length + bias_module.MAX_QUERIES, bias_module.MAX_QUERIES)
    assert counts == [min(end, length) for end in ends]
    check_equal(attended, by_definition(attention, *inputs), encoding, inputs)


@pytest.mark.parametrize("chunk", [1, 300])
@pytest.mark.parametrize("name", [*BIASES, "xl"])
def test_long_strings_are_computed_in_parts(name: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one query each, and of a few."""
    encoding, inputs = make(name), queries_keys_values(41)
    expected = by_definition(top(encoding, 41), *inputs)
    for module in (bias_module, xl_module):
        monkeypatch.setattr(module, "MAX_ELEMENTS_PER_CHUNK", chunk)
    monkeypatch.setattr(fire_module, "MAX_HIDDEN_PER_CHUNK", chunk)
    monkeypatch.setattr(bias_module, "MAX_QUERIES", 40)  # one less than the string has
    check_equal(top(encoding, 41).attend(*inputs), expected, encoding, inputs)


@pytest.mark.parametrize("num_queries", [1, 7, 40, 41])
@pytest.mark.parametrize("name", BIASES)
def test_parts_of_any_number_of_queries_are_the_definition(
    name: str, num_queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, inputs = make(name), queries_keys_values(41)
    expected = by_definition(top(encoding, 41), *inputs)
    monkeypatch.setattr(bias_module, "MAX_QUERIES", num_queries)
    attention = top(encoding, 41)
    assert isinstance(attention, bias_module.BiasedAttention)
    assert (attention.whole is None) == (num_queries < 41)
    check_equal(attention.attend(*inputs), expected, encoding, inputs)


@pytest.mark.parametrize("name", ON_SCORES)
def test_single_precision_is_off_by_rounding_alone(name: str) -> None:
    """A score of E products is off by E + 4 roundings of its terms' size, a mean of T values by T + 4 of theirs."""
    length, epsilon = 500, torch.finfo(torch.float32).eps
    encoding, inputs = make(name), [states.detach() for states in queries_keys_values(length)]
    query, key, value = inputs
    with torch.no_grad():
        expected = by_definition(top(encoding, length), *inputs)
        scores = top(encoding, length).scores(query, key).tril().nan_to_num(neginf=0.0).abs().amax()
        size = scores + 2 * (query.norm(dim=-1).amax() + 1) * (key.norm(dim=-1).amax() + 1)
        single = top(encoding.float(), length, torch.float32).attend(*(states.float() for states in inputs))
    bound = epsilon * ((HEAD_WIDTH + 4) * size + length + 4) * value.abs().amax()
    assert float((single - expected).abs().max()) < float(bound) < 1e-2


@pytest.mark.parametrize("name", BIASES)
def test_a_layer_with_a_bias_is_torchs_attention_with_that_mask(name: str) -> None:
    encoding, states = make(name), draw(3, 41, WIDTH)
    layer = TransformerLayer(d_model=WIDTH, num_heads=HEADS, kind="gpt2")
    layer.reset_parameters(torch.Generator().manual_seed(0))
    layer.double()
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)
    theirs.in_proj_weight.data, theirs.in_proj_bias.data = layer.query_key_value.weight, layer.query_key_value.bias
    theirs.out_proj.load_state_dict(layer.output.state_dict())
    zeros = torch.zeros(1, HEADS, 41, HEAD_WIDTH, dtype=torch.float64)
    bias = top(encoding, 41).scores(zeros, zeros)[0]
    later = torch.ones(41, 41, dtype=torch.bool).triu(1)
    normed = layer.norms[0](states)
    after, _ = theirs(normed, normed, normed, attn_mask=bias.masked_fill(later, -torch.inf).repeat(3, 1, 1))
    expected = states + after
    expected = expected + layer.narrow(layer.activation(layer.widen(layer.norms[1](expected))))
    torch.testing.assert_close(layer(states, attention=top(encoding, 41)), expected)


@pytest.mark.parametrize("name", RELATIVE)
def test_shifted_strings_have_the_same_scores(name: str) -> None:
    """And softmax of equal scores is equal, where nothing else is attended to."""
    encoding, (query, key, _) = make(name), queries_keys_values(41)
    expected = top(encoding, 41).scores(query, key).tril()
    shifted = [torch.cat([draw(2, HEADS, 59, HEAD_WIDTH, seed=7), states], 2) for states in (query, key)]
    torch.testing.assert_close(top(encoding, 100).scores(*shifted)[:, :, 59:, 59:].tril(), expected)


@pytest.mark.parametrize(("threshold", "is_same"), [(0.2, True), (0.02, False)])
def test_fire_counts_the_same_distance_less_beyond_its_threshold(threshold: float, is_same: bool) -> None:
    """Positions up to 100, thresholds 102 and 10."""
    encoding, (query, key, _) = make("fire", threshold=threshold), queries_keys_values(100)
    biases = top(encoding, 100).scores(0 * query, 0 * key)[0]
    assert torch.allclose(biases[:, 5:41, 5:41].tril(), biases[:, 60:96, 60:96].tril()) == is_same


@pytest.mark.parametrize("name", [*RELATIVE, "fire"])
def test_positions_on_scores_do_not_tell_positions_of_equal_states_apart(name: str) -> None:
    """A mean of equal values is that value, whatever its weights."""
    encoding, layer = make(name), TransformerLayer(d_model=WIDTH, num_heads=HEADS, kind="gpt2")
    layer.reset_parameters(torch.Generator().manual_seed(0))
    answers = layer.double()(draw(1, 1, WIDTH).expand(1, 41, WIDTH), attention=top(encoding, 41))
    torch.testing.assert_close(answers, answers[:, :1].expand_as(answers))


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_leaves_attention_as_it_is(name: str) -> None:
    encoding, (query, key, value) = make(name), queries_keys_values(9)
    expected = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert torch.equal(top(encoding, 9).attend(query, key, value), expected)
    states = draw(2, 9, WIDTH)
    of_positions = encoding.table[:9] if name == "learned" else position_sinusoids(9, WIDTH).double()
    assert torch.equal(encoding.add(states), states + of_positions)


@pytest.mark.parametrize("name", ON_SCORES)
def test_what_is_on_scores_adds_nothing(name: str) -> None:
    states = draw(2, 9, WIDTH)
    assert make(name).add(states) is states


def test_slopes_of_alibi_are_those_of_the_published_nets() -> None:
    """Eight heads in the paper, twelve in the code of nets with that number."""
    assert alibi_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert alibi_slopes(12)[:8] == alibi_slopes(8)
    assert alibi_slopes(12)[8:] == pytest.approx([2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5], rel=1e-15)
    for num_heads in range(1, 65):
        slopes = alibi_slopes(num_heads)
        assert len(set(slopes)) == num_heads == len(slopes)


def test_buckets_of_t5_are_those_of_the_published_code() -> None:
    """The first distance of each wide bucket, as the code of T5 gives it in float32, and any distance in integers."""
    firsts = [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
    buckets = t5_buckets(torch.arange(300)).tolist()
    assert [buckets.index(bucket) for bucket in range(32)] == [*range(16), *firsts]
    assert buckets == [t5_bucket(distance) for distance in range(300)]


@pytest.mark.parametrize(("name", "key", "limit"), [("log", "p", 0.01), ("log", "a", 0.01), ("power", "p", 2.0)])
@pytest.mark.parametrize("beyond", [0.5, 3.0])
def test_kerples_numbers_are_limited_where_they_are_used(name: str, key: str, limit: float, beyond: float) -> None:
    """The gradient still moves them."""
    encoding, (query, key_states, _) = make(f"kerple-{name}"), queries_keys_values(9)
    biases = []
    for number in (limit, limit + beyond if limit > 1 else limit - beyond):
        with torch.no_grad():
            getattr(encoding, key).fill_(number)
        scores = top(encoding, 9).scores(0 * query, 0 * key_states)
        biases.append(scores)
        (slope,) = torch.autograd.grad(scores[0, 0, 8, 3], getattr(encoding, key))
        assert float(slope[0]) != 0.0
    torch.testing.assert_close(*biases, atol=1e-12, rtol=1e-12)


def test_randomized_positions_are_a_sorted_sample_of_the_range_for_each_batch() -> None:
    encoding, states = make("randomized", max_positions=12), torch.zeros(2, 5, WIDTH, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    table = sinusoids_at(torch.arange(12), WIDTH).double()
    counts = torch.zeros(12)
    for _ in range(600):
        added = encoding.add(states, generator)
        assert torch.equal(added[0], added[1])
        positions = (added[0][:, None] == table).all(-1).long().argmax(-1)
        assert torch.equal(table[positions], added[0])
        assert bool((positions.diff() > 0).all())
        counts[positions] += 1
    # Each position is in 5 of 12 samples: 250 of 600, with a standard deviation of 12.
    assert bool(((counts - 250).abs() < 5 * 12.1).all())
    again = encoding.add(states, torch.Generator().manual_seed(0))
    assert torch.equal(again, encoding.add(states, torch.Generator().manual_seed(0)))
    whole = torch.zeros(1, 12, WIDTH, dtype=torch.float64)
    assert torch.equal(encoding.add(whole, generator)[0], table)


@pytest.mark.unchecked
def test_bad_lengths_and_widths_are_one_sentence() -> None:
    states = torch.zeros(1, 601, WIDTH, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"length: expected at most 600 .* 601; make the model with a larger"):
        make("learned").add(states)
    with pytest.raises(ValueError, match=r"length: expected at most 600, .* 601; make .* with a larger"):
        make("randomized").add(states)
    with pytest.raises(ValueError, match=r"num_heads: expected heads of an even .* got d_model=6 in 2 heads; choose"):
        POSITIONS["rotary"](PositionSizes(6, 2, 1, 0))
    with pytest.raises(ValueError, match="unknown position encoding 'rotery'; did you mean 'rotary'"):
        POSITIONS["rotery"]
