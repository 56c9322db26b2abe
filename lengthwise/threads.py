"""One torch thread: sums then have one order, so a run gives the same bits wherever it is repeated.

These nets are small; on a busy machine more threads are far slower, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread inside, and as many as before afterwards. Also a decorator.

    Inside, numbers too small for all of float32's digits are 0, where the processor can do that: arithmetic on them
    takes up to a hundred times as long, and probabilities of states that are never in are such numbers.
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
    """Compute with numbers too small for all of float32's digits, as programs do by default; `one_thread` does not."""
    flushed = _flushes()
    torch.set_flush_denormal(False)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)


def _flushes() -> bool:
    """Whether a number below float32's normal ones is 0 already."""
    return not bool(torch.tensor(1e-39, device="cpu") * 1.0)
