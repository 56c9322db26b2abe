"""The verification of a certificate without its model, as far as possible. This module never imports torch."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.grid_product import paths
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification import checker
from lengthwise.certification.certificate import Certificate, Evidence
from lengthwise.certification.equivalence import first_error, machine_from_json
from lengthwise.certification.grids import NUM_LETTERS, NUM_PAIRS, answer_to
from lengthwise.certification.parts import Kernels, refusal
from lengthwise.conventions import IGNORE
from lengthwise.display import counted, spelled
from lengthwise.files import read_file
from lengthwise.validation import check_kind, path_of, truncate

MIN_STRINGS = 1_000
"""The number of strings of each length that level `extracted` and higher levels require."""

MIN_LENGTHS = (40, 500, 10_000)
"""The lengths, give or take one symbol, of the strings that level `extracted` and higher levels require."""

MAX_SETTING = 63
"""The largest number of printed characters of a name or a setting, including the dots that replace the rest."""

SHORTEST_CLAIM = "the model answers every shorter string correctly"
"""The claim that is taken on trust if the file states that no shorter string is a counterexample."""

NOT_COPIED = frozenset({"method", "max_length", "num_cells"})
"""The fields of evidence that `copied_numbers` omits, because they occur elsewhere or are checked.

The sentence of `copied_numbers` names the method, the claim contains `max_length`, and a check compares `num_cells`
with the certificate's machine.
"""


class Checked(NamedTuple):
    """A certificate's sentences: `verified` from the file alone, or `taken_on_trust`."""

    verified: tuple[str, ...]
    taken_on_trust: tuple[str, ...]
    shown_by_model: tuple[str, ...] = ()
    """The sentences of `taken_on_trust` that a user who has the model and the task can check without another proof."""

    def with_model(self, confirmed: Sequence[str]) -> "Checked":
        """Return the sentences after a check of the model, which verifies `confirmed` and `shown_by_model`."""
        sentences = (*confirmed, *self.shown_by_model)
        taken = tuple(sentence for sentence in self.taken_on_trust if sentence not in sentences)
        return Checked((*sentences, *self.verified), taken)


def check(certificate: Certificate, proof: str | Path | None = None) -> Checked:
    """Verify a certificate's sentences as far as possible without the model.

    At level ``extracted`` and above, a machine that was extracted from the model is compared with the task's machine
    again, for every length. The result lists the sentences that are taken on trust. For example, the model's states
    along the tested strings are not computed again. If a proof file is given, `checker` verifies that a net with the
    weights in this file gives the right answers.

    Raises:
        ValueError: a part of the evidence is missing, or does not show the level's claim. The proof file is missing,
            belongs to another certificate, or does not show that the model is right.
    """
    check_kind("certificate", certificate, Certificate, "a Certificate")
    task = machine_from_json(certificate.transducer)
    assert not isinstance(task, TreeMachine), "the fields of a task's machine exclude trees"
    _check_names(certificate, task)
    _check_level(certificate)
    kind = "rule" if isinstance(task, GridMachine) else "transducer"
    shown_by_model = [f"the {kind} ({_size(task)}) belongs to task {with_settings(certificate.task)}"]
    # Sentences are sorted by what supports them, so that a user sees what remains to be trusted.
    trusted, verified = [*shown_by_model], []
    if certificate.evidence is not None and certificate.evidence.requires.machine is None:
        _check_tested(certificate)
    elif certificate.reaches("extracted"):
        verified += _check_machine(certificate, task)
        nodes = sum(agreement.num_nodes for agreement in certificate.trace_agreement)
        trusted += [f"each of the model's {nodes:,} traced states was in the class that the machine predicts"]
    if certificate.evidence is not None:
        assumption = certificate.evidence.check(certificate)
        trusted += [*copied_numbers(certificate.evidence), assumption]
    if proof is not None:
        verified += [_check_proof(certificate, path_of("proof", proof))]
        trusted[-1] = f"the model is {with_settings(certificate.model)}, and computes the checker's formulas"
    elif certificate.independently_checked:
        trusted += ["the separate checker accepted the proof when the certificate was made"]
    if certificate.level == "refuted":
        verified += _check_refuted(certificate, task)
        shown_by_model += ["the model gives the recorded answer to the counterexample"]
        trusted += shown_by_model[1:]
        if certificate.counterexample and certificate.counterexample.shortest == "of all strings":
            trusted += [SHORTEST_CLAIM]
    return Checked(tuple(verified), tuple(trusted), tuple(shown_by_model))


