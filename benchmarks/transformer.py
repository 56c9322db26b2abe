"""The cost of position encodings in a transformer, next to torch's own encoder.

    python benchmarks/transformer.py            prints the table
    python benchmarks/transformer.py --save     also writes docs/results/transformer-speed.md and the dated numbers
    python benchmarks/transformer.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds of training steps (forward, backward, AdamW; a loss at every position) on one torch thread.
All nets take turns in one run. Before that, the net without positions is compared with torch's net, and each encoding
with its definition, in values and gradients. Torch's net is `torch.nn.TransformerEncoder` between the same embeddings
and read-out, without positions. Its layers pass a causal mask to `scaled_dot_product_attention`.
"""

import statistics
import time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from speed_page import environment, parse_options, provenance, write_results
from torch import Tensor, nn

from lengthwise.layers.positions.base import POSITIONS
from lengthwise.models.transformer import Transformer, TransformerConfig
from lengthwise.report.tables.markdown import markdown_table

PEER = "torch.nn.TransformerEncoder"
NUM_SYMBOLS = 5
AIM = 1.15
COLUMNS = ("CPU ms", "ratio")


class Size(NamedTuple):
    """The layers, width and heads of a net, and the size of a batch."""

    num_layers: int
    d_model: int
    num_heads: int
    batch_size: int
    length: int


SIZES = (Size(5, 64, 4, 128, 40), Size(5, 64, 4, 8, 500))
QUICK = Size(2, 16, 2, 4, 12)


class Peer(nn.Module):
    """Torch's encoder instead of our layers."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            size.d_model,
            size.num_heads,
            4 * size.d_model,
            dropout=0.0,
            activation=lambda inputs: F.gelu(inputs, approximate="tanh"),
            batch_first=True,
            norm_first=True,
        )
        self.embedding = nn.Embedding(NUM_SYMBOLS, size.d_model)
        self.norm = nn.LayerNorm(size.d_model)
        self.encoder = nn.TransformerEncoder(layer, size.num_layers, enable_nested_tensor=False)
        self.readout = nn.Sequential(nn.LayerNorm(size.d_model), nn.Linear(size.d_model, NUM_SYMBOLS))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(size.length))

    def forward(self, inputs: Tensor) -> Tensor:
        states = self.encoder(self.norm(self.embedding(inputs)), mask=self.mask, is_causal=True)
        logits: Tensor = self.readout(states)
        return logits


def make(size: Size, positions: str) -> Transformer:
    """Return our net with a position encoding."""
    table = {"learned_positions": size.length} if positions == "learned" else {}
    config = TransformerConfig(
        d_model=size.d_model, num_heads=size.num_heads, num_layers=size.num_layers, positions=positions, **table
    )
    generator = torch.Generator().manual_seed(0)
    return Transformer(config, vocab_size=NUM_SYMBOLS, num_classes=NUM_SYMBOLS, generator=generator)


class Step:
    """A repeatable training step of one net."""

    def __init__(self, model: nn.Module, size: Size) -> None:
        generator = torch.Generator().manual_seed(0)
        self.model = model.drawing(generator) if isinstance(model, Transformer) else model
        self.inputs, self.targets = torch.randint(
            NUM_SYMBOLS, (2, size.batch_size, size.length), generator=generator
        ).unbind()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)

    def __call__(self) -> float:
        """Take the step, and return its CPU milliseconds."""
        start = time.process_time()
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(self.inputs).flatten(0, 1), self.targets.flatten()).backward()
        self.optimizer.step()
        return 1000 * (time.process_time() - start)


def check_that_nets_agree(size: Size) -> None:
    """Check our net without positions against torch's net, and each encoding against its definition, with gradients."""
    inputs = torch.randint(NUM_SYMBOLS, (3, size.length), generator=torch.Generator().manual_seed(0))
    ours, theirs = make(size, "none").double(), Peer(size).double()
    theirs.embedding.load_state_dict(ours.read_in.embedding.state_dict())
    theirs.norm.load_state_dict(ours.read_in.norm.state_dict())
    theirs.readout.load_state_dict(ours.readout.state_dict())
    for layer, peer in zip(ours.layers, theirs.encoder.layers, strict=True):
        peer.self_attn.in_proj_weight.data = layer.query_key_value.weight.data.clone()
        peer.self_attn.in_proj_bias.data = layer.query_key_value.bias.data.clone()
        for mine, other in (
            (layer.output, peer.self_attn.out_proj),
            (layer.widen, peer.linear1),
            (layer.narrow, peer.linear2),
            (layer.norms[0], peer.norm1),
            (layer.norms[1], peer.norm2),
        ):
            other.load_state_dict(mine.state_dict())
    of_ours = (ours.read_in.embedding, ours.layers[0].query_key_value, ours.layers[-1].narrow)
    first, last = theirs.encoder.layers[0], theirs.encoder.layers[-1]
    _check_equal(
        [
            (ours(inputs), *(module.weight for module in of_ours)),
            (theirs(inputs), theirs.embedding.weight, first.self_attn.in_proj_weight, last.linear2.weight),
        ]
    )
    for name in POSITIONS:
        net = make(size, name).double()
        read = state = net.read_in(inputs)
        for layer, attention in zip(net.layers, net.read_in.positions.attention(read), strict=True):
            state = layer.by_definition(state, attention=attention)
        parameters = list(net.parameters())
        _check_equal([(net(inputs), *parameters), (net.readout(state), *parameters)])


