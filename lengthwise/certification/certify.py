"""The protocol of certification: from a trained model and its task to a certificate."""

import time
from collections.abc import Sequence
from typing import Any

from lengthwise.automata.transducer import Transducer
from lengthwise.certification import traces
from lengthwise.certification.attacks.attack import search_families
from lengthwise.certification.builder import Candidate, CertificateBuilder, mask_unsupervised
from lengthwise.certification.certificate import Certificate, Evidence
from lengthwise.certification.counterexample import MAX_PAIRS_READ, shortest_error, shrunk_error
from lengthwise.certification.kernels import kernel_report
from lengthwise.certification.methods.base import Prover, Unproved, provers_of, task_extraction
from lengthwise.certification.parts import Level
from lengthwise.certification.proof_file import with_verdict
from lengthwise.certification.searches import Outcome, run_searches
from lengthwise.certification.subject import check_made_by_settings, checked_subject
from lengthwise.conventions import Diverged
from lengthwise.devices import one_thread
from lengthwise.extraction.base import READERS, Reader, reader_of
from lengthwise.models.base import SequenceModel, check_is_model
from lengthwise.randomness import whole_seed
from lengthwise.tasks.base import MachineTask, Task, check_is_task


@one_thread()
def certify(model: SequenceModel, task: Task, *, seed: int = 0) -> Certificate:
    """Certify a model's answers to a task, for every length if possible, and return the certificate.

    Certification has four steps. Step 2 extracts a machine from the model alone, without access to the task.

    1. The model answers strings. A wrong answer ends this step. The level is ``refuted`` if the model gives a wrong
       answer again when it reads the string alone. First come all strings, up to the largest length that has at most
       4,096 strings. Then come 1,000 strings each of 40, 500 and 10,000 symbols. Some of these strings are structured
       (`evaluation.structured`), and some have rare answers. Models without a reader (see step 2) answer fewer of the
       longest strings. Models with a largest length get no strings beyond it. If the task cannot draw strings of 10,000
       symbols, its longest strings take their place. Some strings are read again: alone, and with answers to all
       prefixes at once (`searches`). Last come the strings that distinguish the task's transducer from other machines
       (`automata.conformance`).
    2. The reader of the model's kind (`extraction.base.READERS`) sorts the model's states into finitely many classes,
       which are the states of a machine. A few radii of classes are tried, the largest first, until all states along
       the strings of step 1 are in the classes that the machine predicts. For tree models, states along powers of words
       (far longer strings that repeat a word) are also compared.
    3. The machine is compared with the task's transducer for all lengths. If they differ, the model is run on a
       shortest string on which they differ, and a wrong answer leads to level ``refuted``. If they agree, the level is
       ``extracted``. If no machine describes the model, the model is attacked with strings that samples hardly ever
       contain (`attacks`).
    4. The provers that belong to the reader (`methods.base.PROVERS`) try to show that the model's states, including
       their rounding errors, cannot leave the classes. If one prover succeeds, the level is ``proved`` for every
       length, or ``bounded`` up to a length. If no machine describes the model, provers that need no reader are tried.
       They follow the task's own machine.

    Tasks over two strings (`GridTask`) have a rule instead of a transducer. Their models are tested on 200 pairs of
    strings at each of three lengths: 10, 40 and 160 letters. If a step fails, the certificate has a lower level and
    contains the reason. `seed` is the seed of the drawn strings.

    Raises:
        ValueError: the task has no finite reference machine (`MachineTask`), or the model and the task have different
            numbers of answers. The model's weights are neither float32 nor float64, are not on a CPU, or contain NaN or
            denormal numbers. The model answers at random, or changes when it reads strings. Torch is set to compute
            matrix products in a lower precision than float32. For other causes, see `subject.check_model`.

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
        raise ValueError(
            f"task: expected a task with a finite reference machine, got {task.name}; choose a regular task, or a task "
            "over two strings such as levenshtein-distance"
        )
    seed = whole_seed(seed)
    # CPU time does not depend on other processes on the same computer.
    started = time.process_time()
    with checked_subject(model, task):
        certificate = certificate_of(CertificateBuilder(model, task), seed)
    return certificate.model_copy(update={"seconds": round(time.process_time() - started, 3)})


def certificate_of(builder: CertificateBuilder, seed: int, num_lengths: int | None = None) -> Certificate:
    """Return the certificate of a model that is already checked and in evaluation mode.

    If `num_lengths` is given, samples are drawn only at the `num_lengths` shortest of the tested lengths. Level
    ``extracted`` then has less evidence than `certify` requires. Proofs do not depend on tested strings.
    """
    model, task = builder.model, builder.task
    # All short strings come first, because the first error among them is a shortest error of the model. An error on a
    # sampled string need not be one of the shortest.
    error = shortest_error(model, task)
    if error is not None:
        return builder.refuted(error, "of all strings")
    reader = reader_of(model, task.symbols)
    strings = traces.traced_strings(model, task, reader, seed, num_lengths)
    if strings is None:
        reason = f"the task has no strings near some of the lengths {traces.tested_lengths(model, task)}"
        return builder.certificate("tested", reason)
    outcome = run_searches(model, task, strings)
    builder = builder._replace(tested=outcome.tested)
    reasons = []
    # A machine is extracted even if a search found an error, because the machine may give a shorter counterexample.
    if reader is not None:
        staged = traces.stages(strings, reader)
        for radius in reader.radii(strings[0].subsample):
            try:
                return _attempt(builder, reader, radius, staged, is_right=outcome.wrong is None)
            except (ValueError, Diverged) as problem:  # new classes keep appearing, or a number overflows
                reasons.append(f"with radius {radius:.3g}: {problem}")
    certificate = _graded_alone(builder, outcome, reader)
    if certificate is None or certificate.level != "refuted":
        # So far, the net has answered no string wrongly when it read the string alone. So strings that samples hardly
        # ever contain are tried.
        certificate = _graded_alone(builder, search_families(model, task, seed), reader) or certificate
    return certificate or _prove_without_reader(builder, _first_and_last(reasons) if reasons else _why_unread(model))


def _graded_alone(builder: CertificateBuilder, outcome: Outcome, reader: Reader[Any] | None) -> Certificate | None:
    """Return the certificate for a wrongly answered string that a search found.

    The result is None if the search found no such string. Otherwise, the string is shortened, and the model then reads
    it alone. If this answer is also wrong, the certificate has level ``refuted``. Otherwise it has level ``tested``.
    """
    if outcome.wrong is None:
        return None
    max_pairs = MAX_PAIRS_READ if reader is None else None
    shrunk = shrunk_error(builder.model, builder.task, outcome.wrong, max_pairs=max_pairs)
    return builder.refuted(shrunk, "as found", found_by=outcome.found_by)


def _prove_without_reader(builder: CertificateBuilder, reason: str) -> Certificate:
    """Return a certificate from a method that needs no extracted machine, or a certificate of level ``tested``.

    `reason` goes into the certificate if no such method covers the model and the task.
    """
    model, reference = builder.model, builder.task.reference
    provers = provers_of(None, model)
    if not provers or not isinstance(reference, Transducer) or model.max_length is not None:
        return builder.certificate("tested", reason)
    if obstacle := _why_ungraded(builder) or _why_unprovable(builder):
        return builder.certificate("tested", obstacle)
    extraction = mask_unsupervised(task_extraction(reference), reference)
    reasons = []
    for prover in (kind() for kind in provers):
        try:
            evidence = prover.prove(model, extraction)
            proved = builder.certificate(*_level_of(evidence), evidence=evidence)
            return with_verdict(proved, model, prover, extraction)
        except (ValueError, Diverged) as problem:
            reasons.append(str(problem))
    return builder.certificate("tested", "; ".join(reasons))


def _why_ungraded(builder: CertificateBuilder) -> str:
    """Return the reason why no level above ``tested`` is possible, or an empty text.

    The reason is that the task has no answer to any drawn string of some length.
    """
    lengths = " and ".join(f"{tested.length:,}" for tested in builder.tested if not tested.num_graded)
    return lengths and f"the task has no answer to any of the drawn strings of {lengths} symbols"


def _why_unprovable(builder: CertificateBuilder) -> str:
    """Return the reason why nothing can be proved about this model on this CPU, or an empty text."""
    try:
        check_made_by_settings(builder.model, builder.task)
    except ValueError as problem:
        return str(problem)
    return kernel_report().reason  # a kernel of this CPU may be off by more than the bounds of proofs allow


def _level_of(evidence: Evidence) -> tuple[Level, str]:
    """Return the level of a proof, and the reason why it is not higher."""
    length = evidence.proved_length
    if length is None:
        return "proved", ""
    return "bounded", f"nothing is proved about strings of more than {length:,} symbols"


def _why_unread(model: SequenceModel) -> str:
    """Return the reason why no machine was extracted from a model."""
    if model.max_length is not None:
        return f"the model reads strings of at most {model.max_length:,} symbols"
    return f"no reader supports models of type {type(model).__name__} (readers: {', '.join(READERS)})"


def _attempt(
    builder: CertificateBuilder, reader: Reader[Any], radius: float, strings: traces.Stages, *, is_right: bool
) -> Certificate:
    """Return the certificate for classes of this radius; if they do not describe the model, raise a ValueError."""
    candidate = Candidate(reader.extract(radius), radius)
    # Most radii fail, so the cheap checks come first. They check a few traces, powers of words, and the machine itself.
    traces.compare(strings.smallest, candidate.extraction)
    traces.compare_powers(reader, candidate.extraction)
    if refuted := builder.refuted_by(candidate):
        return refuted
    # The machine is right, but a string refutes the model. So the model does not follow this machine.
    if not is_right:
        raise Unproved("the machine is right, but the model is not")
    if reason := _why_ungraded(builder):
        return builder.certificate("tested", reason)
    traces.compare(strings.subsample, candidate.extraction)
    candidate = candidate._replace(trace_agreement=traces.compare(strings.complete, candidate.extraction))
    if reason := _why_unprovable(builder):
        return builder.certificate("extracted", reason, candidate=candidate)
    reasons = []
    for prover in provers_of(reader.name, builder.model):
        try:
            return _prove(builder, reader, prover(), candidate, strings.complete)
        except (ValueError, Diverged) as problem:
            reasons.append(str(problem))
    kind = type(builder.model).__name__
    reason = "; ".join(reasons) or f"no method of proof is registered for a {kind} and reader {reader.name!r}"
    return builder.certificate("extracted", reason, candidate=candidate)


def _prove(
    builder: CertificateBuilder, reader: Reader[Any], prover: Prover, extracted: Candidate, strings: traces.AllStrings
) -> Certificate:
    """Prove that the model follows the extracted machine, or a machine with smaller classes; return the certificate.

    Raises:
        Unproved: every proof fails. The message contains the reason of the first failure.
    """
    reasons = []
    try:
        for extraction, radius in prover.candidates(reader, extracted.extraction, extracted.radius):
            is_new = extraction is not extracted.extraction
            candidate = Candidate(extraction, radius) if is_new else extracted
            try:
                # Finer classes give another machine, which must also agree with the task and with the model's states.
                if is_new and (refuted := builder.refuted_by(candidate)):
                    return refuted
                supervised = mask_unsupervised(extraction, builder.task.reference)
                evidence = prover.prove(builder.model, supervised)
                if is_new:
                    candidate = candidate._replace(trace_agreement=traces.compare(strings, extraction))
                proved = builder.certificate(*_level_of(evidence), candidate=candidate, evidence=evidence)
                return with_verdict(proved, builder.model, prover, supervised)
            except Unproved as problem:
                reasons.append(str(problem))
    except (ValueError, Diverged) as problem:
        raise Unproved(f"{reasons[0]} ({problem})" if reasons else str(problem)) from None
    raise Unproved(
        reasons[0]
        if reasons
        else f"method {prover.name!r} has no classes to try; its `candidates` must yield an extraction"
    )


def _first_and_last(reasons: Sequence[str]) -> str:
    """Return one sentence about all attempts, with the reasons of the first and the last attempt."""
    if len(reasons) == 1:
        return reasons[0]
    return f"none of {len(reasons)} attempts gave the model's machine; {reasons[0]}; {reasons[-1]}"
