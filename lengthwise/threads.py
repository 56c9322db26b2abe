"""Running torch in a single thread: sums then have one order, so a repeated run gives the same bits.

The nets are small, so more threads would also be far slower on a busy machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread inside the context, and the previous number of threads afterwards; also a decorator.

    Inside, denormal float32 numbers become 0 if the processor supports this. Arithmetic on denormal numbers takes up to
    a hundred times as long, and the probabilities of states that do not occur are often denormal.
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
    """Keep denormal float32 numbers inside the context, also within `one_thread`, which would replace them by 0."""
    flushed = _flushes()
    torch.set_flush_denormal(False)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)


def _flushes() -> bool:
    """Return whether torch replaces denormal float32 numbers by 0 at the moment."""
    return not bool(torch.tensor(1e-39, device="cpu") * 1.0)
