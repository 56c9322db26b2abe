"""Certificates in a notebook; never imports torch."""

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate, Level, Tested
from lengthwise.certification.machines import machine_from_json
from lengthwise.conventions import IGNORE
from lengthwise.display import card, percent, spelled

ACCENTS: dict[Level, str] = {
    "refuted": "#c84f4f",
    "tested": "#8a8a8a",
    "extracted": "#b59a1f",
    "bounded": "#3b7dd8",
    "proved": "#3aa57a",
}

MAX_STATES = 12
"""Machines with more states are not drawn on a card."""

MAX_QUOTED = 80
"""Symbols of a counterexample that are quoted."""


def certificate_card(certificate: Certificate) -> str:
    """The level, the claim, and what stands behind it: the counterexample, or the machine and what was tested."""
    task, model = (str(part.get("name", "")) for part in (certificate.task, certificate.model))
    pairs = [("task", task), ("model", model)]
    if counterexample := certificate.counterexample:
        symbols = counterexample.string
        more = f"... ({len(symbols):,} symbols)" if len(symbols) > MAX_QUOTED else ""
        got = "none: a logit is not finite" if counterexample.got is None else counterexample.got
        pairs += [
            ("string", spelled(symbols[:MAX_QUOTED]) + more),
            ("right answer", counterexample.expected),
            ("model's answer", got),
        ]
    elif certificate.level in ("tested", "extracted"):
        pairs.append(("not higher, because", certificate.reason))
    if certificate.machine is not None:
        size, size_of_task = certificate.num_classes
        pairs.append(("machine", f"{size} classes, the task's {size_of_task}"))
    if certificate.tested:
        pairs.append(("answered rightly", ", ".join(map(rightly, certificate.tested))))
    if certificate.evidence is not None:
        pairs.append((certificate.evidence.method, certificate.evidence.describe()))
        pairs.append(("independently checked", checked_in_words(certificate)))
    pairs.append(("CPU seconds", f"{certificate.seconds:.1f}"))
    claim = f"{certificate.level}. {certificate.claim}"
    return card(claim, pairs, _drawing(certificate), accent=ACCENTS[certificate.level])


def checked_in_words(certificate: Certificate) -> str:
    """Return a sentence that tells whether the separate checker accepted the proof."""
    if certificate.independently_checked:
        return "yes: a separate program, which needs NumPy alone, accepts this proof"
    return "no: only the method that found this proof has seen it"


def certificate_text(certificate: Certificate) -> str:
    """Return plain sentences: the level, the claim, and the counterexample or why the level is not higher."""
    sentences = [f"{certificate.level}: {certificate.claim}"]
    if counterexample := certificate.counterexample:
        symbols = counterexample.string
        more = f"... ({len(symbols):,} symbols)" if len(symbols) > MAX_QUOTED else ""
        got = "a logit that is not finite" if counterexample.got is None else repr(counterexample.got)
        sentences.append(
            f"On the string {spelled(symbols[:MAX_QUOTED])!r}{more} its answer is {got}; "
            f"the right answer is {counterexample.expected!r}."
        )
    elif certificate.level in ("tested", "extracted"):
        sentences.append(f"The level is not higher, because {certificate.reason}.")
    return " ".join(sentences)


def rightly(tested: Tested) -> str:
    """Counts, and where all answers are right what they bound; a wrong one ended the count, which bounds nothing."""
    is_bound = tested.num_correct == tested.num_graded > 0
    bound = f" (from {percent(tested.interval[0])})" if is_bound else ""
    return f"{tested.num_correct:,} of {tested.num_graded:,} at {tested.length:,}{bound}"


def _drawing(certificate: Certificate) -> str:
    """The machine, where it is a small one that reads symbol by symbol."""
    if certificate.machine is None or certificate.is_of_grid or certificate.is_of_tree:
        return ""
    machine = machine_from_json(certificate.machine)
    if not isinstance(machine, Transducer) or machine.num_states > MAX_STATES:
        return ""
    if not ((machine.outputs == IGNORE) | (machine.outputs < len(certificate.classes))).all():
        return ""
    return f'<div style="overflow-x:auto">{LabeledMachine(machine, certificate.classes)._repr_svg_() or ""}</div>'
