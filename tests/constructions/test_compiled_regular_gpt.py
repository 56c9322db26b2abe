"""Machines as RegularGPTs: Lemma 1 as printed, and exactness at every length."""

import re

import numpy as np
import pytest
import torch
from automaton_strategies import all_strings, checked_strategies, long_string, telling_strings, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import Transducer, library
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.semiautomaton import explore
from lengthwise.certification.certify import certify
from lengthwise.constructions import Construction, construct
from lengthwise.constructions.base import MAX_WEIGHTS
from lengthwise.constructions.regular_gpt import MAX_CHUNK_SIZE, _num_weights
from lengthwise.conventions import IGNORE, PAD
from lengthwise.extraction.tree import extract_tree
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.tasks import make_task

pytestmark = checked_strategies


def word_problem(**generators: tuple[int, ...]) -> Transducer:
    """After a string of permutations, "first this one, then that one": the number of their product."""
    identity = tuple(range(len(next(iter(generators.values())))))
    machine, elements = explore(
        tuple(generators), identity, lambda product, symbol: tuple(generators[symbol][point] for point in product)
    )
    return Transducer(machine, 0, np.arange(len(elements)))


A_5 = word_problem(a=(1, 2, 0, 3, 4), b=(1, 2, 3, 4, 0))
S_5 = word_problem(a=(1, 0, 2, 3, 4), b=(1, 2, 3, 4, 0))
MACHINES = {
    "parity": library.parity(),
    "even-pairs": library.even_pairs(),
    "cycle": library.cycle(5),
    **{f"D_{depth}": library.bounded_dyck(depth).transducer for depth in (2, 3, 4, 12)},
    **{f"Tomita {index}": library.tomita(index).transducer for index in range(1, 8)},
    "arithmetic mod 2": library.modular_arithmetic(2),
    "arithmetic mod 3": library.modular_arithmetic(3),
    "A_5": A_5,
    "S_5": S_5,
    "is it the identity of A_5?": Transducer(A_5.semiautomaton, 0, (np.arange(60) == 0).astype(np.int64)),
}


@pytest.fixture(params=MACHINES)
def machine(request) -> Transducer:
    return MACHINES[request.param]


def compiled(machine: Transducer, **options: int) -> RegularGPT:
    return construct("regular-gpt", machine, **options).model


def assert_right(logits: torch.Tensor, expected: np.ndarray) -> None:
    supervised = expected != IGNORE
    assert supervised.any()
    np.testing.assert_array_equal(logits.argmax(-1).numpy()[supervised], expected[supervised])


@pytest.mark.sampled(3)  # tests/contracts reads all short strings for every task
@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_is_right_on_all_strings_of_up_to_8_symbols(machine: Transducer, dtype: torch.dtype) -> None:
    """Of up to 4 where there are more than three symbols."""
    strings = all_strings(len(machine.symbols), 8 if len(machine.symbols) <= 3 else 4)
    model = compiled(machine).to(dtype)
    assert_right(model(torch.from_numpy(strings)), machine.run(strings))


@pytest.mark.sampled(5)
@torch.no_grad()
@pytest.mark.parametrize(("dtype", "which"), [(torch.float32, 0), (torch.float64, 1)], ids=["float32", "float64"])
def test_is_right_on_strings_of_100_000_symbols(machine: Transducer, dtype: torch.dtype, which: int) -> None:
    """Of 1,000 for the two largest models, where more takes seconds."""
    model = compiled(machine).to(dtype)
    string, answer = telling_strings(machine, 100_000 if model.config.hidden < 1_000 else 1_000)[which]
    assert model.last(torch.from_numpy(string)[None]).argmax() == answer


@given(transducers(max_states=4), st.integers(2, 4))
def test_larger_chunks_compute_the_same(machine: Transducer, chunk: int) -> None:
    machine = Transducer(machine.semiautomaton, machine.start, np.where(machine.outputs < 0, IGNORE, machine.outputs))
    model = compiled(machine, chunk_size=chunk)
    strings = np.random.default_rng(0).integers(len(machine.symbols), size=(64, 63))
    supervised = (expected := machine.run(strings)) != IGNORE
    with torch.no_grad():
        answers = model(torch.from_numpy(strings)).argmax(-1).numpy()
    np.testing.assert_array_equal(answers[supervised], expected[supervised])


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 2, 7, 63])
@pytest.mark.parametrize("chunk", [2, 3])
def test_the_masked_definition_gives_the_same_bits(length: int, chunk: int) -> None:
    model = compiled(library.cycle(5), chunk_size=chunk)
    strings = torch.randint(3, (8, length), generator=torch.Generator().manual_seed(0))
    assert torch.equal(model(strings), model.forward_by_definition(strings))


