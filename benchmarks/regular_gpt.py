"""The cost of RegularGPT on one core: training, inference, evaluation at all lengths, long strings, data.

    python benchmarks/regular_gpt.py            prints the tables
    python benchmarks/regular_gpt.py --save     also writes docs/results/speed.md, its chart and the dated numbers
    python benchmarks/regular_gpt.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds on one torch thread, all in one process. Before anything is timed, the values and gradients
of all forms of the model are compared.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from dense_mask import dense_mask_states
from speed_page import cpu_times, parse_options, save

from lengthwise import TASKS, make_task
from lengthwise.conventions import PAD
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.models import make_model
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.tree_attention import last_state
from lengthwise.peak_memory import peak_megabytes
from lengthwise.presets import PRESETS
from lengthwise.tasks.base import RegularTask
from lengthwise.training.loop import TrainingState, training_steps
from lengthwise.training.recipe import Recipe

BATCH = 128
DENSE_UP_TO = {"masked definition": 200, "plain dense mask": 500}
"""The longest strings of the slow forms at D=64, in symbols; at D=256 they get 40 symbols."""


class Measurement(NamedTuple):
    """The mean CPU milliseconds of one form at one length and width."""

    what: str
    form: str
    width: int
    length: int
    milliseconds: float


Answer = Callable[[RegularGPT, torch.Tensor], torch.Tensor]


def tree(model: RegularGPT, inputs: torch.Tensor) -> torch.Tensor:
    return model.last(inputs)


def tree_without_tables(model: RegularGPT, inputs: torch.Tensor) -> torch.Tensor:
    return model.readout(last_state(inputs - PAD, model.tree, table_rows=0))


def masked_definition(model: RegularGPT, inputs: torch.Tensor) -> torch.Tensor:
    return model.forward_by_definition(inputs)[:, -1]


def dense_mask(model: RegularGPT, inputs: torch.Tensor) -> torch.Tensor:
    return model.readout(dense_mask_states(inputs - PAD, model.tree))


FORMS: dict[str, Answer] = {
    "tree, tables": tree,
    "tree, no tables": tree_without_tables,
    "masked definition": masked_definition,
    "plain dense mask": dense_mask,
}


def check_that_forms_agree() -> None:
    """Check that all forms agree in values and gradients, on strings of different lengths with pads."""
    model = make_model("regular-gpt", make_task("parity")).double()
    for length in (1, 2, 33, 63):
        inputs = torch.randint(PAD, 2, (8, length), generator=torch.Generator().manual_seed(0))
        outputs = [answer(model, inputs) for answer in FORMS.values()]
        outputs.append(model(inputs)[:, -1])
        gradients = [torch.autograd.grad(output.square().sum(), list(model.parameters())) for output in outputs]
        for output, gradient in zip(outputs[1:], gradients[1:], strict=True):
            torch.testing.assert_close(output, outputs[0])
            torch.testing.assert_close(gradient, gradients[0])


def cpu_ms(work: Callable[[], object], repeats: int) -> float:
    """Return the mean CPU milliseconds of a call; several calls have a warm-up call for every five of them."""
    return 1000 * statistics.mean(cpu_times(work, repeats, warm_ups=math.ceil((repeats - 1) / 5)))


def training_step(length: int, width: int, form: str, repeats: int) -> float:
    """Time a forward pass, a backward pass and AdamW on the final answers of one batch, without pads and noise."""
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=width)
    assert isinstance(model, RegularGPT)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batch = task.sample(BATCH, length, torch.Generator().manual_seed(0))

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(FORMS[form](model, batch.inputs), batch.targets[:, -1]).backward()
        optimizer.step()

    return cpu_ms(step, repeats)


def forward(length: int, width: int, form: str, repeats: int) -> float:
    """Time the final answers of one batch."""
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=width).eval()
    assert isinstance(model, RegularGPT)
    inputs = task.sample(BATCH, length, torch.Generator().manual_seed(0)).inputs
    with torch.no_grad():
        return cpu_ms(lambda: FORMS[form](model, inputs), repeats)


def recipe_step(length: int, repeats: int, changes: Mapping[str, Any]) -> float:
    """Time steps of the training loop at one length, data included: half with early noise, half with late noise."""
    task = make_task("parity")
    recipe = Recipe(steps=2 * repeats, batch_size=BATCH, min_length=length, max_length=length, **changes)
    state = TrainingState(make_model("regular-gpt", task), recipe)
    start = time.process_time()
    steps = sum(1 for _ in training_steps(state, task, recipe, seed=0))
    return 1000 * (time.process_time() - start) / steps


def report(m: Measurement) -> Measurement:
    """Print a measurement as soon as it is taken, because the slow forms take minutes."""
    print(f"{m.what:14s} {m.form:18s} D={m.width:<4d} T={m.length:<5d} {m.milliseconds:10.1f} ms", flush=True)
    return m


def steps_and_forwards(quick: bool) -> list[Measurement]:
    """Time every form at its feasible lengths and widths."""
    lengths = {64: (12,)} if quick else {64: (40, 100, 200, 500, 1000, 2000), 256: (40, 500)}
    measurements = []
    for width, length in [(d, t) for d in lengths for t in lengths[d]]:
        for form in FORMS:
            if form in DENSE_UP_TO and length > (DENSE_UP_TO[form] if width == 64 else 40):
                continue
            repeats = max(3, min(40, 4000 // length))
            if form in DENSE_UP_TO:
                repeats = 3 if length <= 100 else 1
            for what, measure in (("training step", training_step), ("forward", forward)):
                cost = measure(length, width, form, 1 if quick else repeats)
                measurements.append(report(Measurement(what, form, width, length, cost)))
    recipes = {"preset fast": PRESETS["fast"].train, "preset fast, bare": PRESETS["plain"].train}
    for name, changes in recipes.items():
        for length in lengths[64]:
            cost = recipe_step(length, 2 if quick else max(4, 2000 // length), changes)
            measurements.append(report(Measurement("training step", name, 64, length, cost)))
    return measurements


def whole_evaluations(quick: bool) -> dict[str, float]:
    """Time the two ways to measure all lengths, and strings of 100,000 symbols; also return their peak memory."""
    task = make_task("parity")
    longest, long = (20, 1_000) if quick else (500, 100_000)
    strings = 16 if quick else 512
    measurements = {}
    for width, protocol in ((64, "one-pass"), (64, "independent"), (256, "one-pass")):
        model = make_model("regular-gpt", task, d_model=width)
        start = time.process_time()
        length_curve(model, task, range(1, longest + 1), num_strings=strings, protocol=protocol)
        name = f"lengths 1-{longest}, {strings} strings each, {protocol}, D={width}, s"
        measurements[name] = time.process_time() - start
    start = time.process_time()
    length_curve(make_model("regular-gpt", task), task, [long], num_strings=64)
    measurements[f"{long:,} symbols, 64 strings, D=64, s"] = time.process_time() - start
    measurements["peak memory of the process so far, GB"] = peak_megabytes() / 1024
    return measurements


def data_generation(quick: bool) -> dict[str, float]:
    """Time a batch of 128 strings of 40 symbols (39 if lengths are odd) of every regular task, by default sampling."""
    measurements = {}
    for name in (name for name, task in TASKS.items() if issubclass(task, RegularTask)):
        for changes in [{"index": i} for i in range(1, 8)] if name == "tomita" else [{}]:
            task = make_task(name, **changes)
            length = 40 if task.is_legal_length(40) else 39
            generator = torch.Generator().manual_seed(0)
            label = " ".join([name, *map(str, changes.values())])
            measurements[label] = cpu_ms(
                lambda t=task, n=length, g=generator: t.sample(BATCH, n, g), 2 if quick else 30
            )
    return measurements


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_that_forms_agree()
    evaluations = whole_evaluations(options.quick)
    for name, value in evaluations.items():
        print(f"{name:55s} {value:8.2f}", flush=True)
    steps = steps_and_forwards(options.quick)
    data = data_generation(options.quick)
    for name, value in data.items():
        print(f"data, {name:22s} {value:8.2f} ms")
    if options.save:
        save(steps, evaluations, data)


if __name__ == "__main__":
    main()