def copied_numbers(evidence: Evidence) -> list[str]:
    """Return a list with one sentence about the numbers of the evidence that no check confirms exactly.

    The list is empty if the evidence has no such numbers. A check compares margins and slacks only with 0. The separate
    checker reads none of these numbers.
    """
    numbers = {name: value for name, value in evidence.model_dump(mode="json").items() if name not in NOT_COPIED}
    texts = [
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={truncate(json.dumps(value), MAX_SETTING)}"
        for name, value in numbers.items()
        if value is not None
    ]
    method = truncate(evidence.method, MAX_SETTING)
    return [f"method {method!r} recorded {', '.join(texts)}; these numbers are copied, not proved"] if texts else []


def proof_path(certificate: Path) -> Path:
    """Return the path of the proof that belongs to a certificate's file."""
    return certificate.with_suffix(".safetensors")


def with_settings(content: Mapping[str, Any]) -> str:
    """Return the name of a task or a model with all settings, even empty ones, since each can change the results."""
    settings = {truncate(name, MAX_SETTING): value for name, value in content.items() if name != "name"}
    texts = [f"{name}={truncate(json.dumps(value), MAX_SETTING)}" for name, value in settings.items()]
    name = truncate(content["name"], MAX_SETTING)
    return f"{name} ({', '.join(texts)})" if texts else name


def _size(machine: TreeMachine | Transducer | GridMachine) -> str:
    if isinstance(machine, Transducer):
        return counted(machine.num_states, "state")
    return counted(machine.num_classes, "class")


def _check_names(certificate: Certificate, task: Transducer | GridMachine) -> None:
    if len(set(certificate.classes)) < len(certificate.classes):
        raise refusal("expected a different name for each class, got one name twice")
    if isinstance(task, GridMachine):
        if certificate.classes != tuple(map(str, range(len(certificate.classes)))):
            raise refusal("expected the integers from 0 as names of its classes, got other names")
    elif not set(task.outputs.tolist()) <= {IGNORE, *range(len(certificate.classes))}:
        raise refusal("expected a name in `classes` for each answer of its transducer, got too few names")
    # Without the digest, a certificate could be presented with any net.
    if certificate.net is None:
        raise refusal("expected the digest of its net, got none")
    for what, description in (("task", certificate.task), ("model", certificate.model)):
        if not isinstance(description.get("name"), str):
            raise refusal(f"expected the name of its {what}, got none")
    if isinstance(task, Transducer):
        _check_supervises(task)


def _check_supervises(task: Transducer) -> None:
    """Reject a transducer that has no answer to any string, because every machine would agree with it."""
    reached = task.minimize()
    if not (reached.outputs[np.unique(reached.semiautomaton.table)] != IGNORE).any():
        raise refusal("its transducer has no answer to any nonempty string")


def _check_level(certificate: Certificate) -> None:
    """Reject a certificate that lacks a part of its level, or contains a part that only other levels have."""
    level = certificate.level
    needs = {
        "evidence": (certificate.evidence, level in ("bounded", "proved")),
        "kernels": (certificate.kernels, level in ("bounded", "proved")),
        "max_length": (certificate.max_length, level == "bounded"),
        "counterexample": (certificate.counterexample, level == "refuted"),
    }
    for part, (content, is_needed) in needs.items():
        if is_needed and not content:  # a largest length of 0 proves nothing
            raise refusal(f"level {level!r} requires `{part}`, got none")
        if not is_needed and content is not None:
            raise refusal(f"expected no `{part}` at level {level!r}, got a value")
    if certificate.evidence is not None and certificate.evidence.proved_length != certificate.max_length:
        raise refusal("expected the same max_length as in its evidence, got another max_length")
    if certificate.kernels is not None:
        _check_kernels(certificate.kernels)
    if certificate.independently_checked and certificate.evidence is None:
        raise refusal(f"expected independently_checked=false at level {level!r}, which has no proof, got true")
    if bool(certificate.reason) == (level == "proved"):
        needs_none = level == "proved"
        raise refusal(
            f"expected {'no' if needs_none else 'a'} `reason` at level {level!r}, got {'one' if needs_none else 'none'}"
        )


