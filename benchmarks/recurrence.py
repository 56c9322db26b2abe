"""The cost of the recurrence x_t = A_t x_{t-1} + v_t on one core: all forms, the paper's scan, torch's and jax's.

    python benchmarks/recurrence.py            prints the tables
    python benchmarks/recurrence.py --save     also writes docs/results/recurrence-speed.md, its chart and dated numbers
    python benchmarks/recurrence.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds of forward and backward together, on one thread, all in one process. Before anything is
timed, the values and gradients of all forms are compared. jax is measured if it is installed.
"""

import gc
import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import torch
from doubling_scan import doubling_scan
from recurrence_page import SECTION_4_5_FORMS, save
from speed_page import cpu_times, parse_options
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan

from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.ops import symbol_recurrence as symbols
from lengthwise.ops.block_recurrence import applied, fastest_form, recurrence, recurrence_by_definition
from lengthwise.ops.symbol_recurrence import symbol_recurrence
from lengthwise.peak_memory import peak_megabytes

States = Callable[[Tensor, Tensor, Tensor], Tensor]


class Measurement(NamedTuple):
    """The median CPU milliseconds of a form."""

    what: str
    form: str
    batch: int
    length: int
    blocks: int
    width: int
    milliseconds: float


def torch_scan(transitions: Tensor, inputs: Tensor, initial: Tensor) -> Tensor:
    """Return all states by torch's scan of an associative operator."""

    def operator(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return other[0] @ one[0], applied(other[0], one[1]) + other[1]

    first = applied(transitions[:, :1], initial[:, None]) + inputs[:, :1]
    elements = (transitions, torch.cat([first, inputs[:, 1:]], 1))
    states: Tensor = associative_scan(operator, elements, dim=1, combine_mode="generic")[1]
    return states


FORMS: dict[str, States] = {
    "sequential": lambda *given: recurrence(*given, form="sequential"),
    "scan": lambda *given: recurrence(*given, form="scan"),
    "chunked": lambda *given: recurrence(*given, form="chunked"),
    "torch's associative_scan": torch_scan,
    "the paper's scan": doubling_scan,
    "loop, autograd": recurrence_by_definition,
}


class Layer:
    """A block-diagonal layer of the paper's sizes that reads token ids, and its training step."""

    def __init__(self, batch: int, length: int, blocks: int = 8, width: int = 8, num_symbols: int = 5) -> None:
        generator = torch.Generator().manual_seed(0)
        size = blocks * width
        columns = "rescaled" if width > 1 else "clamped"  # a single number minus its mean is 0
        self.layer = BlockLinearLayer(d_model=size, block_dim=width, columns=columns, p=1.2, hidden=512)
        self.layer.reset_parameters(generator)
        self.embedding = nn.Parameter(torch.randn(num_symbols, size, generator=generator))
        self.tokens = torch.randint(num_symbols, (batch, length), generator=generator)
        self.weight = torch.randn(batch, length, blocks, width, generator=generator)

    def states(self, states: States | None) -> Tensor:
        """Return all states: without `states` from tables of all symbols, with it from transitions of all positions."""
        features = self.embedding if states is None else self.embedding[self.tokens]
        given = self.layer.transitions(features), self.layer.inputs(features)
        initial = self.layer.initial_state(len(self.tokens))
        return symbol_recurrence(*given, self.tokens, initial) if states is None else states(*given, initial)

    def step(self, states: States | None) -> list[Tensor]:
        """Return the gradients with respect to all parameters."""
        loss = (self.states(states) * self.weight).sum()
        return list(torch.autograd.grad(loss, [self.embedding, *self.layer.parameters()]))


class Matrices:
    """The recurrence alone, with transitions that are given for every position."""

    def __init__(self, batch: int, length: int, blocks: int = 8, width: int = 8) -> None:
        generator = torch.Generator().manual_seed(0)
        shapes = ((batch, length, blocks, width, width), (batch, length, blocks, width), (batch, blocks, width))
        scale = (width**-0.5, 1.0, 1.0)
        self.given = [
            (factor * torch.randn(shape, generator=generator)).requires_grad_()
            for factor, shape in zip(scale, shapes, strict=True)
        ]
        self.weight = torch.randn(shapes[1], generator=generator)

    def step(self, states: States) -> list[Tensor]:
        """Return the gradients with respect to transitions, inputs and first states."""
        return list(torch.autograd.grad((states(*self.given) * self.weight).sum(), self.given))


def check_that_forms_agree() -> None:
    """Check that all forms agree in states and gradients."""
    for length, sizes in [(length, sizes) for length in (1, 2, 63) for sizes in ((8, 8), (64, 1))]:
        layer, matrices = Layer(3, length, *sizes), Matrices(3, length, *sizes)
        by_layer = [[layer.states(states), *layer.step(states)] for states in (None, *FORMS.values())]
        by_matrices = [[states(*matrices.given), *matrices.step(states)] for states in FORMS.values()]
        for measurements in (by_layer, by_matrices):
            for other in measurements[1:]:
                torch.testing.assert_close(other, measurements[0], rtol=1e-3, atol=1e-3)


def cpu_ms(work: Callable[[], object], repeats: int) -> float:
    """Return the median CPU milliseconds of a call; several calls have a warm-up call before them."""
    return 1000 * statistics.median(cpu_times(work, repeats, warm_ups=int(repeats > 1)))


def report(m: Measurement) -> Measurement:
    """Print a measurement as soon as it is taken."""
    sizes = f"B={m.batch:<4d} T={m.length:<7,d} N={m.blocks:<3d} S={m.width:<3d}"
    print(f"{m.what:18s} {m.form:26s} {sizes} {m.milliseconds:12,.1f} ms", flush=True)
    return m


def layers_and_matrices(quick: bool) -> list[Measurement]:
    """Time every form at the lengths of the paper."""
    measurements = []
    for length in (5, 12) if quick else (40, 500):
        repeats = 1 if quick else max(3, 400 // length)
        layer, matrices = Layer(128, length), Matrices(128, length)
        for form, states in {"tables": None, **FORMS}.items():
            measurements.append(_measured("layer", form, layer.tokens, (8, 8), lambda s=states: layer.step(s), repeats))  # noqa: B023
        for form, states in FORMS.items():
            work = lambda m=matrices, s=states: m.step(s)  # noqa: E731
            measurements.append(_measured("matrices", form, layer.tokens, (8, 8), work, repeats))
        if (jax_step := _jax_step(matrices)) is not None:
            measurements.append(
                _measured("matrices", "jax's associative_scan", layer.tokens, (8, 8), jax_step, repeats)
            )
    return measurements


def _measured(
    what: str, form: str, tokens: Tensor, sizes: tuple[int, int], work: Callable[[], object], repeats: int
) -> Measurement:
    gc.collect()
    return report(Measurement(what, form, *tokens.shape, *sizes, cpu_ms(work, repeats)))


def section_4_5(quick: bool) -> list[Measurement]:
    """Time the paper's comparison: a training step at T=40 and answers at T=500, for blocks of 8 x 8 and of 1 x 1."""
    measurements = []
    for blocks, width in ((8, 8), (64, 1)):
        short, long = (Layer(128, length, blocks, width) for length in ((4, 8) if quick else (40, 500)))
        for form, states in {"tables": None, **{name: FORMS[name] for name in SECTION_4_5_FORMS[1:]}}.items():
            training = lambda s=states, m=short: m.step(s)  # noqa: E731
            measurements.append(
                _measured("training", form, short.tokens, (blocks, width), training, 1 if quick else 10)
            )
            with torch.no_grad():
                test = lambda s=states, m=long: m.states(s)  # noqa: E731
                measurements.append(_measured("test", form, long.tokens, (blocks, width), test, 1 if quick else 5))
    return measurements


def rule(quick: bool) -> list[Measurement]:
    """Time forms at shapes of every kind, and mark the choice of `fastest_form`; tables step by step and in chunks."""
    measurements = []
    lengths, batches = ((40,), (1,)) if quick else ((40, 64, 500), (1, 8, 32, 128))
    for batch, length, sizes in [(b, t, s) for s in ((8, 8), (64, 1), (2, 32)) for t in lengths for b in batches]:
        matrices = Matrices(batch, length, *sizes)
        chosen = fastest_form(*(tensor.detach() for tensor in matrices.given[:2]))
        for form in ("sequential", "scan", "chunked"):
            name = f"{form}{' (chosen)' * (form == chosen)}"
            work = lambda m=matrices, f=form: m.step(FORMS[f])  # noqa: E731
            measurements.append(_measured("rule", name, torch.empty(batch, length), sizes, work, 1 if quick else 5))
    for count in (2, 40) if quick else (2, 8, 16, 32, 64, 128):
        layer = Layer(128, 40, num_symbols=count)
        for gathers in (False, True):
            limit = symbols.MIN_GATHERED_SYMBOLS
            symbols.MIN_GATHERED_SYMBOLS = 0 if gathers else count + 1
            name = f"{count} symbols, {'gathered' if gathers else 'all at once'}"
            name += " (chosen)" * (gathers == (count >= limit))
            work = lambda m=layer: m.step(None)  # noqa: E731
            measurements.append(_measured("symbols", name, layer.tokens, (8, 8), work, 1 if quick else 5))
            symbols.MIN_GATHERED_SYMBOLS = limit
    return measurements


def block_dimension(quick: bool) -> list[Measurement]:
    """Time blocks from single numbers to one dense block, at the same total width."""
    measurements = []
    batch, length, size = (2, 12, 8) if quick else (8, 500, 64)
    for width in (1 << power for power in range(size.bit_length())):
        matrices = Matrices(batch, length, size // width, width)
        for form in ("sequential", "scan", "the paper's scan"):
            work = lambda m=matrices, f=form: m.step(FORMS[f])  # noqa: E731
            repeats = 1 if quick else 3
            blocks = (size // width, width)
            measurements.append(_measured("dimension", form, torch.empty(batch, length), blocks, work, repeats))
    return measurements


def long_strings(quick: bool) -> list[Measurement]:
    """Time a batch of 8 at up to 100,000 symbols; given matrices, which fill half a gigabyte, only up to a third."""
    measurements = []
    for length in (30, 60) if quick else (100, 316, 1_000, 3_162, 10_000, 31_623, 100_000):
        layer = Layer(8, length)
        measurements.append(_measured("long", "tables", layer.tokens, (8, 8), lambda m=layer: m.step(None), 1))
        if length <= 31_623:
            matrices = Matrices(8, length)
            for form in ("sequential", "scan", "chunked"):
                work = lambda m=matrices, f=form: m.step(FORMS[f])  # noqa: E731
                measurements.append(_measured("long", form, layer.tokens, (8, 8), work, 1))
    return measurements


def peaks(quick: bool) -> dict[str, float]:
    """Measure the megabytes that a step of the layer adds to a fresh process, at T=500."""
    measurements = {}
    for form in ("tables",) if quick else ("tables", "the paper's scan", "loop, autograd"):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            measurements[form] = pool.submit(_peak, form, 20 if quick else 500).result()
        print(f"peak of a step, {form:18s} {measurements[form]:10,.1f} MB", flush=True)
    return measurements


def _peak(form: str, length: int) -> float:
    torch.set_num_threads(1)
    Layer(1, 5).step(FORMS.get(form))
    layer = Layer(128, length)
    before = peak_megabytes()
    layer.step(FORMS.get(form))
    return peak_megabytes() - before


def _jax_step(matrices: Matrices) -> Callable[[], object] | None:
    """Return the same recurrence by jax, compiled; None if jax is not installed."""
    try:
        import jax
    except ImportError:
        print("jax is not installed: its associative_scan is not measured", flush=True)
        return None
    *given, weight = (jax.numpy.asarray(tensor.detach().numpy()) for tensor in (*matrices.given, matrices.weight))

    def operator(one, other):
        return other[0] @ one[0], (other[0] @ one[1][..., None])[..., 0] + other[1]

    def loss(transitions, inputs, initial):
        first = (transitions[:, 0] @ initial[..., None])[..., 0] + inputs[:, 0]
        inputs = inputs.at[:, 0].set(first)
        return (jax.lax.associative_scan(operator, (transitions, inputs), axis=1)[1] * weight).sum()

    gradients = jax.jit(jax.grad(loss, (0, 1, 2)))
    for ours, theirs in zip(matrices.step(FORMS["sequential"]), gradients(*given), strict=True):
        torch.testing.assert_close(ours, torch.from_numpy(np.array(theirs)), rtol=1e-2, atol=1e-2)
    return lambda: jax.block_until_ready(gradients(*given))


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_that_forms_agree()
    gc.freeze()  # listing the versions of imported packages takes a quarter of a second
    measurements = [
        m
        for part in (layers_and_matrices, section_4_5, block_dimension, rule, long_strings)
        for m in part(options.quick)
    ]
    memory: Mapping[str, float] = peaks(options.quick)
    if options.save:
        save(measurements, memory)


if __name__ == "__main__":
    main()
