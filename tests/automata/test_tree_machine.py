"""Tree machines: what they answer, and that comparisons with transducers hold for every length."""

import json

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import Semiautomaton, Transducer, library, windows
from lengthwise.automata.monoid_laws import monoid_laws
from lengthwise.automata.tree_machine import TreeMachine, tree_machine
from lengthwise.automata.windows import count_windows, window_blocks

pytestmark = checked_strategies

small = transducers(symbols=("a", "b"), max_states=3)
chunks = st.integers(2, 3)


@pytest.mark.parametrize("chunk", [2, 3])
@pytest.mark.parametrize(("power", "more", "levels"), [(0, 0, 1), (1, 0, 1), (1, 1, 2), (3, 0, 3), (3, 1, 4)])
def test_trees_are_as_deep_as_their_strings_need(chunk: int, power: int, more: int, levels: int) -> None:
    assert tree_machine(library.even_pairs(), chunk).num_levels(chunk**power + more) == levels


@given(small, chunks, st.integers(1, 9))
def test_elements_of_the_monoid_answer_as_the_transducer(transducer: Transducer, chunk: int, length: int) -> None:
    machine = tree_machine(transducer, chunk)
    strings = all_strings(2, length)
    np.testing.assert_array_equal(machine.answers(strings), transducer.run(strings)[:, -1])
    assert machine.difference_string(transducer) is None


def first_difference(machine: TreeMachine, transducer: Transducer, up_to: int) -> tuple[str, ...] | None:
    """The definition: try every string."""
    for length in range(1, up_to + 1):
        strings = all_strings(len(machine.symbols), length)
        expected = transducer.run(strings)[:, -1]
        wrong = np.flatnonzero((machine.answers(strings) != expected) & (expected != -100))
        if len(wrong):
            return tuple(machine.symbols[v] for v in strings[wrong[0]])
    return None


@given(small, chunks, st.data())
def test_a_wrong_entry_is_found_by_the_shortest_string(transducer: Transducer, chunk: int, data: st.DataObject) -> None:
    """Found exactly as by trying every string of up to 10 symbols; what is beyond these is at least really wrong."""
    right = tree_machine(transducer, chunk)
    table = right.table.copy()
    entry = tuple(data.draw(st.integers(0, right.num_classes - 1)) for _ in range(chunk))
    table[entry] = (table[entry] + data.draw(st.integers(1, max(1, right.num_classes - 1)))) % right.num_classes
    machine = TreeMachine(right.symbols, right.leaves, table, right.outputs)
    actual, tried = machine.difference_string(transducer), first_difference(machine, transducer, 10)
    if tried is not None or actual is None or len(actual) <= 10:
        assert actual == tried
    else:
        string = np.array([[machine.symbols.index(symbol) for symbol in actual]])
        assert machine.answers(string)[0] != transducer.run(string)[0, -1]


def test_a_difference_at_length_37_is_found() -> None:
    """Two machines that count to 37 and to 38 differ on strings of 37 a's first."""
    counters = []
    for size in (37, 38):
        table = np.stack([np.minimum(np.arange(size + 1) + 1, size), np.zeros(size + 1, dtype=np.int64)], axis=1)
        counters.append(Transducer(Semiautomaton(table, ("a", "b")), 0, (np.arange(size + 1) == size).astype(np.int64)))
    assert tree_machine(counters[0]).difference_string(counters[1]) == ("a",) * 37
    assert tree_machine(counters[1]).difference_string(counters[0]) == ("a",) * 37


@pytest.mark.parametrize("symbol", ["a", "b"])
def test_a_wrong_answer_to_one_symbol_alone_is_found(symbol: str) -> None:
    """Parity with classes of leaves (pad, a, b), and a class of its own for a pad and this symbol, answered wrongly."""
    parity = np.array([0, 0, 1, int(symbol == "b")])
    table = np.where(parity[:, None] ^ parity, 2, 1)
    table[0, 0] = 0
    table[0, 1 + "ab".index(symbol)] = 3
    right = TreeMachine(("a", "b"), np.arange(3), table, parity)
    assert right.difference_string(library.parity()) is None
    wrong = TreeMachine(("a", "b"), np.arange(3), table, np.append(parity[:3], 1 - parity[3]))
    assert wrong.difference_string(library.parity()) == (symbol,)
    assert wrong.reduced()[0].difference_string(library.parity()) == (symbol,)


