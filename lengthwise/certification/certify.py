"""From a trained model and its task to a certificate."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise import __version__
from lengthwise.automata.monoid_laws import monoid_laws
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import (
    Certificate,
    Closure,
    Codes,
    Counterexample,
    Enclosures,
    Laws,
    Level,
    Shortest,
    Tested,
    TraceAgreement,
    first_error,
)
from lengthwise.certification.counterexample import grade, shortest_error, shrunk_error
from lengthwise.certification.evaluated_strings import EvaluatedStrings
from lengthwise.certification.preconditions import check_model
from lengthwise.certification.proofs.codes import Enumeration, enumerate_merges
from lengthwise.certification.proofs.enclosures import MAX_BOUNDED, invariant_enclosures
from lengthwise.certification.proofs.one_hot import OneHotMachine, enumerate_states
from lengthwise.certification.strings import NUM_STRINGS, TESTED_LENGTHS, tested_strings
from lengthwise.conventions import IGNORE, Diverged
from lengthwise.extraction.recurrent import extract_recurrent
from lengthwise.extraction.tree import Extraction, TreeModel, extract, radii
from lengthwise.layers.codebook import Codebook, QuantizingLayer
from lengthwise.models.base import RecurrentModel, SequenceModel, eval_mode
from lengthwise.tasks.base import RegularTask, Task
from lengthwise.threads import one_thread
from lengthwise.validation import dump_named

MAX_MAPPED = 2_000
"""Of more representatives a certificate has no map."""

SUBSAMPLE_SIZE = 100
"""Of each of the shorter lengths so many strings decide whether a radius is worth a closer look."""


@one_thread()
def certify(model: SequenceModel, task: Task, *, seed: int = 0) -> Certificate:
    """Find out what can be said of the model's answers at every length, and write down the evidence.

    In this order, and without ever looking at the task to build the machine:

    1. All strings up to a length at which there are 4,096, then 1,000 strings of each of 40, 500 and 10,000 symbols,
       a part of them structured, are answered, up to the first length with a wrong answer, which ends in level
       ``refuted``.
    2. The model's states are closed into classes (`extract`), from the largest of a few radii on, until the states of
       all nodes over these strings are in the classes that the machine's table says (`follow`). Of a recurrence with
       one-hot columns all states are enumerated first (`enumerate_states`).
    3. The machine is compared with the task's transducer for all lengths. Where they differ the model is run on the
       shortest string on which they do; a wrong answer is ``refuted``. Where they do not the level is ``extracted``.
    4. Enclosures around the representatives that the model maps into one another (`invariant_enclosures`) make it
       ``proved``; for a model that moves its states to codes, enumerating all merges of codes does
       (`enumerate_merges`), and a machine of all states, one by one, is so already.

    Whatever stands in the way ends in a lower level and its reason. `seed` draws the strings.

    Raises:
        ValueError: the task has no transducer; the model has another number of answers, or weights that are neither
            float32 nor float64; products of matrices are set to a lower precision.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> certificate = certify(make_model("regular-gpt", make_task("parity")), make_task("parity"))
        >>> certificate.level
        'refuted'
    """
    if not isinstance(task, RegularTask):
        raise ValueError(f"task: {task.name} has no transducer to compare a machine with; choose a regular task")
    started = time.process_time()
    with eval_mode(model):
        check_model(model, task)
        certificate = _Examination(model, task, seed).run()
    return certificate.model_copy(update={"seconds": round(time.process_time() - started, 3)})


@dataclass
class _Examination:
    """One model under examination; evidence is added as it is found."""

    model: SequenceModel
    task: RegularTask
    seed: int
    evidence: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Certificate:
        error = shortest_error(self.model, self.task)
        if error is not None:
            return self._refuted(error, "of all strings")
        evaluated = self._readings()
        if len(evaluated) < len(TESTED_LENGTHS):
            return self._certificate("tested", f"the task has no strings near some of the lengths {TESTED_LENGTHS}")
        wrong = self._test(evaluated)
        if not isinstance(self.model, TreeModel | RecurrentModel):
            reasons = [f"machines are read off tree models and recurrent models, and {self.model.name} is neither"]
        else:
            reasons = []
            for radius in self._radii(evaluated[0]):
                outcome = self._attempt(self.model, radius, evaluated, wrong is None)
                if isinstance(outcome, Certificate):
                    return outcome
                reasons.append(f"with radius {radius:.3g} {outcome.removeprefix('model: ')}")
        if wrong is not None:
            return self._refuted(shrunk_error(self.model, self.task, wrong), "as found")
        return self._certificate("tested", _in_short(reasons))

    def _readings(self) -> list[EvaluatedStrings]:
        drawn = (tested_strings(self.task, length, NUM_STRINGS, self.seed) for length in TESTED_LENGTHS)
        return [EvaluatedStrings(self.model, strings) for strings in drawn if strings is not None]

    def _test(self, evaluated: Sequence[EvaluatedStrings]) -> Int64[Tensor, " T"] | None:
        """Note how many answers are right, up to the first length at which one is wrong; a string that has it."""
        tested: list[Tested] = []
        wrong = None
        for strings in evaluated:
            graded = strings.grade(self.task)
            supervised, num_wrong = int((graded.expected != IGNORE).sum()), int(graded.wrong.sum())
            tested.append(
                Tested(
                    length=strings.length,
                    num_strings=len(graded.wrong),
                    num_graded=supervised,
                    num_correct=supervised - num_wrong,
                )
            )
            if num_wrong:
                wrong = strings.strings[graded.wrong][0]
                break
        self.evidence["tested"] = tuple(tested)
        return wrong

    @cached_property
    def _states(self) -> OneHotMachine | str:
        """The machine of a recurrent model's own states, where they can be enumerated, or why they cannot."""
        assert isinstance(self.model, RecurrentModel)
        try:
            found = enumerate_states(self.model, self.task.symbols)
        except ValueError as problem:
            return str(problem)
        return found or "columns are not one-hot vectors, or rounding may decide which"

    def _radii(self, evaluated: EvaluatedStrings) -> list[float]:
        """Radii of classes to try, from the largest; before all 0 where states can be enumerated."""
        tried = radii(self.model.last_state(evaluated.strings[:SUBSAMPLE_SIZE]))
        if codebook := _codebook(self.model):
            return [min(tried[0], codebook.gap / 2)]  # a class for each code
        by_state = isinstance(self.model, RecurrentModel) and not isinstance(self._states, str)
        return [0.0, *tried] if by_state else tried

    def _extract(self, model: TreeModel | RecurrentModel, radius: float) -> Extraction:
        if isinstance(model, TreeModel):
            return extract(model, self.task.symbols, radius=radius)
        if not radius and not isinstance(self._states, str):
            return self._states.extraction
        return extract_recurrent(model, self.task.symbols, radius=radius)

    def _attempt(
        self, model: TreeModel | RecurrentModel, radius: float, evaluated: Sequence[EvaluatedStrings], none_wrong: bool
    ) -> Certificate | str:
        """A certificate from classes of this radius, or why there is none."""
        try:
            extraction = self._extract(model, radius)
            subsample = _followed(extraction, [evaluated.subsample(SUBSAMPLE_SIZE) for evaluated in evaluated[:2]])
            if missed := _disagreement(subsample):
                return missed
            error = self._error(extraction, radius)
            if error is not None:
                return error
            if not none_wrong:
                return "the machine is right, the model is not"
            followed = _followed(extraction, evaluated)
        except (ValueError, Diverged) as problem:  # too many classes, too many merges to compare, or an overflow
            return str(problem)
        if missed := _disagreement(followed):
            return missed
        self._note_machine(extraction, radius)
        self.evidence["followed"] = followed
        return self._extracted(model, extraction, radius, evaluated)

    def _error(self, extraction: Extraction, radius: float) -> Certificate | str | None:
        """What the machine's shortest error comes to: the model's (`refuted`) or its own; None: it makes no error."""
        error = first_error(extraction.machine, self.task.transducer)
        if error is None:
            if first_error(extraction.fine, self.task.transducer) is None:
                return None
            return "the machine is right only once its classes are reduced to fewer"
        string = self.task.encode("".join(error))
        if not bool(grade(self.model, self.task, string[None]).wrong):
            return f"the machine is wrong on a string of {len(string)} symbols that the model answers rightly"
        self.evidence.pop("followed", None)
        self._note_machine(extraction, radius)
        return self._refuted(string, "of the machine")

    def _extracted(
        self,
        model: TreeModel | RecurrentModel,
        extraction: Extraction,
        radius: float,
        evaluated: Sequence[EvaluatedStrings],
    ) -> Certificate:
        """Look for boxes around the representatives, or around those of smaller classes, which are then the machine."""
        if not isinstance(model, TreeModel):
            return self._extracted_of_states(extraction)
        if _codebook(model):
            return self._extracted_of_codes(model, extraction)
        reason = "no boxes were found that the model maps into one another, with a margin between answers"
        left = MAX_BOUNDED
        try:
            for smaller, finer in _finer(model, self.task.symbols, extraction, radius):
                error = self._error(finer, smaller)
                if isinstance(error, Certificate):
                    return error
                if error:
                    continue
                found, num_merges = invariant_enclosures(model, finer, left)
                left -= num_merges
                if found is None:
                    continue
                if finer is not extraction:
                    followed = _followed(finer, evaluated)
                    if missed := _disagreement(followed):
                        reason = f"boxes were found around smaller classes only, of which {missed}"
                        continue
                    self._note_machine(finer, smaller)
                    self.evidence["followed"] = followed
                self.evidence["enclosures"] = Enclosures(
                    num_prototypes=len(finer.prototypes),
                    enclosure_radius=found.enclosure_radius,
                    margin=_or_none(found.margin),
                )
                return self._certificate("proved", "")
        except ValueError as problem:
            reason = f"{reason} ({problem})"
        return self._certificate("extracted", reason)

    def _extracted_of_codes(self, model: TreeModel, extraction: Extraction) -> Certificate:
        """Enumerate all merges of codes."""
        try:
            found = enumerate_merges(model, extraction)
        except ValueError as problem:
            return self._certificate("extracted", str(problem))
        if found is None:
            return self._certificate("extracted", "rounding may decide which code is the nearest to some merged state")
        return self._proved_by_codes(len(extraction.prototypes) - extraction.num_given, found)

    def _extracted_of_states(self, extraction: Extraction) -> Certificate:
        """Of a machine of the states themselves nothing more has to be shown."""
        if isinstance(self._states, str):
            return self._certificate("extracted", self._states)
        if not extraction.exact:
            return self._certificate("extracted", "the model's states, one by one, do not answer as the task does")
        return self._proved_by_codes(len(extraction.prototypes), self._states.evidence)

    def _proved_by_codes(self, num_codes: int, found: Enumeration) -> Certificate:
        self.evidence["codes"] = Codes(
            num_codes=num_codes,
            num_merges=found.num_merges,
            slack=_or_none(found.slack),
            margin=_or_none(found.margin),
        )
        return self._certificate("proved", "")

    def _note_machine(self, extraction: Extraction, radius: float) -> None:
        self.evidence["machine"] = extraction.machine.to_json()
        if isinstance(extraction.machine, TreeMachine):
            self.evidence["laws"] = Laws(**monoid_laws(extraction.machine)._asdict())
        self.evidence["closure"] = Closure(
            num_prototypes=len(extraction.prototypes),
            prototypes=_hash({"prototypes": extraction.prototypes}),
            requested_radius=radius,
            radius=extraction.radius,
            gap=_or_none(extraction.gap),
            num_levels=extraction.num_levels,
            points=_map(extraction),
        )

    def _refuted(self, string: Int64[Tensor, " T"], shortest: Shortest) -> Certificate:
        graded = grade(self.model, self.task, string[None])
        if not bool(graded.wrong):
            reason = f"a string of {len(string)} symbols is answered wrongly in a batch and rightly when it is alone"
            return self._certificate("tested", reason)
        self.evidence["counterexample"] = Counterexample(
            string=tuple(self.task.symbols[v] for v in string.tolist()),
            expected=self.task.classes[int(graded.expected)],
            got=None if int(graded.answers) < 0 else self.task.classes[int(graded.answers)],
            shortest=shortest,
        )
        return self._certificate("refuted", "the model errs")

    def _certificate(self, level: Level, reason: str) -> Certificate:
        return Certificate(
            level=level,
            reason=reason,
            task=dump_named(self.task.name, self.task),
            model=dump_named(self.model.name, self.model.config),
            weights=weights_digest(self.model),
            classes=self.task.classes,
            transducer=self.task.transducer.minimize().to_json(),
            versions={"lengthwise": __version__, "torch": torch.__version__},
            **self.evidence,
        )


