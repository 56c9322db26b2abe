"""The cost of a training step of recurrences of other papers on one core, next to torch's GRU.

    python benchmarks/other_recurrences.py            prints the table
    python benchmarks/other_recurrences.py --save     also writes docs/results/other-recurrences-speed.md and numbers
    python benchmarks/other_recurrences.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds of forward and backward together, on one thread, all in one process. All models have an
embedding, a recurrence of the same width, and the same read-out with one hidden layer. Before anything is timed, the
answers of each model to whole strings are compared with its answers symbol by symbol, or by its definition. To measure
another model, add a line to `WAYS`. The installed packages of `public_recurrences.py` are timed in the same run.
"""

import gc
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from public_recurrences import PUBLIC, Stack
from speed_page import environment, parse_options, provenance, write_results
from torch import Tensor, nn

from lengthwise.layers.recurrent_layer import hidden_layer_readout
from lengthwise.models import MODELS, RecurrentModel, SequenceModel
from lengthwise.presets.base import PRESETS
from lengthwise.report.tables.markdown import markdown_table

NUM_SYMBOLS, NUM_CLASSES = 5, 5

BASELINE, MAX_RATIO = "torch.nn.GRU", 3


class Way(NamedTuple):
    """A model: its registered name, its settings besides the width, and its title in the table."""

    title: str
    model: str
    settings: Mapping[str, Any] = {}


SD_SSM: Mapping[str, Any] = {**PRESETS["sd2025"].models["block-linear-rnn"], "block_dim": "d_model"}
"""The settings of one block that is as wide as the model."""

WAYS = (
    Way("DeltaNet", "delta-net"),
    Way("Gated DeltaNet", "delta-net", {"gated": True}),
    Way("DeltaProduct, 2 Householder matrices", "delta-net", {"householders": 2}),
    Way("DeltaNet, convolution and feed-forward layer", "delta-net", {"conv": 4, "mlp": 128}),
    Way("PD-SSM", "pd-ssm"),
    Way("linear CDE, blocks of 4", "linear-cde"),
    Way("linear CDE, rank 4", "linear-cde", {"structure": "low-rank"}),
    Way("SD-SSM", "block-linear-rnn", SD_SSM),
    Way("Mamba", "mamba"),
    Way("Mamba, convolution", "mamba", {"conv": 4}),
    Way("Mamba, signed decays", "mamba", {"eigenvalues": "signed"}),
    Way("Mamba-2", "mamba", {"version": 2}),
    Way("sLSTM", "xlstm"),
    Way("mLSTM", "xlstm", {"cells": "m"}),
    Way("mLSTM, convolution", "xlstm", {"cells": "m", "conv": 4}),
    Way("LDRU", "ldru"),
)


class Measurement(NamedTuple):
    """The median CPU milliseconds of a training step."""

    title: str
    batch: int
    length: int
    width: int
    milliseconds: float
    times_gru: float


