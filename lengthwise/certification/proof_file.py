"""Proof files: the weights of a net, a machine, and the sets of states that the separate checker verifies.

A proof file is a safetensors file. The tensors `weights.*` are the net's state dict. For most methods of proof, the
tensors `sets.*` contain a machine, and a set of the net's states for each state of the machine. The names of these
tensors depend on the method. The metadata contain the order of the weights.

Example: the proof that a net whose states have 5 numbers computes parity, for strings over 2 symbols. The machine in
the file has 5 states, one for each prototype of the net's states (`Extraction.fine`). Two states would be enough, but
equivalent states are not merged. The set of state k of the machine is a box: the product of 5 intervals, from
``low[k]`` to ``high[k]``.

    >>> from safetensors.torch import load
    >>> from lengthwise import construct, make_task
    >>> from lengthwise.certification.builder import mask_unsupervised
    >>> from lengthwise.certification.methods.intervals.prover import IntervalProver
    >>> from lengthwise.extraction.base import reader_of
    >>> task = make_task("parity")
    >>> model = construct("rnn", task).model
    >>> extraction = mask_unsupervised(reader_of(model, task.symbols).extract(0.5), task.reference)
    >>> prover = IntervalProver()
    >>> evidence = prover.prove(model, extraction)
    >>> tensors = load(proof_content(model, prover, extraction))
    >>> for name in sorted(tensors):
    ...     print(name, tuple(tensors[name].shape))
    sets.high (5, 5)
    sets.low (5, 5)
    sets.outputs (5,)
    sets.start ()
    sets.table (5, 2)
    weights.first_state (5,)
    weights.readout.bias (2,)
    weights.readout.weight (2, 5)
    weights.recurrence.weight_hh_l0 (5, 5)
    weights.recurrence.weight_ih_l0 (5, 2)
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.checker import Rejected, check
from lengthwise.certification.confirm import proof_of
from lengthwise.certification.methods.base import Prover
from lengthwise.devices import one_thread
from lengthwise.extraction.base import Extraction
from lengthwise.files import write_by_rename
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask
from lengthwise.validation import path_of


@one_thread()
def write_proof(certificate: Certificate, model: SequenceModel, task: MachineTask, path: str | Path) -> str:
    """Find the proof of a certificate again, write it to a file, and return the checker's conclusion.

    `checker` reads the file without this package.

    Raises:
        ValueError: the certificate is neither `proved` nor `bounded`, the proof is not found again, or the checker
            rejects it. The checker may reject a sound proof, because its bounds may be wider than the prover's bounds.
    """
    path = path_of("path", path)
    content = proof_content(model, *proof_of(certificate, model, task))
    try:
        sentence = check(certificate.model_dump(mode="json"), content)
    except Rejected as problem:
        raise ValueError(
            f"{problem}; the separate checker, which supports fewer nets than the provers and has wider bounds, "
            "did not accept the proof, so no proof file is written"
        ) from None
    write_by_rename(path, content)  # only an accepted proof, so that each file on disk passes the checker
    return sentence


def with_verdict(certificate: Certificate, model: SequenceModel, prover: Prover, extraction: Extraction) -> Certificate:
    """Return the certificate, with `independently_checked=True` if the separate checker accepts the proof."""
    try:
        check(certificate.model_dump(mode="json"), proof_content(model, prover, extraction))
    except Rejected:  # the checker's bounds are wider, so this does not contradict the prover
        return certificate
    return certificate.model_copy(update={"independently_checked": True})


def proof_content(model: SequenceModel, prover: Prover, extraction: Extraction) -> bytes:
    """Return the content of a proof file with the prover's sets, the model's weights and the extracted machine.

    Some provers have no sets, because the checker computes the net's states itself. The file then omits the machine.
    """
    fine, sets = extraction.fine, dict(prover.sets)
    machine: dict[str, np.ndarray] = {}
    if isinstance(fine, TreeMachine) and sets:
        machine = {"table": fine.table, "outputs": fine.outputs}
    elif isinstance(fine, Transducer) and sets:
        machine = {"table": fine.semiautomaton.table, "start": np.array(fine.start), "outputs": fine.outputs}
    weights = model.state_dict()
    parts = {"weights": weights, "sets": sets | {name: torch.tensor(array) for name, array in machine.items()}}
    tensors = {
        f"{part}.{name}": tensor.contiguous() for part, tensors in parts.items() for name, tensor in tensors.items()
    }
    return save(tensors, {"weights": json.dumps(list(weights))})