def _check_equal(nets: list[tuple[Tensor, ...]]) -> None:
    """Check that outputs are equal, and their gradients with respect to the tensors that follow each output."""
    outputs = [output for output, *_ in nets]
    gradients = [
        torch.autograd.grad(output.square().sum(), variables, materialize_grads=True) for output, *variables in nets
    ]
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*gradients, atol=1e-9, rtol=1e-6)


def step_costs(size: Size, repeats: int) -> dict[str, tuple[float, float]]:
    """Measure the median CPU milliseconds of a step of each net and the median ratio to torch's net; all take turns."""
    steps = {PEER: Step(Peer(size), size)} | {name: Step(make(size, name), size) for name in POSITIONS}
    for step in steps.values():
        step()
    rounds = [{name: step() for name, step in steps.items()} for _ in range(repeats)]
    return {
        name: (
            statistics.median(times[name] for times in rounds),
            statistics.median(times[name] / times[PEER] for times in rounds),
        )
        for name in steps
    }


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_that_nets_agree(QUICK)
    costs = {}
    for size in (QUICK,) if options.quick else SIZES:
        costs[size] = step_costs(size, 3 if options.quick else 15)
        print(", ".join(f"{name} {value}" for name, value in size._asdict().items()), flush=True)
        for name, (milliseconds, ratio) in costs[size].items():
            print(f"  {name:28} {milliseconds:8.1f} ms  {ratio:.2f}", flush=True)
    if options.save:
        save(costs)


def save(costs: dict[Size, dict[str, tuple[float, float]]]) -> None:
    """Write the page and the numbers."""
    where = environment()
    record = {
        "steps": [
            {**size._asdict(), "positions": name, "cpu_milliseconds": milliseconds, "ratio": ratio}
            for size, by_name in costs.items()
            for name, (milliseconds, ratio) in by_name.items()
        ],
    }
    write_results("transformer", where, record, {"transformer-speed.md": _page(costs, where)})


def _page(costs: dict[Size, dict[str, tuple[float, float]]], where: dict[str, str]) -> str:
    header = ["positions", *(f"T={size.length}, B={size.batch_size}, {what}" for size in costs for what in COLUMNS)]
    rows = [
        [name, *(text for by_name in costs.values() for text in _cells(*by_name[name]))] for name in (PEER, *POSITIONS)
    ]
    first, *_ = costs
    slowest = max(POSITIONS, key=lambda name: costs[first][name][1])
    worst = costs[first][slowest][1]
    aim = f"a step takes at most {AIM} times as long as with torch's encoder, T={first.length} (slowest: {slowest})"
    parts = [
        "# Speed of transformers, by position encoding",
        "The table compares the CPU times of training steps of transformers with different position encodings, and of "
        "torch's own encoder.",
        markdown_table(header, rows),
        f"Entries are CPU times of a training step with {first.num_layers} layers, D={first.d_model}, "
        f"{first.num_heads} heads and one torch thread. D is the width, T the length of strings, and B the number of "
        "strings in a batch. Times are medians of 15 steps, and the nets take these steps in turn. *Ratio*: in each "
        "turn, the net's time is divided by the time of torch's encoder; the entry is the median over turns. The "
        "first row is torch's encoder without positions, with the same embeddings and read-out as our nets. Before "
        "the measurement, a check showed that our net without positions has the same outputs and gradients as "
        "torch's encoder.",
        "```console\npython benchmarks/transformer.py --save\n```",
        "On long strings, encodings by attention biases with learned parameters cost more than the other encodings. "
        "The reason is that torch computes the gradients of these biases from all T² attention scores of every "
        "string. ALiBi has no learned parameters.",
        "## Aims\n\n"
        + markdown_table(["aim", "measured", "met"], [[aim, f"{worst:.2f}", "yes" if worst <= AIM else "no"]]),
        provenance(where),
    ]
    return "\n\n".join(parts) + "\n"


def _cells(milliseconds: float, ratio: float) -> list[str]:
    return [f"{milliseconds:,.1f}", f"{ratio:.2f}"]


if __name__ == "__main__":
    main()
