"""The command export."""

import os.path
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lengthwise.cli.options import count
from lengthwise.printing import write_lines


def export(
    run: Annotated[
        str,
        Parameter(help="Folder of a run, or of a compiled or learned model, a TOML file about a net, or a machine."),
    ],
    /,
    *,
    to: Annotated[str, Parameter(help="onnx or torch; c, js, dot, json, regex or mermaid; hub-folder; vnnlib.")],
    out: Annotated[Path, Parameter(help="File to write, or folder (hub-folder, vnnlib).")],
    form: Annotated[
        Literal["step", "strings", "parts"] | None,
        Parameter(
            help="Graph of one step (default of recurrent models), of strings, or of parts of strings (only ONNX)."
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        Parameter(converter=count, help="Length of the longest strings, if the graph grows with the length."),
    ] = None,
    answer: Annotated[str | None, Parameter(help="The answer whose strings the regular expression matches.")] = None,
) -> int:
    """Write a model for other runtimes, or its machine as source code or text.

    A model that is exported for another runtime is compared with the original on 1,000 strings. A file of a machine
    contains the level and the digest of its certificate, and twenty test strings.
    """
    from lengthwise.export.base import EXPORTS, Options
    from lengthwise.export.base import export as export_model
    from lengthwise.formats.files import suffixes

    # Formats of machines that export does not write are written by `convert`, so the message names this command.
    if to not in EXPORTS and f".{to}" in suffixes():
        raise ValueError(f"--to: `export` does not write format {to!r}; use `lengthwise convert {run} FILE.{to}`")
    has_weights = EXPORTS[to].has_weights
    if not EXPORTS[to].is_folder:
        from lengthwise.cli.outputs import check_writable

        check_writable(out)
    if has_weights and os.path.isfile(os.path.join(run, "run.json")):
        from lengthwise.cli.outputs import note_unfinished
        from lengthwise.runs.folder import load_run

        note_unfinished(run, load_run(run))
    lines = export_model(run, to, out, Options(form, max_length, answer))
    write_lines(f"{topic}: {sentence}" for topic, sentence in lines)
    return 0


COMMANDS = {"export": export}