def weights_digest(model: SequenceModel) -> str:
    """A hash of all weights and their names, shapes and types, by which a certificate names the model it is about."""
    return _hash(model.state_dict())


def _codebook(model: object) -> Codebook | None:
    """The codes that the model moves its states to, if it does."""
    layer = model.tree.layers[0] if isinstance(model, TreeModel) else None
    return layer.codebook if isinstance(layer, QuantizingLayer) else None


def _finer(
    model: TreeModel, symbols: tuple[str, ...], extraction: Extraction, radius: float
) -> Iterator[tuple[float, Extraction]]:
    """A machine and those of smaller classes, each once, with their radii."""
    yield radius, extraction
    for smaller in (radius / 2**halvings for halvings in range(1, 5)):
        finer = extract(model, symbols, radius=smaller)
        if not torch.equal(finer.prototypes, extraction.prototypes):
            yield smaller, finer
        extraction = finer


def _followed(extraction: Extraction, evaluated: Iterable[EvaluatedStrings]) -> tuple[TraceAgreement, ...]:
    return tuple(evaluated.compare_traces(extraction) for evaluated in evaluated)


def _disagreement(followed: Iterable[TraceAgreement]) -> str:
    """What speaks against the classes, or nothing."""
    for seen in followed:
        if seen.num_disagreements:
            return (
                f"{seen.num_disagreements:,} of {seen.num_nodes:,} states on strings of {seen.length:,} symbols are in "
                "another class than the machine says"
            )
    return ""


