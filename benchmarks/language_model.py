"""Training cost of RegularGPT as a language model with and without a dense mask, and of a transformer next to nanoGPT.

    python benchmarks/language_model.py            prints the tables
    python benchmarks/language_model.py --save     also writes docs/results/language-model-speed.md and dated numbers
    python benchmarks/language_model.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds of training steps (forward, backward, AdamW; a loss at every position) on one torch thread.
The two nets of a pair take turns in one run, and the smallest times count. Before that, their logits and all gradients
are compared. Peak memory is the memory that a forward and a backward pass, gradients included, add to a fresh process
that already contains the net.
"""

import math
import time
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import torch
import torch.nn.functional as F
from speed_page import cpu_times, environment, parse_options, provenance, write_results
from torch import Tensor, nn

from lengthwise.layers.positions.base import CausalAttention
from lengthwise.models.regular_gpt_lm import RegularGPTLM, RegularGPTLMConfig
from lengthwise.models.transformer import Transformer, TransformerConfig
from lengthwise.ops.dilated_attention import dilated_mask
from lengthwise.ops.tree import num_levels
from lengthwise.peak_memory import peak_megabytes
from lengthwise.report.tables.markdown import markdown_table


class Size(NamedTuple):
    """The sizes of a net (for a transformer, K is the number of layers) and of a batch of text."""

    d_model: int
    num_heads: int
    thickness: int
    chunk_size: int
    batch_size: int
    length: int
    vocab_size: int

    @property
    def num_tokens(self) -> int:
        return self.batch_size * self.length


SIZES = (Size(128, 4, 6, 64, 4, 512, 4096), Size(256, 8, 6, 64, 2, 512, 4096), Size(768, 12, 6, 64, 1, 512, 4096))
QUICK = Size(16, 2, 2, 4, 2, 24, 11)


class DenseMask(CausalAttention):
    """Attention by torch's own function, with the [T, T] mask of eq. (1)."""

    def __init__(self, bias: Tensor, stride: int) -> None:
        self.bias, self.stride = bias, stride

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        mask = dilated_mask(self.bias, self.stride, query.shape[2])
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask[None])


class DenseRegularGPT(RegularGPTLM):
    """RegularGPT with a dense mask at every level."""

    def _after(self, states: Tensor, level: int, stride: int) -> Tensor:
        for layer, bias in zip(self._layers(), self._offsets(level), strict=True):
            states = layer(states, attention=DenseMask(bias, stride))
        return states


class Block(nn.Module):
    """A block of GPT-2 with nanoGPT's order of parameters."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2))
        self.query_key_value = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)
        self.widen = nn.Linear(d_model, 4 * d_model)
        self.narrow = nn.Linear(4 * d_model, d_model)

    def forward(self, states: Tensor) -> Tensor:
        shape = (*states.shape[:2], self.num_heads, -1)
        parts = self.query_key_value(self.norms[0](states)).split(states.shape[-1], 2)
        heads = [part.view(shape).transpose(1, 2) for part in parts]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        states = states + self.output(attended.transpose(1, 2).contiguous().view(states.shape))
        answered: Tensor = self.narrow(F.gelu(self.widen(self.norms[1](states)), approximate="tanh"))
        return states + answered


class NanoGPT(nn.Module):
    """A plain GPT-2 in the manner of nanoGPT: two tables, blocks, a norm, and logits by the table of symbols."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocab_size, size.d_model)
        self.positions = nn.Embedding(size.length, size.d_model)
        self.layers = nn.ModuleList(Block(size.d_model, size.num_heads) for _ in range(size.thickness))
        self.norm = nn.LayerNorm(size.d_model)

    def forward(self, inputs: Tensor) -> Tensor:
        states = self.embedding(inputs) + self.positions(torch.arange(inputs.shape[1]))
        for layer in self.layers:
            states = layer(states)
        return F.linear(self.norm(states), self.embedding.weight)


def make_regular(kind: type[RegularGPTLM], size: Size, activations: str = "kept") -> RegularGPTLM:
    """Return RegularGPT, or the same net with a dense mask; all answers are read at the top level, as in the paper."""
    config = RegularGPTLMConfig(
        d_model=size.d_model,
        num_heads=size.num_heads,
        thickness=size.thickness,
        chunk_size=size.chunk_size,
        depth="input",
        activations=activations,
    )
    sizes = {"vocab_size": size.vocab_size, "num_classes": size.vocab_size}
    return kind(config, **sizes, generator=torch.Generator().manual_seed(0))


def make_transformer(size: Size) -> Transformer:
    """Return our transformer with the settings of GPT-2."""
    config = TransformerConfig(
        d_model=size.d_model,
        num_heads=size.num_heads,
        num_layers=size.thickness,
        learned_positions=size.length,
        initialization="gpt2",
        read_in="plain",
        readout="tied",
    )
    sizes = {"vocab_size": size.vocab_size, "num_classes": size.vocab_size}
    return Transformer(config, **sizes, generator=torch.Generator().manual_seed(0))


