"""From a trained model and its task to a certificate."""

import time
from collections.abc import Sequence
from typing import Any

from lengthwise.certification import traces
from lengthwise.certification.builder import Candidate, CertificateBuilder, supervised_only
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.counterexample import MAX_PAIRS_READ, shortest_error, shrunk_error
from lengthwise.certification.kernels import kernel_report
from lengthwise.certification.methods.base import Prover, Unproved, provers_of
from lengthwise.certification.parts import Level
from lengthwise.certification.proof_file import checked
from lengthwise.certification.searches import run_searches
from lengthwise.certification.strings import tested_lengths
from lengthwise.certification.subject import check_made_by_settings, checked_subject
from lengthwise.conventions import Diverged
from lengthwise.extraction.base import READERS, Reader, reader_of
from lengthwise.models.base import SequenceModel, check_is_model
from lengthwise.tasks.base import MachineTask, Task, check_is_task
from lengthwise.threads import one_thread


@one_thread()
def certify(model: SequenceModel, task: Task, *, seed: int = 0) -> Certificate:
    """Find out what can be proved about the model's answers at every length, and write down the evidence.

    In this order, and without ever looking at the task to build the machine:

    1. All strings up to a length at which there are 4,096, then 1,000 strings of each of 40, 500 and 10,000 symbols,
       a part of them structured, a part of rare answers, are answered, a few of each length first. A wrong answer ends
       that, in level ``refuted``. A model without a reader answers fewer of the longest, and one that reads strings up
       to a length none beyond it. Some are read again, each alone, and all prefixes at once (`searches`). Last come the
       strings that tell the task's transducer from others (`automata.conformance`).
    2. The reader of the model's kind (`extraction.base.READERS`) closes its states into classes, from the largest of a
       few radii on, until the states at all nodes over these strings, and over powers of words where a tree shows
       them, are in the classes that the machine names.
    3. The machine is compared with the task's transducer for all lengths. Where they differ the model is run on the
       shortest string on which they do; a wrong answer is ``refuted``. Where they do not the level is ``extracted``.
    4. The provers of that reader (`methods.base.PROVERS`) try to show that the float32 model itself cannot leave the
       classes, at any length or up to one: the level is then ``proved`` or ``bounded``.

    Tasks over the grid of two strings have a rule in place of a transducer, and 200 pairs of strings of each of 10, 40
    and 160 letters. Whatever stands in the way ends in a lower level and its reason. `seed` draws the strings.

    Raises:
        ValueError: the task has no transducer; the model has another number of answers, or weights that are neither
            float32 nor float64, or no numbers; it answers at random, or reading strings changes it; products of
            matrices are set to a lower precision.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> certificate = certify(make_model("regular-gpt", make_task("parity")), make_task("parity"))
        >>> certificate.level
        'refuted'
    """
    check_is_model(model)
    check_is_task(task)
    if not isinstance(task, MachineTask):
        raise ValueError(f"task: {task.name} has no transducer to compare a machine with; choose a regular task")
    started = time.process_time()
    with checked_subject(model, task):
        certificate = _certify(CertificateBuilder(model, task), seed)
    return certificate.model_copy(update={"seconds": round(time.process_time() - started, 3)})


def _certify(builder: CertificateBuilder, seed: int) -> Certificate:
    model, task = builder.model, builder.task
    error = shortest_error(model, task)
    if error is not None:
        return builder.refuted(error, "of all strings")
    reader = reader_of(model, task.symbols)
    strings = traces.traced_strings(model, task, reader, seed)
    if strings is None:
        reason = f"the task has no strings near some of the lengths {tested_lengths(model)}"
        return builder.certificate("tested", reason)
    outcome = run_searches(model, task, strings)
    builder = builder._replace(tested=outcome.tested)
    reasons = []
    if reader is not None:
        staged = traces.stages(strings, reader)
        for radius in reader.radii(strings[0].subsample):
            try:
                return _attempt(builder, reader, radius, staged, is_right=outcome.wrong is None)
            except (ValueError, Diverged) as problem:  # no machine, too many classes or merges, or an overflow
                reasons.append(f"with radius {radius:.3g}: {problem}")
    if outcome.wrong is not None:
        shrunk = shrunk_error(model, task, outcome.wrong, max_pairs=MAX_PAIRS_READ if reader is None else None)
        return builder.refuted(shrunk, "as found", found_by=outcome.found_by)
    return builder.certificate("tested", _first_and_last(reasons) if reasons else _why_unread(model))


