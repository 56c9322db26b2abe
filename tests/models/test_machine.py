"""Machines as models: what the machine answers, by the contract of a sequence model."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st
from table_model import right_machine, table_model

from lengthwise.automata import Transducer, library
from lengthwise.automata.tree_machine import TreeMachine, tree_machine
from lengthwise.certification.certify import certify
from lengthwise.certification.machine_model import machine_model, streamed_machine_model
from lengthwise.conventions import IGNORE, PAD
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.extraction.tree import extract_tree
from lengthwise.models.capabilities import AcceptsPads
from lengthwise.models.machine import TransducerModel, TreeMachineModel, as_model, load_machine_model
from lengthwise.ops.tree_attention import prefix_states_by_definition
from lengthwise.tasks import make_task

pytestmark = checked_strategies

NAMES = ("no", "yes", "perhaps")


@st.composite
def machines(draw: st.DrawFn) -> tuple[Transducer, TreeMachine | Transducer]:
    """A transducer whose answers are 0, 1, 2 or nothing, and one of the machines that answer as it does."""
    drawn = draw(transducers(symbols=("a", "b"), max_states=3))
    transducer = Transducer(drawn.semiautomaton, drawn.start, np.where(drawn.outputs < 0, IGNORE, drawn.outputs))
    return transducer, draw(st.sampled_from([transducer, tree_machine(transducer, 2), tree_machine(transducer, 3)]))


@given(machines(), st.integers(1, 9), st.sampled_from([torch.float32, torch.float64]))
def test_answers_as_the_machine_does(
    machines_that_agree: tuple[Transducer, TreeMachine | Transducer], length: int, dtype: torch.dtype
) -> None:
    transducer, machine = machines_that_agree
    model, strings = as_model(machine, NAMES).to(dtype), all_strings(2, length)
    inputs = torch.from_numpy(strings)
    expected = torch.from_numpy(transducer.run(strings))
    logits = model(inputs)
    assert logits.dtype == dtype
    assert torch.equal(logits, (expected[..., None] == torch.arange(3)).to(dtype))
    assert torch.equal(model.last(inputs), logits[:, -1])
    assert torch.equal(model.readout(model.last_state(inputs)), model.last(inputs))


@pytest.mark.parametrize("chunk", [2, 3])
@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (7, 63), (1024, 33), (1, 10_000)])
def test_last_is_the_last_of_forward(chunk: int, shape: tuple) -> None:
    transducer = library.even_pairs()
    inputs = torch.randint(2, shape, generator=torch.Generator().manual_seed(0))
    models = [as_model(machine, NAMES) for machine in (transducer, tree_machine(transducer, chunk))]
    logits = [model(inputs) for model in models]
    assert torch.equal(logits[0], logits[1])
    for model in models:
        assert torch.equal(model.last(inputs), logits[0][:, -1])


@given(transducers(symbols=("a", "b", "c")), st.integers(1, 30), st.integers(0, 9))
def test_streams_what_forward_says(drawn: Transducer, length: int, seed: int) -> None:
    transducer = Transducer(drawn.semiautomaton, drawn.start, np.where(drawn.outputs < 0, IGNORE, drawn.outputs))
    model = TransducerModel(transducer, NAMES)
    inputs = torch.randint(3, (5, length), generator=torch.Generator().manual_seed(seed))
    state = model.initial_state(batch_size=5)
    streamed = []
    for token in inputs.T:
        logits, state = model.step(token, state)
        streamed.append(logits)
    assert torch.equal(torch.stack(streamed, 1), model(inputs))


def test_pads_are_legal_where_the_machine_knows_them() -> None:
    inputs = torch.tensor([[1, PAD, 0, PAD, 1, 1]])
    tree, states = (as_model(machine, NAMES) for machine in (tree_machine(library.parity()), library.parity()))
    assert (isinstance(tree, AcceptsPads), isinstance(states, AcceptsPads)) == (True, False)
    assert tree(inputs).argmax(-1).tolist() == [[1, 1, 1, 1, 0, 1]]
    with pytest.raises(ValueError, match=r"inputs: expected symbol ids in 0\.\.1, got ids in -1\.\.1"):
        states.last(inputs)


@pytest.mark.parametrize("machine", [library.parity(), tree_machine(library.parity())])
def test_bad_inputs_are_refused_in_one_sentence(machine: TreeMachine | Transducer) -> None:
    model, inputs = as_model(machine, NAMES), torch.tensor([[0, 1]])
    for foreign in (2, 99, PAD - 1):
        for read in (model, model.last):
            with pytest.raises(ValueError, match="inputs: expected symbol ids in"):
                read(torch.tensor([[0, foreign]]))
    with pytest.raises(ValueError, match="expected at least 1 symbol, got 0"):
        model.last(inputs[:, :0])
    with pytest.raises(ValueError, match=r"classes: expected names for the machine's answers 0\.\.1, got"):
        as_model(machine, NAMES[:1])


@pytest.mark.parametrize("machine", [library.modular_arithmetic(3), tree_machine(library.even_pairs(), 3)])
def test_survives_saving(machine: TreeMachine | Transducer, tmp_path: Path) -> None:
    model = as_model(machine, NAMES)
    model.save(tmp_path / "model.json")
    again = load_machine_model(tmp_path / "model.json")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert (again.classes, type(again.machine)) == (NAMES, type(machine))
    inputs = torch.from_numpy(all_strings(len(machine.symbols), 4))
    assert torch.equal(again(inputs), model(inputs))
    assert not model.state_dict()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: "[]",
        lambda text: text + "\0",
        lambda text: text.replace("tree-machine", "machine"),
        lambda text: text.replace('"leaves"', '"leafs"'),
        lambda text: text.replace("[1, 1, 0]", "[1, 1, 2]"),
        lambda text: text.replace("[1, 1, 0]", "[1, -1, 0]"),
        lambda text: text.replace("[1, 1, 0]", "[1, 1]"),
        lambda text: text.replace('"outputs": [0, 1]', '"outputs": 7'),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(damage, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    text = json.dumps(TreeMachineModel(tree_machine(library.parity()), NAMES).to_json())
    assert damage(text) != text
    path.write_text(damage(text))
    with pytest.raises(
        ValueError, match=r"model\.json: expected a file of a machine model, got .*; save the model again"
    ):
        load_machine_model(path)
    with pytest.raises(ValueError, match="expected a file of a machine model, found no such file"):
        load_machine_model(tmp_path / "other.json")


@pytest.mark.parametrize("name", ["parity", "cycle-navigation", "modular-arithmetic"])
def test_is_measured_like_any_model(name: str) -> None:
    task = make_task(name)
    model = TransducerModel(task.transducer, task.classes)
    assert not list(model.parameters())
    assert length_curve(model, task, (1, 41, 501), num_strings=32).min() == 1.0


@pytest.mark.parametrize("chunk", [2, 3])
def test_replaces_the_net_it_was_read_off(chunk: int) -> None:
    net = table_model(tree_machine(library.cycle(5), chunk), scatter=0.1)
    machine, _ = extract_tree(net, ("0", "1", "2"), radius=0.6).machine.reduced()
    model = as_model(machine, tuple("01234"))
    inputs = torch.randint(3, (50, 37), generator=torch.Generator().manual_seed(0))
    states = prefix_states_by_definition(inputs - PAD, net.tree)
    assert torch.equal(model(inputs).argmax(-1), net.readout(states).argmax(-1))


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("name", ["parity", "bounded-dyck"])
def test_a_certified_machine_replaces_its_model(name: str) -> None:
    task = make_task(name)
    certificate = certify(table_model(right_machine(task, 2), num_answers=len(task.classes)), task)
    whole, streamed = machine_model(certificate), streamed_machine_model(certificate)
    strings = torch.from_numpy(all_strings(2, 7))
    supervised = task.solve(strings) != IGNORE
    for model in (whole, streamed):
        assert torch.equal(model(strings).argmax(-1)[supervised], task.solve(strings)[supervised])
    state = streamed.initial_state(len(strings))
    for index, tokens in enumerate(strings.unbind(1)):
        logits, state = streamed.step(tokens, state)
        assert torch.equal(logits, streamed(strings)[:, index])
    assert isinstance(whole, TreeMachineModel)


def test_a_machine_that_is_not_proved_replaces_nothing() -> None:
    task = make_task("parity")
    refuted = certify(TransducerModel(task.transducer, task.classes[::-1]), make_task("even-pairs"))
    for replace in (machine_model, streamed_machine_model):
        with pytest.raises(ValueError, match="expected level 'extracted' or higher, got level 'refuted'"):
            replace(refuted)


def test_a_file_that_is_nested_without_end_is_no_machine(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="expected a file of a machine model, got"):
        load_machine_model(path)
