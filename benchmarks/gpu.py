"""Time and memory of training steps on a GPU, for language models of the papers' sizes.

    python benchmarks/gpu.py            prints the tables
    python benchmarks/gpu.py --save     also writes docs/results/gpu-speed.md and dated numbers
    python benchmarks/gpu.py --quick    takes seconds: a test that it runs, on any device, without meaningful numbers

Times are wall-clock milliseconds of a step of the training loop (batch, forward, backward, optimizer), the smallest of
several, on one torch thread. Before that, the losses of small nets on the GPU are compared with their losses on the
CPU. The text consists of random tokens, because the time does not depend on the tokens.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from language import KEY, write_file
from speed_page import environment, parse_options, provenance, write_results

from lengthwise.devices import Precision, describe_device, find_device
from lengthwise.models.base import SequenceModel
from lengthwise.ops.tree import num_levels
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.runs.folder import versions
from lengthwise.runs.spec import RunSpec, Settings, make_spec, merge
from lengthwise.studies.text import GPT2_VOCAB_SIZE
from lengthwise.studies.xu2024.experiments.language import LOOPS
from lengthwise.text.corpus import FOLDER
from lengthwise.training.loop import TrainingState, training_steps

TOLERANCE = 2e-3
"""The relative tolerance for the losses of three steps on two devices, which add numbers in different orders."""

CHI, XU = "chi2023-language", "xu2024-language"


class Large(NamedTuple):
    """A language model of a paper's table: preset, model and settings."""

    name: str
    preset: str
    model: str
    settings: Settings


LARGE = (
    Large("ALiBi", CHI, "transformer", {"positions": "alibi"}),
    Large("KERPLE", CHI, "transformer", {}),
    Large("RegularGPT 64/6", CHI, "regular-gpt-lm", {"chunk_size": 64, "thickness": 6}),
    Large("RegularGPT 128/12", CHI, "regular-gpt-lm", {}),
    Large("transformer", XU, "transformer", {}),
    Large("6 loops, timestep", XU, "looped-transformer", {"num_loops": LOOPS[-1], "variant": "timestep"}),
)

SMALL = tuple(make_spec("parity", name, {}) for name in ("regular-gpt", "gru", "block-linear-rnn", "transformer"))
"""Runs with default presets, whose losses on a GPU are compared with their losses on the CPU."""

TINY: Settings = {
    "model": {"d_model": 16, "num_heads": 2},
    "train": {"batch_size": 2, "min_length": 8, "max_length": 8},
}


class Cost(NamedTuple):
    """The cost of a net: smallest time of a step, tokens of a step, peak memory, and operations in products.

    `operations` counts only products with weight matrices: 6 for each weight and token. The table of embeddings counts
    once, as the read-out; looking tokens up takes no product.
    """

    net: str
    precision: Precision
    milliseconds: float
    tokens: int
    gigabytes: float
    operations: float
    steps: int

    @property
    def hours(self) -> float:
        """The time of all steps of the run, in hours."""
        return self.milliseconds * self.steps / 3.6e6

    def share(self, rates: Mapping[str, float]) -> float:
        """Return the share of a step's time that its products would take at the rate of a large product."""
        return self.operations / rates[self.precision] / (self.milliseconds / 1e3)


def large_spec(large: Large, precision: Precision, *, quick: bool) -> RunSpec:
    settings: Settings = {
        "task": {"corpus": KEY},
        "model": large.settings,
        "train": {"precision": precision},
    }
    return make_spec("text", large.model, merge(settings, TINY) if quick else settings, preset=large.preset)


