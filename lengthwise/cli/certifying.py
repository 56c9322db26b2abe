"""The commands certify and extract."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from lengthwise.cli.machines import Source
from lengthwise.cli.options import StoredPath, StringSeed
from lengthwise.cli.outputs import AsJSON, check_writable, write_object
from lengthwise.cli.streams import Output, say
from lengthwise.display import counted
from lengthwise.pictures import check_picture
from lengthwise.printing import write_lines

if TYPE_CHECKING:
    from lengthwise.certification.certificate import Certificate


Proof = Annotated[
    bool,
    Parameter(
        negative="--no-proof", help="Also write the proof, next to the certificate; with --check, also check the proof."
    ),
]


def certify(
    run: Annotated[
        Path | None, Parameter(help="Folder of a run, or of a compiled or learned model, or a TOML file about a net.")
    ] = None,
    /,
    *,
    machine: Annotated[
        Source | None,
        Parameter(help="Compare with this machine instead of the task: a file, a folder or a regular expression."),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(help="File for the certificate. Default: a file in the run's folder or, with --machine, no file."),
    ] = None,
    check: Annotated[
        Path | None,
        Parameter(help="Verify the certificate in this file or folder and, if a run is given, that it fits the run."),
    ] = None,
    proof: Proof = False,
    draw: Annotated[
        Path | None,
        Parameter(help="File (.svg, .png, .pdf) for a drawing of the net's machine, or else of the task's machine."),
    ] = None,
    min_level: Annotated[
        str | None,
        Parameter(help="Exit with code 1 below this level. Default: tested; with --check: refuted, the lowest level."),
    ] = None,
    as_json: AsJSON = False,
) -> int:
    """Prove as much as possible about a model at every length, or verify a certificate.

    Levels: refuted (the net answers a string wrongly), tested (no such string was found), extracted (the machine read
    off the net is right at every length, and the net followed this machine on all strings tried), bounded (the net is
    proved to be right up to a stated length), proved (the net is proved to be right at every length). Without
    --check, the exit code is 1 if the net is refuted, unless you pass --min-level refuted.
    """
    from lengthwise.certification.certificate import certificate_file, parse_level

    # A check asks whether a file is correct, and a file of level "refuted" can be correct.
    minimum = parse_level(min_level or ("tested" if check is None else "refuted"))
    # Options are checked first, because a wrong option would waste minutes of work.
    _check_options(machine, out, check, proof, draw)
    if check is not None:
        outcome = _verified(certificate_file(check) if check.is_dir() else check, run, proof)
    elif run is not None:
        outcome = _certify(run, out, proof) if machine is None else _certify_by(machine, run, out)
    else:
        raise ValueError(
            "certify: expected a run, or --check with a certificate, got neither; name a run, or add --check"
        )
    _print_outcome(outcome, draw, as_json)
    if outcome.certificate.reaches(minimum):
        return 0
    if min_level is None:
        return say("the exit code is 1, because the net is refuted; with --min-level refuted it is 0", 1)
    way_out = "train the net further, or lower --min-level"
    return say(f"--min-level: expected {minimum} or higher, got {outcome.certificate.level}; {way_out}", 1)


def _check_options(machine: str | None, out: Path | None, check: Path | None, proof: bool, draw: Path | None) -> None:
    """Raise a ValueError if two options exclude each other, or if a file cannot be written."""
    if machine is not None and (check is not None or proof):
        raise ValueError(
            f"--machine: not allowed with {'--check' if check else '--proof'}; leave out one of these two options"
        )
    if draw is not None:
        check_picture(draw, "draw")
    if check is not None and out is not None:
        raise ValueError(
            f"out: not allowed with --check, which writes no certificate, got {out}; leave one of the two out"
        )
    for file in (draw, out):
        if file is not None:
            check_writable(file)


class _Outcome(NamedTuple):
    """A certificate, lines for people, values for programs, and the reason if a requested proof was not written."""

    certificate: "Certificate"
    lines: list[tuple[str, str]]
    facts: dict[str, Any]
    problem: str | None = None


def _print_outcome(outcome: _Outcome, draw: Path | None, as_json: bool) -> None:
    """Print the outcome, and draw its machine; raise a RuntimeError if a requested proof was not written."""
    from lengthwise.report.tables.certificate import certificate_facts

    drawing = [] if draw is None else _draw(outcome.certificate, draw)
    if as_json:
        drawn = str(draw) if "wrote" in dict(drawing) else None
        write_object({**certificate_facts(outcome.certificate), **outcome.facts, "drawing": drawn})
    else:
        _print([*outcome.lines, *drawing])
    if outcome.problem is not None:
        raise RuntimeError(outcome.problem)


def _verified(path: Path, run: Path | None, proof: bool) -> _Outcome:
    """Return the certificate in a file after verifying it; a false certificate raises a RuntimeError.

    The request is valid even if the certificate is false, so the exit code is 1 and not 2.
    """
    from lengthwise.certification.certificate import Certificate
    from lengthwise.certification.verify import proof_path

    try:
        return _verify(Certificate.read(path), path, run, proof)
    except ValueError as error:
        if not path.is_file() or (proof and not proof_path(path).is_file()):
            raise
        if run is not None:
            from lengthwise.runs.stored import load_stored

            load_stored(run)  # raises a ValueError if the folder has no model: then the request was wrong
        raise RuntimeError(str(error)) from None


def _verify(certificate: "Certificate", path: Path, run: Path | None, proof: bool) -> _Outcome:
    from lengthwise.certification.verify import check, proof_path
    from lengthwise.report.tables.certificate import checked_lines

    checked = check(certificate, proof_path(path) if proof else None)
    if run is not None:
        from lengthwise.runs.certified import check_is_of

        checked = checked.with_model(check_is_of(certificate, run))
    facts = {"verified": checked.verified, "taken_on_trust": checked.taken_on_trust}
    return _Outcome(certificate, list(checked_lines(certificate, checked)), {"file": str(path), "proof": None, **facts})


def _certify(run: Path, out: Path | None, proof: bool) -> _Outcome:
    from lengthwise.certification.verify import proof_path
    from lengthwise.report.tables.certificate import certificate_lines
    from lengthwise.runs.certified import certify_folder, write_proof_of

    with _waiting():
        certificate, path = certify_folder(run, out)
    lines = [*certificate_lines(certificate), ("wrote", str(path))]
    facts: dict[str, Any] = {"file": str(path), "proof": None, "verified": [], "taken_on_trust": []}
    if not proof:
        return _Outcome(certificate, lines, facts)
    try:
        with _waiting():
            summary = write_proof_of(certificate, run, proof_path(path))
    except ValueError as error:  # the request was right, but the net cannot be proved
        return _Outcome(certificate, lines, facts, str(error))
    lines.append(("wrote", f"{proof_path(path)}: {summary}"))
    return _Outcome(certificate, lines, {**facts, "proof": str(proof_path(path))})


def _certify_by(machine: str, run: Path, out: Path | None) -> _Outcome:
    from lengthwise.report.tables.certificate import certificate_lines
    from lengthwise.runs.certified import certify_against

    with _waiting():
        certificate = certify_against(run, machine, out)
    facts: dict[str, Any] = {"file": out and str(out), "proof": None, "verified": [], "taken_on_trust": []}
    lines = [*certificate_lines(certificate), *([("wrote", str(out))] if out is not None else [])]
    return _Outcome(certificate, lines, facts)


def _waiting() -> AbstractContextManager[None]:
    from lengthwise.report.pages.terminal import waiting_display

    return waiting_display(Output(is_error=True), "certifying, which can take a minute")


def _draw(certificate: "Certificate", path: Path) -> list[tuple[str, str]]:
    from lengthwise.automata.drawing import drawing_obstacle, machine_svg
    from lengthwise.certification.drawing import drawing_of
    from lengthwise.pictures import save_drawing

    drawing = drawing_of(certificate)
    why_not = "the certificate has no machine with states" if drawing is None else drawing_obstacle(drawing.machine)
    if drawing is None or why_not is not None:
        return [("not drawn", str(why_not))]
    save_drawing(machine_svg(drawing.machine, certificate.classes), path)
    return [("wrote", f"{path}: {drawing.title}")]


def _print(lines: Iterable[tuple[str, str]]) -> None:
    write_lines(f"{name}: {sentence}" for name, sentence in lines)


def extract(
    model: StoredPath,
    /,
    *,
    out: Annotated[Path, Parameter(help="File for the machine; its suffix, such as .dot, selects the format.")],
    seed: StringSeed = 0,
    as_json: AsJSON = False,
) -> int:
    """Read the machine off a recurrent net; if possible, prove that the net answers like the machine at every length.

    The task provides only the names of symbols and answers.
    """
    from lengthwise.certification.unknown import extract as extract_machine
    from lengthwise.extraction.prototypes import NotFinite
    from lengthwise.formats.files import format_of, write_machine
    from lengthwise.models.base import RecurrentModel
    from lengthwise.runs.stored import load_stored
    from lengthwise.tasks.base import SymbolTask

    format_of(out)
    check_writable(out)
    stored = load_stored(model)
    if not isinstance(stored.task, SymbolTask) or not isinstance(stored.model, RecurrentModel):
        raise ValueError(
            f"{model}: expected a recurrent model that reads symbols, got another model; name a recurrent model"
        )
    try:
        extracted = extract_machine(stored.model, stored.task.symbols, stored.task.classes, seed=seed)
    except NotFinite as problem:  # the request was right, but the net overflows or has too many states
        raise RuntimeError(f"{model}: {str(problem).removeprefix('model: ')}") from None
    write_machine(extracted.machine, out)
    machine, certificate = extracted.machine.machine, extracted.certificate
    sentence = (
        "the net answers like this machine at every length"
        if certificate.level == "proved"
        else f"for the task that this machine solves: {certificate.claim} The level is not higher, because "
        f"{certificate.reason}"
    )
    if as_json:
        size = {"states": machine.num_states, "symbols": machine.symbols, "answers": extracted.machine.classes}
        write_object({"level": certificate.level, "claim": sentence, **size, "file": str(out)})
        return 0
    answers = ", ".join(extracted.machine.classes)
    size_text = f"{counted(machine.num_states, 'state')}, {counted(len(machine.symbols), 'symbol')}"
    _print([("machine", f"{size_text}, answers {answers}")])
    _print([(certificate.level, sentence), ("not covered", "the answer to the empty string, which no net reads")])
    _print([("wrote", str(out))])
    return 0


COMMANDS = {"certify": certify, "extract": extract}
