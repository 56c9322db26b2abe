"""Random languages: minimal, mixed at every length, not forgotten, and the same everywhere."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton, library
from lengthwise.automata.random_languages import _draw, is_always_mixed, is_nontrivial, num_apart, random_language

DOCS = Path(__file__).parents[2] / "docs"

SIZES = st.sampled_from([(2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (3, 3)])


def answers(language: DFA, length: int) -> list[bool]:
    """By walking the table, string by string."""
    accepted = []
    for string in product(range(len(language.symbols)), repeat=length):
        state = language.start
        for symbol in string:
            state = int(language.semiautomaton.table[state, symbol])
        accepted.append(bool(language.accepting[state]))
    return accepted


@settings(max_examples=12, deadline=None)
@given(SIZES, st.integers(0, 10**6))
def test_a_language_is_minimal_and_mixed_at_long_lengths(size: tuple[int, int], seed: int) -> None:
    language = random_language(*size, seed)
    assert (language.num_states, len(language.symbols)) == size
    # Minimal by the definition: strings of up to Q symbols reach every state, and tell any two states apart.
    strings = [string for length in range(size[0]) for string in product(range(size[1]), repeat=length)]
    after = np.array([language.semiautomaton.final_states(np.array([s], dtype=np.int64)) for s in strings])[:, 0]
    assert set(after.tolist()) == set(range(size[0]))
    futures = {
        tuple(
            bool(language.accepting[language.semiautomaton.final_states(np.array([s], dtype=np.int64), state)[0]])
            for s in strings
        )
        for state in range(size[0])
    }
    assert len(futures) == size[0]
    for length in (size[0], 40, 41, 500):
        assert 0 < language.count(length) < size[1] ** length


@given(st.integers(1, 5), st.integers(1, 2), st.data())
def test_mixed_is_what_enumeration_says(num_states: int, num_symbols: int, data: st.DataObject) -> None:
    entries = st.integers(0, num_states - 1)
    table = [[data.draw(entries) for _ in range(num_symbols)] for _ in range(num_states)]
    accepting = np.array([data.draw(st.booleans()) for _ in range(num_states)])
    language = DFA(Semiautomaton(np.array(table), tuple("ab"[:num_symbols])), 0, accepting)
    # Sets of 5 states repeat within 32 lengths.
    counts = [(length, language.count(length)) for length in range(num_states, num_states + 33)]
    assert is_always_mixed(language) == all(0 < count < num_symbols**length for length, count in counts)
    assert answers(language, 4).count(True) == language.count(4)


def test_states_apart_are_counted() -> None:
    machine = library.tomita(3).semiautomaton
    ends = [
        [int(machine.final_states(np.array([string]), state)[0]) for state in range(machine.num_states)]
        for string in product(range(2), repeat=5)
    ]
    assert num_apart(machine, 5) == sum(a != b for row in ends for a in row for b in row)


def test_what_forgets_or_is_not_minimal_is_rejected() -> None:
    counts = library.tomita(6).minimize()
    table = counts.semiautomaton.table
    doubled = DFA(Semiautomaton(np.concatenate([table, table]), counts.symbols), 0, np.tile(counts.accepting, 2))
    assert is_nontrivial(counts)
    assert not is_nontrivial(doubled)
    assert not is_nontrivial(library.tomita(4).minimize()), "what was read is forgotten at every 1"
    assert not is_nontrivial(library.tomita(2).minimize()), "no string of odd length is inside"


def test_a_seed_is_a_language_everywhere() -> None:
    """Three tables drawn by hand from the digests, by the rule in the docstring and nothing else of the package."""
    from hashlib import shake_256

    for seed in range(3):
        language = random_language(3, 2, seed)
        for attempt in range(10_000):
            text = f"random regular language: 3 states, 2 symbols, seed {seed}, attempt {attempt}"
            digest = shake_256(text.encode()).digest(72)
            words = [int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(9)]
            rows = np.array([[words[2 * q] % 3, words[2 * q + 1] % 3] for q in range(3)])
            drawn = DFA(Semiautomaton(rows, ("a", "b")), 0, np.array([word % 2 == 1 for word in words[6:]]))
            if is_nontrivial(drawn):
                break
        assert language.to_json() == drawn.minimize().to_json()
    assert random_language(3, 2, 0).to_json() != random_language(3, 2, 1).to_json()


def test_a_size_without_languages_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.automata.random_languages.MAX_ATTEMPTS", 3)
    with pytest.raises(ValueError, match=r"^num_states: expected a nontrivial language, got only trivial ones in 3"):
        random_language(30, 26, 0)


def test_the_page_says_how_many_automata_are_kept() -> None:
    stated = re.search(r"about one in (\d+) drawn automata", (DOCS / "random-languages.md").read_text(encoding="utf-8"))
    assert stated, "docs/random-languages.md no longer says how many automata are kept"
    kept = sum(is_nontrivial(_draw(6, 2, seed, attempt)) for seed in range(3) for attempt in range(2_000))
    assert 0.8 < int(stated[1]) * kept / 6_000 < 1.25
