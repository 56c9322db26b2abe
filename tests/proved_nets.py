"""Nets of every kind that the separate checker knows, their proofs, and files that someone changed."""

import contextlib
import copy
import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from attending_net import OCCURS, attending_net
from choosing_net import draw_machine, machine_net
from last_symbol import LastSymbol, last_symbol_net
from rule_net import rule_net
from safetensors.numpy import load
from safetensors.numpy import save as save_arrays
from slow_nets import LAST, slow_net
from torch import nn

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.certification import checker
from lengthwise.certification.builder import Candidate, CertificateBuilder, mask_unsupervised
from lengthwise.certification.methods.base import Prover, provers_of, task_extraction
from lengthwise.certification.parts import Level
from lengthwise.certification.proof_file import proof_content
from lengthwise.constructions import construct
from lengthwise.extraction.base import Extraction, reader_of
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.models.wrapped import WrappedRNN, wrap
from lengthwise.tasks import make_task
from lengthwise.tasks.base import MachineTask

Arrays = dict[str, np.ndarray]
PARITY = make_task("parity")


def mixture() -> SequenceModel:
    """A net of two states that each have an answer, and that b swaps."""
    model = make_model("block-linear-rnn", PARITY, d_model=2, block_dim=2, hidden=0, read="mixture", alignment=1.5)
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]))
        model.layers[0].first_state.copy_(torch.tensor([[1.0, 0.0]]))
        model.layers[0].temperature.fill_(1e-3)
        model.readout.weight.copy_(torch.tensor([[5.0, 0.0], [0.0, 5.0]]))
    return model


def reflections() -> SequenceModel:
    """Symbol b reflects the state, a leaves it; the sign of the state's first number is the answer."""
    model = make_model("block-linear-rnn", PARITY, d_model=4, block_dim=4, hidden=0, columns="reflected")
    along = torch.tensor([1.0, 0.0, 0.0, 0.0])
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[0.0, 1.0, 0.0, 0.0, -1.0], [1.0, 0.0, 0.0, 0.0, 1.0]]))
        model.layers[0].temperature.zero_()
        model.layers[0].first_state.copy_(along)
        _, norm, hidden, _, logits = model.readout
        norm.reset_parameters()
        for linear in (hidden, logits):
            linear.weight.zero_()
            linear.bias.zero_()
        hidden.weight[0, 0], hidden.weight[1, 0] = 1.0, -1.0
        logits.weight[0, 0] = logits.weight[1, 1] = 1.0
    return model


def codes() -> SequenceModel:
    """The net of the last symbol whose states are replaced by two codes."""
    net = last_symbol_net()
    model = make_model("codebook-gpt", LastSymbol(), d_model=8, num_heads=2, max_codes=4)
    model.load_state_dict(net.state_dict(), strict=False)
    model.codebook.fill(net.embedding.weight[1:].detach())
    return model


def without_codes() -> SequenceModel:
    model = codes()
    model._forget_codes()
    return model


def wrapped(kind: str) -> WrappedRNN:
    """A user's own net: torch's recurrence, and a head of several parts that looks at the unit of the last symbol."""
    embedding = nn.Embedding(2, 8)
    head = nn.Sequential(
        nn.Linear(8, 4), nn.Sequential(nn.Tanh(), nn.LayerNorm(4, eps=0.001)), nn.ReLU(), nn.Linear(4, 2)
    )
    if kind == "rnn":
        core: nn.RNNBase = nn.RNN(8, 8, nonlinearity="relu", batch_first=True)
    else:
        core = slow_net(kind, None, pace=0.3).layers[0].cell
    with torch.no_grad():
        embedding.weight.copy_(torch.tensor([[2.0, -2.0], [-2.0, 2.0]]) @ torch.eye(2, 8))
        if kind == "rnn":
            for parameter in core.parameters():
                parameter.zero_()
            core.weight_ih_l0[LAST, 1] = 1.0  # 2 after b, and 0 after a
            core.bias_ih_l0[LAST] = 0.25
        for parameter in head.parameters():
            parameter.zero_()
        threshold = 1.0 if kind == "rnn" else 0.0
        head[0].weight[0, LAST] = 4.0
        head[0].bias[0] = -4.0 * threshold
        head[1][1].weight.fill_(1.0)
        head[3].weight[1, 0] = 1.0
        head[3].bias[0] = 0.5
    return wrap(embedding, core, head)


def choosing() -> tuple[SequenceModel, MachineTask]:
    """A PD-SSM of eight one-hot states, and its own machine as the task."""
    table, outputs = draw_machine()
    task = make_task(
        "machine",
        alphabet=("a", "b", "c"),
        table=tuple(map(tuple, table.tolist())),
        outputs=tuple(outputs.tolist()),
        answers=("no", "yes"),
        start=0,
    )
    return machine_net(table, outputs, "scatter"), task


