"""xLSTM: any finite machine as weights of sLSTM, what mLSTM cannot tell apart, and sizes."""

import pytest
import torch
from torch.nn.functional import layer_norm, silu

from lengthwise.export.graphs import trace
from lengthwise.export.torch_program import runner
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.layers.xlstm import MLSTMLayer, SLSTMLayer
from lengthwise.models.base import make_model
from lengthwise.models.xlstm import XLSTM, XLSTMConfig
from lengthwise.tasks import RegularTask, make_task

GAIN = 200.0
"""Of what is at least 1/2 away from a threshold: sigmoid(100) is 1 in float32, and sigmoid(-100) no more than 4e-44."""


def one_hot_levels(width: int) -> tuple[float, float]:
    """What a norm makes of the 1 and of the 0s of a one-hot vector."""
    normed = layer_norm(torch.eye(width)[0], (width,))
    return float(normed[0]), float(normed[-1])


def machine_by_hand(task: RegularTask) -> XLSTM:
    """Unit (q, a) is 1 if the last symbol is a, read in state q, and all others are 0: their output gates decide.

    Averages are 1, for z is large, and forget gates are shut. Before the first symbol no unit is 1, so that the start
    state is the one that is on where no unit says otherwise.
    """
    delta, start = task.transducer.semiautomaton.table, task.transducer.start
    num_states, num_symbols = delta.shape
    width = num_symbols + num_states * num_symbols
    model = XLSTM(XLSTMConfig(d_model=width, num_heads=1), vocab_size=num_symbols, num_classes=len(task.classes))
    layer, (high, low) = model.layers[0], one_hot_levels(width)
    units = [(q, a) for q in range(num_states) for a in range(num_symbols)]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight.copy_(torch.eye(num_symbols, width))
        model.norms[0].weight.fill_(1)
        weight, bias = (each.unflatten(0, (4, width)) for each in (layer.input_map.weight, layer.input_map.bias))
        bias[1], bias[2], bias[3] = -GAIN, GAIN, -GAIN
        for unit, (q, a) in enumerate(units, num_symbols):
            weight[3, unit, a] = GAIN / (high - low)  # 1 if the symbol is a
            bias[3, unit] = GAIN * (-low / (high - low) - 1.5 + (q == start))
            for earlier, (p, b) in enumerate(units, num_symbols):
                leads_here = delta[p, b] == q
                layer.feedback[3, 0, earlier, unit] = GAIN * (float(leads_here) - (q == start))
        layer.norm.weight.fill_(1)
        model.readout[1].weight.fill_(1)
        model.readout[2].weight.copy_(torch.eye(width))
        for unit, (q, a) in enumerate(units, num_symbols):
            model.readout[4].weight[int(task.transducer.outputs[delta[q, a]]), unit] = 1
    return model


@pytest.mark.unchecked
@pytest.mark.parametrize(("name", "length"), [("parity", 10_000), ("cycle-navigation", 2_000)])
def test_slstm_can_be_a_finite_machine(name: str, length: int) -> None:
    task = make_task(name)
    inputs = task.sample(2, length, torch.Generator().manual_seed(0)).inputs
    inputs[0] = 1
    with torch.no_grad():
        model = machine_by_hand(task)
        answers = model(inputs).argmax(-1)
    assert torch.equal(answers, task.solve(inputs))


def drawn(layer: RecurrentLayer) -> RecurrentLayer:
    """With all weights normal, those that start as 0 included."""
    layer = layer.double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return layer


def normed(h: torch.Tensor, layer: RecurrentLayer, heads: int) -> torch.Tensor:
    """Head by head, 0 on average and of variance 1, then the weights and biases of all units."""
    parts = [(part - part.mean()) / (part.var(correction=0) + 1e-5).sqrt() for part in h.chunk(heads)]
    return torch.cat(parts) * layer.norm.weight + layer.norm.bias


def convolved(layer: RecurrentLayer, u: torch.Tensor) -> torch.Tensor:
    """SiLU of the sum over the last three inputs, those before the first being 0."""
    recent = torch.stack([torch.cat([torch.zeros_like(u[:i]), u[: len(u) - i]]) for i in (2, 1, 0)], -1)
    return silu((recent * layer.convolution.weight).sum(-1))


