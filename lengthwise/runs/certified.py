"""Certificates of models in files: a trained run, a compiled machine, or a net that a TOML file describes."""

from collections.abc import Callable
from pathlib import Path

import torch

from lengthwise.automata.answers import acceptor_index
from lengthwise.certification.builder import mismatched_part
from lengthwise.certification.certificate import Certificate, certificate_file
from lengthwise.certification.certify import certify
from lengthwise.certification.confirm import confirm
from lengthwise.certification.counterexample import shortest_error
from lengthwise.certification.equal import equal
from lengthwise.certification.equality import Equality
from lengthwise.certification.proof_file import write_proof
from lengthwise.certification.verify import SHORTEST_CLAIM
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.files import write_by_rename
from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.runs.compiled import DESCRIPTION, load_compiled
from lengthwise.runs.machine_sources import given_machines
from lengthwise.runs.provenance import versions
from lengthwise.runs.stored import load_stored
from lengthwise.tasks.base import MachineTask, RegularTask, SymbolTask, Task, make_task
from lengthwise.tasks.given.task import ExamplesTask
from lengthwise.tasks.regular.machine import machine_task
from lengthwise.tasks.regular.recognition import RecognitionTask


def certify_folder(folder: Path, out: Path | None = None) -> tuple[Certificate, Path]:
    """Certify the model of a run, a compiled machine or a TOML file; return the certificate and its path.

    By default, the certificate is saved in the folder, or next to the TOML file (`load_described`).

    Raises:
        ValueError: the folder has no model or is damaged. The folder's machine was compiled without a task. The model
            was trained on examples, so the right answers to other strings are unknown.
    """
    path = out or certificate_file(folder)
    stored = load_stored(folder)
    if isinstance(stored.task, ExamplesTask):
        raise ValueError(
            f"{folder}: expected a task with an answer to every string, got {stored.task.name!r}; certify the model "
            "against a machine that has the right answers"
        )
    about = {stored.kind: stored.name}
    if stored.run is not None and not stored.run.is_trained:
        about["weights"] = f"{stored.run.steps_text}, before training was over"
    return write_certificate(stored.model, stored.task, path, **about), path


def certify_against(folder: Path, source: str, out: Path | None = None) -> Certificate:
    """Certify the model of a run, a compiled machine or a TOML file against the machine in `source`.

    The machine, not the model's own task, decides which answers are right. Symbols and answers are matched by name
    (`LabeledMachine.aligned`). Strings are drawn as in task `dfa` if the model decides whether a string is in a
    language, and otherwise as in task `machine`. A model that was trained on examples is certified on all strings,
    including its training strings.

    Raises:
        ValueError: the folder has no model. The model's task is neither regular nor given by examples. `source` has no
            machine (`given_machines`) with the symbols and the answers of the model's task.
    """
    stored = load_stored(folder)
    about = {stored.kind: stored.name}
    return write_certificate(stored.model, task_of_machine(folder, stored.task, source), out, **about)


def task_of_machine(folder: Path, task: Task, source: str) -> RegularTask:
    """Return the task that the machine in `source` solves, with the symbols and answers of `task`.

    `task` is the task of the model in `folder`.

    Raises:
        ValueError: `task` is neither regular nor given by examples, or `source` has no machine (`given_machines`) with
            the symbols and answers of `task`.
    """
    if not isinstance(task, RegularTask | ExamplesTask):
        raise ValueError(
            f"{folder}: expected a model of a regular task, or a model trained on examples, got a model of "
            f"{task.name}; name another folder"
        )
    (given,) = given_machines([source], task.symbols)
    machine = given.labeled.aligned(task.symbols, task.classes)
    if isinstance(task, RecognitionTask) and machine.is_automaton:
        return make_task("dfa", **machine.dfa().to_json())  # type: ignore[return-value]  # the registry has any task
    return machine_task(machine)


