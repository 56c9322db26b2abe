"""A program that answers each line with a line: a live system whose machine can be learned."""

import os
import selectors
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from types import TracebackType

from lengthwise.display import spelled
from lengthwise.validation import check_kind, truncate

RESET = "RESET"
"""The line that returns a program to its start."""

MAX_LINE = 10_000
"""The largest length of an output line, in bytes."""


class Program:
    """A command whose process reads one symbol per line, and answers each line with one line.

    One process, without a shell, reads all strings. On the line ``RESET``, the process has to return to its start and
    print any line, which is ignored. The process has to flush its output after each line, and to end when its input
    ends. Its standard error appears on the terminal.

    Use it in a ``with`` statement, which ends the process.

    Raises:
        ValueError: the command cannot be started; the process ends, prints nothing within `timeout` seconds, or does
            not print exactly one line for each line that it reads.

    Example:
        >>> code = "import sys; [print(line.strip()[::-1], flush=True) for line in sys.stdin]"
        >>> with Program(f'python3 -c "{code}"') as program:
        ...     program.reset()
        ...     program.step("abc")
        'cba'
    """

    def __init__(self, command: str, *, timeout: float = 10.0) -> None:
        check_kind("command", command, str, "a command")
        if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout <= 86_400:
            raise ValueError(f"timeout: expected a number of seconds above 0, up to 86,400, got {timeout!r}; try 10")
        self._timeout = timeout
        self._sent: list[str] = []
        self._unread = b""
        try:
            words = shlex.split(command)
            # The process gets its own session, so that programs that the command starts end with it.
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
            )
        except (OSError, ValueError, IndexError) as problem:  # IndexError: no word
            raise ValueError(
                f"command: expected a command that can be started, got {command!r} ({problem}); try the command in "
                "a terminal first"
            ) from None
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def __enter__(self) -> "Program":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._check_nothing_is_left()
        finally:
            self.close()

    def reset(self) -> None:
        """Send the line ``RESET``, on which the program returns to its start, and ignore the program's answer."""
        self._answer_to(RESET)

    def step(self, symbol: str) -> str:
        """Send a symbol, and return the line that the program prints."""
        if symbol == RESET or not symbol.isprintable():
            raise ValueError(f"symbols: expected printable texts except {RESET}, got {symbol!r}; rename this symbol")
        return self._answer_to(symbol)

    def close(self) -> None:
        """Close the program's input, wait up to a second, and kill the process and all processes that it started."""
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _check_nothing_is_left(self) -> None:
        """Raise a ValueError if the program printed more lines than it read.

        A program may print an extra line before its first answer. This line is then mistaken for the first answer. All
        answers are shifted by one line, and the last answer is still unread.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        end = time.monotonic() + 1
        while not self._unread and self._selector.select(max(end - time.monotonic(), 0)) and self._read():
            pass
        if self._unread:
            raise self._surplus()

    def _answer_to(self, line: str) -> str:
        # A surplus line, printed before the next symbol is sent, would be mistaken for the answer to that symbol.
        if self._unread or (self._selector.select(0) and self._read()):
            raise self._surplus()
        self._sent = [] if line == RESET else [*self._sent, line]
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
        except OSError:  # a closed pipe
            raise self._ended() from None
        end = time.monotonic() + self._timeout
        while b"\n" not in self._unread:
            if not self._selector.select(max(end - time.monotonic(), 0)):
                raise self._error("a line of output", f"none within {self._timeout:g} seconds")
            if not self._read():
                raise self._ended()
            if len(self._unread) > MAX_LINE:
                raise self._error(f"a line of at most {MAX_LINE:,} bytes", "more bytes without a line break")
        answer, _, self._unread = self._unread.partition(b"\n")
        try:
            return answer.decode().removesuffix("\r")
        except UnicodeDecodeError:
            raise self._error("text in UTF-8", truncate(repr(answer))) from None

    def _read(self) -> bool:
        """Read the available output; return False if the output has ended, else True."""
        content = os.read(self._output, MAX_LINE)
        self._unread += content
        return bool(content)

    def _surplus(self) -> ValueError:
        return self._error("one line of output for each line of input", f"one more line: {self._unread[:100]!r}")

    def _ended(self) -> ValueError:
        try:
            code = f"exit code {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            code = "the program still runs"
        return self._error("a line of output", f"the end of the output ({code})")

    def _error(self, expected: str, got: str) -> ValueError:
        string = spelled(self._sent) if self._sent else RESET
        return ValueError(
            f"system: expected {expected}, got {got}, after {string}; print one line for each line of input, also for "
            f"{RESET}, and flush the output"
        )
