"""Certificates in words, for a terminal and for a page."""

from collections.abc import Iterator

from lengthwise.certification.certificate import Certificate, Checked
from lengthwise.report.numbers import percent

LONGEST_SHOWN = 60


def certificate_lines(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What a certificate says, as (name, sentence)."""
    yield certificate.level, certificate.claim
    if certificate.level in ("tested", "finite"):
        yield "not higher, because", certificate.reason
    if found := certificate.counterexample:
        shown = "".join(found.string)
        if len(shown) > LONGEST_SHOWN:
            shown = f"{shown[: LONGEST_SHOWN - 20]}... ({len(found.string):,} symbols)"
        how = {
            "of all strings": "no shorter string is answered wrongly",
            "of the machine": "the shortest on which the machine read off the model errs",
            "as found": "made as short as leaving out parts allows",
        }[found.shortest]
        yield "counterexample", f"{shown}: the model says {found.got}, right is {found.wanted} ({how})"
    yield from _machine(certificate)
    if certificate.tested:
        counts = (
            f"{t.num_correct:,} of {t.num_asked:,} at {t.length:,} (from {percent(t.interval[0])})"
            for t in certificate.tested
        )
        yield "answered rightly", ", ".join(counts)
    if certificate.followed:
        seen = ", ".join(f"{f.num_nodes:,} at {f.length:,}" for f in certificate.followed)
        missed = sum(f.num_disagreements for f in certificate.followed)
        farthest = max(f.farthest for f in certificate.followed)
        yield "states compared", f"{seen}; {missed} outside their class, {farthest:.2f} from a representative at most"
    if boxes := certificate.boxes:
        yield (
            "boxes",
            f"around {boxes.num_representatives} representatives, half-widths up to {boxes.half_width:.2g}; the right "
            f"logit is at least {boxes.margin:.2g} ahead",
        )
    if codes := certificate.codes:
        room = "" if codes.room is None else f"states lie at least {codes.room:.2g} within the reach of their code, "
        yield (
            "codes",
            f"{codes.num_codes}, all {codes.num_merges:,} merges gone through; {room}the right logit is at least "
            f"{codes.margin:.2g} ahead",
        )


def _machine(certificate: Certificate) -> Iterator[tuple[str, str]]:
    machine, closure, laws = certificate.machine, certificate.closure, certificate.laws
    if machine is not None:
        num_states = len(certificate.transducer["outputs"])
        yield "machine", f"{len(machine['outputs'])} classes; the task's transducer has {num_states} states"
    if closure is not None:
        gap = "no two classes" if closure.gap is None else f"representatives of two classes {closure.gap:.2f} apart"
        yield (
            "classes",
            f"{closure.num_representatives} representatives, closed after {closure.num_levels} levels; states within "
            f"{closure.radius:.2f} of theirs, {gap}",
        )
    if laws is not None:
        identity = "the pad is the identity" if laws.pad_is_identity else "the pad is not the identity"
        yield (
            "monoid",
            f"{identity}; {laws.num_violations:,} of {laws.num_decided:,} products depend on the bracketing",
        )


def checked_lines(certificate: Certificate, checked: Checked) -> Iterator[tuple[str, str]]:
    """What checking a certificate showed."""
    yield certificate.level, certificate.claim
    yield from (("verified", sentence) for sentence in checked.verified)
    yield from (("taken from the file", sentence) for sentence in checked.taken_on_trust)
