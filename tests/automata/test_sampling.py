from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, dfas
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton
from lengthwise.automata.dfa import joint_sampler
from lengthwise.automata.library import bounded_dyck, exact_depth_dyck, tomita
from lengthwise.automata.sampling import StringSampler

pytestmark = checked_strategies

SINGLE_A_THEN_BS = DFA(Semiautomaton(np.array([[1, 2], [2, 1], [2, 2]]), ("a", "b")), 0, np.array([False, True, False]))


@given(dfas(), st.integers(1, 6))
def test_every_accepted_string_has_the_same_probability(dfa: DFA, length: int) -> None:
    count = dfa.count(length)
    sampler = joint_sampler([dfa])
    assert sampler.possible(length).tolist() == [count > 0]
    if count == 0:
        return
    num_symbols = len(dfa.symbols)
    for string in all_strings(num_symbols, length)[dfa.accepts(all_strings(num_symbols, length))].tolist():
        assert _probability(sampler, dfa.start, string) == pytest.approx(1 / count, rel=1e-12)


def _probability(sampler: StringSampler, state: int, string: list[int]) -> float:
    probability = 1.0
    for position, symbol in enumerate(string):
        edges = [0.0, *sampler._thresholds[len(string) - 1 - position][state].tolist(), 1.0]
        probability *= edges[symbol + 1] - edges[symbol]
        state = int(sampler.semiautomaton.table[state, symbol])
    return probability


@given(dfas(), st.integers(1, 6), st.sampled_from([0.25, 6.0]))
def test_a_string_with_more_repeats_has_weighted_odds(dfa: DFA, length: int, weight: float) -> None:
    sampler = joint_sampler([dfa], (1.0, weight))
    strings = all_strings(len(dfa.symbols), length)
    accepted = strings[dfa.accepts(strings)]
    assert sampler.possible(length).tolist() == [len(accepted) > 0] * 2
    odds = weight ** (accepted[:, 1:] == accepted[:, :-1]).sum(axis=1)
    for string, expected in zip(accepted.tolist(), (odds / odds.sum()).tolist(), strict=True):
        assert _probability(sampler, int(sampler.starts[1]), string) == pytest.approx(expected, rel=1e-12)


@given(dfas(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_samples_are_accepted(dfa: DFA, length: int, seed: int) -> None:
    uniforms = np.random.default_rng(seed).random((50, length))
    uniforms[0], uniforms[1] = 0.0, np.nextafter(1.0, 0.0)
    for language in (dfa, dfa.complement()):
        if language.count(length):
            strings = language.sample(uniforms)
            assert language.accepts(strings).all()
            np.testing.assert_array_equal(language.sample(uniforms), strings)


def test_draws_are_uniform() -> None:
    language = tomita(4)
    draws = language.sample(np.random.default_rng(0).random((200_000, 7)))
    seen = Counter(map(bytes, draws.astype(np.uint8)))
    expected = len(draws) / language.count(7)
    chi_square = sum((number - expected) ** 2 / expected for number in seen.values())
    assert len(seen) == language.count(7) == 81
    assert chi_square < 130  # the 99.97 % point of 80 degrees of freedom


@pytest.mark.parametrize("language", [SINGLE_A_THEN_BS, SINGLE_A_THEN_BS.complement(), tomita(3), bounded_dyck(12)])
def test_nothing_overflows_or_vanishes_at_length_10_000(language: DFA) -> None:
    strings = language.sample(np.random.default_rng(0).random((8, 10_000)))
    assert language.accepts(strings).all()


def test_first_symbol_has_its_exact_share_at_length_2_000() -> None:
    language = tomita(4)
    after_one = DFA(language.semiautomaton, int(language.semiautomaton.table[0, 1]), language.accepting)
    share = Fraction(after_one.count(1_999), language.count(2_000))
    edge = float(1 - share)
    uniforms = np.full((2, 2_000), 0.5)
    uniforms[:, 0] = edge * (1 - 1e-13), edge * (1 + 1e-13)
    assert language.sample(uniforms)[:, 0].tolist() == [0, 1]


def test_rows_choose_their_language() -> None:
    depths = [exact_depth_dyck(depth) for depth in (1, 2, 3, 4)]
    sampler = joint_sampler(depths)
    assert sampler.possible(6).tolist() == [True, True, True, False]
    assert not sampler.possible(5).any()
    choice = np.repeat([2, 0, 1], 20)
    heights = np.cumsum(1 - 2 * sampler.sample(np.random.default_rng(0).random((60, 6)), choice), axis=1)
    np.testing.assert_array_equal(heights.max(axis=1), choice + 1)
    np.testing.assert_array_equal(heights[:, -1], 0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weights: expected positive numbers"):
        joint_sampler([bounded_dyck(2)], (1.0, 0.0))
    with pytest.raises(ValueError, match=r"at which start 0 has strings .*, got 5 columns; choose a length"):
        bounded_dyck(2).sample(np.zeros((3, 5)))
    with pytest.raises(
        ValueError, match=r"length: expected at most 50,000,000 for 4 states and an alphabet of 2 symbols"
    ):
        bounded_dyck(2).sample(np.broadcast_to(0.0, (1, 250_000_002)))
    with pytest.raises(ValueError, match=r"languages: expected at least one automaton, got none"):
        joint_sampler([])
    with pytest.raises(ValueError, match=r"other: expected a machine over the symbols"):
        joint_sampler([bounded_dyck(2), tomita(1)])
