"""Commands that compute weights instead of training them: compile, memorize."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from lengthwise.cli.options import count, folder, whole_number
from lengthwise.cli.outputs import check_folder, check_writable
from lengthwise.cli.streams import Output
from lengthwise.files import exists


def compile_machine(
    pattern: Annotated[
        str | None, Parameter(help="Regular expression or a machine's file, unless --task is given.")
    ] = None,
    /,
    *,
    to: Annotated[str, Parameter(help="Construction; see `lengthwise list constructions`.")],
    alphabet: Annotated[str | None, Parameter(help="All symbols, if the expression does not name them all.")] = None,
    task: Annotated[str | None, Parameter(help="Name of a task that a finite machine solves.")] = None,
    set_: Annotated[
        tuple[str, ...], Parameter(name="--set", show_default=False, help="A setting of the task, as task.key=value.")
    ] = (),
    chunk_size: Annotated[
        int | None,
        Parameter(converter=whole_number, help="For regular-gpt: number of states merged into one; default 2."),
    ] = None,
    out: Annotated[Path, Parameter(converter=folder, help="Folder for the model.")] = Path("compiled"),
) -> int:
    """Compute weights that are right at every length, for a regular expression, a machine's file or a task."""
    from lengthwise.certification.certificate import certificate_file
    from lengthwise.constructions import construct
    from lengthwise.runs.compiled import DESCRIPTION, save_compiled
    from lengthwise.runs.requested import requested_machine

    # `learn` also writes `compiled.json`, next to files that would not fit the new net.
    check_folder(out, "compile", exists(out / DESCRIPTION) and not exists(out / "learned.json"))
    options = {} if chunk_size is None else {"chunk_size": chunk_size}
    compiled = construct(to, requested_machine(pattern, alphabet, task, set_), **options)
    console = Output()
    had_net, had_certificate = (out / DESCRIPTION).exists(), certificate_file(out).exists()
    save_compiled(compiled, out)
    if had_net and certificate_file(out).exists():
        console.print_line(f"{out}: already contains this net, and keeps its certificate")
    elif had_net:
        its = " and its certificate" if had_certificate else ""
        console.print_line(f"{out}: replaces the earlier net{its}")
    console.print_lines((*compiled.about, f"wrote {out}"))
    return 0


def memorize(
    word: Annotated[str, Parameter(allow_leading_hyphen=True, help="The word to repeat indefinitely.")],
    /,
    *,
    rational: Annotated[bool, Parameter(help="Use only integers in the recurrent weights W_h.")] = False,
    robust: Annotated[
        bool, Parameter(help="Find the net with the widest margin among all nets of its dimension.")
    ] = False,
    prove: Annotated[bool, Parameter(help="Prove that no net without feedback is smaller.")] = False,
    max_dimension: Annotated[
        int | None,
        Parameter(
            converter=count, help="Largest dimension to try; a larger dimension than needed can widen the margin."
        ),
    ] = None,
    budget: Annotated[
        int,
        Parameter(converter=count, help="Number of linear programs after which the search stops and prints bounds."),
    ] = 3_000,
    out: Annotated[Path, Parameter(help="File for the picture: PNG, SVG or PDF.")] = Path("memorize.png"),
) -> int:
    """Compute the smallest linear RNN without feedback that repeats a word indefinitely, and draw its orbit.

    A net without feedback does not read its own answers: its input weights W_x are 0. No smaller net of this kind
    repeats the word, whatever its recurrent weights W_h (with --rational: whatever its rational W_h). If the budget
    ends the search first, only bounds on the dimension are known. --prove verifies the lower bound without relying on
    the solver of linear programs. A net that reads its own answers may be smaller.
    """
    from lengthwise.constructions.memorization.farkas import refute_below
    from lengthwise.constructions.memorization.memorize import memorize as memorize_word
    from lengthwise.constructions.memorization.rational import memorize_rationally
    from lengthwise.pictures import check_picture, write_picture
    from lengthwise.report.charts.memorization import memorization_chart
    from lengthwise.report.tables.memorization import memorization_lines, proof_line

    check_picture(out)
    check_writable(out)
    if rational and robust:
        raise ValueError(
            "--robust: not allowed with --rational, whose integers are never rounded; leave out --robust or --rational"
        )
    if rational:
        net: Any = memorize_rationally(word, max_dimension=max_dimension, budget=budget)
    else:
        net = memorize_word(word, robust=robust, max_dimension=max_dimension, budget=budget)
    console = Output()
    lines = [*memorization_lines(net, console.width)]
    if prove:
        lines.append(proof_line(refute_below(net), net))
    if net.generator.dimension and write_picture(memorization_chart(net).to_dict(), out):
        lines.append(f"wrote {out}")
    console.print_lines(lines)
    return 0


COMMANDS = {"compile": compile_machine, "memorize": memorize}