@torch.no_grad()
def test_states_are_zeros_and_ones_at_every_level() -> None:
    seen = []

    def watch(states: torch.Tensor) -> torch.Tensor:
        seen.append(states.unique().tolist())
        return states

    string = torch.from_numpy(long_string(A_5, 5_000, seed=0)[None])
    compiled(A_5).perturbed(watch).last(string)
    assert len(seen) > 8
    assert all(numbers == [0, 1] for numbers in seen)


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in ("D_12", "arithmetic mod 3")])
def test_is_certified_for_every_length(name: str) -> None:
    """The finite machine read off the model, without the task, equals the task's at every length."""
    machine = MACHINES[name]
    extracted = extract_tree(compiled(machine), machine.symbols, radius=0.1)
    assert extracted.radius == 0
    assert extracted.machine.difference_string(machine) is None


@pytest.mark.usefixtures("fewer_strings")
def test_a_compiled_word_problem_gets_a_certificate() -> None:
    task = make_task("word-problem", group="A5")
    assert certify(construct("regular-gpt", task).model, task).reaches("extracted")


def lemma_1(n: int) -> tuple[np.ndarray, np.ndarray]:
    """W1 and W2 as the listing of appendix D.1 makes them."""
    first = np.zeros((2 * n * n, n**3), dtype=int)
    for i in range(n):
        for j in range(n):
            for k in range(n):
                first[i * n + k, i * n * n + j * n + k] = 1
                first[n * n + k * n + j, i * n * n + j * n + k] = 1
    return first, np.kron(np.eye(n * n, dtype=int), np.ones((n, 1), dtype=int))


@pytest.mark.parametrize(("index", "n"), [(2, 2), (3, 4)])
def test_weights_are_those_of_lemma_1(index: int, n: int) -> None:
    """Tomita's languages 2 and 3 have n states next to the sink."""
    block = compiled(library.tomita(index).transducer).layers[0].feed_forwards[0]
    first, second = lemma_1(n)
    np.testing.assert_array_equal(block.widen.weight.detach().numpy().T, first)
    np.testing.assert_array_equal(block.narrow.weight.detach().numpy().T[:, : n * n], second)
    assert (block.widen.bias == -1).all()
    assert (block.narrow.bias == 0).all()


@torch.no_grad()
def test_the_example_of_the_paper() -> None:
    """Appendix D.2: A = [[1, 0], [1, 0]] and B = [[0, 1], [1, 0]] give AB = [[0, 1], [0, 1]]."""
    layer = compiled(library.tomita(2).transducer).layers[0]
    windows = torch.zeros(2, 8)
    windows[:, :4] = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
    assert merge_windows(layer, windows).tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def chosen(construction: Construction) -> str:
    (line,) = (line for line in construction.about if line.startswith("representation: "))
    return line


@pytest.mark.parametrize(
    ("machine", "representation"),
    [
        (A_5, "permutations of 5 points"),
        (S_5, "permutations of 5 points"),
        (library.cycle(7), "one-hot vectors of 7 elements"),
        (library.bounded_dyck(4), "matrices of 5 states (without the sink)"),
        (dfa_from_regex("(a|b)*abb"), "one-hot vectors of"),
    ],
)
def test_the_smallest_representation_is_taken(machine: Transducer, representation: str) -> None:
    assert chosen(construct("regular-gpt", machine)).startswith(f"representation: {representation}")


def test_a_single_symbol_and_pads_alone_have_one_level_or_more() -> None:
    model = compiled(library.parity())
    with torch.no_grad():
        answers = model.last(torch.tensor([[0], [1], [PAD]])).argmax(-1).tolist()
    assert answers == [0, 1, 0]


@pytest.mark.parametrize("chunk_size", [-1, 1, 2_001, 99_999_999_999])
def test_chunks_that_cannot_be_are_refused(chunk_size: int) -> None:
    sentence = (
        f"chunk_size: expected 2 to 2,000, got {chunk_size}; choose a size in this range (every model with larger "
        "chunks has more than 20,000,000 weights)"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        construct("regular-gpt", library.parity(), chunk_size=chunk_size)


def test_sizes_of_thousands_of_digits_are_powers_of_ten() -> None:
    """101^1,901 hidden units, whose number Python would not print."""
    sentence = r"would have over 10\^\d{4} weights, more than 20,000,000; take a smaller machine or chunk size"
    with pytest.raises(ValueError, match=sentence):
        construct("regular-gpt", library.bounded_dyck(200), chunk_size=1_900)


def test_the_largest_chunk_is_that_of_the_smallest_model() -> None:
    assert _num_weights(1, 1, 1_990, num_symbols=1, num_classes=1) <= MAX_WEIGHTS
    assert _num_weights(1, 1, MAX_CHUNK_SIZE + 1, num_symbols=1, num_classes=1) > MAX_WEIGHTS


def test_modular_arithmetic_mod_5_is_refused_with_its_size() -> None:
    sentence = (
        r"from one-hot vectors of 518 elements, would have 560,\d{3},\d{3} weights, more than 20,000,000; .* an rnn"
    )
    with pytest.raises(ValueError, match=sentence):
        construct("regular-gpt", library.modular_arithmetic(5))
