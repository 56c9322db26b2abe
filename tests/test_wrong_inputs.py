"""Arguments of automata, formats, texts and constructions that are of another kind: one sentence names the argument."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from lengthwise.automata import library
from lengthwise.automata.dfa import joint_sampler
from lengthwise.automata.drawing import machine_svg
from lengthwise.automata.groups import permutation_group
from lengthwise.automata.labeled import LabeledMachine, difference, labeled_dfa
from lengthwise.automata.lstar import learn_by_lstar
from lengthwise.automata.random_languages import random_language
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.constructions.base import construct
from lengthwise.formats.base import FORMATS
from lengthwise.formats.files import read_machine, write_machine
from lengthwise.formats.mlregtest import read_mlregtest
from lengthwise.layers.delta_net import DeltaNetLayer
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.layers.xlstm import MLSTMLayer, SLSTMLayer
from lengthwise.models.base import make_model
from lengthwise.tasks import make_task
from lengthwise.tasks.given.reading import read_examples
from lengthwise.text.tokenizer import train_tokenizer

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

MACHINE = dfa_from_regex("(a|b)*b")
NET = make_model("gru", make_task("parity"))
LABELED = labeled_dfa(MACHINE)
IDS = r"strings: expected lists of symbol ids, got .*; give the ids of each string"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: MACHINE.accepts_each(["ab"]), IDS),
        (lambda: MACHINE.accepts_each([3]), IDS),
        (lambda: MACHINE.accepts_each(None), IDS),
        (lambda: MACHINE.equivalent("x"), "other: expected a DFA, got 'x'; give one"),
        (lambda: MACHINE.excess_string(None), "other: expected a DFA, got None; give one"),
        (lambda: MACHINE.sample([[0.5]]), r"uniforms: expected an array \[strings, length\] .*, got \[\[0.5\]\]; draw"),
        (lambda: MACHINE.sample(np.array([0.5])), r"uniforms: expected .*, got shape \(1,\); draw"),
        (lambda: joint_sampler(["x"]), r"languages\[0\]: expected a DFA, got 'x'; give one"),
        (lambda: joint_sampler([MACHINE], ()), "repeat_weights: expected at least one weight, got none; give"),
        (lambda: MACHINE.transducer.equivalent(MACHINE), "other: expected a Transducer, got DFA"),
        (lambda: MACHINE.semiautomaton.product(3), "other: expected a Semiautomaton, got 3; give one"),
        (
            lambda: MACHINE.semiautomaton.transition_matrix(np.array([1.0])),
            r"probabilities: expected a number of at least 0 for each of the 2 symbols, got shape \(1,\), .*; give the "
            "probabilities in the order of the symbols$",
        ),
        (lambda: LABELED.answer_to("abc"), "string: expected only symbols of the machine .a b., got 'c'; replace"),
        (lambda: LABELED.answer_to(3), "string: expected several texts, got 3; give a list"),
        (lambda: LabeledMachine(None, ("a",)), "machine: expected a Transducer, got None; give one"),
        (lambda: LabeledMachine(MACHINE.transducer, 3), "classes: expected several texts, got 3; give a list"),
        (lambda: labeled_dfa(3), "dfa: expected a DFA, got 3; give one"),
        (lambda: difference(LABELED, MACHINE), "second: expected a LabeledMachine, got DFA"),
        (lambda: dfa_from_regex("a", 3), "alphabet: expected several texts, got 3; give a list"),
        (lambda: permutation_group(3), "name: expected the name of a group, such as 'S5', got 3; give one"),
        (lambda: library.cycle("x"), "size: expected a whole number of at least 1, got 'x'; give 1 or more"),
        (
            lambda: library.digit_sum("x"),
            "modulus: expected a whole number from 1 to 10, got 'x'; give a number in this range",
        ),
        (
            lambda: library.modular_arithmetic(2.5),
            "modulus: expected a whole number from 1 to 10, got 2.5; give a number in this range",
        ),
        (lambda: library.bounded_dyck(2.5), "depth: expected a whole number, got 2.5; give one"),
        (
            lambda: library.exact_depth_dyck(0),
            r"depth: expected a nesting depth of at least 1, got 0; choose 1 or more",
        ),
        (
            lambda: random_language("3", 2, 0),
            "num_states: expected a whole number from 1 to 1,000, got '3'; give a number in this range",
        ),
        (
            lambda: machine_svg(MACHINE, ("a", "b")),
            "machine: expected a machine with an output for each state, got a DFA",
        ),
        (
            lambda: learn_by_lstar(0, "Moore", len, len),
            "num_symbols: expected a whole number from 1 to 1,000,000, got 0",
        ),
        (lambda: learn_by_lstar(2, "Moore", 3, len), "query: expected a function, got 3; give one"),
        (
            lambda: MergeLayer(d_model=4, num_heads=0, chunk_size=2),
            "num_heads: expected a divisor of d_model=4, got 0; ",
        ),
        (
            lambda: MergeLayer(d_model=4, num_heads=2, chunk_size=0),
            "chunk_size: expected a whole number of at",
        ),
        (lambda: SLSTMLayer(d_model=4, num_heads=3), "num_heads: expected a divisor of d_model=4, got 3; choose"),
        (
            lambda: MLSTMLayer(d_model=4, num_heads=0),
            "num_heads: expected a divisor of 2 d_model=8, got 0; choose",
        ),
        (
            lambda: DeltaNetLayer(d_model=4, num_heads=0),
            "num_heads: expected a divisor of d_model=4, got 0; choose",
        ),
        (lambda: NET.step([0], NET.initial_state(1)), r"token: expected a tensor, got a list; make a tensor"),
        (lambda: NET.step(torch.tensor([0]), None), r"state: expected a tensor, got a NoneType; make a tensor"),
        (lambda: read_machine(3), "path: expected a path, got 3; give one"),
        (lambda: write_machine(MACHINE, "x.dot"), "machine: expected a LabeledMachine, got DFA"),
        (lambda: write_machine(LABELED, 3), "path: expected a path, got 3; give one"),
        (lambda: read_mlregtest(None), "path: expected a path, got None; give one"),
        (lambda: train_tokenizer(3, 300), "texts: expected several texts, got 3; give a list"),
        (lambda: train_tokenizer(["a"], "x"), "vocab_size: expected a whole number of tokens, got 'x'; give one"),
        (
            lambda: construct("regular-gpt", make_task("parity"), chunk_size="x"),
            "chunk_size: expected a whole number, got 'x'; give one",
        ),
        (
            lambda: read_examples([("a", "x"), ("b", "y")], min_classes="x"),
            "min_classes: expected a whole number, got 'x'; give one",
        ),
    ],
)
def test_one_sentence_names_the_argument(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        call()


@pytest.mark.parametrize("name", [name for name in FORMATS if hasattr(FORMATS[name], "read")])
def test_formats_read_only_texts(name: str) -> None:
    for text in (3, None, b"x"):
        with pytest.raises(ValueError, match=r"^text: expected the text of a machine, got .*; give one$"):
            FORMATS[name].read(text)


def test_iterators_are_read_once() -> None:
    """A check that consumed the iterator would leave an empty string, or no texts, for the answer."""
    machine = labeled_dfa(dfa_from_regex("(a|b)*abb"))
    assert machine.answer_to(iter("abb")) == machine.answer_to("abb") != machine.answer_to("ab")
    texts = ["abab "] * 50
    assert train_tokenizer(iter(texts), 260).merges == train_tokenizer(texts, 260).merges != ()


def test_heads_may_be_numpy_integers_and_divide_the_inner_width() -> None:
    assert SLSTMLayer(d_model=8, num_heads=np.int64(2)).num_heads == 2
    assert MLSTMLayer(d_model=6, num_heads=4).width == 3
    with pytest.raises(ValueError, match=r"^num_heads: expected a divisor of 2 d_model=12, got 5; choose from "):
        MLSTMLayer(d_model=6, num_heads=5)