def _why_unread(model: SequenceModel) -> str:
    """Why no machine is read off a model."""
    if model.max_length is not None:
        return f"the model reads no string of more than {model.max_length:,} symbols"
    return f"no reader reads a {type(model).__name__} (readers: {', '.join(READERS)})"


def _attempt(
    builder: CertificateBuilder, reader: Reader[Any], radius: float, strings: traces.Stages, *, is_right: bool
) -> Certificate:
    """A certificate from classes of this radius; a ValueError says why there is none."""
    candidate = Candidate(reader.extract(radius), radius)
    traces.compare(strings.few, candidate.extraction)
    traces.compare_powers(reader, candidate.extraction)
    if refuted := builder.refuted_by(candidate):
        return refuted
    if not is_right:
        raise Unproved("the machine is right, the model is not")
    if unanswered := [tested.length for tested in builder.tested if not tested.num_graded]:
        lengths = " and ".join(f"{length:,}" for length in unanswered)
        reason = f"the task answers none of the strings of {lengths} symbols that were drawn"
        return builder.certificate("tested", reason)
    traces.compare(strings.more, candidate.extraction)
    candidate = candidate._replace(trace_agreement=traces.compare(strings.every, candidate.extraction))
    try:
        check_made_by_settings(builder.model, builder.task)
    except ValueError as problem:
        return builder.certificate("extracted", str(problem), candidate=candidate)
    if reason := kernel_report().reason:  # bounds of proofs do not hold on this CPU
        return builder.certificate("extracted", reason, candidate=candidate)
    reasons = []
    for prover in provers_of(reader.name, builder.model):
        try:
            return _prove(builder, reader, prover(), candidate, strings.every)
        except (ValueError, Diverged) as problem:
            reasons.append(str(problem))
    kind = type(builder.model).__name__
    reason = "; ".join(reasons) or f"no method of proof is registered for a {kind} and reader {reader.name!r}"
    return builder.certificate("extracted", reason, candidate=candidate)


def _prove(
    builder: CertificateBuilder, reader: Reader[Any], prover: Prover, extracted: Candidate, strings: traces.AllStrings
) -> Certificate:
    """A certificate from this machine or one of smaller classes; a ValueError says why there is none."""
    reasons = []
    try:
        for extraction, radius in prover.candidates(reader, extracted.extraction, extracted.radius):
            is_new = extraction is not extracted.extraction
            candidate = Candidate(extraction, radius) if is_new else extracted
            try:
                if is_new and (refuted := builder.refuted_by(candidate)):
                    return refuted
                supervised = supervised_only(extraction, builder.task.reference)
                evidence = prover.prove(builder.model, supervised)
                if is_new:
                    candidate = candidate._replace(trace_agreement=traces.compare(strings, extraction))
                level: Level = "proved" if evidence.proved_up_to is None else "bounded"
                length = evidence.proved_up_to
                reason = "" if length is None else f"nothing is proved of strings of more than {length:,} symbols"
                proved = builder.certificate(level, reason, candidate=candidate, evidence=evidence)
                return checked(proved, builder.model, prover, supervised)
            except Unproved as problem:
                reasons.append(str(problem))
    except (ValueError, Diverged) as problem:
        raise Unproved(f"{reasons[0]} ({problem})" if reasons else str(problem)) from None
    raise Unproved(reasons[0] if reasons else f"method {prover.name!r} has no classes to try")


def _first_and_last(reasons: Sequence[str]) -> str:
    """One sentence on all attempts."""
    if len(reasons) == 1:
        return reasons[0]
    return f"of {len(reasons)} attempts none gave the model's machine; {reasons[0]}; {reasons[-1]}"
