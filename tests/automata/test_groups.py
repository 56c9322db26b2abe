"""Permutation groups, against sympy and plain composition."""

import itertools
import re
from functools import reduce

import numpy as np
import pytest
from automaton_strategies import checked_strategies
from hypothesis import given
from hypothesis import strategies as st
from sympy.combinatorics import AlternatingGroup, CyclicGroup, DihedralGroup, SymmetricGroup
from sympy.combinatorics import Permutation as TheirPermutation
from sympy.combinatorics import PermutationGroup as TheirGroup
from sympy.combinatorics.group_constructs import DirectProduct

from lengthwise.automata.groups import PermutationGroup, cycle_notation, permutation_group

pytestmark = checked_strategies

generators = st.integers(1, 5).flatmap(
    lambda degree: st.lists(st.permutations(range(degree)).map(tuple), min_size=1, max_size=3).map(tuple)
)


def composed(first: tuple[int, ...], then: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(then[image] for image in first)


def rows(array: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in array.tolist()]


def their_elements(group: TheirGroup) -> list[tuple[int, ...]]:
    return sorted(tuple(element.array_form) for element in group.elements)


@given(generators)
def test_elements_are_those_of_sympy_in_lexicographic_order(generators: tuple[tuple[int, ...], ...]) -> None:
    group = PermutationGroup(generators)
    assert rows(group.elements) == their_elements(TheirGroup([TheirPermutation(list(g)) for g in generators]))
    assert group.order == len(group.names) == len(set(group.names))
    assert group.names[0] == "()"
    assert rows(group.elements[group.generator_elements]) == list(generators)


@given(generators)
def test_the_table_composes_from_left_to_right(generators: tuple[tuple[int, ...], ...]) -> None:
    group = PermutationGroup(generators)
    elements = rows(group.elements)
    for a, b in itertools.product(range(min(group.order, 24)), repeat=2):
        product = tuple((TheirPermutation(list(elements[a])) * TheirPermutation(list(elements[b]))).array_form)
        assert elements[group.table[a, b]] == product == composed(elements[a], elements[b])


@given(generators, st.data())
def test_the_transducer_answers_every_prefix_with_the_product_so_far(generators, data: st.DataObject) -> None:
    group = PermutationGroup(generators)
    assert group.transducer.symbols == group.symbols
    word = data.draw(st.lists(st.integers(0, len(generators) - 1), min_size=1, max_size=63))
    products = itertools.accumulate((generators[symbol] for symbol in word), composed)
    (answers,) = group.transducer.run(np.array([word]))
    assert rows(group.elements[answers]) == list(products)


@given(st.integers(1, 9).flatmap(lambda degree: st.permutations(range(degree))))
def test_cycles_are_those_of_sympy(permutation: list[int]) -> None:
    cycles = TheirPermutation(permutation).cyclic_form
    assert cycle_notation(permutation) == ("".join(f"({' '.join(map(str, cycle))})" for cycle in cycles) or "()")


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        *((f"S{n}", SymmetricGroup(n)) for n in range(2, 7)),
        *((f"A{n}", AlternatingGroup(n)) for n in range(3, 7)),
        *((f"{family}{n}", CyclicGroup(n)) for family in "ZC" for n in (2, 7, 60, 100)),
        *((f"D{n}", DihedralGroup(n)) for n in (3, 4, 7, 30)),
        ("A4xZ5", DirectProduct(AlternatingGroup(4), CyclicGroup(5))),
        ("S3xZ2xD4", DirectProduct(SymmetricGroup(3), CyclicGroup(2), DihedralGroup(4))),
    ],
)
def test_named_groups_are_those_of_sympy(name: str, theirs: TheirGroup) -> None:
    assert rows(permutation_group(name).elements) == their_elements(theirs)
    assert permutation_group(name) is permutation_group(name)


