"""Trees over strings, and the traces that are compared on them."""

import numpy as np
import pytest
import torch

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.constructions import construct
from lengthwise.extraction import tree_traces
from lengthwise.extraction.tree import extract_tree
from lengthwise.extraction.tree_traces import KnownMerges, Trees, build_trees, compare_traces, root_answers
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel, TreeModel
from lengthwise.ops.tree import TreeLayer
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.tasks import make_task

TASK = make_task("tomita", index=3)


def accumulated_rounding(model: TreeModel, trees: Trees) -> torch.Tensor:
    """How far rounding can move each root, to first order: a number for each string.

    Every merge adds some units for each term of its sums to what its Jacobian makes of the errors of its parts.
    """
    states = model.tree.leaves.detach()
    errors = torch.zeros(len(states), dtype=states.dtype)
    of_one_merge = 100 * states.shape[1] * torch.finfo(states.dtype).eps
    for level in trees.levels:
        parts = states[level.windows].requires_grad_()
        merged = merge_windows(model.tree.layers[0], parts)
        rows = [torch.autograd.grad(merged[:, d].sum(), parts, retain_graph=True)[0] for d in range(merged.shape[1])]
        gains = torch.linalg.matrix_norm(torch.stack(rows, 2), 2)  # of the Jacobians [windows, parts, D, D]
        errors = (gains * errors[level.windows]).sum(1) + of_one_merge
        states = level.states
    return errors[trees.roots]


@pytest.mark.parametrize(("chunk_size", "length"), [(2, 1), (2, 37), (3, 100), (2, 500)])
def test_roots_are_the_models_own_states(chunk_size: int, length: int) -> None:
    """Nodes over equal windows are one, and yet each root is the state of the whole string but for rounding.

    Another order of sums is another rounding, which every level enlarges: the tolerance is what the levels can make of
    it. In float64 that stays far below the distance of two states.
    """
    task = make_task("tomita", index=4)
    model = make_model("regular-gpt", task, d_model=16, num_heads=4, chunk_size=chunk_size).double()
    strings = task.sample(30, length, torch.Generator().manual_seed(length)).inputs
    assert isinstance(model, SequenceModel)
    assert isinstance(model, TreeModel)
    trees = build_trees(model, strings)
    tolerance = 2 * accumulated_rounding(model, trees)  # both are rounded
    assert float(tolerance.max()) < 1e-4
    with torch.no_grad():
        states, logits = trees.levels[-1].states[trees.roots], model.last(strings)
        assert bool(((states - model.last_state(strings)).norm(dim=1) <= tolerance).all())
        assert bool(((logits[:, 0] - logits[:, 1]).abs() > tolerance).all())  # no answer hangs on a bit
        assert torch.equal(root_answers(model, [trees]), logits.argmax(-1))


def compiled() -> TreeModel:
    model = construct("regular-gpt", TASK).model
    assert isinstance(model, TreeModel)
    return model


def trees_and_merges(monkeypatch: pytest.MonkeyPatch, model: TreeModel, max_known: int) -> tuple[list[Trees], int]:
    """The trees over strings of two lengths, and how many windows were merged for them."""
    num_merged = []

    def counted(layer: TreeLayer, windows: torch.Tensor) -> torch.Tensor:
        num_merged.append(len(windows))
        return merge_windows(layer, windows)

    monkeypatch.setattr(tree_traces, "MAX_KNOWN", max_known)
    monkeypatch.setattr(tree_traces, "merge_windows", counted)
    known, generator = KnownMerges(model), torch.Generator().manual_seed(0)
    strings = [torch.randint(2, (50, length), generator=generator) for length in (300, 40)]
    return [build_trees(model, batch, known) for batch in strings], sum(num_merged)


def test_of_few_states_no_window_is_merged_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 26 elements, and leaves of their own; trees are those of every node by itself."""
    model, size = compiled(), 26 + 3
    few, num_merges = trees_and_merges(monkeypatch, model, 2_000)
    every, num_nodes = trees_and_merges(monkeypatch, model, 0)
    assert num_merges <= size**2 < num_nodes
    for trees, by_definition in zip(few, every, strict=True):
        below = model.tree.leaves.detach()
        for level, of_nodes in zip(trees.levels, by_definition.levels, strict=True):
            assert len(level.states.unique(dim=0)) == len(level.states) <= size
            assert torch.equal(level.states[level.rows], merge_windows(model.tree.layers[0], below[level.windows]))
            assert torch.equal(level.states[0], of_nodes.states[0])  # the pads
            assert int(level.counts.sum()) == int(of_nodes.counts.sum())
            below = level.states
        roots, nodes = (built.levels[-1].states[built.roots] for built in (trees, by_definition))
        assert torch.equal(roots, nodes)


def test_of_many_states_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model("regular-gpt", TASK, d_model=8, num_heads=2)
    assert isinstance(model, TreeModel)
    few, num_merges = trees_and_merges(monkeypatch, model, 100)
    every, num_nodes = trees_and_merges(monkeypatch, model, 0)
    assert num_merges > num_nodes  # what was merged before there were too many is merged again
    for trees, by_definition in zip(few, every, strict=True):
        assert len(trees.levels[-1].states) == len(trees.levels[-1].windows)
        roots, nodes = (built.levels[-1].states[built.roots] for built in (trees, by_definition))
        torch.testing.assert_close(roots, nodes)


@torch.no_grad()
def test_a_wrong_class_of_one_of_several_windows_with_one_state_is_counted() -> None:
    model = compiled()
    extraction = extract_tree(model, TASK.symbols, radius=0.1)
    trees = build_trees(model, TASK.sample(20, 100, torch.Generator().manual_seed(0)).inputs)
    assert compare_traces(model, extraction, [trees]).num_disagreements == 0
    machine = extraction.machine
    assert isinstance(machine, TreeMachine)
    for window in np.argwhere(machine.table >= 0):
        table = machine.table.copy()
        table[tuple(window)] = (table[tuple(window)] + 1) % machine.num_classes
        wrong = extraction._replace(machine=TreeMachine(machine.symbols, machine.leaves, table, machine.outputs))
        if table_is_used(machine, window, trees):
            assert compare_traces(model, wrong, [trees]).num_disagreements > 0


def table_is_used(machine: TreeMachine, window: np.ndarray, trees: Trees) -> bool:
    """Whether some node has parts of these classes."""
    classes = machine.leaves
    for level in trees.levels:
        parts = classes[level.windows.numpy()]
        if (parts == window).all(1).any():
            return True
        of_windows, classes = machine.merged(parts), np.zeros(len(level.states), dtype=np.int64)
        classes[level.rows.numpy()] = of_windows
    return False


@pytest.mark.parametrize(("base", "count"), [(2, 3), (3, 8), (1024, 2), (1024, 9), (5, 4096)])
def test_windows_of_words_are_different_and_spread_over_all(base: int, count: int) -> None:
    digits = tree_traces._spread_digits(base, count)
    assert digits.shape == (min(base**count, 1024), count)
    assert len(digits.unique(dim=0)) == len(digits)
    assert int(digits.min()) == 0
    assert 0.99 * (base - 1) <= int(digits.max()) <= base - 1
    assert len(digits[:, 0].unique()) > min(base, 1024) / 2
