"""A new kind of model in a file of its own: a model, its reader, its prover and the evidence, as users write them.

The model sees the last two symbols, and has neither a tree nor a recurrent state.
"""

from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved
from lengthwise.certification.methods.usual_parts import check_usual
from lengthwise.certification.parts import PositiveCount
from lengthwise.extraction.base import READERS, Extraction, Reader, TraceCount, Traces
from lengthwise.extraction.readers.recurrent import states_of
from lengthwise.models.base import MODELS, ModelConfig, SequenceModel


class WindowConfig(ModelConfig):
    """The factor of all logits."""

    scale: float = 1.0


@MODELS.register("window")
class WindowModel(SequenceModel):
    """Logits W x + b times a factor, where x has the last two symbols as one-hot vectors.

    Source: ours.
    Differs from the source: no difference.
    """

    Config = WindowConfig

    def __init__(self, config, *, vocab_size, num_classes, generator=None):
        super().__init__()
        self.config = config
        self.readout = nn.Linear(2 * vocab_size, num_classes)
        self.reset_parameters(generator or torch.Generator())

    def reset_parameters(self, generator):
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=self.config.scale, generator=generator)

    def states(self, inputs):
        num_symbols = self.readout.in_features // 2
        self.check_inputs(inputs, num_symbols)
        newest = F.one_hot(inputs, num_symbols).to(self.readout.weight)
        return torch.cat([F.pad(newest, (0, 0, 1, -1)), newest], -1)

    def forward(self, inputs):
        return self.readout(self.states(inputs))

    def last_state(self, inputs):
        return self.states(inputs)[:, -1]


class WindowTraces(Traces):
    """All states along strings."""

    def __init__(self, model, strings):
        self.model, self.strings = model, strings

    def compare(self, extraction):
        expected = torch.from_numpy(extraction.fine.semiautomaton.run(self.strings.numpy(), extraction.fine.start))
        distances = (self.model.states(self.strings) - extraction.prototypes[expected]).norm(dim=-1)
        num_wrong = int((distances > 0).sum())
        return TraceCount(len(self.strings), distances.numel(), num_wrong, float(distances.max()))


@READERS.register("window")
class WindowReader(Reader[WindowModel]):
    """Enumerates the states: state 0 is the empty string, then all symbols, then all pairs of symbols."""

    kind = WindowModel

    def radii(self, strings):
        return [0.0]

    @torch.no_grad()
    def extract(self, radius):
        size = len(self.symbols)
        singles = [torch.tensor([[v]]) for v in range(size)]
        pairs = [torch.tensor([[u, v]]) for u in range(size) for v in range(size)]
        states = torch.cat([torch.zeros(1, 2 * size), *map(self.model.last_state, [*singles, *pairs])])
        newest = np.array([-1, *range(size), *np.tile(np.arange(size), size)])
        table = np.where(newest[:, None] < 0, 1, 1 + size + size * newest[:, None]) + np.arange(size)
        fine = Transducer(Semiautomaton(table, self.symbols), 0, self.model.readout(states).argmax(-1).numpy())
        machine = fine.minimize()
        return Extraction(machine, fine, states_of(machine, fine), states, 1, 0.0, 1.0, 2)

    def traces(self, strings):
        return WindowTraces(self.model, strings)


@EVIDENCE.register("windows")
class WindowEvidence(Evidence):
    """The number of windows, and the smallest lead of a right logit."""

    requires = Requirement("transducer", {"window": {}})
    assumes = "the model reads two symbols"

    method: Literal["windows"] = "windows"
    num_windows: PositiveCount
    logit_margin: float

    def describe(self) -> str:
        return f"{self.num_windows} windows"

    def check_numbers(self, certificate: Certificate) -> None:
        check_lead(self.logit_margin, certificate)


@PROVERS.register("windows")
class WindowProver(Prover):
    """Compares all steps of the machine with the model, and bounds the rounding of two weights and a bias."""

    reader = "window"

    @torch.no_grad()
    def prove(self, model: Any, extraction: Extraction) -> Evidence:
        if type(model) is not WindowModel:  # a subclass may compute something else
            raise ValueError(f"model: windows are enumerated of a WindowModel, got a {type(model).__name__}")
        check_usual(model, {nn.Linear})
        states, table = extraction.prototypes, torch.tensor(extraction.fine.semiautomaton.table)
        size = states.shape[1] // 2
        newest = torch.eye(size).expand(len(states), -1, -1)
        after = torch.cat([states[:, None, size:].expand(-1, size, -1), newest], -1)
        if states[0].any() or not torch.equal(states[table], after):
            raise Unproved("the machine has other steps than the model")
        weight, bias = (parameter.double() for parameter in model.readout.parameters())
        rounding = 4 * torch.finfo(torch.float32).eps * float(weight.abs().max() + bias.abs().max())
        logits = F.linear(states.double(), weight, bias)
        outputs = torch.tensor(extraction.fine.outputs)
        supervised = outputs >= 0
        right = logits[supervised].gather(1, outputs[supervised, None])
        others = logits[supervised].scatter(1, outputs[supervised, None], -torch.inf).amax(1, keepdim=True)
        margin = float((right - others).min()) - 2 * rounding
        if not 0 < margin < torch.inf:
            raise Unproved("rounding may decide an answer")
        return WindowEvidence(num_windows=len(states), logit_margin=margin)