@pytest.mark.parametrize(
    ("name", "meanings"),
    [
        ("S2", {"a": "()", "b": "(0 1)"}),
        ("S4", {"a": "(0 1)", "b": "(1 2 3)"}),
        ("S5", {"a": "(0 1)", "b": "(0 1 2 3 4)"}),
        ("A3", {"a": "()", "b": "(0 1 2)"}),
        ("A4", {"a": "(0 1 2)", "b": "(1 2 3)"}),
        ("A5", {"a": "(0 1 2)", "b": "(0 1 2 3 4)"}),
        ("Z4", {"a": "()", "b": "(0 1 2 3)"}),
        ("D5", {"a": "()", "b": "(0 1 2 3 4)", "c": "(0 4)(1 3)"}),
        ("Q8", {"a": "()", "b": "(0 1 2 3)(4 7 6 5)", "c": "(0 4 2 6)(1 5 3 7)"}),
        ("Z2xS3xZ3", {"a": "()", "b": "(0 1)", "c": "(2 3)", "d": "(2 3 4)", "e": "(5 6 7)"}),
    ],
)
def test_named_groups_say_what_their_symbols_are(name: str, meanings: dict[str, str]) -> None:
    assert permutation_group(name).meanings == meanings


@pytest.mark.parametrize("order", [8, 12, 16, 60, 100])
def test_dicyclic_groups_satisfy_their_relations(order: int) -> None:
    group = permutation_group(f"Q{order}")
    identity, x, y = group.generator_elements.tolist()

    def times(*elements: int) -> int:
        return reduce(lambda a, b: int(group.table[a, b]), elements)

    assert identity == 0
    assert group.order == order
    assert times(y, y) == times(*[x] * (order // 4))
    assert times(x, y, x) == y
    # x has order n/2: no smaller power is the identity.
    assert [power for power in range(1, order // 2 + 1) if times(*[x] * power) == 0] == [order // 2]


@pytest.mark.parametrize("name", ["S3", "S4xZ2", "A5"])
def test_every_element_can_be_a_generator(name: str) -> None:
    group = permutation_group(name)
    over_elements = group.over_elements()
    assert rows(over_elements.elements) == rows(group.elements)
    assert over_elements.generator_elements.tolist() == list(range(group.order))
    assert over_elements.symbols[:2] == (("g0", "g1") if group.order > 52 else ("a", "b"))


def test_large_products_of_cycles_are_no_trouble() -> None:
    """900 elements on 61 points: cycles of 4, 9 and 25 turn at once, 23 points stay."""
    cycle = [*range(1, 4), 0, *range(5, 13), 4, *range(14, 38), 13, *range(38, 61)]
    group = PermutationGroup((tuple(cycle),))
    assert group.order == 900
    power = reduce(lambda product, _: int(group.table[product, group.generator_elements[0]]), range(450), 0)
    assert group.table[power, power] == 0


@pytest.mark.parametrize(
    "name",
    [
        "S1",
        "S7",
        "A2",
        "A7",
        "Z1",
        "C101",
        "Q10",
        "Q104",
        "D2",
        "S3x",
        "S3xS7",
        "s3",
        "S05",
        "S",
        "",
        "5",
        "Z٣",
        "Z" * 50,
    ],
)
def test_unknown_groups_are_refused(name: str) -> None:
    sentence = (
        rf"^group: expected one of S2 to S6, A3 to A6, .*Q8 to Q100 \(Q in steps of 4\), .*got '{name[:40]}'; use"
    )
    with pytest.raises(ValueError, match=sentence):
        permutation_group(name)


@pytest.mark.parametrize(
    ("generators", "sentence"),
    [
        ((), "expected 1 to 1,000 permutations, got 0"),
        (((1, 0),) * 1_001, "expected 1 to 1,000 permutations, got 1001"),
        (
            ((1, 0), (1, 2, 0)),
            "expected permutations of the same number of points, got 2 in generator 0 and 3 in generator 1",
        ),
        (((1, 0), (1, 1)), "expected each of 0..1 once, got [1, 1] as generator 1; list the images of the points"),
        (((1, 2),), "expected each of 0..1 once, got [1, 2] as generator 0"),
        ((tuple(range(101)),), "expected permutations of at most 100 points, got 101 points; take a smaller group"),
        (
            ((1, 0, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 0)),
            "expected permutations whose group has at most 1,000 elements, got more",
        ),
    ],
)
def test_bad_generators_are_refused(generators: tuple[tuple[int, ...], ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^generators: {re.escape(sentence)}"):
        PermutationGroup(generators)