class GRULayer(nn.Module):
    """torch's GRU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.recurrence = nn.GRU(width, width, batch_first=True)

    def forward(self, features: Tensor) -> Tensor:
        states: Tensor = self.recurrence(features)[0]
        return states


def _stack(layer: nn.Module, width: int) -> nn.Module:
    """Return a layer between an embedding and the same read-out as in our models."""
    return Stack(nn.Embedding(NUM_SYMBOLS, width), layer, hidden_layer_readout(width, width, NUM_CLASSES))


def make(way: Way, width: int) -> SequenceModel:
    """Return the model of this width, with one layer unless its settings set another number."""
    kind, settings = MODELS[way.model], {"d_model": width, **way.settings}
    config = kind.Config(**{name: width if value == "d_model" else value for name, value in settings.items()})
    return kind(config, vocab_size=NUM_SYMBOLS, num_classes=NUM_CLASSES, generator=torch.Generator().manual_seed(0))


def draw(batch: int, length: int) -> Tensor:
    return torch.randint(NUM_SYMBOLS, (batch, length), generator=torch.Generator().manual_seed(length))


@torch.no_grad()
def check_that_forms_agree(length: int) -> None:
    """Check that the answers of every model to all prefixes equal its answers symbol by symbol, or by definition."""
    for way in WAYS:
        model, inputs = make(way, 16).double(), draw(2, length)
        if isinstance(model, RecurrentModel):
            state, answers = model.initial_state(len(inputs)), []
            for token in inputs.unbind(1):
                logits, state = model.step(token, state)
                answers.append(logits)
            expected = torch.stack(answers, 1)
        else:
            expected = model.forward_by_definition(inputs)
        torch.testing.assert_close(model(inputs), expected, msg=lambda text, w=way: f"{w.title}: {text}")


def step_ms(model: nn.Module, inputs: Tensor, repeats: int) -> float:
    """Return the median CPU milliseconds of the loss of all prefixes and its gradients, after a warm-up step."""
    parameters, targets = list(model.parameters()), inputs.flatten() % NUM_CLASSES
    times = []
    for _ in range(repeats + 1):
        gc.collect()
        start = time.process_time()
        torch.autograd.grad(F.cross_entropy(model(inputs).flatten(0, 1), targets), parameters)
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times[1:])


def measure(batch: int, length: int, width: int, repeats: int) -> list[Measurement]:
    """Measure all models at one length: first the GRU, then each model followed by its public implementation."""
    inputs = draw(batch, length)
    gru = step_ms(_stack(GRULayer(width), width), inputs, repeats)
    times = {BASELINE: gru}
    for way in WAYS:
        times[way.title] = step_ms(make(way, width), inputs, repeats)
        for public in PUBLIC:
            if public.ours == way.title and public.is_installed:
                layer = public.make(width)
                times[f"{way.title}: {public.title}"] = step_ms(_stack(layer, width), inputs, repeats)
    measurements = [Measurement(title, batch, length, width, ms, ms / gru) for title, ms in times.items()]
    for m in measurements:
        print(
            f"{m.title:46s} B={batch} T={length} D={width} {m.milliseconds:10,.1f} ms {m.times_gru:6.2f} x GRU",
            flush=True,
        )
    return measurements


def save(measurements: Sequence[Measurement]) -> None:
    """Write the page and the dated numbers."""
    where = environment()
    lengths = sorted({m.length for m in measurements})
    titles = list(dict.fromkeys(m.title for m in measurements))
    by_key = {(m.title, m.length): m for m in measurements}
    rows = [
        [title, *(f"{by_key[title, n].milliseconds:,.0f} ({by_key[title, n].times_gru:.1f})" for n in lengths)]
        for title in titles
    ]
    ratios = {
        title: [by_key[title, n].milliseconds / by_key[title.partition(": ")[0], n].milliseconds for n in lengths]
        for title in titles
        if ": " in title
    }
    first = measurements[0]
    page = [
        "# Speed of recurrences of other papers\n",
        *_headline(ratios),
        markdown_table(["model", *(f"T = {length}" for length in lengths)], rows) + "\n",
        "Entries are CPU milliseconds of a training step (forward and backward), with the ratio to torch's GRU in "
        f"brackets. A batch has {first.batch} strings of T symbols, the width is D = {first.width}, and there is one "
        "thread.\n",
        f"The alphabet has {NUM_SYMBOLS} symbols. In the lowest layer, some values depend on the current symbol alone. "
        "DeltaNet and Mamba without a convolution, mLSTM, PD-SSM and linear CDEs compute these values once for each "
        "symbol of the alphabet. The GRU and the other models compute them at every position.\n",
        _next_to_public(ratios, measurements, lengths),
        provenance(where),
        "- command: `python benchmarks/other_recurrences.py --save`\n",
    ]
    record = {"cpu_milliseconds": [m._asdict() for m in measurements]}
    write_results("other_recurrences", where, record, {"other-recurrences-speed.md": "\n".join(page)})


def _headline(ratios: Mapping[str, Sequence[float]]) -> list[str]:
    """Return a sentence about packages next to our models, if any were measured."""
    every = [ratio for of_title in ratios.values() for ratio in of_title]
    if not every:
        return []
    return [
        f"On one CPU core, public implementations of recurrences take {min(every):.2f} to {max(every):.2f} times as "
        "long as ours.\n"
    ]


def _next_to_public(
    ratios: Mapping[str, Sequence[float]], measurements: Sequence[Measurement], lengths: Sequence[int]
) -> str:
    """Return the section on packages: the ratio of their time to ours, and the aim."""
    rows = [[*title.split(": "), *(f"{ratio:.2f}" for ratio in of_title)] for title, of_title in ratios.items()]
    compared = {row[0] for row in rows}
    compared |= {title for public in PUBLIC if public.ours in compared for title in public.others}
    alone = [m for m in measurements if m.title not in ratios and m.title not in compared]
    above = [f"{m.title} ({m.times_gru:.1f} times at T = {m.length})" for m in alone if m.times_gru > MAX_RATIO]
    public = markdown_table(["ours", "package", *(f"T = {n}, their time / our time" for n in lengths)], rows)
    missing = [f"{public.package} ({public.ours})" for public in PUBLIC if not public.is_installed]
    return "\n\n".join(
        [
            "## Next to public implementations",
            "The packages come from the Python package index and run on a CPU. The layer of a package has the same "
            "sizes as our layer, and the same embedding and read-out. Both layers are measured in the same run. Some "
            "of their parameters differ, so the table compares costs, not answers.",
            *([public] if rows else []),
            *([f"Not installed, and so not measured: {', '.join(missing)}."] if missing else []),
            "The aim is that our models are not slower than the package in the table. A model without a package should "
            f"take at most {MAX_RATIO} times as long as torch's GRU. These models miss the aim:\n\n"
            + "\n".join(f"- {missed}" for missed in [*_slower(rows), *above] or ["none"])
            + "\n",
        ]
    )


def _slower(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"{row[0]} (next to {row[1]})" for row in rows if min(map(float, row[2:])) < 1]


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_that_forms_agree(9 if options.quick else 45)
    sizes = [(2, 5, 8, 1)] if options.quick else [(128, 40, 64, 9), (128, 500, 64, 3)]
    measurements = [m for size in sizes for m in measure(*size)]
    if options.save:
        save(measurements)


if __name__ == "__main__":
    main()
