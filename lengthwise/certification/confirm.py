"""A second proof of a certificate's claims, from the model itself."""

from typing import Any

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.certificate import Certificate, Evidence
from lengthwise.certification.counterexample import first_wrong, shortest_error
from lengthwise.certification.equivalence import first_error
from lengthwise.certification.methods.base import PROVERS, Prover, task_extraction
from lengthwise.certification.parts import refusal
from lengthwise.certification.subject import check_made_by_settings, checked_subject
from lengthwise.certification.traces import TracedStrings, draw_strings
from lengthwise.certification.verify import evidence_of
from lengthwise.conventions import Diverged, without_way_out
from lengthwise.devices import denormals_kept, one_thread
from lengthwise.extraction.base import Extraction, reader_of
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask
from lengthwise.validation import check_kind, truncate, type_in_words


@one_thread()
def confirm(certificate: Certificate, model: SequenceModel, task: MachineTask) -> list[str]:
    """Check a certificate's claims again on the model itself, and return a sentence for each claim.

    The certificate states which claims are checked and by which method. It also states the radius of the extraction: a
    state joins a class only within this radius of the class's prototype. The certificate's level must not be
    ``refuted``. The model answers all short strings again, and some strings of about 40 and 500 symbols. If the
    certificate has an extracted machine, a machine is extracted again with the same radius, and compared with the task
    for every length. If the certificate has evidence, the proof is also found again, and the sentence contains the
    numbers of the new proof. States along long strings are not compared with the machine's classes again. The proved
    length in the file must not exceed the length of the new proof. No other number in the file is compared.

    Raises:
        ValueError: a claim does not hold for this model, or the model cannot be certified.
    """
    check_kind("certificate", certificate, Certificate, "a Certificate")
    with checked_subject(model, task):
        if (error := shortest_error(model, task)) is not None:
            string = task.decode(error)
            raise _edited(f"its model answers the string {string!r} wrongly")
        sentences = ["the model answers all short strings correctly", *_long_strings(model, task)]
        if certificate.closure is None and certificate.evidence is None:
            return sentences
        extraction = _extraction_of(certificate, model, task)
        if certificate.machine is not None:
            sentences.append(
                "a machine extracted again from the model is right on every nonempty string that has an answer"
            )
        if certificate.evidence is not None:
            supervised = mask_unsupervised(extraction, task.reference)
            _, evidence = _prove_again(certificate.evidence, model, task, supervised)
            sentences.append(f"method {evidence.method!r} proves the model again: {evidence.describe()}")
    return sentences


def _long_strings(model: SequenceModel, task: MachineTask) -> list[str]:
    """Check the model's answers to strings of the two shortest tested lengths, and return a sentence for each length.

    The strings are drawn as for a certificate.

    Raises:
        ValueError: an answer is wrong.
    """
    sentences = []
    for strings in draw_strings(model, task, seed=0, num_lengths=2) or []:
        sample = TracedStrings(strings, None).subsample
        with denormals_kept():  # as users run the model
            error = first_wrong(model, task, [sample])
        if error is not None:
            string = truncate(task.decode(error), 40)
            raise _edited(f"its model answers the string {string!r} ({sample.shape[1]} symbols) wrongly")
        sentences.append(f"the model answers {len(sample):,} strings of {sample.shape[1]:,} symbols correctly")
    return sentences


def proof_of(certificate: Certificate, model: SequenceModel, task: MachineTask) -> tuple[Prover, Extraction]:
    """Prove a certificate's claim again; return the prover, and the extraction with which the proof was found.

    The prover's `sets` contain what the proof needs: sets of states, or bounds on attention.

    Raises:
        ValueError: the certificate's level is below `bounded`, or its proof is not found again.
    """
    check_kind("certificate", certificate, Certificate, "a Certificate")
    with checked_subject(model, task):
        evidence = evidence_of(certificate)
        extraction = _extraction_of(certificate, model, task)
        supervised = mask_unsupervised(extraction, task.reference)
        prover, _ = _prove_again(evidence, model, task, supervised)
        return prover, supervised


def _extraction_of(certificate: Certificate, model: SequenceModel, task: MachineTask) -> Extraction:
    """Return the extraction that a certificate's proof follows: the task's own machine, or a new extraction."""
    evidence, reference = certificate.evidence, task.reference
    if evidence is not None and PROVERS[evidence.method].reader is None and isinstance(reference, Transducer):
        return task_extraction(reference)
    if certificate.closure is None:
        raise refusal(f"level {certificate.level!r} requires an extracted machine (`closure`), got none")
    return _read_again(certificate.closure.requested_radius, model, task)


def _read_again(radius: float, model: SequenceModel, task: MachineTask) -> Extraction:
    reader = reader_of(model, task.symbols)
    if reader is None:
        raise _edited(f"expected a model from which a machine can be extracted, got {type_in_words(model)}")
    try:
        extraction = reader.extract(radius)
    except (ValueError, Diverged) as problem:
        reason = without_way_out(problem)  # because "certify again" follows
        raise refusal(f"no machine could be extracted again from its model ({reason})") from None
    if any(first_error(machine, task.reference) is not None for machine in (extraction.machine, extraction.fine)):
        raise _edited("the machine extracted from its model gives wrong answers")
    return extraction


def _edited(problem: str) -> ValueError:
    """Return the error that refuses a certificate whose claim does not hold for its model."""
    return ValueError(
        f"certificate: {problem}; the certificate was edited, or comes from another kind of CPU, so certify again"
    )


def _prove_again(evidence: Evidence, model: Any, task: MachineTask, extraction: Extraction) -> tuple[Prover, Evidence]:
    """Prove the model again by the method of the evidence; return the prover and the new evidence.

    Raises:
        ValueError: the proof fails, or covers a smaller length than the old evidence.
    """
    prover = PROVERS[evidence.method]()
    try:
        check_made_by_settings(model, task)
        new_evidence = prover.prove(model, extraction)
    except ValueError as problem:
        reason = without_way_out(problem)  # because "certify again" follows
        raise refusal(f"its proof could not be repeated ({reason})") from None
    # The file may claim a shorter length than the new proof reaches, but never a longer length.
    length = new_evidence.proved_length
    if length is not None and (evidence.proved_length is None or evidence.proved_length > length):
        raise refusal(
            f"its claim is about longer strings than its new proof, which covers strings of up to {length:,} symbols"
        )
    return prover, new_evidence