def make_nano(size: Size) -> NanoGPT:
    """Return nanoGPT's net with the weights of our transformer."""
    ours, theirs = make_transformer(size), NanoGPT(size)
    weights = {
        "embedding.weight": ours.read_in.embedding.weight,
        "positions.weight": ours.read_in.positions.table,
        **{f"layers.{name}": tensor for name, tensor in ours.layers.state_dict().items()},
        **{f"norm.{name}": tensor for name, tensor in ours.readout[0].state_dict().items()},
    }
    theirs.load_state_dict(weights)
    return theirs


NETS: dict[str, Callable[[Size], nn.Module]] = {
    "RegularGPT": lambda size: make_regular(RegularGPTLM, size),
    "the same, a dense mask": lambda size: make_regular(DenseRegularGPT, size),
    "RegularGPT, recomputed": lambda size: make_regular(RegularGPTLM, size, "recomputed"),
    "a dense mask, recomputed": lambda size: make_regular(DenseRegularGPT, size, "recomputed"),
    "transformer": make_transformer,
    "nanoGPT's": make_nano,
}
PAIRS = (
    ("RegularGPT", "the same, a dense mask"),
    ("RegularGPT, recomputed", "a dense mask, recomputed"),
    ("transformer", "nanoGPT's"),
)


def batch_of(size: Size) -> tuple[Tensor, Tensor]:
    """Return random inputs and targets."""
    shape = (2, size.batch_size, size.length)
    inputs, targets = torch.randint(size.vocab_size, shape, generator=torch.Generator().manual_seed(0)).unbind()
    return inputs, targets


def loss_of(net: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    inputs, targets = batch
    return F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())


def check_that_nets_agree(size: Size) -> None:
    """Check that the nets of each pair have the same logits and, sorted by shape and size, the same gradients."""
    for names in PAIRS:
        results = []
        for name in names:
            net = NETS[name](size).double()
            gradients = torch.autograd.grad(loss_of(net, batch_of(size)), list(net.parameters()))
            by_shape = sorted(gradients, key=lambda gradient: (*gradient.shape, float(gradient.square().sum())))
            results.append((net(batch_of(size)[0]), by_shape))
        torch.testing.assert_close(*results)


class Step:
    """A repeatable training step of one net."""

    def __init__(self, net: nn.Module, size: Size) -> None:
        self.net, self.batch = net, batch_of(size)
        self.optimizer = torch.optim.AdamW(net.parameters(), fused=True)

    def __call__(self) -> float:
        """Take the step, and return its CPU milliseconds."""
        start = time.process_time()
        self.optimizer.zero_grad()
        loss_of(self.net, self.batch).backward()
        self.optimizer.step()
        return 1000 * (time.process_time() - start)


class Cost(NamedTuple):
    """The cost of a net at one size: CPU milliseconds of a step, megabytes of a pass, and share of the bound."""

    net: str
    size: Size
    milliseconds: float
    megabytes: float
    share: float

    @property
    def tokens_per_second(self) -> float:
        return 1000 * self.size.num_tokens / self.milliseconds


def product_rate(width: int) -> float:
    """Return the operations per second of a large product of matrices, the best of five measurements."""
    matrix = torch.ones(width, width)
    return 2 * width**3 / max(min(cpu_times(lambda: matrix @ matrix, 5, warm_ups=0)), 1e-9)


def operations(net: str, size: Size) -> int:
    """Count a step's operations in products with weight matrices: 6 for each weight, position and level."""
    levels = num_levels(size.length, size.chunk_size) if net not in PAIRS[-1] else 1
    weights = levels * size.thickness * 12 * size.d_model**2 + size.vocab_size * size.d_model
    return 6 * size.num_tokens * weights


