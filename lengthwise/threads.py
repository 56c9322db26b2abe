"""One torch thread: sums then have one order, so a run gives the same bits wherever it is repeated.

These nets are small; on a busy machine more threads are far slower, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread inside, and as many as before afterwards. Also a decorator."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
