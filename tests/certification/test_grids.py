"""Certificates of grid recurrences: what is proved, what is refuted, and what is no certificate."""

import copy

import pytest
import torch
from planted_rules import planted
from rule_net import rule_net

import lengthwise.certification.grids as grids_module
import lengthwise.certification.traces as traces_module
import lengthwise.certification.verify as verify_module
from lengthwise import certify, machine_model, make_model, make_task
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.confirm import confirm
from lengthwise.certification.counterexample import grade
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.rules.prover import RuleProver
from lengthwise.certification.verify import check
from lengthwise.extraction.readers.grid import GridReader
from lengthwise.report.tables.certificate import certificate_lines, checked_lines

TASKS = ("longest-common-subsequence", "levenshtein-distance")


@pytest.fixture(autouse=True)
def fewer_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lengths of strings that are traced, and their number, change no other part of the protocol."""
    for module in (grids_module, traces_module, verify_module):
        monkeypatch.setattr(module, "NUM_LETTERS", (4, 6, 9))
        monkeypatch.setattr(module, "NUM_PAIRS", 16)


def task_of(name: str):
    return make_task(name, alphabet=3, max_length=40)


@pytest.mark.parametrize("name", TASKS)
def test_a_net_that_is_the_rule_is_proved_verified_and_confirmed(name: str) -> None:
    task = task_of(name)
    model = rule_net(task.reference, task, margin=0.25)
    certificate = certify(model, task)
    assert (certificate.level, certificate.reason, certificate.evidence.slack) == ("proved", "", 0.25)
    again = Certificate.from_text(certificate.to_text())
    assert again == certificate
    size = len(task.reference.numbers)
    assert f"{size} pairs of a machine's class and a rule's class can be passed downwards" in check(again).verified[0]
    sentence = f"method 'rules' proves the model again: {certificate.evidence.describe()}"
    assert sentence in confirm(again, model, task)
    copied = [sentence for sentence in check(again).taken_on_trust if "copied, not proved" in sentence]
    assert copied == ["method 'rules' recorded slack=0.25; these numbers are copied, not proved"]
    sentence = f"{size} classes of messages that go down; the task's rule has {size}"
    assert ("machine", sentence) in list(certificate_lines(certificate))
    assert list(checked_lines(again, check(again)))
    with pytest.raises(ValueError, match="expected a machine that reads one string, got a machine that reads two"):
        machine_model(certificate)


def test_every_cell_of_a_grid_is_traced() -> None:
    """A grid of n rows and n columns has n^2 states."""
    task = task_of(TASKS[0])
    certificate = certify(rule_net(task.reference, task), task)
    assert check(certificate)
    for index, agreement in enumerate(certificate.trace_agreement):
        agreements = list(certificate.trace_agreement)
        agreements[index] = agreement.model_copy(update={"num_nodes": agreement.num_nodes - 1})
        with pytest.raises(ValueError, match="every state is in the class that the machine predicts, got fewer"):
            check(certificate.model_copy(update={"trace_agreement": tuple(agreements)}))


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TASKS)
def test_no_net_with_a_wrong_cell_that_matters_is_certified(name: str, every: int) -> None:
    """Wrong entries one by one; those of classes that never meet leave the net right, and its proof as it was."""
    task, levels = task_of(name), []
    for entry, wrong in list(planted(task.reference))[:: every * (1 if name == TASKS[0] else 4)]:
        model = rule_net(wrong, task)
        certificate = certify(model, task)
        levels.append(certificate.level)
        if certificate.level == "refuted":
            string = task.encode(" ".join(certificate.counterexample.string))
            assert bool(grade(model, task, string[None]).wrong)
            check(certificate)
        else:
            assert certificate.level == "proved", entry
            first, second = torch.randint(3, (2, 300, 8), generator=torch.Generator().manual_seed(0)).numpy()
            assert (wrong.run(first, second) == task.compare(*map(torch.tensor, (first, second))).numpy()).all()
    assert levels.count("refuted") >= 12 // every


@pytest.mark.parametrize("name", TASKS)
def test_borders_and_numbers_that_are_wrong_are_refuted(name: str) -> None:
    task = task_of(name)
    for part, shift in (("per_row", 1.0), ("per_row", -1.0), ("per_class", 1.0), ("top", 5.0), ("left", 5.0)):
        model = rule_net(task.reference, task)
        parameter = getattr(model.cell, part)
        with torch.no_grad():
            if part in ("top", "left"):
                parameter[0 if name == "levenshtein-distance" else 1] += shift
            else:
                parameter += shift
        assert certify(model, task).level == "refuted", part


def test_two_equal_logits_prove_nothing() -> None:
    task = task_of("levenshtein-distance")
    model = rule_net(task.reference, task)
    with torch.no_grad():
        best = model.cell.table[2, 2, 0, 0].argmax()
        model.cell.table[2, 2, 0, 0, (best + 1) % 3] = model.cell.table[2, 2, 0, 0, best]
    certificate = certify(model, task)
    assert certificate.level in ("extracted", "refuted")  # which of both is taken is torch's choice
    if certificate.level == "extracted":
        assert "two largest logits of a choice are equal" in certificate.reason


@pytest.mark.parametrize("border", ["top", "left"])
def test_logits_that_are_all_infinite_are_equal(border: str) -> None:
    task = task_of("levenshtein-distance")
    model = rule_net(task.reference, task)
    extraction = GridReader(model, task.symbols).extract(0.0)
    assert RuleProver().prove(model, extraction).slack == 1
    with torch.no_grad():
        getattr(model.cell, border).fill_(torch.inf)
    with pytest.raises(Unproved, match="two largest logits of a choice are equal"):
        RuleProver().prove(model, GridReader(model, task.symbols).extract(0.0))


def test_nets_that_compute_something_else_are_not_proved() -> None:
    """They err only where answers are larger than those tested."""
    task = task_of("longest-common-subsequence")
    hooked, replaced = rule_net(task.reference, task), rule_net(task.reference, task)
    hooked.readout.register_forward_hook(lambda module, given, logits: logits.where(given[0] < 20, 0.0))
    usual = replaced.numbers
    replaced.numbers = lambda inputs: usual(inputs).clamp(max=20)
    for model, sentence in (
        (hooked, "without hooks"),
        (replaced, "only the methods of its class, got a replaced method numbers"),
    ):
        certificate = certify(model, task)
        assert certificate.level == "extracted"
        assert sentence in certificate.reason


def test_nets_whose_messages_are_no_classes_are_not_certified() -> None:
    task = task_of("longest-common-subsequence")
    soft = rule_net(task.reference, task, margin=40.0)
    soft.cell.temperature.fill_(0.5)
    certificate = certify(soft, task)
    assert certificate.level == "tested"
    assert "its messages are distributions until training ends" in certificate.reason
    free = certify(make_model("grid-recurrence", task, messages="free"), task)
    assert free.level == "refuted"


def test_numbers_that_are_too_large_are_no_machine() -> None:
    task = task_of("longest-common-subsequence")
    model = rule_net(task.reference, task)
    with torch.no_grad():
        model.cell.per_class[0] = torch.inf
    assert certify(model, task).level in ("refuted", "tested")


def test_a_task_that_has_no_machine_is_rejected() -> None:
    task = make_task("edit-distance", alphabet=3, max_length=8)
    with pytest.raises(ValueError, match="task: expected a task with a finite reference machine, got edit-distance; "):
        certify(make_model("grid-recurrence", task), task)


def changed(content, path, value):
    content = copy.deepcopy(content)
    *parents, last = path
    part = content
    for key in parents:
        part = part[key]
    part[last] = value(part[last]) if callable(value) else value
    return content


MUTATIONS = [
    (("machine", "per_row"), lambda number: number + 1),
    (("machine", "top"), 0),
    (("machine", "left"), 0),
    *(((("machine", "numbers", k), lambda number: number + 1)) for k in range(3)),
    *(((("machine", "numbers", k), lambda number: -number - 3)) for k in range(3)),
    (("machine", "letters"), ["a", "b", "d"]),
    (("machine",), None),
    (("transducer", "per_row"), 0),
    *((("transducer", "numbers", k), 5) for k in range(3)),
    (("classes", 3), "x"),
    (("classes", 0), "1"),
    (("level",), "bounded"),
    (("level",), "extracted"),
    (("level",), "refuted"),
    (("max_length",), 100),
    (("evidence",), None),
    (("evidence", "slack"), 0.0),
    (("evidence", "slack"), -1.0),
    (("evidence", "num_cells"), lambda count: count - 1),
    (("evidence", "method"), "states"),
    (("model", "name"), "regular-gpt"),
    (("model", "messages"), "free"),
    (("closure",), None),
    (("tested",), []),
    (("tested", 0, "num_correct"), 0),
    (("tested", 2, "length"), 999),
    (("trace_agreement",), []),
    (("trace_agreement", 1, "num_strings"), 15),
    (("trace_agreement", 1, "num_nodes"), 10),
    (("trace_agreement", 2, "num_disagreements"), 1),
    *(
        (("machine", "cells", p, q, a, b, axis), lambda klass: (klass + 1) % 3)
        for p, q in ((1, 2), (2, 1), (2, 2), (0, 2))
        for a, b in ((0, 0), (0, 1), (2, 1))
        for axis in (0, 1)
    ),
]


def test_no_changed_certificate_passes() -> None:
    task = task_of("levenshtein-distance")
    content = certify(rule_net(task.reference, task), task).model_dump(mode="json")
    check(Certificate.model_validate(content))
    assert len(MUTATIONS) > 50
    for path, value in MUTATIONS:
        with pytest.raises(ValueError):  # noqa: PT011  # each has a sentence of its own
            check(Certificate.model_validate(changed(content, path, value)))