def test_nothing_is_supervised_where_the_transducer_ignores() -> None:
    transducer = library.modular_arithmetic(3)
    machine = tree_machine(transducer)
    outputs = np.where(machine.outputs == -100, 1, machine.outputs)
    assert TreeMachine(machine.symbols, machine.leaves, machine.table, outputs).difference_string(transducer) is None


def test_a_class_that_drifts_with_depth_is_found() -> None:
    """Right for windows below level 5, wrong from there on: classes that count the level."""
    deep = 5
    codes = {(level, answer): level * 2 + answer for level in range(deep + 1) for answer in (0, 1)}
    table = np.full((len(codes),) * 2, -1)
    for (level, old), left in codes.items():
        for new in (0, 1):
            above = min(level + 1, deep)
            table[left, codes[level, new]] = codes[above, (old ^ new) if above < deep else 0]
    machine = TreeMachine(("a", "b"), np.array([0, 0, 1]), table, np.array([0, 1] * (deep + 1)))
    actual = machine.difference_string(library.parity())
    assert actual == (*"a" * 16, "b")  # the shortest string whose tree has five levels and an odd number of b


def test_a_missing_entry_is_named_with_a_string() -> None:
    right = tree_machine(library.parity())
    table = right.table.copy()
    table[1, 1] = -1
    machine = TreeMachine(right.symbols, right.leaves, table, right.outputs)
    with pytest.raises(ValueError, match=r"an entry for the classes \[1, 1\], which string 'bb' needs"):
        machine.difference_string(library.parity())
    with pytest.raises(ValueError, match=r"an entry for the classes \[1, 1\], which string 0 needs at level 1"):
        machine.answers(np.array([[1, 1]]))


def test_a_missing_window_of_pads_is_no_proof() -> None:
    """Classes 0 (pad), 1 and 2 (even, odd), 3 (pads merged once): without (3, 3) no string of nine symbols is known."""
    table = np.array([[3, 1, 2, -1], [-1, 1, 2, -1], [-1, 2, 1, -1], [-1, 1, 2, -1]])
    machine = TreeMachine(("a", "b"), np.array([0, 1, 2]), table, np.array([0, 0, 1, 0]))
    assert machine.answers(np.array([[0, 1, 1]])).tolist() == [0]
    with pytest.raises(ValueError, match=r"an entry for the classes \[-1, 2\]"):
        machine.answers(np.ones((1, 9), dtype=np.int64))
    with pytest.raises(ValueError, match=r"an entry for the classes \[-1, 1\]"):
        machine.difference_string(library.parity())


