"""CPU time of the rescaled blocks of Fan et al. on one core: by their definition, and as they are computed.

    python benchmarks/column_norm.py            prints the table
    python benchmarks/column_norm.py --save     also writes the dated numbers
    python benchmarks/column_norm.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds on one thread, all in one process. Two things are timed: forward and backward passes of the
blocks of one layer of Modular Arithmetic (128 strings of 39 symbols, 8 blocks of 8 x 8, p = 1.2), and a training step
of the net of three layers. Before anything is timed, values and gradients are compared.
"""

import statistics
from collections.abc import Callable
from typing import NamedTuple
from unittest.mock import patch

import torch
from speed_page import cpu_times, environment, parse_options, write_results
from torch import Tensor

from lengthwise.layers.block_linear import NORMALIZED
from lengthwise.ops.column_norm import rescaled_blocks, rescaled_blocks_by_definition
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.runs.spec import RunSpec, make_spec
from lengthwise.training.loop import TrainingState, training_steps

FORMS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "definition": rescaled_blocks_by_definition,
    "as computed": rescaled_blocks,
}


class Measurement(NamedTuple):
    """The median CPU milliseconds of one form."""

    what: str
    form: str
    milliseconds: float


def blocks(batch: int) -> tuple[Tensor, Tensor]:
    """Return random matrices, and a gradient with respect to the result."""
    generator = torch.Generator().manual_seed(0)
    matrices, gradient = torch.randn(2, batch, 39, 8, 8, 8, generator=generator)
    return matrices.requires_grad_(), gradient


def check_forms(batch: int) -> None:
    """Check that both forms have the same values and gradients."""
    matrices, gradient = blocks(batch)
    results = [form(matrices, 1.2) for form in FORMS.values()]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(
        *(torch.autograd.grad(result, matrices, gradient)[0] for result in results), rtol=1e-4, atol=1e-4
    )


def median_ms(once: Callable[[], object], repeats: int) -> float:
    return 1e3 * statistics.median(cpu_times(once, repeats))


def measure(batch: int, repeats: int) -> list[Measurement]:
    matrices, gradient = blocks(batch)
    spec = make_spec(
        "modular-arithmetic",
        "block-linear-rnn",
        {"model": {"num_layers": 3}, "train": {"min_length": 39, "max_length": 39, "batch_size": batch}},
        preset="fan2024",
    )
    measurements = []
    for name, form in FORMS.items():
        of_blocks = median_ms(lambda f=form: torch.autograd.grad(f(matrices, 1.2), matrices, gradient), repeats)  # type: ignore[misc]
        with patch.dict(NORMALIZED, {"rescaled": form}):
            of_steps = median_ms(steps_of(spec), repeats)
        measurements += [Measurement("blocks", name, of_blocks), Measurement("step of three layers", name, of_steps)]
    return measurements


def steps_of(spec: RunSpec) -> Callable[[], object]:
    """Return a function that takes a training step."""
    steps = training_steps(TrainingState(spec.make_model(), spec.recipe, spec.task), spec.task, spec.recipe, seed=0)
    return lambda: next(steps)


def main() -> None:
    options = parse_options(__doc__ or "")
    torch.set_num_threads(1)
    batch, repeats = (2, 3) if options.quick else (128, 15)
    check_forms(batch)
    measurements = measure(batch, repeats)
    by_form = {(m.what, m.form): m.milliseconds for m in measurements}
    rows = [
        (what, *(f"{by_form[what, form]:.1f}" for form in FORMS), f"{by_form[what, 'definition'] / ours:.2f}")
        for (what, form), ours in by_form.items()
        if form == "as computed"
    ]
    print(markdown_table(("CPU ms", *FORMS, "ratio"), rows))
    if options.save:
        write_results("column_norm", environment(), {"cpu_milliseconds": [m._asdict() for m in measurements]})


if __name__ == "__main__":
    main()