def _check_kernels(kernels: Kernels) -> None:
    """Reject a self-test without results, or one in which a function was off by more than proofs assume."""
    if not any(kernel.assumed for kernel in kernels.kernels):
        raise refusal("expected measured errors of the CPU's functions (`kernels`), got none")
    for kernel in kernels.kernels:
        if not kernel.holds:
            raise ValueError(
                f"certificate: on the CPU that certified the model, the {kernel.dtype} {kernel.name} was off by "
                f"{kernel.measured:.3g} machine epsilons, but proofs assume at most {kernel.assumed:.3g}; certify on "
                "another CPU"
            )


def _check_machine(certificate: Certificate, task: Transducer | GridMachine) -> list[str]:
    if certificate.machine is None:
        raise refusal(f"level {certificate.level!r} requires a machine, got none")
    _check_tested(certificate)
    machine = machine_from_json(certificate.machine)
    chunk_size = certificate.model.get("chunk_size")
    if isinstance(machine, TreeMachine) and chunk_size not in (None, machine.chunk_size):
        raise refusal(
            f"expected a machine of chunk size {chunk_size}, as its model has, got chunk size {machine.chunk_size}"
        )
    if isinstance(machine, TreeMachine) and (lower := certificate.model.get("lower_chunk_sizes")):
        raise refusal(
            f"expected a model with the machine's chunk size at every level, got chunk sizes {lower} at the lowest "
            "levels"
        )
    # The file only claims that the two machines agree. This comparison proves it again, for every length.
    string = first_error(machine, task)
    if string is not None:
        raise refusal(
            f"its machine and its transducer answer the string {''.join(string)[:60]!r} "
            f"({counted(len(string), 'symbol')}) differently"
        )
    _check_observed(certificate, machine)
    _check_closure(certificate, machine)
    if isinstance(machine, GridMachine):
        assert isinstance(task, GridMachine), "`first_error` has checked this"
        down, right = paths(machine, task).num_pairs
        return [
            f"the machine ({_size(machine)}) answers any two strings as the task's rule does: {down} pairs of a "
            f"machine's class and a rule's class can be passed downwards, and {right} pairs to the right; both classes "
            "of each pair that a cell passes downwards have the same number"
        ]
    size = machine.num_classes if isinstance(machine, TreeMachine) else machine.num_states
    return [
        f"the machine ({counted(size, 'class')}) agrees with the transducer on every nonempty string that has an answer"
    ]


def _check_tested(certificate: Certificate) -> None:
    if any(tested.num_correct != tested.num_graded for tested in certificate.tested):
        raise refusal(f"level {certificate.level!r} allows no wrong answer, got wrong answers")


def _check_observed(certificate: Certificate, machine: TreeMachine | Transducer | GridMachine) -> None:
    """Reject a certificate with too few observed answers or states, or with a state in a wrong class."""
    if certificate.closure is None:
        raise refusal(f"level {certificate.level!r} requires states in finitely many classes (`closure`), got none")
    min_lengths: tuple[int, ...] = MIN_LENGTHS
    min_strings = MIN_STRINGS
    if isinstance(machine, GridMachine):
        min_lengths = tuple(2 * letters + 2 for letters in NUM_LETTERS)  # two strings, a bar and `SEP`
        min_strings = NUM_PAIRS
    for length in min_lengths:
        answers = [tested.num_graded for tested in certificate.tested if abs(tested.length - length) <= 1]
        traced = [
            agreement.num_strings
            for agreement in certificate.trace_agreement
            if abs(agreement.length - length) <= 1
            and agreement.num_nodes >= agreement.num_strings * _num_nodes(machine, agreement.length)
        ]
        if sum(traced) < min_strings or any(agreement.num_disagreements for agreement in certificate.trace_agreement):
            raise refusal(
                f"level {certificate.level!r} requires {min_strings:,} strings of {length:,} symbols on which every "
                "state is in the class that the machine predicts, got fewer strings or a state in another class"
            )
        if not sum(answers):
            raise refusal(f"level {certificate.level!r} requires answers to strings of {length:,} symbols, got none")