@given(small, chunks)
def test_survives_json(transducer: Transducer, chunk: int) -> None:
    machine = tree_machine(transducer, chunk)
    again = TreeMachine.from_json(json.loads(json.dumps(machine.to_json())))
    assert again.symbols == machine.symbols
    for one, other in ((again.leaves, machine.leaves), (again.table, machine.table), (again.outputs, machine.outputs)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("leaves", "table", "outputs", "sentence"),
    [
        ([0, 1], [[0, 1], [1, 0]], [0, 1], "leaves: expected a class for the pad and each of 2 symbols"),
        ([0, 0, 1], [[0, 1]], [0, 1], "table: expected 2 or more axes of 2 classes"),
        ([0, 0, 2], [[0, 1], [1, 0]], [0, 1], r"expected classes in 0..1, or -1"),
        ([0, 0, 1], [[0, 1], [1, -2]], [0, 1], r"expected classes in 0..1, or -1"),
        ([0, 0, 1], [[0, 1], [1, 2]], [0, 1], r"expected classes in 0..1, or -1"),
        ([0, -1, 1], [[0, 1], [1, 0]], [0, 1], r"expected classes in 0..1, or -1"),
    ],
)
def test_malformed_machines_are_refused(leaves: list, table: list, outputs: list, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TreeMachine(("a", "b"), np.array(leaves), np.array(table), np.array(outputs))


def test_strings_and_transducers_over_other_symbols_are_refused() -> None:
    machine = tree_machine(library.parity())
    with pytest.raises(ValueError, match="expected non-empty strings of symbol ids"):
        machine.answers(np.zeros((1, 0), dtype=np.int64))
    with pytest.raises(ValueError, match="expected a transducer over the symbols"):
        machine.difference_string(library.cycle(3))


def blown_up(machine: TreeMachine, copies: int, seed: int) -> tuple[TreeMachine, np.ndarray]:
    """Every class several times, in any order, and one class that no string reaches; also whose copy each class is."""
    generator = np.random.default_rng(seed)
    count = machine.num_classes
    originals = generator.permutation(np.repeat(np.arange(count), copies))
    indices = np.stack([np.flatnonzero(originals == k) for k in range(count)])
    table = np.full((len(originals) + 1,) * machine.chunk_size, len(originals))
    expected = machine.table[np.ix_(*[originals] * machine.chunk_size)]
    inside = (slice(len(originals)),) * machine.chunk_size
    table[inside] = indices[expected, generator.integers(copies, size=expected.shape)]
    leaves = indices[machine.leaves, generator.integers(copies, size=machine.leaves.shape)]
    return TreeMachine(machine.symbols, leaves, table, np.append(machine.outputs[originals], 0)), np.append(
        originals, -1
    )


def same_tables(one: TreeMachine, other: TreeMachine) -> bool:
    return all(
        np.array_equal(a, b)
        for a, b in ((one.leaves, other.leaves), (one.table, other.table), (one.outputs, other.outputs))
    )


@given(small, chunks, st.integers(1, 3), st.integers(0, 99))
def test_copies_of_classes_are_merged_again(transducer: Transducer, chunk: int, copies: int, seed: int) -> None:
    machine = tree_machine(transducer.minimize(), chunk)
    smallest, _ = machine.reduced()
    larger, originals = blown_up(machine, copies, seed)
    actual, new = larger.reduced()
    assert same_tables(actual, smallest)
    assert same_tables(actual.reduced()[0], actual)
    assert actual.num_classes <= machine.num_classes
    assert new[-1] == -1
    for k in np.flatnonzero(new >= 0):
        assert set(new[(originals == originals[k]) & (new >= 0)]) == {new[k]}
    assert set(new[new >= 0]) == set(range(actual.num_classes))


@given(small, chunks, st.integers(0, 99), st.integers(1, 9))
def test_reduced_machines_answer_alike(transducer: Transducer, chunk: int, seed: int, length: int) -> None:
    machine, _ = blown_up(tree_machine(transducer, chunk), 2, seed)
    actual, new = machine.reduced()
    strings = all_strings(2, length)
    np.testing.assert_array_equal(actual.answers(strings), machine.answers(strings))
    for levels, expected in zip(actual.classes(strings), machine.classes(strings), strict=True):
        np.testing.assert_array_equal(levels, new[expected])
    assert actual.difference_string(transducer) is None


@st.composite
def arbitrary_machines(draw: st.DrawFn) -> TreeMachine:
    count, chunk = draw(st.integers(1, 4)), draw(st.integers(2, 3))
    entries = draw(st.lists(st.integers(0, count - 1), min_size=count**chunk, max_size=count**chunk))
    leaves = draw(st.lists(st.integers(0, count - 1), min_size=3, max_size=3))
    outputs = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    table = np.array(entries).reshape((count,) * chunk)
    return TreeMachine(("a", "b"), np.array(leaves), table, np.array(outputs))


@given(arbitrary_machines())
def test_machines_of_no_transducer_are_reduced_soundly(machine: TreeMachine) -> None:
    actual, _ = machine.reduced()
    for length in range(1, 11):
        strings = all_strings(2, length)
        np.testing.assert_array_equal(actual.answers(strings), machine.answers(strings))


def with_windows_of_strings_alone(machine: TreeMachine) -> TreeMachine:
    """Leaves have classes of their own, as in a net, and of the table is left what some string needs."""
    chunk, count = machine.chunk_size, machine.num_classes
    originals = np.concatenate([np.arange(count), machine.leaves])
    table = machine.table[np.ix_(*[originals] * chunk)]
    quoted = np.full_like(table, -1)
    pad, mixed, full = count, [], list(range(count + 1, len(originals)))
    seen = set()
    while (known := (pad, *mixed, -1, *full)) not in seen:
        seen.add(known)
        parts = np.array([*mixed, *full, pad])  # parts that are pads are numbered -1
        windows = [parts[block] for block in window_blocks(len(mixed), len(full), chunk)]
        for window in (*windows, np.full((1, chunk), pad)):
            quoted[tuple(window.T)] = table[tuple(window.T)]
        pad = int(table[(pad,) * chunk])
        mixed, full = (
            sorted(set(table[tuple(window.T)].tolist())) for window in (np.concatenate(windows[:-1]), windows[-1])
        )
    return TreeMachine(machine.symbols, np.arange(count, len(originals)), quoted, machine.outputs[originals])


@given(arbitrary_machines())
def test_gaps_change_no_answer(machine: TreeMachine) -> None:
    fine = with_windows_of_strings_alone(machine)
    actual, new = fine.reduced()
    assert actual.num_classes <= fine.num_classes
    for length in range(1, 11):
        strings = all_strings(2, length)
        np.testing.assert_array_equal(actual.answers(strings), machine.answers(strings))
        np.testing.assert_array_equal(actual.final_classes(strings), new[fine.final_classes(strings)])


@pytest.mark.parametrize("chunk", [2, 3])
@pytest.mark.parametrize("transducer", [library.parity(), library.even_pairs(), library.cycle(5)])
def test_leaves_and_merged_classes_become_one(transducer: Transducer, chunk: int) -> None:
    monoid = tree_machine(transducer, chunk)
    fine = with_windows_of_strings_alone(monoid)
    assert (fine.table < 0).any()
    actual, _ = fine.reduced()
    assert actual.num_classes == monoid.num_classes
    assert actual.difference_string(transducer) is None
    assert monoid_laws(actual).pad_is_identity
    assert monoid_laws(actual).num_violations == 0


@given(small, chunks, st.data())
def test_a_wrong_entry_is_found_after_reduction_too(transducer: Transducer, chunk: int, data: st.DataObject) -> None:
    right, _ = blown_up(tree_machine(transducer, chunk), 2, seed=0)
    table = right.table.copy()
    index = tuple(data.draw(st.integers(0, right.num_classes - 1)) for _ in range(chunk))
    table[index] = data.draw(st.integers(0, right.num_classes - 1))
    machine = TreeMachine(right.symbols, right.leaves, table, right.outputs)
    assert machine.reduced()[0].difference_string(transducer) == machine.difference_string(transducer)


def test_classes_of_no_string_are_cut_off() -> None:
    """Parity with classes of a pad, even and odd; a pad after a symbol, which no string has, leads to class 3."""
    table = np.array([[0, 1, 2, 3], [3, 1, 2, 3], [3, 2, 1, 3], [3, 3, 3, 3]])
    actual, new = TreeMachine(("a", "b"), np.array([0, 1, 2]), table, np.array([0, 0, 1, 1])).reduced()
    assert new.tolist() == [0, 1, 2, -1]
    assert actual.table.tolist() == [[0, 1, 2], [-1, 1, 2], [-1, 2, 1]]
    assert actual.difference_string(library.parity()) is None


def test_a_machine_that_lacks_an_entry_is_not_reduced() -> None:
    right = tree_machine(library.parity())
    table = right.table.copy()
    table[1, 1] = -1
    with pytest.raises(ValueError, match=r"an entry for the classes \[1, 1\], which string 'bb' needs"):
        TreeMachine(right.symbols, right.leaves, table, right.outputs).reduced()


@given(small, chunks, st.integers(1, 7), st.data())
def test_pads_at_any_position_change_no_answer(
    transducer: Transducer, chunk: int, length: int, data: st.DataObject
) -> None:
    machine = tree_machine(transducer, chunk)
    strings = all_strings(2, length)
    order = data.draw(st.permutations([*range(length), *[-1] * data.draw(st.integers(0, 5))]))
    indices = sorted(i for i, k in enumerate(order) if k >= 0)
    padded = np.full((len(strings), len(order)), -1)
    padded[:, indices] = strings
    np.testing.assert_array_equal(machine.answers(padded), machine.answers(strings))


@given(small, chunks)
def test_classes_of_prefixes_are_those_of_the_transducer(transducer: Transducer, chunk: int) -> None:
    machine, strings = tree_machine(transducer, chunk), all_strings(2, 6)
    np.testing.assert_array_equal(machine.outputs[machine.prefix_classes(strings)], transducer.run(strings))


@given(st.integers(0, 3), st.integers(1, 3), st.integers(2, 4))
def test_windows_are_counted_before_they_are_made(num_mixed: int, num_full: int, chunk: int) -> None:
    assert count_windows(num_mixed, num_full, chunk) == sum(map(len, window_blocks(num_mixed, num_full, chunk)))


def test_more_windows_than_memory_holds_are_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"at most 80,000,000 parts \(chunk_size times the number of windows\), got .*; use smaller chunks",
    ):
        window_blocks(2, 2, 48)


