"""Strings that the tests of the tasks share."""

import numpy as np
import torch
from torch import Tensor

from lengthwise.tasks import RegularTask


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def all_strings(num_symbols: int, length: int) -> Tensor:
    """Every string of this length, in symbol order."""
    return torch.cartesian_prod(*[torch.arange(num_symbols)] * length).reshape(-1, length)


def check_against_transducer(task: RegularTask, longest: int = 7) -> None:
    """Formula and machine agree on every string up to `longest`, and on random ones of length 500."""
    strings = [all_strings(len(task.symbols), length) for length in range(1, longest + 1)]
    strings.append(torch.randint(len(task.symbols), (100, 500), generator=seeded(0)))
    for inputs in strings:
        np.testing.assert_array_equal(task.solve(inputs).numpy(), task.transducer.run(inputs.numpy()))