@pytest.mark.parametrize("conv", [0, 3])
def test_slstm_is_the_layer_of_the_equations(conv: int) -> None:
    layer = drawn(SLSTMLayer(d_model=6, num_heads=2, conv=conv))
    features = torch.randn(1, 20, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    feedback = [torch.block_diag(*blocks) for blocks in layer.feedback]
    h, c, n, expected = *(torch.zeros(6, dtype=torch.float64) for _ in range(3)), []
    smoothed = convolved(layer, features[0]) if conv else features[0]
    for u, of_i_and_f in zip(features[0], smoothed, strict=True):
        gates = [*layer.input_map(of_i_and_f).chunk(4)[:2], *layer.input_map(u).chunk(4)[2:]]
        i, f, z, o = (g + h @ r for g, r in zip(gates, feedback, strict=True))
        c, n = f.sigmoid() * c + i.exp() * z.tanh(), f.sigmoid() * n + i.exp()
        h = o.sigmoid() * c / n
        expected.append(normed(h, layer, heads=2))
    outputs, _ = layer(features, layer.initial_state(features[:, 0]))
    torch.testing.assert_close(outputs[0], torch.stack(expected))


@pytest.mark.parametrize("conv", [0, 3])
def test_mlstm_is_the_layer_of_the_equations(conv: int) -> None:
    layer = drawn(MLSTMLayer(d_model=4, num_heads=2, conv=conv))
    features = torch.randn(1, 40, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    maps = [torch.block_diag(*blocks) for blocks in layer.maps]
    sums, counts, expected = [torch.zeros(4, 4)] * 2, [torch.zeros(4)] * 2, []
    xs, zs = layer.input_map(features[0]).chunk(2, -1)
    for x, z, skipped in zip(xs, zs, convolved(layer, xs) if conv else silu(xs), strict=True):
        h = []
        q, k, v = skipped @ maps[0], skipped @ maps[1], x @ maps[2]
        gates = layer.gates(torch.cat([q, k, v])).unflatten(0, (2, 2))
        for head, (of_q, of_k, of_v) in enumerate(zip(q.chunk(2), k.chunk(2), v.chunk(2), strict=True)):
            enters, stays = gates[0, head].exp(), gates[1, head].sigmoid()
            sums[head] = stays * sums[head] + enters * torch.outer(of_k, of_v) / 2
            counts[head] = stays * counts[head] + enters * of_k / 2
            h.append(of_q @ sums[head] / max(1.0, float((counts[head] @ of_q).abs().detach())))
        expected.append(layer.output_map((normed(torch.cat(h), layer, heads=2) + layer.skip * skipped) * silu(z)))
    outputs, _ = layer(features, layer.initial_state(features[:, 0]))
    torch.testing.assert_close(outputs[0], torch.stack(expected))


def test_mlstm_tells_no_long_runs_of_a_symbol_apart() -> None:
    """Whatever the weights: decays are positive, and a state that is not monotone grows old."""
    model = make_model("xlstm", make_task("parity"), d_model=8, cells="m", num_heads=2).double()
    with torch.no_grad():
        logits = model(torch.ones(1, 10_000, dtype=torch.long))
    assert float(logits[0].diff(dim=0)[-1].abs().max()) < 1e-6


def test_parameters_are_as_many_as_the_equations_have() -> None:
    d, heads = 8, 2
    slstm = SLSTMLayer(d_model=d, num_heads=heads)
    assert sum(each.numel() for each in slstm.parameters()) == 4 * (d * d + d + d * d // heads) + 2 * d
    assert slstm.state_size == 3 * d
    mlstm, e = MLSTMLayer(d_model=d, num_heads=heads), 2 * d
    expected = d * 2 * e + 3 * 4 * e + (3 * e + 1) * 2 * heads + 2 * e + e + e * d
    assert sum(each.numel() for each in mlstm.parameters()) == expected
    assert mlstm.state_size == heads * ((e // heads) ** 2 + e // heads + 1)
    assert SLSTMLayer(d_model=d, num_heads=heads, conv=4).state_size == 3 * d + 3 * d
    assert MLSTMLayer(d_model=d, num_heads=heads, conv=4).state_size == mlstm.state_size + 3 * e


def test_matrices_of_mlstm_begin_as_published() -> None:
    """Maps of 4 numbers go by the width of the model, and maps back into it by the number of layers, too."""
    model = make_model("xlstm", make_task("parity"), d_model=128, num_layers=2, cells="ms")
    small, layer = (2 / 5 / 128) ** 0.5, model.layers[0]
    for parameter, expected in [
        (layer.maps, small),
        (layer.input_map.weight, small),
        (layer.output_map.weight, 2 / 4 / 128**0.5),
    ]:
        weight = parameter.detach()
        count = weight.numel()
        assert float(weight.std()) == pytest.approx(expected, rel=4 / (2 * count) ** 0.5), "4 standard errors"
        assert abs(float(weight.mean())) < 4 * expected / count**0.5


def test_cells_are_layers_in_turn() -> None:
    model = make_model("xlstm", make_task("parity"), d_model=8, num_layers=2, cells="sm")
    assert [type(layer) for layer in model.layers] == [SLSTMLayer, MLSTMLayer] * 2


@pytest.mark.slow
@pytest.mark.unchecked
def test_convolutions_and_feed_forward_layers_are_part_of_a_graph_for_any_number_of_strings() -> None:
    config = XLSTMConfig(d_model=8, num_heads=2, cells="sm", conv=3, mlp=5)
    model = XLSTM(config, vocab_size=3, num_classes=4, generator=torch.Generator().manual_seed(0)).eval()
    inputs = torch.randint(3, (3, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        answers = torch.tensor(runner(trace(model), model)(inputs.numpy()))
        torch.testing.assert_close(answers, model(inputs))
