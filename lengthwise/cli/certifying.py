"""The command certify."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lengthwise.cli.streams import say


def certify(
    run: Annotated[Path | None, Parameter(help="Folder of a trained run or of a compiled model.")] = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="File for the certificate; by default in that folder.")] = None,
    check: Annotated[
        Path | None, Parameter(help="A certificate to verify; with a run, also that it is this one's.")
    ] = None,
    min_level: Annotated[str, Parameter(help="Exit with code 1 below this level.")] = "refuted",
) -> int:
    """Say what is proved of a model for every length, or verify what a certificate says.

    Levels: refuted (it answers a string wrongly), tested (no such string was found), extracted (its machine is right at
    every length, and its states stay in the machine's classes on all strings followed), proved (they cannot leave).
    """
    from lengthwise.certification.certificate import Certificate, parse_level
    from lengthwise.certification.verify import check as verify
    from lengthwise.report.tables.certificate import certificate_lines, checked_lines

    minimum = parse_level(min_level)
    if check is not None:
        certificate = Certificate.read(check)
        sentences = [*checked_lines(certificate, verify(certificate))]
        if run is not None:
            from lengthwise.runs.certified import check_is_of

            sentences[1:1] = [("verified", sentence) for sentence in check_is_of(certificate, run)]
    elif run is not None:
        from lengthwise.runs.certified import certify_folder

        certificate, path = certify_folder(run, out)
        sentences = [*certificate_lines(certificate), ("wrote", str(path))]
    else:
        raise ValueError(
            "certify: expected a run to certify or, with --check, a certificate to verify; give one of them"
        )
    sys.stdout.writelines(f"{name}: {sentence}\n" for name, sentence in sentences)
    if certificate.reaches(minimum):
        return 0
    return say(f"--min-level: expected {minimum} or higher, got {certificate.level}", 1)


COMMANDS = {"certify": certify}
