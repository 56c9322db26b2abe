"""The folder of a learned machine: statistics, net, certificate, and the machine in several formats."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lengthwise.automata.drawing import MAX_DRAWN
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.certification.certificate import CERTIFICATE, Certificate
from lengthwise.constructions.base import Construction
from lengthwise.files import write_by_rename, write_json
from lengthwise.formats.dot import DOT
from lengthwise.formats.files import write_machine
from lengthwise.formats.notes import NO_EMPTY_ANSWER, Notes
from lengthwise.runs.compiled import DESCRIPTION, save_compiled

CONTRADICTED = "contradicted.csv"
"""The name of the file with the contradicted labels; only machines learned from examples have this file."""


def save_learned(
    folder: Path,
    labeled: LabeledMachine,
    numbers: Mapping[str, Any],
    net: tuple[Construction, Certificate] | None,
    *,
    mealy: bool = False,
) -> None:
    """Write a machine, its statistics `numbers`, and a net with its certificate to a folder.

    With `mealy`, the DOT file contains a Mealy machine.

    `load_compiled` reads the net back, and commands accept the folder like the folder of a compiled model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The statistics come first: they mark the folder as one that may be overwritten, even if a later write fails.
    write_json(folder / "learned.json", numbers)
    # Files of an earlier search must not look like results of this search.
    for name in (DESCRIPTION, CERTIFICATE, "machine.json", "machine.dot", "machine.svg", CONTRADICTED):
        (folder / name).unlink(missing_ok=True)
    if net is not None:
        construction, certificate = net
        save_compiled(construction, folder)
        write_by_rename(folder / CERTIFICATE, certificate.to_text().encode())
    for kind in ("json", *(["svg"] if labeled.machine.num_states <= MAX_DRAWN else [])):
        write_machine(labeled, folder / f"machine.{kind}")
    dot = folder / "machine.dot"
    about = [] if numbers["answers_empty"] else [NO_EMPTY_ANSWER]
    about += [f"NOT CONFIRMED: {doubt}"] if (doubt := numbers.get("doubt")) else []
    if mealy or not about:
        write_machine(labeled, dot, mealy=mealy)
    else:
        write_by_rename(dot, DOT.write_annotated(labeled, Notes("machine", tuple(about), ())).encode())