def _in_short(reasons: Sequence[str]) -> str:
    """One sentence on all attempts: what the first of them and the last came to."""
    if len(reasons) == 1:
        return reasons[0]
    return f"of {len(reasons)} attempts none gave the model's machine: {reasons[0]}, and {reasons[-1]}"


def _or_none(number: float) -> float | None:
    """A number, or None for an infinite one, which stands for a distance to something that there is not."""
    return number if math.isfinite(number) else None


def _map(extraction: Extraction) -> tuple[tuple[float, float, int], ...]:
    """The representatives along their first two principal axes, and their classes; of very many, none.

    Of one-hot states none either: they are as far from one another, and all axes as good.
    """
    if extraction.exact or len(extraction.prototypes) > MAX_MAPPED:
        return ()
    centered = (extraction.prototypes - extraction.prototypes.mean(0)).double()
    _, _, axes = torch.linalg.svd(torch.nn.functional.pad(centered, (0, 1)), full_matrices=False)  # of width 1, too
    indices = (centered @ axes[:2, :-1].T).tolist()
    return tuple((round(x, 3), round(y, 3), int(k)) for (x, y), k in zip(indices, extraction.classes, strict=True))


def _hash(tensors: Mapping[str, Tensor]) -> str:
    digest = blake2b(digest_size=16)
    for name, tensor in tensors.items():
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()