def rule() -> tuple[SequenceModel, MachineTask]:
    """A grid recurrence whose cells are those of the longest common subsequence."""
    task = make_task("longest-common-subsequence", alphabet=3, max_length=40)
    assert isinstance(task.reference, GridMachine)
    return rule_net(task.reference, task), task


EVEN_PAIRS = make_task("even-pairs")

NETS: dict[str, tuple[SequenceModel, MachineTask]] = {
    "chunks of 2": (last_symbol_net(), LastSymbol()),
    "chunks of 3": (last_symbol_net(3), LastSymbol()),
    "float64": (last_symbol_net().double(), LastSymbol()),
    "no codes yet": (without_codes(), LastSymbol()),
    "codes": (codes(), LastSymbol()),
    "compiled tree": (construct("regular-gpt", EVEN_PAIRS).model, EVEN_PAIRS),
    "rnn": (slow_net("rnn", None, pace=0.3), LastSymbol()),
    "gru": (slow_net("gru", None, pace=0.3), LastSymbol()),
    "lstm": (slow_net("lstm", None, pace=0.3), LastSymbol()),
    "wrapped rnn": (wrapped("rnn"), LastSymbol()),
    "wrapped gru": (wrapped("gru"), LastSymbol()),
    "wrapped lstm": (wrapped("lstm"), LastSymbol()),
    "compiled rnn": (construct("rnn", PARITY).model, PARITY),
    "one-hot": (construct("block-linear-rnn", PARITY).model, PARITY),
    "mixture": (mixture(), PARITY),
    "reflections": (reflections(), PARITY),
    "choices": choosing(),
    "rule": rule(),
    "attention": (attending_net(4.0), OCCURS),
}
"""Nets whose proofs the checker accepts, by what they are."""


class Proof(NamedTuple):
    """A net, what a certificate says of it, and what the file of its proof holds."""

    model: SequenceModel
    task: MachineTask
    certificate: dict[str, Any]
    arrays: Arrays

    @property
    def method(self) -> str:
        return str(self.certificate["evidence"]["method"])

    def verdict(self, arrays: Arrays | None = None, **edited: Any) -> str:
        """What the checker concludes from other arrays; a forger makes the digest again."""
        content = packed(self.arrays if arrays is None else arrays)
        certificate = self.certificate | edited
        if "net" not in edited:
            with contextlib.suppress(checker.Rejected, LookupError, TypeError, ValueError):  # then it has none
                certificate["net"] = checker.net_digest(certificate["model"], checker.read(content).weights)
        return checker.check(certificate, content)


def packed(arrays: Arrays) -> bytes:
    """The content of a proof file."""
    names = [name.removeprefix("weights.") for name in arrays if name.startswith("weights.")]
    contiguous = {name: np.array(array, order="C") for name, array in arrays.items()}
    return save_arrays(contiguous, {"weights": json.dumps(names)})


def prove(model: SequenceModel, task: MachineTask) -> Proof:
    """A proof without the strings that a certificate tests and traces."""
    reader = reader_of(model.eval(), task.symbols)
    radius, reasons = 0.0 if reader is not None and reader.name == "one-hot" else 1.0, []
    attempts: list[tuple[Prover, Extraction, float]] = []
    if reader is not None:
        attempts = [
            (prover, *candidate)
            for prover in (kind() for kind in provers_of(reader.name, model))
            for candidate in prover.candidates(reader, reader.extract(radius), radius)
        ]
    elif isinstance(task.reference, Transducer):
        attempts = [(kind(), task_extraction(task.reference), 0.0) for kind in provers_of(None, model)]
    for prover, extraction, size in attempts:
        supervised = mask_unsupervised(extraction, task.reference)
        try:
            evidence = prover.prove(model, supervised)
        except ValueError as problem:  # another method may be for this kind of net
            reasons.append(problem)
            continue
        level: Level = "proved" if evidence.proved_length is None else "bounded"
        candidate = None if reader is None else Candidate(extraction, size)
        certificate = CertificateBuilder(model, task).certificate(level, "", candidate=candidate, evidence=evidence)
        content = proof_content(model, prover, supervised)
        arrays = load(content)
        names = [f"weights.{name}" for name in model.state_dict()]
        in_order = {name: arrays.pop(name) for name in names} | arrays
        return Proof(model, task, certificate.model_dump(mode="json"), in_order)
    raise AssertionError(reasons)


@cache
def _first_proof(name: str) -> Proof:
    return prove(*NETS[name])


def accepts(proof: Proof, **edited: object) -> bool:
    """Whether the separate checker accepts a proof with these parts edited."""
    try:
        proof.verdict(**edited)  # type: ignore[arg-type]
    except checker.Rejected:
        return False
    return True


def proof_of(name: str) -> Proof:
    """Return the proof of one of `NETS`, which is found once; its certificate and arrays are copies."""
    proof = _first_proof(name)
    arrays = {key: array.copy() for key, array in proof.arrays.items()}
    return proof._replace(certificate=copy.deepcopy(proof.certificate), arrays=arrays)
