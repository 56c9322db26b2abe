"""Cells and experiments that lack runs or have another kind: one sentence that begins with the field's name."""

import copy
import pickle
from collections.abc import Callable

import pytest

from lengthwise.experiment import Cell, Experiment
from lengthwise.runs.spec import make_spec

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

CELL = Cell("Parity", "RNN", (make_spec("parity", "rnn"),))
EXPERIMENT = Experiment("Title", "About.", [CELL])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Cell("a", "b", ()), "specs: expected at least one run in row 'a' and column 'b', got none; give runs"),
        (lambda: Cell("a", "b", None), "specs: expected a tuple of RunSpec, got None; make each with make_spec"),
        (lambda: Cell("a", "b", (3,)), r"specs: expected a tuple of RunSpec, got \(3,\); make each with make_spec"),
        (lambda: Cell(3, "b", CELL.specs), "row: expected a text, got 3; give one"),
        (lambda: Cell("a", None, CELL.specs), "column: expected a text, got None; give one"),
        (lambda: Experiment("T", "A."), "cells: expected cells or a study, got neither; give at least one cell with"),
        (lambda: Experiment("T", "A.", []), "cells: expected cells or a study, got neither; give at least one cell"),
        (lambda: Experiment("T", "A.", [3]), r"cells: expected a list of Cell, got \[3\]; write \[Cell"),
        (lambda: Experiment("T", "A.", CELL), "cells: expected a list of Cell, got Cell.*; write \\[Cell"),
        (lambda: Experiment(None, "A.", [CELL]), "title: expected a text, got None; give one"),
        (lambda: EXPERIMENT.select(rows=["x"]), r"rows: expected a text of names, got \['x'\]; write commas between"),
        (lambda: EXPERIMENT.select(columns=3), "columns: expected a text of names, got 3; write commas between names"),
        (lambda: EXPERIMENT.select("x"), r"rows: expected names of rows, got 'x' \(known: 'Parity'\)"),
        (lambda: EXPERIMENT.select("Parit"), "rows: expected .*, got 'Parit'; did you mean 'Parity'"),
        (lambda: EXPERIMENT.select("parity", "x"), r"columns: expected names of columns, got 'x' \(known: 'RNN'\)"),
    ],
)
def test_wrong_fields_are_named(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        call()


def test_checked_cells_are_copied_and_an_experiment_may_be_a_study() -> None:
    assert copy.copy(CELL) == pickle.loads(pickle.dumps(CELL)) == CELL
    assert Experiment("T", "A.", study=lambda root: None).specs == []
    assert EXPERIMENT.select("parity", "rnn").specs == list(CELL.specs)
