"""A model that only looks tables up: the finite machine found inside a net, in the net's place."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, Integer
from torch import Tensor, nn

from lengthwise.automata.lookup import StateLookup, TreeLookup
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.conventions import IGNORE, PAD
from lengthwise.files import write_by_rename
from lengthwise.models.base import ModelConfig, SequenceModel

_KINDS: dict[str, type[TreeMachine] | type[Transducer]] = {"tree-machine": TreeMachine, "transducer": Transducer}


class MachineModel(SequenceModel):
    """A sequence model whose hidden state is the number of a class (tree machine) or state (transducer) of a machine.

    Logits are 1 for the machine's answer and 0 for the others, and 0 for all where it asks nothing (`IGNORE`).
    `classes` names the answers, in the order of their ids, as a task's `classes` do. Built from a tree machine it
    accepts pads, and each prefix is read by its own tree; built from a transducer it does not, but can be streamed with
    `initial_state` and `step`. There are no parameters; it is kept as JSON, not as weights.

    Raises:
        ValueError: the machine gives an answer that has no name.

    Example:
        >>> from lengthwise.automata import library
        >>> model = MachineModel(library.parity(), ("even", "odd"))
        >>> model.last(torch.tensor([[0, 1, 1, 1]])).tolist()
        [[0.0, 1.0]]
        >>> state = model.initial_state(batch_size=1)
        >>> logits, state = model.step(torch.tensor([1]), state)
        >>> model.classes[int(logits.argmax())]
        'odd'
    """

    name: ClassVar[str] = "snapped"
    Config = ModelConfig
    readout: "Scores"

    def __init__(self, machine: TreeMachine | Transducer, classes: Sequence[str]) -> None:
        super().__init__()
        self.config = ModelConfig()
        answers = machine.outputs[machine.outputs != IGNORE]
        if len(answers) and not 0 <= answers.min() <= answers.max() < len(classes):
            raise ValueError(
                f"classes: expected a name for each answer of the machine, which are {answers.min()}..{answers.max()}, "
                f"got {len(classes)} names; give those of the task"
            )
        self.machine = machine
        self.classes = tuple(classes)
        self.accepts_pad = isinstance(machine, TreeMachine)
        self.readout = Scores(machine.outputs, len(classes))
        self._lookup: TreeLookup | StateLookup = (
            TreeLookup(machine)
            if isinstance(machine, TreeMachine)
            else StateLookup(machine.semiautomaton, machine.start)
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Nothing is drawn: there are no parameters."""

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        strings = self._strings(inputs)
        lookup = self._lookup
        numbers = lookup.prefix_classes(strings) if isinstance(lookup, TreeLookup) else lookup.run(strings)
        logits: Tensor = self.readout(_hidden(numbers, inputs))
        return logits

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B 1"]:
        strings = self._strings(inputs)
        lookup = self._lookup
        return _hidden(
            lookup.final_classes(strings) if isinstance(lookup, TreeLookup) else lookup.final_states(strings), inputs
        )

    def initial_state(self, batch_size: int) -> Int64[Tensor, " B"]:
        """The state before the first symbol, for each of so many strings.

        Raises:
            ValueError: the machine is a tree machine, whose chunks shift with every symbol.
        """
        return torch.full((batch_size,), self._transducer().start, device=self.readout.scores.device)

    def step(
        self, token: Int64[Tensor, " B"], state: Int64[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B Y"], Int64[Tensor, " B"]]:
        """Read one symbol of each string: the logits that `forward` has at this position, and the next state.

        Raises:
            ValueError: a symbol is foreign; the machine is a tree machine.
        """
        machine = self._transducer()
        self._strings(token[:, None])
        following = torch.from_numpy(machine.semiautomaton.table[state.numpy(force=True), token.numpy(force=True)])
        following = following.to(state.device)
        return self.readout.scores[following], following

    def to_json(self) -> dict[str, Any]:
        """The machine and the names of its answers, as plain lists."""
        kind = next(name for name, kind in _KINDS.items() if isinstance(self.machine, kind))
        return {"kind": kind, "classes": list(self.classes), "machine": self.machine.to_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "MachineModel":
        """The inverse of `to_json`."""
        if content["kind"] not in _KINDS:
            raise ValueError(f"kind: expected one of {', '.join(_KINDS)}, got {content['kind']!r}; name its kind")
        return cls(_KINDS[content["kind"]].from_json(content["machine"]), content["classes"])

    def save(self, path: Path) -> None:
        """Write the model as a JSON file, which appears by rename."""
        write_by_rename(path, (json.dumps(self.to_json()) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> "MachineModel":
        """Read what `save` wrote.

        Raises:
            ValueError: there is no such file, or it describes no machine.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(content, dict):
                raise TypeError("it holds no JSON object")
            return cls.from_json(content)
        except FileNotFoundError:
            raise ValueError(f"{path}: expected a file of a snapped model, there is none; save one first") from None
        except KeyError as error:
            raise ValueError(f"{path}: describes no machine, it lacks {error}; save the model again") from None
        except (ValueError, IndexError, TypeError, AttributeError, OverflowError, OSError) as error:
            raise ValueError(f"{path}: describes no machine ({error}); save the model again") from None

    def _transducer(self) -> Transducer:
        if isinstance(self.machine, Transducer):
            return self.machine
        raise ValueError(
            "machine: expected a transducer to read symbol by symbol, got a tree machine, whose chunks shift with "
            "every symbol; build a MachineModel of the transducer that it equals"
        )

    def _strings(self, inputs: Int64[Tensor, "B T"]) -> Int64[np.ndarray, "B T"]:
        if not inputs.shape[1]:
            raise ValueError("inputs: expected strings of length 1 or more, got length 0; give at least one symbol")
        low, high = (int(bound) for bound in inputs.aminmax()) if len(inputs) else (0, 0)
        count = len(self.machine.symbols)
        if not (PAD if self.accepts_pad else 0) <= low <= high < count:
            or_pad = f" or the pad {PAD}" if self.accepts_pad else ""
            raise ValueError(
                f"inputs: expected symbol ids in 0..{count - 1}{or_pad}, got ids in {low}..{high}; encode strings with "
                "the model's own task"
            )
        return inputs.numpy(force=True)


class Scores(nn.Module):
    """Logits of a hidden state, which is the number of a class: 1 for its answer, 0 for the others."""

    scores: Tensor

    def __init__(self, outputs: Int64[np.ndarray, " K"], num_answers: int) -> None:
        super().__init__()
        answers = torch.arange(num_answers)
        scores = (torch.from_numpy(np.array(outputs))[:, None] == answers).to(torch.get_default_dtype())
        self.register_buffer("scores", scores, persistent=False)

    def forward(self, states: Float[Tensor, "*N 1"]) -> Float[Tensor, "*N Y"]:
        return F.embedding(states[..., 0].int(), self.scores)


def _hidden(numbers: Integer[np.ndarray, "*N"], inputs: Tensor) -> Float[Tensor, "*N 1"]:
    """Numbers of classes as hidden states on the device of the inputs; float32 holds numbers up to 2^24 exactly."""
    return torch.from_numpy(numbers.astype(np.float32))[..., None].to(inputs.device)
