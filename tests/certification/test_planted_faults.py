"""Models with a planted fault: none gets a certificate that it does not deserve, and every refutation is one."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
import torch
from automaton_strategies import all_strings
from last_symbol import LastSymbol
from planted import Attention, Counter, Doubling, LabelsChange, MultiplesOf3, WithoutTree, WrongInBatches
from table_model import right_machine, table_model

import lengthwise.extraction.base as extraction_module
from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.builder import Candidate, CertificateBuilder
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.equivalence import first_error
from lengthwise.certification.verify import check
from lengthwise.constructions import construct
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import reader_of
from lengthwise.models.base import SequenceModel
from lengthwise.models.machine import TransducerModel
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.tasks.base import RegularTask
from lengthwise.tasks.regular.parity import Parity
from lengthwise.training.loop import train

pytestmark = pytest.mark.unchecked

PROVED = ("extracted", "proved")


def right_model(task: RegularTask, chunk_size: int = 2, **faults) -> SequenceModel:
    return table_model(right_machine(task, chunk_size), num_answers=len(task.classes), **faults)


def errs(model: SequenceModel, task: RegularTask, string: torch.Tensor) -> bool:
    expected = int(task.solve(string[None])[0, -1])
    return expected != IGNORE and int(model.last(string[None]).argmax()) != expected


def checked(model: SequenceModel, task: RegularTask) -> tuple[Certificate, torch.Tensor | None]:
    """The certificate, once it has been read again and verified; a counterexample is run on the model here."""
    certificate = Certificate.from_text(certify(model, task).to_text())
    check(certificate)
    if certificate.counterexample is None:
        assert certificate.level != "refuted"
        return certificate, None
    string = task.encode("".join(certificate.counterexample.string))
    assert errs(model, task, string)
    return certificate, string


def levels(machine: TreeMachine, transducer: Transducer) -> Iterator[set[tuple[int, tuple[int, ...]]]]:
    """For each level the whole strings of it: their class, and the map of the transducer's states that they are.

    The definition, set by set: parts that begin with pads, parts of symbols only, and which of their windows are whole
    strings of their level, until parts repeat.
    """
    table, chunk = transducer.semiautomaton.table, machine.chunk_size
    pads = {(int(machine.leaves[0]), tuple(range(transducer.num_states)))}
    full = {(int(leaf), tuple(table[:, v].tolist())) for v, leaf in enumerate(machine.leaves[1:])}
    mixed: set[tuple[int, tuple[int, ...]]] = set()
    seen = set()
    while (known := (frozenset(pads), frozenset(mixed), frozenset(full))) not in seen:
        seen.add(known)
        windows = {k: product(*[pads] * (chunk - k - 1), mixed | full, *[full] * k) for k in range(chunk - 1)}
        windows[chunk - 1] = product(mixed, *[full] * (chunk - 1))
        merged = {k: {merge(machine, window) for window in parts} for k, parts in windows.items()}
        pads, full = ({merge(machine, window) for window in product(*[parts] * chunk)} for parts in (pads, full))
        mixed = set().union(*merged.values())
        yield full.union(*[merged[k] for k in merged if k or len(seen) == 1])


def merge(machine: TreeMachine, window: tuple[tuple[int, tuple[int, ...]], ...]) -> tuple[int, tuple[int, ...]]:
    states = window[0][1]
    for _, successors in window[1:]:
        states = tuple(successors[q] for q in states)
    return int(machine.table[tuple(k for k, _ in window)]), states


def is_right(machine: TreeMachine, transducer: Transducer) -> bool:
    """Whether the two answer every string of every length alike, where the transducer asks."""
    expected = transducer.outputs
    return all(
        expected[states[transducer.start]] in (IGNORE, machine.outputs[k])
        for level in levels(machine, transducer)
        for k, states in level
    )


def shortest_difference(machine: TreeMachine, transducer: Transducer, up_to: int) -> int | None:
    """By trying every string."""
    for length in range(1, up_to + 1):
        strings = all_strings(len(machine.symbols), length)
        expected = transducer.run(strings)[:, -1]
        if bool(((expected != IGNORE) & (machine.answers(strings) != expected)).any()):
            return length
    return None


FAULTY_TASKS = [
    ("parity", {}, 2),
    ("parity", {}, 3),
    ("cycle-navigation", {}, 2),
    ("even-pairs", {}, 2),
    ("bounded-dyck", {"depth": 2}, 2),
    ("tomita", {"index": 3}, 2),
    ("tomita", {"index": 5}, 2),
    ("word-problem", {"group": "S3"}, 2),
    ("dfa", {}, 2),
    ("regex", {"pattern": "(a|b)*abb"}, 2),
]


FAULTS = [(*task, seed) for task in FAULTY_TASKS for seed in range(3)]


def with_a_wrong_entry(task: RegularTask, chunk_size: int, seed: int) -> TreeMachine:
    generator = np.random.default_rng(seed)
    right = right_machine(task, chunk_size)
    num_merged = right.num_classes - len(right.leaves)
    table = right.table.copy()
    index = tuple(generator.integers(num_merged, size=chunk_size))
    table[index] = (table[index] + generator.integers(1, num_merged)) % num_merged
    return TreeMachine(right.symbols, right.leaves, table, right.outputs)


@pytest.mark.sampled
@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(("name", "fields", "chunk_size", "seed"), FAULTS)
def test_one_wrong_entry(name: str, fields: dict, chunk_size: int, seed: int) -> None:
    task = make_task(name, **fields)
    machine = with_a_wrong_entry(task, chunk_size, seed)
    certificate, string = checked(table_model(machine, num_answers=len(task.classes)), task)
    shortest = shortest_difference(machine, task.transducer, 9 if len(task.symbols) == 2 else 6)
    if is_right(machine, task.transducer):
        assert shortest is None
        assert certificate.level == "extracted"
    else:
        assert string is not None
        assert shortest is None or len(string) == shortest


def transducer_with_a_wrong_entry(task: RegularTask, seed: int) -> Transducer:
    generator = np.random.default_rng(seed)
    right = task.transducer.minimize()
    table = right.semiautomaton.table.copy()
    index = tuple(generator.integers(table.shape))
    table[index] = (table[index] + generator.integers(1, right.num_states)) % right.num_states
    return Transducer(Semiautomaton(table, right.symbols), right.start, right.outputs)


RECURRENT_FAULTS = sorted({(name, tuple(fields.items()), seed) for name, fields, _, seed in FAULTS})


@pytest.mark.sampled
@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("target", ["rnn", "block-linear-rnn"])
@pytest.mark.parametrize(("name", "fields", "seed"), RECURRENT_FAULTS)
def test_one_wrong_entry_of_a_recurrent_machine(name: str, fields: tuple, seed: int, target: str) -> None:
    task = make_task(name, **dict(fields))
    faulty = transducer_with_a_wrong_entry(task, seed)
    supervised = Transducer(faulty.semiautomaton, faulty.start, np.maximum(faulty.outputs, 0))
    certificate, string = checked(construct(target, supervised).model, task)
    error = first_error(faulty, task.transducer)
    if error is None:
        assert certificate.level in PROVED
    else:
        assert string is not None
        assert len(string) == len(error)


def test_most_of_these_faults_matter_and_without_them_the_machines_are_right() -> None:
    tasks = [(make_task(name, **fields), chunk_size) for name, fields, chunk_size in FAULTY_TASKS]
    assert all(is_right(right_machine(*task), task[0].transducer) for task in tasks)
    faults = [is_right(with_a_wrong_entry(*task, seed), task[0].transducer) for task in tasks for seed in range(3)]
    assert faults.count(False) >= 20
    assert sum(
        first_error(transducer_with_a_wrong_entry(task, seed), task.transducer) is not None
        for task in [make_task(name, **dict(fields)) for name, fields, _ in RECURRENT_FAULTS]
        for seed in range(3)
    ) >= len(RECURRENT_FAULTS)


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("hide", [False, True])
def test_labels_that_change_beyond_length_20(hide: bool) -> None:
    task = make_task("parity")
    model = LabelsChange(right_model(task), 21)
    certificate, string = checked(WithoutTree(model) if hide else model, task)
    assert certificate.level == "refuted"
    assert len(string) == 21
    assert certificate.counterexample.shortest == "as found"


class LateParity(Parity):
    """Parity, answered the other way round from 21 symbols on."""

    def solve(self, inputs):
        late = torch.arange(inputs.shape[1]) >= 20
        return super().solve(inputs) ^ late.long()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps"), [("regular-gpt", 1500), ("gru", 300), ("block-linear-rnn", 300)])
def test_nets_trained_on_labels_that_change_beyond_length_20(name: str, steps: int) -> None:
    spec = make_spec("parity", name, {"train": {"steps": steps}})
    model = spec.make_model()
    train(model, LateParity(), spec.recipe, seed=0)
    certificate, _ = checked(model, make_task("parity"))
    assert certificate.level not in PROVED


def counting(maximum: int) -> RegularTask:
    """Of strings that begin with b, those with at least so many b."""
    states = np.arange(maximum + 1)
    rows = [
        (maximum + 1, 1),
        *zip(states[1:], np.minimum(states[1:] + 1, maximum), strict=True),
        (maximum + 1, maximum + 1),
    ]
    return make_task("dfa", alphabet="ab", transitions=[list(map(int, row)) for row in rows], accepting=[maximum])


@pytest.mark.usefixtures("fewer_strings")
def test_tasks_that_differ_only_on_strings_longer_than_30() -> None:
    one, other = counting(31), counting(32)
    assert checked(right_model(one), one)[0].level == "extracted"
    recurrent = construct("rnn", one).model
    assert checked(recurrent, one)[0].level == "proved"
    for model, task in ((right_model(one), other), (right_model(other), one), (recurrent, other)):
        certificate, string = checked(model, task)
        assert certificate.level == "refuted"
        assert string.tolist() == [1] * 31
        assert certificate.counterexample.shortest == "of the machine"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", ["rnn", "block-linear-rnn"])
@pytest.mark.parametrize("maximum", range(25, 61))
def test_counters_that_are_off_by_one(target: str, maximum: int) -> None:
    """Nets that count to 25 to 60, against a task that counts one further: each errs on one string of that length."""
    model, task = construct(target, counting(maximum)).model, counting(maximum + 1)
    reader = reader_of(model, task.symbols)
    with torch.no_grad():
        candidate = Candidate(reader.extract(0.0 if target == "block-linear-rnn" else 0.5), 0.5)
        certificate = CertificateBuilder(model, task).refuted_by(candidate)
    assert certificate.level == "refuted"
    assert certificate.counterexample.string == ("b",) * maximum
    assert errs(model, task, torch.ones(maximum, dtype=torch.long))


@pytest.mark.usefixtures("fewer_strings")
def test_a_run_of_31_that_no_tree_of_few_classes_can_see() -> None:
    """Its monoid has about a thousand elements, so that nothing but trying strings is left: constant ones are tried."""
    never, long_run = (make_task("regex", pattern="b(a|b)*" + rest) for rest in ("", "|(a|b)*a{31}(a|b)*"))
    certificate, string = checked(TransducerModel(never.transducer, never.classes), long_run)
    assert certificate.level == "refuted"
    assert string.tolist() == [0] * 31


@pytest.mark.usefixtures("fewer_strings")
def test_a_plain_attention_model_on_parity() -> None:
    task = make_task("parity")
    drawn = Attention(maximum=4)
    drawn.reset_parameters(torch.Generator().manual_seed(0))
    certificate, string = checked(drawn, task)
    assert certificate.level == "refuted"
    assert len(string) <= 12
    certificate, string = checked(Attention(maximum=20), task)
    assert certificate.level == "refuted"
    assert string.tolist() == [1] * 21


@pytest.mark.usefixtures("fewer_strings")
def test_a_counter_is_no_finite_machine() -> None:
    """Its answers are right, but only a radius below 1 tells 1 and 2 apart."""
    task = MultiplesOf3()
    certificate, _ = checked(Counter(divisor=3), task)
    assert certificate.level == "tested"
    assert "do not close within 500 classes" in certificate.reason
    assert all(tested.num_correct == tested.num_graded for tested in certificate.tested)


@pytest.mark.usefixtures("fewer_long_strings")
def test_states_that_drift_for_ever_are_seen_to() -> None:
    """Every level adds 3 to one number, which no answer depends on: right, but in no box."""
    task = make_task("cycle-navigation")
    certificate, _ = checked(right_model(task, drift=3.0), task)
    assert certificate.level == "extracted"
    assert certificate.trace_agreement[-1].max_distance >= 3 * 8
    assert certificate.evidence is None


@pytest.mark.usefixtures("fewer_long_strings")
def test_states_that_leave_the_table_on_long_strings() -> None:
    """Beyond 4,096 symbols the parities change places."""
    task = make_task("parity")
    machine = right_machine(task)
    swap = torch.arange(machine.num_classes)
    swap[:2] = torch.tensor([1, 0])
    model = table_model(machine, drift=1e-3, fault_level=13, fault=lambda classes: swap[classes])
    certificate, string = checked(model, task)
    assert certificate.level == "refuted"
    assert len(string) > 4_096


@pytest.mark.usefixtures("fewer_long_strings")
@pytest.mark.parametrize(
    ("level", "seen_at"), [(8, "strings of 500 symbols"), (13, "powers of words (such as ababab)")]
)
def test_inner_states_that_leave_the_table_where_answers_stay_right(level: int, seen_at: str, monkeypatch) -> None:
    """Modulo 3, a number and its negative change places from a level on: the same numbers are multiples of 3."""
    monkeypatch.setattr(extraction_module, "RELATIVE_RADII", extraction_module.RELATIVE_RADII[:1])
    task = MultiplesOf3()
    machine = right_machine(task)
    negative = torch.arange(machine.num_classes)
    negative[1:3] = torch.tensor([2, 1])
    model = table_model(machine, drift=1e-3, fault_level=level, fault=lambda classes: negative[classes])
    certificate, _ = checked(model, task)
    assert certificate.level == "tested"
    assert f"{seen_at} are not in the class that the machine" in certificate.reason
    assert all(tested.num_correct == tested.num_graded for tested in certificate.tested)


@pytest.mark.usefixtures("fewer_strings")
def test_errors_that_only_batches_have_are_a_doubt() -> None:
    task = make_task("parity")
    for length in (9, 21):
        certificate, _ = checked(WrongInBatches(right_model(task), length), task)
        assert certificate.level == "tested"
        assert "or as a prefix of other strings, but correctly when it is read alone" in certificate.reason


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("power", [17, *(pytest.param(power, marks=pytest.mark.slow) for power in (25, 40))])
def test_a_number_that_doubles_at_every_level_is_seen(power: int) -> None:
    """Its first error is far beyond all strings that are drawn, and beyond those that could be."""
    model, task = Doubling(2**power), LastSymbol()
    assert not errs(model, task, torch.zeros(10_000, dtype=torch.long))
    certificate, _ = checked(model, task)
    assert certificate.level == "tested"
    assert "states along powers of words (such as ababab) are not in the class" in certificate.reason
