"""Certificates in words, for a terminal and for a page."""

from collections.abc import Iterator
from typing import Any

from lengthwise.certification.certificate import Certificate, checked_in_words
from lengthwise.certification.parts import describe_tested
from lengthwise.certification.verify import Checked
from lengthwise.display import counted, spelled

MAX_QUOTED_LENGTH = 60


def certificate_lines(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Return what a certificate claims, as pairs of name and sentence."""
    yield certificate.level, certificate.claim
    if certificate.note:
        yield "the task", certificate.note
    if (weights := certificate.versions.get("weights")) is not None:
        yield "weights", weights
    if certificate.level in ("tested", "extracted"):
        yield "not higher, because", certificate.reason
    if counterexample := certificate.counterexample:
        quoted = spelled(counterexample.string)
        if len(quoted) > MAX_QUOTED_LENGTH:
            quoted = f"{quoted[: MAX_QUOTED_LENGTH - 20]}... ({len(counterexample.string):,} symbols)"
        how = {
            "of all strings": "no shorter string is answered wrongly",
            "of the machine": "the shortest string that the machine read off the model answers wrongly",
            "as found": "shortened by leaving out parts",
        }[counterexample.shortest]
        answer = "has a logit that is not finite" if counterexample.got is None else f"answers {counterexample.got}"
        yield "counterexample", f"{quoted}: the model {answer}; the right answer is {counterexample.expected} ({how})"
    yield from _machine(certificate)
    if certificate.tested:
        yield "answered correctly", describe_tested(certificate.tested)
    if certificate.trace_agreement:
        nodes = ", ".join(f"{seen.num_nodes:,} at length {seen.length:,}" for seen in certificate.trace_agreement)
        missed = sum(seen.num_disagreements for seen in certificate.trace_agreement)
        farthest = max(seen.max_distance for seen in certificate.trace_agreement)
        yield (
            "states compared",
            f"{nodes}; {missed} are outside their class; all are within {farthest:.2f} of a prototype",
        )
    if certificate.evidence is not None:
        yield certificate.evidence.method, certificate.evidence.describe()
        yield "independently checked", checked_in_words(certificate)
    if certificate.kernels is not None:
        yield "this CPU's kernels", certificate.kernels.describe()


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """Return the claims of a certificate as values for JSON; missing values are None."""
    counterexample, evidence = certificate.counterexample, certificate.evidence
    return {
        "level": certificate.level,
        "claim": certificate.claim,
        "max_length": certificate.max_length,
        "reason": certificate.reason,
        "counterexample": counterexample and counterexample.model_dump(mode="json"),
        "method": evidence and evidence.method,
        "independently_checked": certificate.independently_checked,
    }


def _machine(certificate: Certificate) -> Iterator[tuple[str, str]]:
    machine = certificate.machine
    closure = certificate.closure
    laws = certificate.laws
    if machine is not None:
        size, size_of_task = certificate.num_classes
        yield (
            ("machine", f"{counted(size, 'class')} of messages that go down; the task's rule has {size_of_task}")
            if certificate.machine_kind == "grid"
            else ("machine", f"{counted(size, 'class')}; the task's transducer has {counted(size_of_task, 'state')}")
        )
    if closure is not None:
        gap = (
            "there are no two classes"
            if closure.gap is None
            else f"prototypes of different classes are at least {closure.gap:.2f} apart"
        )
        yield (
            "classes",
            f"{counted(closure.num_prototypes, 'prototype')}, closed after {counted(closure.num_levels, 'level')}; all "
            f"states are within {closure.radius:.2f} of their prototypes, and {gap}",
        )
    if laws is not None:
        identity = "the pad is the identity" if laws.pad_is_identity else "the pad is not the identity"
        yield (
            "monoid",
            f"{identity}; {laws.num_violations:,} of {laws.num_decided:,} products depend on the bracketing",
        )


def checked_lines(certificate: Certificate, checked: Checked) -> Iterator[tuple[str, str]]:
    """Return the claim of a certificate and the results of its check, as pairs of name and sentence."""
    yield certificate.level, certificate.claim
    if certificate.note:
        yield "the task", certificate.note
    yield from (("verified", sentence) for sentence in checked.verified)
    yield from (("taken from the file", sentence) for sentence in checked.taken_on_trust)
