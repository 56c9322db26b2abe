"""The builder of certificates: it turns evidence about one model into a certificate."""

import math
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.monoid_laws import monoid_laws
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification import checker
from lengthwise.certification.certificate import Certificate, Evidence
from lengthwise.certification.counterexample import grade
from lengthwise.certification.equivalence import first_error
from lengthwise.certification.grids import first_grid_error
from lengthwise.certification.kernels import kernel_report
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.parts import Closure, Counterexample, Laws, Level, Shortest, Tested, TraceAgreement
from lengthwise.conventions import IGNORE
from lengthwise.devices import denormals_kept
from lengthwise.extraction.base import Extraction, Machine
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask, Task
from lengthwise.validation import dump_named
from lengthwise.version import __version__

MAX_MAPPED = 2_000
"""The largest number of prototypes on a certificate's map; certificates with more prototypes omit the map."""


class Candidate(NamedTuple):
    """An extracted machine, the requested radius of classes, and comparisons of its classes with the model's states."""

    extraction: Extraction
    radius: float
    trace_agreement: tuple[TraceAgreement, ...] = ()


class CertificateBuilder(NamedTuple):
    """A builder of certificates for one model and its task; `tested` counts right answers to tested strings."""

    model: SequenceModel
    task: MachineTask
    tested: tuple[Tested, ...] = ()

    def certificate(
        self,
        level: Level,
        reason: str,
        *,
        candidate: Candidate | None = None,
        evidence: Evidence | None = None,
        counterexample: Counterexample | None = None,
    ) -> Certificate:
        """Return a certificate of this level with the given evidence and the counts of right answers."""
        machine = None if candidate is None else candidate.extraction.machine
        return Certificate(
            level=level,
            max_length=None if evidence is None else evidence.proved_length,
            reason=reason,
            task=dump_named(self.task.name, self.task),
            model=dump_named(self.model.name, self.model.config),
            weights=weights_digest(self.model),
            net=net_digest(self.model),
            classes=self.task.classes,
            transducer=self.task.reference.to_json(),
            machine=None if machine is None else machine.to_json(),
            laws=Laws(**monoid_laws(machine)._asdict()) if isinstance(machine, TreeMachine) else None,
            closure=None if candidate is None else _closure(candidate.extraction, candidate.radius),
            tested=self.tested,
            trace_agreement=() if candidate is None else candidate.trace_agreement,
            evidence=evidence,
            kernels=None if evidence is None else kernel_report(),
            counterexample=counterexample,
            versions={"lengthwise": __version__, "torch": torch.__version__},
        )

    def refuted_by(self, candidate: Candidate) -> Certificate | None:
        """Compare the machine with the task; return a certificate if the model shares an error of the machine.

        The result is None if the machine is right. Otherwise, the model reads a string that the machine answers
        wrongly. If the model also answers it wrongly, the certificate has level ``refuted``. If the model errs only
        while denormal numbers are rounded to 0, the level is ``tested`` (see method `refuted`).

        Raises:
            Unproved: the model answers this string correctly. Or the machine is right, but the finer machine with one
                class for each prototype (`Extraction.fine`) is not.
        """
        extraction, reference = candidate.extraction, self.task.reference
        error = first_error(extraction.machine, reference)
        if error is None:
            # The proof uses the classes of `fine`, before equivalent classes are merged, so `fine` must also be right.
            if first_error(extraction.fine, reference) is None:
                return None
            raise Unproved(
                "the machine is right after its classes are merged, but one of the classes before merging gives a "
                "wrong answer; a proof needs right answers from all classes before merging"
            )
        # The machine and the task differ on this string. If the model also differs from the task, the model is refuted.
        string = self.task.encode(self.task.separator.join(error))
        if bool(grade(self.model, self.task, string[None]).wrong):
            return self.refuted(string, _shortest_kind(extraction.machine, reference), candidate)
        raise Unproved(f"the machine is wrong on a string of {len(string)} symbols that the model answers correctly")

    def refuted(
        self, string: Int64[Tensor, " T"], shortest: Shortest, candidate: Candidate | None = None, found_by: str = ""
    ) -> Certificate:
        """Return a certificate of level ``refuted`` with this string as its counterexample.

        If the model answers the string correctly when it reads the string alone, the level is ``tested``. `found_by` is
        the name of the search that found the string (`certification.searches`), or empty if no search found it.
        """
        # Users run the model on one string at a time, without rounding denormal numbers to 0. Only an error under these
        # conditions refutes the model.
        with denormals_kept():
            graded = grade(self.model, self.task, string[None])
        if not bool(graded.wrong):
            reason = (
                f"a string of {len(string)} symbols is answered wrongly in a batch, or as a prefix of other strings, "
                "but correctly when it is read alone and no denormal number is rounded to 0"
            )
            return self.certificate("tested", reason, candidate=candidate)
        counterexample = Counterexample(
            string=tuple(self.task.symbols[v] for v in string.tolist()),
            expected=self.task.classes[int(graded.expected)],
            got=None if int(graded.answers) < 0 else self.task.classes[int(graded.answers)],
            shortest=shortest,
        )
        reason = f"the model errs (found by: {found_by})" if found_by else "the model errs"
        return self.certificate("refuted", reason, candidate=candidate, counterexample=counterexample)