def compare_nets(
    first: Path,
    second: Path,
    seed: int = 0,
    budget: float | None = None,
    report: Callable[[str], None] = lambda sentence: None,
) -> tuple[Equality, str]:
    """Compare the models of two runs, compiled machines or TOML files on all strings (`equal`).

    The models must have the same symbols in the same order. Answers are matched by name or, if the two models have no
    name in common, in their order. Names that mean accepted and rejected (`acceptor_index`) must be in the same order
    in both models. Return the result, and a text that lists the answers that were matched in order ("" if there are
    none).

    Raises:
        ValueError: a path has no model that reads symbols, or the symbols or answers of the two models do not match.
    """
    (net, symbols, classes), (other, others, other_classes) = (_named_net(path) for path in (first, second))
    if symbols != others:
        raise ValueError(
            f"{second}: expected a net with the symbols {' '.join(symbols)} in this order, as in the net {first}, "
            f"got the symbols {' '.join(others)}; compare nets of one alphabet"
        )
    if len(classes) != len(other_classes) or (set(classes) & set(other_classes) and classes != other_classes):
        raise ValueError(
            f"{second}: expected a net with the answers {', '.join(classes)} in this order, as in the net {first}, "
            f"got the answers {', '.join(other_classes)}; compare nets with the same answers"
        )
    accepting = [acceptor_index(names) for names in (classes, other_classes)]
    if None not in accepting and accepting[0] != accepting[1]:
        raise ValueError(
            f"{second}: expected the accepting answer at index {accepting[0]}, as in the net {first} "
            f"({', '.join(classes)}), got index {accepting[1]} ({', '.join(other_classes)}); compare nets whose "
            "answers are in the same order"
        )
    pairs = zip(other_classes, classes, strict=True)
    matched = ", ".join(f"{name} of {second} as {answer}" for name, answer in pairs if name != answer)
    result = equal(net, other, symbols=symbols, classes=classes, seed=seed, budget=budget, report=report)
    return result, matched


def _named_net(path: Path) -> tuple[SequenceModel, tuple[str, ...], tuple[str, ...]]:
    """Return the model at a path with the names of its symbols and its answers."""
    if (path / DESCRIPTION).exists():  # a machine can be compiled without a task
        compiled = load_compiled(path)
        return compiled.model, compiled.target.symbols, compiled.target.classes
    stored = load_stored(path)
    if not isinstance(stored.task, SymbolTask):
        raise ValueError(
            f"{path}: expected a net that reads symbols, got a net for {stored.task.name}, which has no symbols; "
            "name another net"
        )
    return stored.model, stored.task.symbols, stored.task.classes


def check_is_of(certificate: Certificate, folder: Path) -> list[str]:
    """Check that a certificate is about the model and the task in a folder; return the claims that `confirm` confirmed.

    Raises:
        ValueError: the certificate is about another model or task, or contains a false claim.
    """
    stored = load_stored(folder)
    model, task = stored.model, stored.task
    if (what := mismatched_part(certificate, stored.model, stored.task)) is not None:
        raise ValueError(
            f"{folder}: expected the model and the task that the certificate is about, got a difference in {what}; "
            f"certify {folder} again"
        )
    assert isinstance(task, MachineTask), "no other task has a certificate"
    if certificate.counterexample is not None:
        string = task.encode(certificate.counterexample.string)
        # The model answers the counterexample again here: a forged file could name any string and any answer.
        with torch.no_grad():
            index = int(final_answers(model.eval(), string[None]))
        answer = task.classes[index] if index >= 0 else None
        if answer != certificate.counterexample.got:
            raise ValueError(
                f"{folder}: expected the answer that the certificate records, but the model answers the counterexample "
                f"with {answer!r}; certify {folder} again"
            )
    sentences = [f"the certificate is about the model and the task in {folder}"]
    if certificate.level != "refuted":
        return sentences + confirm(certificate, model, task)
    counterexample = certificate.counterexample
    if counterexample is not None and counterexample.shortest == "of all strings":
        with eval_mode(model):
            error = shortest_error(model, task)
        # Only the length is compared, because several strings can be shortest.
        if error is None or len(error) != len(counterexample.string):
            raise ValueError(
                f"{folder}: the counterexample is not a shortest string that the model answers wrongly; certify "
                f"{folder} again"
            )
        sentences += [SHORTEST_CLAIM]
    return sentences


def write_proof_of(certificate: Certificate, folder: Path, path: Path) -> str:
    """Write the proof of the model in a folder, and return the checker's verdict on it (`write_proof`)."""
    stored = load_stored(folder)
    model, task = stored.model, stored.task
    assert isinstance(task, MachineTask)
    return write_proof(certificate, model, task, path)


def write_certificate(model: SequenceModel, task: Task, path: Path | None, **about: str) -> Certificate:
    """Certify a model; if `path` is given, save the certificate there, with the software's versions and `about`."""
    certificate = certify(model, task).model_copy(update={"versions": versions() | about})
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A killed process leaves the old certificate or the new one, never a part of one.
        write_by_rename(path, certificate.to_text().encode())
    return certificate
