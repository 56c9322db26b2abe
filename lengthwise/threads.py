"""A single torch thread: sums then have one order, so that a run gives the same bits wherever it is repeated.

The nets are small, so on a busy machine more threads would also be far slower.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread inside the context, and the previous number afterwards; also a decorator.

    Inside, denormal float32 numbers become 0 if the processor supports it. Arithmetic on them takes up to a hundred
    times as long, and the probabilities of states that do not occur are such numbers.
    """
    threads, flushed = torch.get_num_threads(), _flushes()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(flushed)


@contextmanager
def denormals_kept() -> Iterator[None]:
    """Compute with denormal float32 numbers, as programs do by default and `one_thread` does not."""
    flushed = _flushes()
    torch.set_flush_denormal(False)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)


def _flushes() -> bool:
    """Return whether a denormal float32 number is already replaced by 0."""
    return not bool(torch.tensor(1e-39, device="cpu") * 1.0)
