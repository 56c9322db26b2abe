"""The program ``lengthwise``: its commands, their exit codes, and the messages of failed commands.

Commands import what they need when they run, so that ``--help`` is quick.
"""

import signal
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from lengthwise.cli import (
    attacking,
    benchmarking,
    catalogue,
    certifying,
    comparing,
    compiling,
    experimenting,
    exporting,
    learning,
    machines,
    measuring,
    playing,
    reporting,
    tracking,
    training,
)
from lengthwise.cli.devices import quiet_processes
from lengthwise.cli.messages import line_in_extension, one_line_warnings, paths_in, refusal, unknown_option, with_flag
from lengthwise.cli.streams import Output, flush, has_folder, open_streams, say
from lengthwise.files import reason
from lengthwise.runs.signals import Interrupted
from lengthwise.version import __version__

app = App(
    name="lengthwise",
    help="Train short, prove long: sequence models that generalize past their training length, and certificates.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)


def flowing(text: str) -> str:
    """Join the lines of each paragraph of a text; a terminal then wraps the paragraphs at its own width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


GROUPS = (
    experimenting,
    benchmarking,
    catalogue,
    training,
    measuring,
    certifying,
    attacking,
    learning,
    machines,
    comparing,
    compiling,
    exporting,
    reporting,
    tracking,
    playing,
)
for group in GROUPS:
    for name, command in group.COMMANDS.items():
        app.command(command, name=name, help=flowing(command.__doc__ or ""))
app.register_install_completion_command(help="Set up the completion of commands and options in your shell.")


@one_line_warnings()
def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Exit codes: 0 done, 1 the work failed, 2 the request was wrong, 128 + N stopped by signal N."""
    quiet_processes()
    try:
        # The streams come first: without them not even the message about a deleted folder could be written.
        code = _run(arguments) if open_streams() and has_folder() else 2
    except KeyboardInterrupt:
        code = say("stopped", _code_of(signal.SIGINT))
    sys.exit(flush(code))


def _code_of(signal_number: int) -> int:
    """Return the exit code that shells give to a process which a signal stopped: 130 after Ctrl-C."""
    return 128 + signal_number


def _run(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if sentence := unknown_option(app, words):
            return say(sentence, 2)
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False, console=Output(is_help=True))
    except CycloptsError as error:
        return say(refusal(error), 2)
    except BrokenPipeError:
        return 0
    # Only arguments without a flag can be texts that name a file.
    paths = paths_in(bound.args) | paths_in(tuple(bound.kwargs.values()), takes_texts=False)
    return _guarded(command, lambda: command(*bound.args, **bound.kwargs), paths)


def _guarded(command: Callable[..., Any], call: Callable[[], Any], paths: Collection[str]) -> int:
    """Call a command and return its exit code. If the command fails, write one sentence."""
    try:
        code = call()
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended: that is not a failure
        return 0
    except ValueError as error:
        return say(line_in_extension(error) + with_flag(str(error), command, paths), 2)
    # Parsers of JSON, TOML and expressions recurse, so deeply nested input ends here.
    except RecursionError:
        return say("expected input with few levels of nesting, got input that is nested too deeply; flatten it", 2)
    except MemoryError:
        return say("out of memory; use fewer or shorter strings, or a smaller model", 1)
    except OSError as error:
        return say(reason(error), 1)
    except Interrupted as error:
        return say(str(error), _code_of(error.signal_number) if error.signal_number else 1)
    except RuntimeError as error:
        return say(line_in_extension(error) + str(error), 1)
    except Exception as error:
        # Errors in a user's own file are the user's; any other unexpected error is ours, and keeps its traceback.
        if line := line_in_extension(error):
            return say(f"{line}{type(error).__name__}: {error}", 1)
        raise
    return code if isinstance(code, int) else 0
