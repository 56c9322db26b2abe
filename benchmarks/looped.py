"""The time that timestep encoding adds to a looped transformer, and the memory that recomputed activations save.

    python benchmarks/looped.py            prints the tables
    python benchmarks/looped.py --save     also writes docs/results/looped-speed.md and the dated numbers
    python benchmarks/looped.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds of training steps (forward, backward, AdamW) on one torch thread. The variants take turns in
one run, after their layers were compared with the equations. Memory is the amount by which a training step raises the
peak of a fresh process. It is measured with two allocators. The first allocator gives every large block back when it is
freed, so the peak is the memory in use at one time. The second is the allocator of the system, whose heap may keep gaps
between blocks that were in use at different times.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from speed_page import environment, parse_options, provenance, write_results

from lengthwise import make_task
from lengthwise.models import make_model
from lengthwise.models.looped_transformer import LoopedTransformer
from lengthwise.peak_memory import peak_megabytes
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.tasks import Batch, SymbolTask

VARIANTS = ("timestep", "control", "code")
NUM_LOOPS = 10


class Size(NamedTuple):
    """The width of the model, and the numbers of strings and letters in a batch of edit distances."""

    d_model: int
    batch_size: int
    length: int


SIZES = (Size(64, 64, 12), Size(256, 8, 60))
MEMORY_SIZE = Size(64, 32, 60)
QUICK = Size(16, 4, 12)

KEPT, RECOMPUTED = (5, "kept"), (100, "recomputed")
ALLOCATORS = ("gives back", "default")


class Step:
    """A repeatable training step of one model."""

    def __init__(self, size: Size, variant: str, num_loops: int, activations: str = "kept") -> None:
        task = make_task("edit-distance", max_length=size.length)
        assert isinstance(task, SymbolTask)
        settings = {"d_model": size.d_model, "variant": variant, "num_loops": num_loops, "activations": activations}
        model = make_model("looped-transformer", task, **settings)
        assert isinstance(model, LoopedTransformer)
        self.model = model
        self.batch = task.sample(size.batch_size, size.length, torch.Generator().manual_seed(0))
        self.optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def __call__(self, strings: int | None = None) -> float:
        """Take the step on the first strings, or on all of them, and return its CPU milliseconds."""
        batch = Batch(self.batch.inputs[:strings], self.batch.targets[:strings])
        indices = batch.last_supervised
        start = time.process_time()
        self.optimizer.zero_grad()
        logits = self.model.logits_at(batch.inputs, indices)
        F.cross_entropy(logits, batch.targets[torch.arange(len(indices)), indices]).backward()
        self.optimizer.step()
        return 1000 * (time.process_time() - start)


def check_that_layers_are_the_equations() -> None:
    """Check that the layers of all variants agree with the equations in values and gradients."""
    for variant in VARIANTS:
        model = Step(QUICK, variant, 2).model.double()
        scales = model.scales(2)[1] if model.scales is not None else None
        (layer,) = model.layers
        states = torch.randn(3, 9, QUICK.d_model, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        fast, slow = layer(states, scales), layer.by_definition(states, scales)
        torch.testing.assert_close(fast, slow)
        torch.testing.assert_close(
            *(
                torch.autograd.grad(out.square().sum(), list(layer.parameters()), retain_graph=True)
                for out in (fast, slow)
            )
        )


def step_costs(size: Size, repeats: int) -> dict[str, float]:
    """Measure the median CPU milliseconds of a step of each variant; variants take turns, under the same load."""
    steps = {variant: Step(size, variant, NUM_LOOPS) for variant in VARIANTS}
    for step in steps.values():
        step()
    rounds = [{variant: step() for variant, step in steps.items()} for _ in range(repeats)]
    return {variant: statistics.median(times[variant] for times in rounds) for variant in VARIANTS}


def step_megabytes(size: Size, num_loops: int, activations: str, allocator: str) -> float:
    """Measure by how much a step raises the peak memory of a fresh process that has taken a step on one string."""
    command = [sys.executable, __file__, "--memory", json.dumps([*size, num_loops, activations])]
    settings = {"MALLOC_MMAP_THRESHOLD_": "65536"} if allocator == "gives back" else {}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | settings)
    return float(done.stdout)


def print_peak(request: str) -> None:
    """Print the peak memory of a step, in the process that `step_megabytes` starts."""
    *size, num_loops, activations = json.loads(request)
    torch.set_num_threads(1)
    step = Step(Size(*size), "timestep", num_loops, activations)
    step(1)
    before = peak_megabytes()
    step()
    print(peak_megabytes() - before)


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        print_peak(sys.argv[2])
        return
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_that_layers_are_the_equations()
    costs = {}
    for size in (QUICK,) if options.quick else SIZES:
        costs[size] = step_costs(size, 3 if options.quick else 15)
        quoted = ", ".join(f"{variant} {cost:,.1f} ms" for variant, cost in costs[size].items())
        print(f"R={NUM_LOOPS}, D={size.d_model}, {size.batch_size} x {size.length} letters: {quoted}", flush=True)
    size = QUICK if options.quick else MEMORY_SIZE
    peaks = {}
    for allocator in list(ALLOCATORS)[:1] if options.quick else ALLOCATORS:
        for num_loops, activations in (RECOMPUTED,) if options.quick else (KEPT, RECOMPUTED):
            peak = step_megabytes(size, num_loops, activations, allocator)
            peaks[allocator, num_loops] = peak
            print(f"R={num_loops}, activations {activations}, allocator {allocator}: {peak:,.0f} MB", flush=True)
    if options.save:
        save(costs, peaks)


def save(costs: dict[Size, dict[str, float]], peaks: dict[tuple[str, int], float]) -> None:
    """Write the page and the numbers."""
    where = environment()
    record = {
        "cpu_milliseconds": [{**size._asdict(), **by_variant} for size, by_variant in costs.items()],
        "peak_megabytes": [{"allocator": how, "num_loops": r, "peak": mb} for (how, r), mb in peaks.items()],
    }
    write_results("looped", where, record, {"looped-speed.md": _page(costs, peaks, where)})


def _page(costs: dict[Size, dict[str, float]], peaks: dict[tuple[str, int], float], where: dict[str, str]) -> str:
    rows = [
        [f"D={size.d_model}, {size.batch_size} x {size.length} letters"]
        + [f"{by_variant[variant]:,.1f}" for variant in VARIANTS]
        + [f"{by_variant['timestep'] / by_variant[other]:.2f}" for other in ("code", "control")]
        for size, by_variant in costs.items()
    ]
    worst = max(by_variant["timestep"] / by_variant["code"] for by_variant in costs.values())
    aims = [
        [
            "a step of *timestep* takes at most 1.10 times as long as a step of *code*, R=10",
            f"{worst:.2f}",
            "yes" if worst <= 1.1 else "no",
        ]
    ]
    for how in ALLOCATORS:
        few, many = (peaks[how, num_loops] for num_loops, _ in (KEPT, RECOMPUTED))
        aim = f"R=100, recomputed, takes at most 3 times the memory of R=5, kept (allocator: {how})"
        aims.append([aim, f"{many / few:.2f}", "yes" if many <= 3 * few else "no"])
    memory = [[how, *(f"{peaks[how, num_loops]:,.0f}" for num_loops, _ in (KEPT, RECOMPUTED))] for how in ALLOCATORS]
    header = ["", *(f"{variant}, CPU ms" for variant in VARIANTS), "timestep / code", "timestep / control"]
    parts = [
        "# Speed of looped transformers",
        "The table compares the CPU times of training steps of three nets: the looped transformer with timestep "
        "encoding, the same net without this encoding, and the plain loop.",
        markdown_table(header, rows),
        f"Entries are CPU times of a training step on edit distances with R={NUM_LOOPS} loops and one torch thread. D "
        "is the width. A row's name also contains the number of pairs of strings in a batch, and the length of the "
        "strings in letters. Times are medians of 15 steps, and the variants ran in alternation. In *timestep*, the "
        "layer's gains and gates are functions of the loop's index. In *control*, gains and gates are the same in "
        "all loops, so the index is not encoded. *Code* is the plain loop, the net of the published code. It has no "
        "such gains and gates, its norms have learned gains, and its activation is a GELU instead of a SiLU.",
        "```console\npython benchmarks/looped.py --save\n```",
        "The next table has the memory that one step adds to the peak memory of a process, for "
        f"D={MEMORY_SIZE.d_model} and {MEMORY_SIZE.batch_size} pairs of strings of {MEMORY_SIZE.length} letters. With "
        "R=5, all activations are kept. With R=100, they are recomputed in segments of ten loops. *Gives back*: freed "
        "memory returns to the system (MALLOC_MMAP_THRESHOLD_=65536), so the peak is the memory in use. *Default*: "
        "glibc's heap, which keeps gaps of freed memory.",
        markdown_table(["allocator", "R=5, kept, MB", "R=100, recomputed, MB"], memory),
        "## Aims\n\n" + markdown_table(["aim", "measured", "met"], aims),
        provenance(where),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
