"""The groups of the state-tracking page, against sympy."""

import numpy as np
import pytest
from sympy.combinatorics import Permutation as TheirPermutation
from sympy.combinatorics import PermutationGroup as TheirGroup

from lengthwise.runs.spec import Settings
from lengthwise.studies.leaderboard.experiments.state_tracking import COMPARED, SOLVABLE, UNSOLVABLE, state_tracking
from lengthwise.tasks.regular.word_problem import WordProblem

GROUPS = {**SOLVABLE, **UNSOLVABLE}
LINEAR_ORDERS = {"SL(2, 3)": 24, "GL(2, 3)": 48, "SL(2, 5)": 120, "GL(3, 2)": 168, "F20": 20, "F21": 21}


@pytest.mark.parametrize(("name", "fields"), GROUPS.items(), ids=GROUPS)
def test_groups_are_solvable_or_not_as_their_table_says(name: str, fields: Settings) -> None:
    group = WordProblem(**fields).action
    theirs = TheirGroup([TheirPermutation(list(generator)) for generator in group.generators])
    assert theirs.is_solvable == (name in SOLVABLE)
    assert theirs.order() == group.order == LINEAR_ORDERS.get(name, group.order)


def test_no_two_groups_are_the_same() -> None:
    """Isomorphic groups agree in these invariants; those with equal ones are known to differ."""
    invariants = set()
    for fields in GROUPS.values():
        group = WordProblem(**fields).action
        powers, orders = np.arange(group.order), np.ones(group.order, dtype=int)
        for _ in range(group.order):
            unfinished = powers != 0
            orders += unfinished
            powers = np.where(unfinished, group.table[powers, np.arange(group.order)], 0)
        invariants.add((group.order, tuple(np.bincount(orders))))
    assert len(invariants) == len(GROUPS)


def test_compared_groups_have_all_columns_over_their_generators() -> None:
    experiment = state_tracking("small")
    columns = {cell.column for cell in experiment.cells}
    for row in COMPARED:
        cells = [cell for cell in experiment.cells if cell.row == row and cell.part == "over generators, nine groups"]
        assert {cell.column for cell in cells} == columns
