"""Arguments of another kind or out of range: one sentence in place of an error of Python, NumPy, or a wrong answer."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from lengthwise.automata.groups import cycle_notation
from lengthwise.automata.lstar import learn_by_lstar
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.state_elimination import regex_from_dfa
from lengthwise.constructions.memorization.closed_form import companion_matrix, permutation, simplex
from lengthwise.constructions.memorization.planar import planar
from lengthwise.evaluation.interval import holm
from lengthwise.ops.answer_likelihood import answer_log_probabilities
from lengthwise.studies.chi2023.routing import blelloch_scan, hillis_steele_scan, path_to
from lengthwise.tasks import make_task

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

PARITY = make_task("parity")
MACHINE = dfa_from_regex("(a|b)*b")
STRINGS = r"^strings: expected a \[strings, length\] array of integers, got "
WORD = r"^word: expected a Word, got '.*'; make it with parse_word$"


def probabilities(targets: list) -> torch.Tensor:
    """The likelihood of answers to two symbols, for a coin that the only symbol may turn over."""
    first, tokens = torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2, dtype=torch.int64)
    return answer_log_probabilities(torch.full((1, 2, 2), 0.5), torch.eye(2), tokens, torch.tensor(targets), first)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dfa_from_regex(5), "^pattern: expected a text, got 5; give one$"),
        (lambda: dfa_from_regex("a", tokens="letters"), "^tokens: expected 'characters' or 'words', got 'letters'; "),
        (lambda: MACHINE.count("3"), "^length: expected a whole number of symbols, at least 0, got '3'; give"),
        (lambda: MACHINE.count(1.5), "^length: expected a whole number of symbols, at least 0, got 1.5; give"),
        (lambda: MACHINE.accepts([[0]]), STRINGS + r"\[\[0\]\]; give the symbol ids as a NumPy array"),
        (lambda: MACHINE.accepts(None), STRINGS + "None; "),
        (lambda: MACHINE.accepts(np.array([0, 1])), STRINGS + r"shape \(2,\) of int64; "),
        (lambda: MACHINE.accepts(np.array(0)), STRINGS + r"shape \(\) of int64; "),
        (lambda: MACHINE.accepts(np.array([[0.5]])), STRINGS + r"shape \(1, 1\) of float64; "),
        (lambda: regex_from_dfa(None), "^dfa: expected a DFA, got None; give one$"),
        (lambda: planar("01"), WORD),
        (lambda: simplex("abc"), WORD),
        (lambda: permutation("abc"), WORD),
        (lambda: companion_matrix([]), r"^coefficients: expected numbers of which the first is 1, got \[\]; begin"),
        (lambda: companion_matrix([2, 1]), r"^coefficients: expected .* got \[2, 1\]; begin with the highest power"),
        (lambda: hillis_steele_scan(-3), "^length: expected at least 1 symbol, got -3; "),
        (lambda: blelloch_scan(0), "^length: expected at least 1 symbol, got 0; "),
        (lambda: path_to(hillis_steele_scan(4), 9), r"^position: expected a position from 0 to 3, got 9; choose"),
        (lambda: path_to(hillis_steele_scan(4), -1), r"^position: expected a position from 0 to 3, got -1; choose"),
        (lambda: cycle_notation([0, 0, 1]), r"^permutation: expected each number from 0 to 2 once, got \(0, 0, 1\); "),
        (lambda: learn_by_lstar(2, "moore", len, len), "^kind: expected 'Moore' or 'Mealy', got 'moore'; "),
        (lambda: PARITY.encode(5), "^text: parity expected a text or a list of symbols, got 5; "),
        (lambda: PARITY.decode("ab"), r"^ids: parity expected a tensor \[T\] of ids from 0 to 1, .* got 'ab'; "),
        (lambda: PARITY.decode(torch.tensor([2])), r"^ids: .* got \[2\]; encode returns such a tensor$"),
        (lambda: PARITY.decode(torch.tensor([-2])), r"^ids: .* got \[-2\]; "),
        (lambda: PARITY.decode(torch.tensor([0.5])), r"^ids: .* got \[0\.5\]; "),
        (lambda: PARITY.decode(torch.tensor([[0]])), r"^ids: .* got \[\[0\]\]; "),
        (lambda: probabilities([[1, 4]]), "^targets: expected numbers from 0 to 1, or -100 for no answer, got 4; "),
        (lambda: probabilities([[-1, 0]]), "^targets: expected numbers from 0 to 1, or -100 for no answer, got -1; "),
        (lambda: probabilities([[0]]), r"^targets: expected shape \[1, 2\], like tokens, got \[1, 1\]; "),
        (lambda: probabilities([0, 1]), r"^targets: expected shape \[1, 2\], like tokens, got \[2\]; "),
        (lambda: holm([2, -1]), r"^p_values: expected numbers in \[0, 1\] or NaN, got 2; give probabilities$"),
        (lambda: holm([0.5, -1]), r"^p_values: expected numbers in \[0, 1\] or NaN, got -1; give probabilities$"),
    ],
)
def test_one_sentence_names_the_argument(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def test_arguments_at_the_ends_are_accepted() -> None:
    assert MACHINE.accepts(np.array([[]])).tolist() == [False]
    assert MACHINE.count(np.int64(2)) == 2
    assert path_to(hillis_steele_scan(4), 0) == path_to([], 0) == []
    assert hillis_steele_scan(1) == blelloch_scan(1) == []
    assert holm([0, 1]) == [0, 1]
