"""A parser of its own for the VNN-LIB queries that are exported, and the task that they are about."""

import re
from pathlib import Path

import numpy as np
from command import exit_code

from lengthwise.certification.certificate import CERTIFICATE
from lengthwise.certification.certify import certify
from lengthwise.models.base import RecurrentModel
from lengthwise.runs.hub import save_hub
from lengthwise.tasks import make_task

TASK = make_task("regex", pattern="(a|b)*b")

Comparison = tuple[str, int, str]
"""A sign, the index of an output, and what it is compared with: a number, or another output."""


def save_certified(net: RecurrentModel, folder: Path) -> None:
    """Write a net of a registered kind, with its certificate."""
    save_hub(folder, net, TASK, ("compiled", "slow"))
    (folder / CERTIFICATE).write_text(certify(net, TASK).to_text())


def export_queries(source: str) -> Path:
    """Export a net's queries into the current folder."""
    assert exit_code("export", source, "--to", "vnnlib", "--out", "queries") == 0
    return Path("queries")


def parse(text: str) -> tuple[np.ndarray, list[Comparison]]:
    """The box of the inputs [2, Z], and the comparisons of which one must hold for the query to be satisfied."""
    enclosure = np.zeros((2, len(re.findall(r"declare-const X_", text))))
    bounds, _, failures = text.partition("(assert (or")
    for sign, index, number in re.findall(r"\(assert \(([<>])= X_(\d+) (\S+)\)\)", bounds):
        enclosure[int(sign == "<"), int(index)] = float(number)
    return enclosure, [
        (sign, int(index), end) for sign, index, end in re.findall(r"\(([<>])= Y_(\d+) (\S+?)\)", failures)
    ]


def is_satisfied(failures: list[Comparison], output: np.ndarray) -> bool:
    """Whether one of the comparisons holds."""
    return any(is_true(failure, output) for failure in failures)


def is_true(comparison: Comparison, output: np.ndarray) -> bool:
    sign, index, text = comparison
    end = output[int(text[2:])] if text.startswith("Y_") else float(text)
    return bool(output[index] <= end if sign == "<" else output[index] >= end)