def milliseconds_of_steps(
    model: SequenceModel, spec: RunSpec, device: torch.device, count: int
) -> tuple[list[float], list[float]]:
    """Return the losses of all steps and the times of the steps after the second, including waiting for the device."""
    state = TrainingState(model.to(device), spec.recipe, spec.task)
    records = training_steps(state, spec.task, spec.recipe, seed=0)
    losses, times = [], []
    for _ in range(count + 2):
        started = time.perf_counter()
        losses.append(next(records).loss)
        _wait(device)
        times.append(1e3 * (time.perf_counter() - started))
    return losses, times[2:]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def cost_of(name: str, spec: RunSpec, device: torch.device, count: int) -> Cost:
    """Measure the cost of a large net."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    model = spec.make_model()
    _, times = milliseconds_of_steps(model, spec, device, count)
    peak = torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else 0.0
    recipe = spec.recipe
    tokens = recipe.batch_size * recipe.max_length
    operations = 6.0 * tokens * _weights_read(spec, model)
    return Cost(name, recipe.precision, min(times), tokens, peak, operations, recipe.steps)


def _weights_read(spec: RunSpec, model: SequenceModel) -> int:
    """Count the matrix weights by which a token is multiplied, each as often as its layer is applied."""
    config = spec.model_config.model_dump()
    matrices = {name: p.numel() for name, p in model.named_parameters() if p.ndim == 2}
    of_layers = sum(number for name, number in matrices.items() if "layer" in name)
    times = config.get("num_loops", 1)
    if spec.model_name == "regular-gpt-lm":
        times = num_levels(spec.recipe.max_length, config["chunk_size"])
    return times * of_layers + len(spec.task.classes) * config["d_model"]


def product_rate(device: torch.device, dtype: torch.dtype, width: int) -> float:
    """Return the operations per second of a large product of matrices, the best of five measurements."""
    matrix = torch.randn(width, width, generator=torch.Generator().manual_seed(0)).to(device, dtype)
    times = []
    for _ in range(5):
        _wait(device)
        started = time.perf_counter()
        matrix @ matrix
        _wait(device)
        times.append(time.perf_counter() - started)
    return 2 * width**3 / min(times)


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    device = find_device("auto" if options.quick else "cuda")
    where = {**environment(), **versions(describe_device(device))}
    for spec in SMALL[: 1 if options.quick else None]:
        check_losses(spec, device)
    width = 64 if options.quick else 8_192
    rates = {dtype: product_rate(device, getattr(torch, dtype), width) for dtype in ("float32", "bfloat16")}
    costs = list(large_costs(device, rates, quick=options.quick))
    if options.save:
        save(rates, costs, where)


def check_losses(spec: RunSpec, device: torch.device) -> None:
    """Check that three steps have the same losses on the CPU and on a device."""
    here, _ = milliseconds_of_steps(spec.make_model(), spec, torch.device("cpu"), 1)
    there, _ = milliseconds_of_steps(spec.make_model(), spec, device, 1)
    for one, other in zip(here, there, strict=True):
        if abs(one - other) > TOLERANCE * abs(one):
            raise SystemExit(f"{spec.id}: losses differ, {one} on the CPU and {other} on {device}")


def large_costs(device: torch.device, rates: dict[str, float], *, quick: bool) -> Iterator[Cost]:
    """Yield the costs of the papers' nets, in both precisions."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        write_file(Path(folder), 1 << (16 if quick else 22), 300 if quick else GPT2_VOCAB_SIZE)
        for large in LARGE[2:3] if quick else LARGE:
            for precision in ("float32", "bfloat16"):
                spec = large_spec(large, precision, quick=quick)
                try:
                    cost = cost_of(f"{large.preset}: {large.name}", spec, device, 1 if quick else 6)
                except torch.OutOfMemoryError:
                    print(f"{large.name}, {precision}: does not fit into the memory of {device}")
                    continue
                speed = f"{cost.milliseconds:8.1f} ms {cost.gigabytes:6.1f} GB {cost.share(rates):5.0%}"
                print(f"{cost.net:36} {precision} {speed}")
                yield cost


def save(rates: dict[str, float], costs: list[Cost], where: dict[str, str]) -> None:
    """Write the page and the numbers."""
    record = {
        "operations_a_second_of_products": rates,
        "large": [cost._asdict() for cost in costs],
    }
    write_results("gpu", where, record, {"gpu-speed.md": _page(rates, costs, where)})


def _page(rates: dict[str, float], costs: list[Cost], where: dict[str, str]) -> str:
    rows = [
        [
            cost.net,
            cost.precision,
            f"{cost.milliseconds:,.0f}",
            f"{1e3 * cost.tokens / cost.milliseconds:,.0f}",
            f"{cost.gigabytes:.1f}",
            f"{100 * cost.share(rates):.0f} %",
            f"{cost.hours:,.1f}",
        ]
        for cost in costs
    ]
    trillions = {name: f"{rate / 1e12:.0f}" for name, rate in rates.items()}
    parts = [
        "# Speed on a GPU",
        "The table has the wall-clock times of training steps on a GPU, for language models with the sizes of two "
        "papers, in float32 and bfloat16.",
        markdown_table(
            ["net", "precision", "ms", "tokens a second", "GB", "share of the bound", "hours of all steps"], rows
        ),
        "A step draws the batch and runs the forward pass, the backward pass and the optimizer, with one torch "
        "thread. Entries are minima over several steps of one run. The text is random tokens. *GB*: the peak memory "
        "of tensors. *Share of the bound*: a lower bound on the time of a step, divided by the measured time. The "
        "lower bound counts only products with weight matrices, not the products of attention. It assumes the "
        f"measured rate of one large matrix product: {trillions['float32']} TFLOP/s in float32 and "
        f"{trillions['bfloat16']} TFLOP/s in bfloat16. *Hours of all steps*: the time of all steps of the preset in "
        "column *net*. RegularGPT 64/6 has chunks of 64 tokens and 6 layers for each level of its tree. Preset "
        "`chi2023-language` has 50,000 steps of 32 strings of 512 tokens, as in Chi et al. (2023). Preset "
        "`xu2024-language` has 600,000 steps of 24 strings of 1,024 tokens. In Xu and Sato (2024), a step has 480 "
        "strings.",
        "```console\npython benchmarks/gpu.py --save\n```",
        "Before the measurement, small nets on parity were checked: RegularGPT, a GRU, block-diagonal recurrences and "
        "a transformer. Their losses in three float32 steps on the GPU differed from the losses on the CPU by at most "
        f"{100 * TOLERANCE:g} %.",
        provenance(where),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
