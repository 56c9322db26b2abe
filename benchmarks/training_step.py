"""CPU time of one training step of RegularGPT, preset `fast`, on one core.

    python benchmarks/training_step.py            prints the table
    python benchmarks/training_step.py --save     also writes it to benchmarks/results/, dated

Before anything is timed, the three forms of the model's function are compared in values and gradients.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import torch

from lengthwise.conventions import PAD
from lengthwise.models import make_model
from lengthwise.runs.folder import versions
from lengthwise.tasks import make_task
from lengthwise.training.loop import TrainingState, training_steps
from lengthwise.training.recipe import Recipe

BARE = {"padding": 0.0, "leading_padding": 0.0, "state_noise": 0.0, "late_state_noise": 0.0}
REPEATS = {40: 60, 500: 12}


def check_that_forms_agree() -> None:
    """Raise unless definition, all-prefix pass and decimated form agree on strings with pads."""
    model = make_model("regular-gpt", make_task("parity")).double()
    inputs = torch.randint(PAD, 2, (8, 63), generator=torch.Generator().manual_seed(0))
    outputs = [model.forward_by_definition(inputs)[:, -1], model(inputs)[:, -1], model.last(inputs)]
    gradients = [torch.autograd.grad(output.square().sum(), list(model.parameters())) for output in outputs]
    for output, gradient in zip(outputs[1:], gradients[1:], strict=True):
        torch.testing.assert_close(output, outputs[0])
        torch.testing.assert_close(gradient, gradients[0])


def step_times(length: int, augmentation: dict | None = None) -> list[float]:
    """CPU milliseconds of training steps at one length, after a warm-up."""
    task = make_task("parity")
    repeats = REPEATS[length]
    changes = {"augmentation": augmentation} if augmentation else {}
    # Twice as many steps as are timed: the first half runs with the early noise, the second with the late one.
    recipe = Recipe(steps=2 * repeats + 10, min_length=length, max_length=length, **changes)
    state = TrainingState(make_model("regular-gpt", task), recipe)
    return cpu_times(training_steps(state, task, recipe, seed=0).__next__, 2 * repeats, warm_up=10)


def definition_times(length: int) -> list[float]:
    """CPU milliseconds of forward and backward of the masked definition, without an optimizer."""
    task = make_task("parity")
    model = make_model("regular-gpt", task)
    batch = task.sample(128, length, torch.Generator().manual_seed(0))

    def step() -> None:
        loss = torch.nn.functional.cross_entropy(model.forward_by_definition(batch.inputs)[:, -1], batch.targets[:, -1])
        loss.backward()

    return cpu_times(step, 3, warm_up=1)


def cpu_times(step: Callable[[], object], repeats: int, *, warm_up: int) -> list[float]:
    """CPU milliseconds of each of `repeats` calls."""
    times = []
    for _ in range(warm_up + repeats):
        start = time.process_time()
        step()
        times.append(1000 * (time.process_time() - start))
    return times[warm_up:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", action="store_true")
    save = parser.parse_args().save
    torch.set_num_threads(1)
    check_that_forms_agree()
    measured = {
        "fast, T=40": step_times(40),
        "fast, T=500": step_times(500),
        "bare, T=40": step_times(40, BARE),
        "bare, T=500": step_times(500, BARE),
        "masked definition, T=40": definition_times(40),
    }
    rows = {
        name: {"mean": statistics.mean(t), "median": statistics.median(t), "max": max(t)}
        for name, t in measured.items()
    }
    print("One training step: RegularGPT, batch 128, C=2, D=64, binary alphabet; CPU ms on one core")
    for name, row in rows.items():
        print(f"{name:26s} mean {row['mean']:8.1f}   median {row['median']:8.1f}   max {row['max']:8.1f}")
    ratio = rows["masked definition, T=40"]["mean"] / rows["bare, T=40"]["mean"]
    print(f"masked definition / bare step at T=40: {ratio:.0f}")
    if save:
        now = datetime.now(UTC)
        path = Path(__file__).parent / "results" / f"training_step-{now:%Y-%m-%d}.json"
        path.parent.mkdir(exist_ok=True)
        record = {"date": f"{now:%Y-%m-%d}", "cpu": platform.processor() or platform.machine(), **versions()}
        path.write_text(json.dumps({"environment": record, "cpu_milliseconds": rows}, indent=1) + "\n")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
