"""The checker's proof about grids compares what cells give after every pair of neighboring letters."""

from itertools import product

import numpy as np
import pytest

from lengthwise.certification import checker
from lengthwise.certification.checker import GridTask, Net, Rejected

NUMBERS = np.array([0, 5])


def rule_of_columns(differing: tuple[int, int] | None) -> GridTask:
    """Return a rule whose right edges keep the column's letter; one pair of neighboring columns gives number 5."""
    cells = np.zeros((2, 2, 2, 2, 2), np.int64)
    for below, before, row, column in product(range(2), repeat=4):
        cells[below, before, row, column] = ((before, column) == differing, column)
    return GridTask([], cells, 0, 0, NUMBERS, 0)


@pytest.mark.parametrize("pair", [*product(range(2), repeat=2)])
def test_rules_that_differ_after_one_pair_of_letters_alone_are_rejected(
    pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "rule_of", lambda _: rule_of_columns(pair))
    net = Net("grid-recurrence", {}, {}, 2, 2)
    with pytest.raises(Rejected, match="not shown to give the same numbers"):
        checker.check_rules(net, {}, rule_of_columns(None))
    assert "the same number from both rules" in checker.check_rules(net, {}, rule_of_columns(pair))