@pytest.mark.unchecked
def test_numbers_that_are_not_whole_are_refused() -> None:
    table, outputs = np.array([[0, 1], [1, 1]]), np.array([0, 1])
    parts = {"leaves": np.array([0, 0, 1]), "table": table, "outputs": outputs}
    for name, values in parts.items():
        with pytest.raises(ValueError, match=f"^{name}: expected whole numbers, got an array of float64; "):
            TreeMachine(("0", "1"), **{**parts, name: values + 0.5})


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([[0, 0, 2]], r"^table: expected classes in 0\.\.1, got classes from 0 to 2; correct the wrong"),
        ([[0, -1, 0]], r"^table: expected classes in 0\.\.1, got classes from -1 to 0; correct the wrong"),
        (
            [[0, 1, 0], [0, 1, 0]],
            r"^table: expected one entry for each window, got several for one window; keep one",
        ),
    ],
)
def test_malformed_entries_are_refused(entries: list, sentence: str) -> None:
    content = tree_machine(library.parity()).to_json()
    with pytest.raises(ValueError, match=sentence):
        TreeMachine.from_json({**content, "table": entries})


def test_levels_with_too_many_windows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three parts of symbols make nine windows of two, and three windows of a pad and a part."""
    assert [len(block) for block in window_blocks(0, 3, 2)] == [3, 0, 9]
    monkeypatch.setattr(windows, "MAX_PARTS", 24)
    window_blocks(0, 3, 2)
    monkeypatch.setattr(windows, "MAX_PARTS", 23)
    with pytest.raises(ValueError, match=r"^chunk_size: expected at most 23 parts .chunk_size times"):
        window_blocks(0, 3, 2)
    monkeypatch.undo()
    monkeypatch.setattr(windows, "MAX_MERGES", 9)
    window_blocks(0, 3, 2)
    monkeypatch.setattr(windows, "MAX_MERGES", 8)
    with pytest.raises(
        ValueError, match=r"^table: expected at most 8 windows to merge, got 9; use a machine with fewer classes$"
    ):
        window_blocks(0, 3, 2)
