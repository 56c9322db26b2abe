"""Budgets bound memory: what they let through takes less than 2 GB."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import lengthwise.certification.methods.enclosures.prover as enclosures_module
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.enclosures.prover import (
    MAX_BOUNDED,
    MAX_BYTES,
    MIN_ROUNDS,
    _Enclosures,
    _merged,
    _tangents,
    _windows,
    invariant_enclosures,
    num_bytes,
)
from lengthwise.extraction.base import Extraction
from lengthwise.models.base import make_model
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.tasks import make_task

PARITY = make_task("parity")


def large(count: int, width: int, chunk_size: int = 2) -> tuple[RegularGPT, Extraction]:
    """A net of that width, and a machine that merges all windows of so many classes, the leaves apart."""
    model = make_model("regular-gpt", PARITY, d_model=width, num_heads=4, chunk_size=chunk_size).requires_grad_(False)
    assert isinstance(model, RegularGPT)
    table = np.full((count,) * chunk_size, -1)
    table[(slice(3, None),) * chunk_size] = 3 + np.arange((count - 3) ** chunk_size).reshape(
        (count - 3,) * chunk_size
    ) % (count - 3)
    states = torch.nn.functional.layer_norm(
        torch.randn(count, width, generator=torch.Generator().manual_seed(0)), [width]
    )
    states[:3] = model.embedding.weight
    machine = TreeMachine(PARITY.symbols, np.arange(3), table, np.zeros(count, dtype=np.int64))
    return model, Extraction(machine, machine, np.arange(count), states, 3, 0.0, 1.0, 1)


@pytest.mark.parametrize("chunk_size", [2, 3])
def test_the_size_of_bounds_is_known_before_there_are_any(chunk_size: int) -> None:
    model, extraction = large(6, 16, chunk_size)
    windows, points = _windows(extraction), extraction.prototypes.double()
    axes = torch.eye(16, dtype=torch.float64).repeat(len(points), 1, 1)
    layer = model.layers[0]
    bounds = _merged(layer, _Enclosures(points, axes, 0 * points + 1e-3), windows)
    of_tangents, of_bounds = num_bytes(layer, *windows.parts.shape)
    assert _tangents(layer, extraction.prototypes[windows.parts])[1].nbytes == of_tangents
    num_inputs, hidden = bounds[0].slope.shape[-1], layer.feed_forwards[0].widen.out_features
    of_slopes = sum(form.slope.nbytes for form in bounds)
    assert of_bounds == of_slopes + 4 * num_inputs * 4 * min(len(windows.parts), 24) * hidden


@pytest.mark.parametrize("width", [64, 256, 1024])
def test_what_would_take_too_much_is_refused_at_once(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide nets with one bound of a few windows, narrow ones with those of many."""
    monkeypatch.setattr(enclosures_module, "MAX_BOUNDED", 10**9)
    model, extraction = large({64: 80, 256: 40, 1024: 12}[width], width)
    with pytest.raises(ValueError, match=r"bounds take no more than 1,000,000,000 bytes, got [\d,]+; train a model"):
        invariant_enclosures(model, extraction, 10**9)


PROGRAM = """
import torch
import test_memory
from lengthwise.certification.methods.enclosures.prover import _Enclosures, _merged, _tangents, _windows
from lengthwise.peak_memory import peak_megabytes

torch.set_num_threads(1)
model, extraction = test_memory.large({count}, {width})
windows, points = _windows(extraction), extraction.prototypes.double()
axes = torch.eye({width}, dtype=torch.float64).repeat(len(points), 1, 1)
with torch.no_grad():
    _tangents(model.layers[0], extraction.prototypes[windows.parts])
    bounds = _merged(model.layers[0], _Enclosures(points, axes, 0 * points + 1e-3), windows)
print(peak_megabytes())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("count", "width"), [(66, 64), (15, 256)])
def test_the_largest_rounds_take_less_than_two_gigabytes(count: int, width: int) -> None:
    """As many windows as one round may have, of a net as wide as trained ones, and of a wide one."""
    model, extraction = large(count, width)
    num_windows = len(_windows(extraction).parts)
    assert MIN_ROUNDS * num_windows <= MAX_BOUNDED
    assert 0.6 * MAX_BYTES < max(num_bytes(model.layers[0], num_windows, 2)) <= MAX_BYTES
    folder, program = __file__.rpartition("/")[0], PROGRAM.format(count=count, width=width)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r})\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2_000
