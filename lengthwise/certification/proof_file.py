"""Files that carry a proof: the weights, the machine, and the sets of states that `checker` goes through."""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.checker import CHECKS, Rejected, check
from lengthwise.certification.confirm import proof_of
from lengthwise.certification.proofs.base import Prover
from lengthwise.extraction.base import Extraction
from lengthwise.files import write_by_rename
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask
from lengthwise.threads import one_thread


@one_thread()
def write_proof(certificate: Certificate, model: SequenceModel, task: MachineTask, path: Path) -> str:
    """Find the proof of a certificate again and write it to a file, which `checker` reads without this package.

    Returns what the checker says of it.

    Raises:
        ValueError: the certificate is not `proved`, its method is none that can be checked so, or the proof is not
            found again; the checker, whose bounds are its own, rejects it.
    """
    if certificate.level != "proved" or certificate.evidence is None:
        raise ValueError(f"proof: expected a certificate of level proved, got {certificate.level}; there is no proof")
    if (method := certificate.evidence.method) not in CHECKS:
        raise ValueError(f"proof: expected one by method {', '.join(CHECKS)}, got {method}; it has no separate checker")
    content = proof_content(model, *proof_of(certificate, model, task))
    try:
        sentence = check(certificate.model_dump(mode="json"), content)
    except Rejected as problem:
        raise ValueError(
            f"{problem}, by the separate checker, which knows fewer nets, by wider bounds; no proof is written"
        ) from None
    write_by_rename(path, content)
    return sentence


def proof_content(model: SequenceModel, prover: Prover, extraction: Extraction) -> bytes:
    """The content of a file: what a prover found of a model whose machine was extracted."""
    fine = extraction.fine
    assert not isinstance(fine, GridMachine), "its method has no separate checker"
    if isinstance(fine, TreeMachine):
        machine = {"table": fine.table, "outputs": fine.outputs}
    else:
        machine = {"table": fine.semiautomaton.table, "start": np.array(fine.start), "outputs": fine.outputs}
    weights = model.state_dict()
    parts = {
        "weights": weights,
        "sets": dict(prover.sets) | {name: torch.tensor(array) for name, array in machine.items()},
    }
    tensors = {
        f"{part}.{name}": tensor.contiguous() for part, tensors in parts.items() for name, tensor in tensors.items()
    }
    return save(tensors, {"weights": json.dumps(list(weights))})
