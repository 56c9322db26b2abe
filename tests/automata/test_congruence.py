"""Congruences against their definition and against Moore's refinement, tables with gaps included."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lengthwise.automata.congruence import _differ_apart, coarse_congruence, quotient


@st.composite
def tables(draw: st.DrawFn, minimum: int = -1, max_classes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    count, parts = draw(st.integers(1, max_classes)), draw(st.integers(2, 3))
    entries = draw(st.lists(st.integers(minimum, count - 1), min_size=count**parts, max_size=count**parts))
    labels = draw(st.lists(st.integers(minimum, 1), min_size=count, max_size=count))
    return np.array(entries).reshape((count,) * parts), np.array(labels)


def is_congruence(table: np.ndarray, labels: np.ndarray, blocks: list[int]) -> bool:
    """The definition, pair of windows by pair of windows."""
    of_block: dict = {}
    for k, label in enumerate(labels.tolist()):
        if label >= 0 and of_block.setdefault(blocks[k], label) != label:
            return False
    of_window: dict = {}
    for window in product(range(len(labels)), repeat=table.ndim):
        actual = int(table[window])
        if actual >= 0 and of_window.setdefault(tuple(blocks[k] for k in window), blocks[actual]) != blocks[actual]:
            return False
    return True


def partitions(count: int) -> list[list[int]]:
    """All partitions of 0 ... count - 1, as blocks numbered by their first members."""
    actual: list[list[int]] = [[]]
    for _ in range(count):
        actual = [[*blocks, new] for blocks in actual for new in range(max(blocks, default=-1) + 2)]
    return actual


def is_finer(blocks: list[int], coarser: list[int]) -> bool:
    return len(set(zip(blocks, coarser, strict=True))) == len(set(blocks))


@given(tables(max_classes=4), st.data())
def test_is_a_congruence_and_none_is_coarser(labeled_table: tuple[np.ndarray, np.ndarray], data: st.DataObject) -> None:
    table, labels = labeled_table
    pairs = list(combinations(range(len(labels)), 2)) or [(0, 0)]
    blocks = coarse_congruence(table, labels, data.draw(st.lists(st.sampled_from(pairs), max_size=3))).tolist()
    assert list(dict.fromkeys(blocks)) == list(range(max(blocks) + 1))
    assert is_congruence(table, labels, blocks)
    coarser = [other for other in partitions(len(labels)) if is_finer(blocks, other) and other != blocks]
    assert not [other for other in coarser if is_congruence(table, labels, other)]


def united_by_definition(table: np.ndarray, labels: np.ndarray, pairs: list[tuple[int, int]]) -> list[int]:
    """The blocks after each pair, in turn, was united with all that follows, over all windows again and again."""
    blocks = list(range(len(labels)))
    for pair in pairs:
        new, to_unite = list(blocks), [pair]
        while to_unite:
            low, high = sorted(new[k] for k in to_unite.pop())
            new = [low if block == high else block for block in new]
            windows = [tuple(window) for window in np.argwhere(table >= 0).tolist()]
            for one, other in combinations(windows, 2):
                alike = all(new[a] == new[b] for a, b in zip(one, other, strict=True))
                if alike and new[table[one]] != new[table[other]]:
                    to_unite.append((int(table[one]), int(table[other])))
                    break
        if is_congruence(table, labels, new):
            blocks = new
    return [list(dict.fromkeys(blocks)).index(block) for block in blocks]


@pytest.mark.parametrize("seed", range(60))
def test_blocks_are_those_of_pairs_united_in_turn(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(3, 8))
    table = generator.integers(0, count, (count, count))
    table[generator.random(table.shape) < generator.choice([0.5, 0.7, 0.85])] = -1
    labels = generator.integers(-1, 2, count)
    likely = [(int(one), int(other)) for one, other in generator.integers(0, count, (3, 2))]
    expected = united_by_definition(table, labels, [*likely, *combinations(range(count), 2)])
    assert coarse_congruence(table, labels, likely).tolist() == expected


@given(tables(minimum=0))
def test_without_gaps_it_is_moores_refinement(labeled_table: tuple[np.ndarray, np.ndarray]) -> None:
    table, labels = labeled_table
    classes, blocks = range(len(labels)), labels.tolist()
    contexts = list(product(classes, repeat=table.ndim - 1))
    for _ in classes:
        signatures = [
            (blocks[k], *(blocks[table[(*c[:i], k, *c[i:])]] for c in contexts for i in range(table.ndim)))
            for k in classes
        ]
        blocks = [signatures.index(signature) for signature in signatures]
    actual = coarse_congruence(table, labels).tolist()
    assert [actual.index(block) for block in actual] == blocks


@given(tables())
def test_quotients_keep_every_known_entry(labeled_table: tuple[np.ndarray, np.ndarray]) -> None:
    table, labels = labeled_table
    blocks = coarse_congruence(table, labels)
    smaller, their_labels = quotient(table, labels, blocks)
    for window in np.argwhere(table >= 0):
        assert smaller[tuple(blocks[window])] == blocks[table[tuple(window)]]
    assert (smaller >= 0).sum() == len({tuple(blocks[window]) for window in np.argwhere(table >= 0)})
    assert (their_labels[blocks] == labels)[labels >= 0].all()


def test_likely_pairs_are_united_first() -> None:
    """Class 1 has no label and stands in no window: it may join either of the two others, but not both."""
    table, labels = np.full((3, 3), -1), np.array([0, -1, 1])
    assert coarse_congruence(table, labels).tolist() == [0, 0, 1]
    assert coarse_congruence(table, labels, [(1, 2)]).tolist() == [0, 1, 1]


@given(tables(minimum=0))
@example((np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1]]), np.array([0, 1, 1])))  # one context separates 1 and 2
@example((np.array([[1, 1, 1], [0, 1, 1], [1, 1, 1]]), np.array([0, 1, 1])))
def test_pairs_that_contexts_separate_are_not_tried(labeled_table: tuple[np.ndarray, np.ndarray]) -> None:
    """In a table without gaps these are all pairs in different blocks of the coarsest congruence."""
    table, labels = labeled_table
    blocks = coarse_congruence(table, labels)
    np.testing.assert_array_equal(_differ_apart(table, labels), blocks[:, None] != blocks)