def peak(net: str, size: Size) -> float:
    """Measure the megabytes that a pass adds to a fresh process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_peak, net, size).result()


def _peak(name: str, size: Size) -> float:
    torch.set_num_threads(1)
    loss_of(NETS[name](QUICK), batch_of(QUICK)).backward()
    net, batch = NETS[name](size), batch_of(size)
    before = peak_megabytes()
    loss_of(net, batch).backward()
    return peak_megabytes() - before


def costs_at(size: Size, repeats: int, rate: float, weighed: Collection[str]) -> list[Cost]:
    """Measure all nets, those of a pair in turn, and the memory of each net in `weighed` in a process of its own."""
    costs = []
    for names in PAIRS:
        steps = {name: Step(NETS[name](size), size) for name in names}
        for step in steps.values():
            step()
        times = {name: [] for name in names}
        for _ in range(repeats):
            for name, step in steps.items():
                times[name].append(step())
        for name in names:
            least = min(times[name])
            share = operations(name, size) / rate / (least / 1000)
            costs.append(Cost(name, size, least, peak(name, size) if name in weighed else math.nan, share))
            speed = f"{least:9.1f} ms {costs[-1].tokens_per_second:9,.0f} tokens/s"
            print(f"  {name:24} {speed} {costs[-1].megabytes:8,.0f} MB {100 * share:4.0f} %", flush=True)
    return costs


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_that_nets_agree(QUICK)
    rate = product_rate(64 if options.quick else 2048)
    print(f"products of matrices: {rate / 1e9:.0f} GFLOP/s", flush=True)
    costs = []
    for size in (QUICK,) if options.quick else SIZES:
        print(", ".join(f"{name} {value}" for name, value in size._asdict().items()), flush=True)
        weighed = PAIRS[0][:1] if options.quick else tuple(NETS)
        costs += costs_at(size, 2 if options.quick or size.d_model > 256 else 5, rate, weighed)
    if options.save:
        save(costs, rate)


def save(costs: list[Cost], rate: float) -> None:
    """Write the page and the numbers."""
    where = environment()
    rows = [
        {**cost.size._asdict(), **{name: value for name, value in cost._asdict().items() if name != "size"}}
        for cost in costs
    ]
    record = {"gigaflops_of_products": rate / 1e9, "steps": rows}
    write_results("language_model", where, record, {"language-model-speed.md": _page(costs, rate, where)})


def _page(costs: list[Cost], rate: float, where: dict[str, str]) -> str:
    header = ["D", "H", "B", "net", "CPU ms", "tokens a second", "MB", "share of the bound"]
    rows = [
        [
            *map(str, (cost.size.d_model, cost.size.num_heads, cost.size.batch_size)),
            cost.net,
            f"{cost.milliseconds:,.0f}",
            f"{cost.tokens_per_second:,.0f}",
            f"{cost.megabytes:,.0f}",
            f"{100 * cost.share:.0f} %",
        ]
        for cost in costs
    ]
    size = costs[0].size
    parts = [
        "# Speed of language models",
        "The table compares the CPU time of a training step of RegularGPT with and without a dense mask, and of our "
        "transformer and a plain GPT-2 in the manner of nanoGPT.",
        markdown_table(header, rows),
        f"Entries are CPU times of a training step on windows of T={size.length} tokens with V={size.vocab_size:,} "
        "different tokens. D is the width, H the number of heads, and B the batch size. RegularGPT has chunk size "
        f"C={size.chunk_size} and K={size.thickness} layers for each level of its tree. *The same, a dense mask*: the "
        "same net with torch's attention and a [T, T] mask. *Recomputed*: activations after attention are not kept "
        f"for the gradient but computed again (setting `activations`). Our transformer of {size.thickness} layers is "
        "compared with the plain GPT-2. Before the measurement, a check showed that the two nets in each pair of "
        "rows have equal logits and gradients. There is one torch thread. The nets of a pair ran in alternation, and "
        "times are minima over their steps. *MB*: memory that a forward and a backward pass add to a fresh process. "
        "*Share of the bound*: a lower bound on the time of a step, divided by the measured time. The lower bound "
        "counts only products with weight matrices, and assumes the measured rate of one large matrix product, "
        f"{rate / 1e9:.0f} GFLOP/s.",
        "```console\npython benchmarks/language_model.py --save\n```",
        "## Aims\n\n" + markdown_table(["aim", "D", "measured", "met"], _aims(costs)),
        "*Kept*: activations after attention are kept for the gradient, which is the default.",
        "In a wider net, attention is a smaller part of the time and of the memory of a step. In a step, each layer "
        "keeps about 16 D numbers for each position. A dense mask adds T H numbers for each position.",
        provenance(where),
    ]
    return "\n\n".join(parts) + "\n"


def _aims(costs: list[Cost]) -> list[list[str]]:
    rows = []
    by_name = {(cost.net, cost.size): cost for cost in costs}
    for size in dict.fromkeys(cost.size for cost in costs):
        nets = (by_name[name, size] for pair in PAIRS for name in pair)
        ours, dense, recomputed, both_recomputed, transformer, nano = nets
        speeds = (
            ("RegularGPT is at least 1.5 times as fast as with a dense mask", dense, ours),
            (
                "RegularGPT, recomputed, is at least 1.5 times as fast as with a dense mask, kept",
                dense,
                recomputed,
            ),
        )
        for aim, slower, faster in speeds:
            ratio = slower.milliseconds / faster.milliseconds
            rows.append([aim, str(size.d_model), f"{ratio:.2f}", "yes" if ratio >= 1.5 else "no"])
        memory = (
            ("RegularGPT takes at most half of the memory that it takes with a dense mask", ours, dense),
            (
                "RegularGPT, recomputed, takes at most half of the memory that it takes with a dense mask, kept",
                recomputed,
                dense,
            ),
            (
                "RegularGPT, recomputed, takes at most half of the memory that it takes with a dense mask, recomputed",
                recomputed,
                both_recomputed,
            ),
        )
        for aim, less, more in memory:
            ratio = less.megabytes / max(more.megabytes, 1e-9)
            rows.append([aim, str(size.d_model), f"{ratio:.2f}", "yes" if ratio <= 0.5 else "no"])
        ratio = transformer.milliseconds / nano.milliseconds
        aim = "a step of our transformer takes at most 1.1 times as long as a step of nanoGPT"
        rows.append([aim, str(size.d_model), f"{ratio:.2f}", "yes" if ratio <= 1.1 else "no"])
    return rows


if __name__ == "__main__":
    main()