def _check_closure(certificate: Certificate, machine: TreeMachine | Transducer | GridMachine) -> None:
    """Reject a machine with more classes than prototypes, because each class has at least one prototype.

    A closure may contain a map: the coordinates and the class of each prototype, for drawings. Class -1 means that no
    string leads to the prototype. Also reject a map with another number of points than prototypes, or with a class of
    at least 0 that the machine lacks.
    """
    closure = certificate.closure
    assert closure is not None  # `_check_observed` has checked this
    num_classes = max(machine.table.shape[:2]) if isinstance(machine, GridMachine) else certificate.num_classes[0]
    if num_classes > closure.num_prototypes:
        raise refusal(
            f"expected at least one prototype for each of the {num_classes:,} classes of its machine, got "
            f"{counted(closure.num_prototypes, 'prototype')}"
        )
    if closure.points and len(closure.points) != closure.num_prototypes:
        raise refusal(
            f"expected a map of its {closure.num_prototypes:,} prototypes, got a map of {len(closure.points):,}"
        )
    if any(not -1 <= klass < num_classes for _, _, klass in closure.points):
        raise refusal("expected only classes of its machine on the map of prototypes, got another class")


def _num_nodes(machine: TreeMachine | Transducer | GridMachine, length: int) -> int:
    """Return the number of states that a model computes for a string.

    A step model has one state for each symbol. A tree has one state for each merge, and a grid has one state for each
    cell. The two strings of a grid have equal length.
    """
    if isinstance(machine, GridMachine):
        return ((length - 2) // 2) ** 2
    if isinstance(machine, Transducer):
        return length
    count, level = 0, length
    while level > 1:
        level = -(-level // machine.chunk_size)
        count += level
    return count


def _answer_to(string: tuple[str, ...], task: Transducer | GridMachine) -> int:
    """Return the index of a task's answer to a string; `IGNORE` if the task defines no answer."""
    if isinstance(task, GridMachine):
        number = answer_to(string, task)
        return IGNORE if number is None else number
    ids = {symbol: index for index, symbol in enumerate(task.symbols)}
    if not string or not set(string) <= ids.keys():
        raise refusal("its counterexample is empty, or contains a symbol that the task does not have")
    return int(task.run(np.array([[ids[symbol] for symbol in string]]))[0, -1])


def _check_refuted(certificate: Certificate, task: Transducer | GridMachine) -> list[str]:
    counterexample = certificate.counterexample
    assert counterexample is not None  # `_check_level` has checked this
    answer = _answer_to(counterexample.string, task)
    if not 0 <= answer < len(certificate.classes) or certificate.classes[answer] != counterexample.expected:
        raise refusal(f"{counterexample.expected!r} is not the transducer's answer to the counterexample")
    if counterexample.got == counterexample.expected or counterexample.got not in (None, *certificate.classes):
        is_right = counterexample.got == counterexample.expected
        raise refusal(
            f"expected a wrong answer in its counterexample, got {counterexample.got!r}, which is "
            f"{'the right answer' if is_right else 'not an answer of the task'}"
        )
    if counterexample.shortest == "of the machine":
        machine = None if certificate.machine is None else machine_from_json(certificate.machine)
        error = None if machine is None else first_error(machine, task)
        if error is None or len(error) != len(counterexample.string):
            raise refusal(
                "its counterexample is recorded as a shortest error of its machine, but a comparison of the machine "
                "with the task does not confirm this"
            )
    string = truncate(spelled(counterexample.string))
    return [
        f"the right answer to the counterexample ({counted(len(counterexample.string), 'symbol')}: {string}) is "
        f"{counterexample.expected}"
    ]


def evidence_of(certificate: Certificate) -> Evidence:
    """Return the evidence of a certificate; raise a ValueError if the certificate has no evidence."""
    if certificate.evidence is None:
        raise ValueError(
            f"proof: expected level 'proved' or 'bounded', got level {certificate.level!r}, which has no proof; leave "
            "out option `proof`"
        )
    return certificate.evidence


def _check_proof(certificate: Certificate, path: Path) -> str:
    """Return the conclusion of `checker` on a proof file.

    Raises:
        ValueError: the certificate has no proof, the file is missing, or the checker rejects it.
    """
    evidence_of(certificate)
    try:
        proof = read_file(path)
    except FileNotFoundError:
        raise ValueError(
            f"{path}: expected a proof, got no file; `lengthwise certify` with option `proof` writes it"
        ) from None
    try:
        return f"{path.name}, checked with NumPy alone: {checker.check(certificate.model_dump(mode='json'), proof)}"
    except checker.Rejected as problem:
        reason = str(problem).removeprefix("proof: ")
        raise ValueError(f"{path}: {reason}; run `lengthwise certify` again with option `proof`") from None
