"""Block outputs against the model's answers to their windows, and elements against the maps of strings."""

import numpy as np
import pytest
import torch
from automaton_strategies import checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.analysis.states import block_states, window_elements
from lengthwise.automata.monoid import transition_monoid
from lengthwise.models import make_model
from lengthwise.tasks import make_task

pytestmark = checked_strategies


def windows_of(length: int, chunk_size: int) -> list[list[tuple[int, int]]]:
    """Start and end of every node's window, level by level, by cutting from the end."""
    levels, width = [], 1
    while width < length or not levels:
        width *= chunk_size
        levels.append([(max(0, end - width), end) for end in range(length, 0, -width)][::-1])
    return levels


@given(transducers(symbols=("a", "b"), max_states=4), st.integers(2, 4), st.integers(1, 30), st.integers(0, 99))
def test_elements_are_the_maps_of_windows(transducer, chunk_size: int, length: int, seed: int) -> None:
    machine = transducer.semiautomaton
    monoid = transition_monoid(machine)
    strings = np.random.default_rng(seed).integers(0, 2, (3, length))
    levels = window_elements(monoid, strings, chunk_size)
    windows = windows_of(length, chunk_size)
    assert [nodes.shape for nodes in levels] == [(3, len(cuts)) for cuts in windows]
    for nodes, cuts in zip(levels, windows, strict=True):
        for position, (start, end) in enumerate(cuts):
            for row, string in enumerate(strings):
                reached = [machine.final_states(string[None, start:end], q)[0] for q in range(machine.num_states)]
                assert monoid.maps[nodes[row, position]].tolist() == reached


@pytest.mark.parametrize("variant", ["merge", "paper", "code"])
@pytest.mark.parametrize(("chunk_size", "length"), [(2, 1), (2, 2), (2, 63), (3, 27), (3, 28), (4, 100)])
def test_the_state_of_a_full_window_is_that_of_its_symbols_alone(variant: str, chunk_size: int, length: int) -> None:
    task = make_task("cycle-navigation")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2, chunk_size=chunk_size, variant=variant)
    inputs = task.sample(3, length, torch.Generator().manual_seed(0)).inputs
    blocks = block_states(model, task, inputs)
    for level, windows in enumerate(windows_of(length, chunk_size), start=1):
        states = blocks.at_level(level).states.unflatten(0, (3, -1))
        assert states.shape[1] == len(windows)
        for position, (start, end) in enumerate(windows):
            if end - start == chunk_size**level:
                alone = model.last_state(inputs[:, start:end])
                torch.testing.assert_close(states[:, position], alone.detach(), rtol=1e-4, atol=1e-5)
    assert blocks.num_levels == len(windows_of(length, chunk_size))
    torch.testing.assert_close(states[:, -1], model.last_state(inputs).detach(), rtol=1e-4, atol=1e-5)


def test_elements_are_in_the_order_of_their_states() -> None:
    """The element of a string is what the task answers, where the state of its machine is the answer."""
    task = make_task("cycle-navigation")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    batch = task.sample(20, 37, torch.Generator().manual_seed(0))
    blocks = block_states(model, task, batch.inputs)
    top = blocks.at_level(blocks.num_levels)
    assert torch.from_numpy(blocks.monoid.maps[top.elements.numpy(), 0]).tolist() == [
        task.transducer.minimize().semiautomaton.final_states(row[None].numpy())[0] for row in batch.inputs
    ]


def test_a_subsample_has_states_of_every_level() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    blocks = block_states(model, task, task.sample(4, 40, torch.Generator().manual_seed(0)).inputs)
    subsampled = blocks.subsample(7, torch.Generator().manual_seed(1))
    assert subsampled.levels.bincount().tolist() == [0, 7, 7, 7, 7, 7, 4]
    rows = {
        (*state, level, element) for state, level, element in zip(*map(torch.Tensor.tolist, blocks[:3]), strict=True)
    }
    kept = {
        (*state, level, element)
        for state, level, element in zip(*map(torch.Tensor.tolist, subsampled[:3]), strict=True)
    }
    assert kept <= rows
    assert torch.equal(subsampled.states, blocks.subsample(7, torch.Generator().manual_seed(1)).states)
    with pytest.raises(ValueError, match="max_states: expected a whole number of at least 1, got 0"):
        blocks.subsample(0, torch.Generator())


def test_a_thick_tree_and_foreign_symbols_are_refused() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2, thickness=2)
    with pytest.raises(ValueError, match="expected thickness 1, at which a state depends on one window, got 2"):
        block_states(model, task, torch.zeros(1, 3, dtype=torch.int64))
    model = make_model("regular-gpt", task, d_model=8, num_heads=2, lower_chunk_sizes=(4,))
    with pytest.raises(
        ValueError, match=r"expected the same chunk size at all levels, got \(4,\) at the lowest levels"
    ):
        block_states(model, task, torch.zeros(1, 3, dtype=torch.int64))
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    with pytest.raises(
        ValueError, match="inputs: expected at least 1 step, got 0; give strings of at least one symbol"
    ):
        block_states(model, task, torch.tensor([[]], dtype=torch.int64))
    for ids in ([[0, -1]], [[0, 2]]):
        with pytest.raises(ValueError, match=r"strings: expected strings of at least one symbol, with ids 0\.\.1"):
            block_states(model, task, torch.tensor(ids, dtype=torch.int64))
