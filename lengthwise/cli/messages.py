"""What a command says on standard error."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show a warning as its sentence, without file, line and code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        sys.stderr.write(f"lengthwise: {message}\n")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