def weights_digest(model: SequenceModel) -> str:
    """Return a digest of all tensors of a model's state dict, including names, shapes and types."""
    digest = blake2b(digest_size=16)
    for name, tensor in model.state_dict().items():
        digest.update(_bytes(name, tensor))
    return digest.hexdigest()


def net_digest(model: SequenceModel) -> str:
    """Return the digest of a model's settings and named tensors, which identifies the model in a certificate.

    Settings are included because two nets with the same weights but different settings compute different functions.
    """
    arrays = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    return checker.net_digest(dump_named(model.name, model.config), arrays)


def mismatched_part(certificate: Certificate, model: SequenceModel, task: Task) -> str | None:
    """Return the first part in which a certificate differs from a model and its task, or None if all parts agree.

    The parts are `weights`, `model` (settings), `net`, `task`, `classes` and `transducer`.
    """
    if not isinstance(task, MachineTask):
        return "task"
    pairs: dict[str, tuple[object, object]] = {
        "weights": (certificate.weights, weights_digest(model)),
        "model": (certificate.model, dump_named(model.name, model.config)),
        "net": (certificate.net, net_digest(model)),
        "task": (_untitled(certificate.task), _untitled(dump_named(task.name, task))),
        "classes": (certificate.classes, task.classes),
        "transducer": (certificate.transducer, task.reference.to_json()),
    }
    return next((what for what, (expected, actual) in pairs.items() if expected != actual), None)


def _untitled(task: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a task without its title and note, which do not affect its answers."""
    return {name: value for name, value in task.items() if name not in ("title", "note")}


def _shortest_kind(machine: Machine, reference: Transducer | GridMachine) -> Shortest:
    """Return `"of the machine"` if `first_error` returns a shortest string that the machine answers wrongly.

    Return `"as found"` if the machine may also answer a shorter string wrongly.
    """
    if isinstance(machine, GridMachine) and isinstance(reference, GridMachine):
        error = first_grid_error(machine, reference)
        return "of the machine" if error is not None and error.is_shortest else "as found"
    return "of the machine"


def mask_unsupervised(extraction: Extraction, task: Transducer | GridMachine) -> Extraction:
    """Return an extraction whose transducer has output `IGNORE` in each state where no string with an answer ends.

    A proof does not need the answers in these states, so it allows ties between logits there. Machines other than
    transducers are returned unchanged.
    """
    fine = extraction.fine
    if not isinstance(fine, Transducer) or not isinstance(task, Transducer):
        return extraction
    product = fine.semiautomaton.product(task.semiautomaton)
    start = fine.start * task.num_states + task.start
    reached = product.table[product.reachable(start)].ravel()
    supervised = reached[task.outputs[reached % task.num_states] != IGNORE] // task.num_states
    outputs = np.where(np.isin(np.arange(fine.num_states), supervised), fine.outputs, IGNORE)
    return extraction._replace(fine=Transducer(fine.semiautomaton, fine.start, outputs))


def _closure(extraction: Extraction, radius: float) -> Closure:
    return Closure(
        num_prototypes=len(extraction.prototypes),
        prototypes_digest=blake2b(_bytes("prototypes", extraction.prototypes), digest_size=16).hexdigest(),
        requested_radius=radius,
        radius=extraction.radius,
        gap=extraction.gap if math.isfinite(extraction.gap) else None,
        num_levels=extraction.num_levels,
        points=_map(extraction),
    )


def _map(extraction: Extraction) -> tuple[tuple[float, float, int], ...]:
    """Return each prototype's class, and its coordinates along the first two principal axes of all prototypes.

    The map is empty for more than `MAX_MAPPED` prototypes. It is also empty for states that consist of one-hot blocks.
    The distance of two of these states depends only on the number of blocks in which they differ, so a map would show
    nothing.
    """
    if extraction.exact or len(extraction.prototypes) > MAX_MAPPED:
        return ()
    centered = (extraction.prototypes - extraction.prototypes.mean(0)).double()
    # The padding adds a column and a row of zeros, so that states of width 1 and a single prototype also have two axes.
    _, _, axes = torch.linalg.svd(torch.nn.functional.pad(centered, (0, 1, 0, 1)), full_matrices=False)
    coordinates = (centered @ axes[:2, :-1].T).tolist()
    return tuple((round(x, 3), round(y, 3), int(k)) for (x, y), k in zip(coordinates, extraction.classes, strict=True))


def _bytes(name: str, tensor: Tensor) -> bytes:
    return f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode() + tensor.detach().contiguous().numpy().tobytes()
