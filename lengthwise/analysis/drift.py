"""The drift of a recurrence that computes a remainder: how the mean state of each remainder shrinks and turns."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Complex, Float, Int64
from torch import Tensor

from lengthwise.devices import one_thread
from lengthwise.models.base import RecurrentModel, check_is_model, eval_mode
from lengthwise.ops.shapes import check_tensors
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import check_is_task
from lengthwise.tasks.regular.sum import Sum
from lengthwise.validation import check_sizes


class DriftPoint(NamedTuple):
    """The states at one length, compared with the states at the reference length.

    Let m be the modulus. Entry j of `shifts` is the fraction of strings whose answer is j more than the right
    remainder, modulo m. For each harmonic (see `remainder_drift`), `kept` contains the harmonic's norm divided by its
    norm at the reference length. `turns` contains the angle between the harmonics at both lengths. The unit of the
    angle is the turn that leads from one remainder to the next.
    """

    length: int
    shifts: tuple[float, ...]
    kept: tuple[float, ...]
    turns: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        return self.shifts[0]


@one_thread()
@torch.no_grad()
def remainder_drift(
    model: RecurrentModel, task: Sum, lengths: Sequence[int], reference: int, *, num_strings: int = 1_024
) -> list[DriftPoint]:
    """Compare the harmonics of the remainders' mean states at each length with the harmonics at length `reference`.

    Let m be the task's modulus, and c_q(T) the mean state of the strings of T symbols whose digits add up to q modulo
    m. Harmonic k is ``z_k(T) = (1/m) sum_q exp(-2 pi i k q / m) c_q(T)``. In a net that keeps the sum, no z_k changes
    with T. If the states shrink at each symbol, ``|z_k|`` falls. If the states turn at each symbol, the angle
    ``angle(<z_k(reference), z_k(T)>) m / (2 pi k)``, in remainders, grows evenly. From an angle of half a remainder on,
    every answer is off by one. The angle of harmonic k is known only modulo m/k, and is between -m/(2k) and m/(2k).

    Raises:
        ValueError: the model is not recurrent, or the task is not a sum. A length is not positive, or a remainder does
            not occur because there are too few strings.
    """
    check_is_model(model)
    check_is_task(task)
    if not isinstance(model, RecurrentModel):
        raise ValueError(f"model: expected a recurrent model, got {model.name}; choose for example lstm")
    if not isinstance(task, Sum):
        raise ValueError(f'task: expected the task sum, got {task.name}; make one with make_task("sum", modulus=2)')
    read = [*lengths, reference]
    if min(read) < 1:
        raise ValueError(f"lengths: expected lengths of at least 1, got {min(read)}; choose positive lengths")
    inputs = task.sample(num_strings, max(read), generator_for(0, "drift")).inputs
    targets = task.solve(inputs)
    with eval_mode(model):
        states = torch.cat(list(model.states(inputs)), 1)
        answers = model.readout(states).argmax(2)
    before = harmonics(states[:, reference - 1], targets[:, reference - 1], task.modulus)
    points = []
    for length in lengths:
        after = harmonics(states[:, length - 1], targets[:, length - 1], task.modulus)
        shift = (answers[:, length - 1] - targets[:, length - 1]) % task.modulus
        angles = (before.conj() * after).sum(1).angle() * task.modulus / (2 * math.pi)
        points.append(
            DriftPoint(
                length,
                tuple((shift.bincount(minlength=task.modulus) / num_strings).tolist()),
                tuple((after.norm(dim=1) / before.norm(dim=1)).tolist()),
                tuple((angles / torch.arange(1, len(angles) + 1)).tolist()),
            )
        )
    return points


def harmonics(states: Float[Tensor, "B D"], remainders: Int64[Tensor, " B"], modulus: int) -> Complex[Tensor, "K D"]:
    """Return the harmonics ``z_k = (1/m) sum_q exp(-2 pi i k q / m) mean(states of q)``, k = 1 ... floor(m / 2).

    Here m is the modulus, and the mean is over the states with remainder q.

    Raises:
        ValueError: a remainder has no state.

    Example:
        >>> turn = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])  # a quarter of a turn per remainder
        >>> harmonics(turn, torch.arange(4), 4).norm(dim=1).round(decimals=3).tolist()
        [0.707, 0.0]
    """
    check_tensors(states=states, remainders=remainders)
    check_sizes(modulus=modulus)
    groups = [states[remainders == q].double() for q in range(modulus)]
    if not all(map(len, groups)):
        raise ValueError(
            f"remainders: expected strings with each remainder from 0 to {modulus - 1}, got no string for some "
            "remainders; draw more strings, for example with a larger num_strings"
        )
    means = torch.stack([group.mean(0) for group in groups])
    angles = torch.outer(torch.arange(1, modulus // 2 + 1), torch.arange(modulus)) * (-2 * math.pi / modulus)
    waves = torch.polar(torch.ones_like(angles, dtype=torch.float64), angles.double())
    return waves @ means.to(waves.dtype) / modulus
