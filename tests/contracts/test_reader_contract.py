"""Promises of every registered reader, whatever its name: the docstrings of `Reader`, `Traces` and `Extraction`."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from read_nets import ReadNet, drawn_net, nets, nets_read_by
from wrong_machines import differ, machine_answers, net_answers, short_strings, wrong_extractions, wrong_tables

from lengthwise.automata import Transducer
from lengthwise.extraction.base import READERS, Extraction, Machine, TraceCount, Traces, reader_of
from lengthwise.models import MODELS
from lengthwise.ops.answers import answers_of


@pytest.fixture(params=list(READERS))
def name(request) -> str:
    return request.param


@cache
def traced(name: str) -> ReadNet:
    """Return the first net that a reader reads, with the first radius at which the net agrees with its machine."""
    for read in nets_read_by(name):
        if compared(read, read.extraction).num_disagreements == 0:
            return read
    raise AssertionError(f"reader {name} reads no net whose states its machine has; add one to tests/proved_nets.py")


@torch.no_grad()
def compared(read: ReadNet, extraction: Extraction) -> TraceCount:
    """Compare the states along all short strings with those that an extraction names."""
    count = TraceCount(0, 0, 0, 0.0)
    for strings in short_strings(read.net.task):
        count += read.reader.traces(strings).compare(extraction)
    return count


def test_it_reads_a_registered_model(name: str) -> None:
    """Including one with weights by hand, since training may change which reader a model has."""
    read = [net.model for net in nets() if type(reader_of(net.model, net.task.symbols)) is READERS[name]]
    assert any(type(model) in MODELS.values() for model in read)


def test_it_leaves_other_kinds_alone(name: str) -> None:
    assert not all(isinstance(net.model, READERS[name].kind) for net in nets())


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_one_reader_or_none(model: str) -> None:
    net, *_ = drawn_net(model)
    reader = reader_of(net, ("a", "b"))
    assert (reader is not None) == any(isinstance(net, other.kind) and other.reads(net) for other in READERS.values())


@torch.no_grad()
def test_radii_fall_after_a_zero_for_exact_states(name: str) -> None:
    net, reader, _, _ = traced(name)
    radii = reader.radii(short_strings(net.task)[-1])
    assert radii
    assert np.isfinite(radii).all()
    assert all(radius > 0 for radius in radii[1:])
    falling = radii if radii[0] else radii[1:]
    assert all(one > other for one, other in pairwise(falling))


def test_an_extraction_has_a_class_for_each_prototype(name: str) -> None:
    net, _, extraction, radius = traced(name)
    num_prototypes = len(extraction.prototypes)
    assert extraction.prototypes.isfinite().all()
    assert len(extraction.classes) == num_prototypes > 0
    assert -1 <= extraction.classes.min() <= extraction.classes.max() < number_of_classes(extraction.machine)
    assert 0 <= extraction.num_given <= num_prototypes
    assert type(extraction.machine) is type(extraction.fine)
    assert number_of_classes(extraction.machine) <= number_of_classes(extraction.fine)
    assert set(extraction.machine.symbols) <= set(net.task.symbols)
    assert 0 <= extraction.radius <= radius
    assert extraction.gap > 0


def number_of_classes(machine: Machine) -> int:
    return machine.num_states if isinstance(machine, Transducer) else machine.num_classes


def test_both_machines_answer_as_the_net(name: str) -> None:
    net, _, extraction, _ = traced(name)
    expected = net_answers(net.model, net.task)
    assert not differ(machine_answers(extraction.machine, net.task), expected)
    assert not differ(machine_answers(extraction.fine, net.task), expected)


def test_the_same_net_gives_the_same_machine_and_stays_as_it_was(name: str) -> None:
    net, reader, extraction, radius = traced(name)
    weights = {key: tensor.clone() for key, tensor in net.model.state_dict().items()}
    for again in (reader.extract(radius), type(reader)(net.model, net.task.symbols).extract(radius)):
        assert again.machine.to_json() == extraction.machine.to_json()
        assert again.fine.to_json() == extraction.fine.to_json()
        assert torch.equal(again.prototypes, extraction.prototypes)
    assert all(torch.equal(weights[key], tensor) for key, tensor in net.model.state_dict().items())


def test_traces_count_all_strings_and_their_states(name: str) -> None:
    read = traced(name)
    count = compared(read, read.extraction)
    assert count.num_strings == sum(map(len, short_strings(read.net.task)))
    assert count.num_nodes >= count.num_strings
    assert count.num_disagreements == 0
    assert np.isfinite(count.max_distance)


def test_traces_count_the_states_that_a_wrong_machine_misses(name: str) -> None:
    read = traced(name)
    wrong = wrong_extractions(read.extraction, wrong_tables(read.extraction.fine), read.net.task)
    assert wrong
    assert all(compared(read, extraction).num_disagreements > 0 for extraction in wrong)


@torch.no_grad()
def test_answers_of_traces_are_the_final_answers_of_the_net(name: str) -> None:
    net, reader, _, _ = traced(name)
    for strings in short_strings(net.task):
        answers = reader.traces(strings).answers()
        assert answers is None or torch.equal(answers, answers_of(net.model.last(strings)))


@torch.no_grad()
def test_powers_of_words_are_traced_or_left_out(name: str) -> None:
    _, reader, extraction, _ = traced(name)
    powers = reader.power_traces()
    if powers is not None:
        assert isinstance(powers, Traces)
        assert powers.compare(extraction).num_disagreements == 0
