"""Finite machines as sequence models, which look up answers in tables."""

import json
from abc import abstractmethod
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
from lengthwise.conventions import IGNORE
from lengthwise.files import UnreadableFile, read_file, strict_json_loads, write_by_rename
from lengthwise.models.base import Ids, Logits, ModelConfig, SequenceModel
from lengthwise.models.capabilities import AcceptsPads
from lengthwise.models.checks import checks_batch_size
from lengthwise.validation import truncate


class MachineModel(SequenceModel):
    """The base of `TreeMachineModel` and `TransducerModel`.

    The hidden state is the index of the transducer's state or of the tree machine's class. The logit of the machine's
    answer is 1, and all other logits are 0. All logits are 0 if the machine has no answer (`IGNORE`). `classes` names
    the answers in the order of their ids, as in a task. The model has no parameters and is stored as JSON, not as
    weights.

    Raises:
        ValueError: the machine has an answer without a name.
    """

    name: ClassVar[str] = "machine"
    kind: ClassVar[str]
    Config = ModelConfig
    readout: "Scores"
    machine: TreeMachine | Transducer

    def __init__(self, machine: TreeMachine | Transducer, classes: Sequence[str]) -> None:
        super().__init__()
        self.config = ModelConfig()
        answers = machine.outputs[machine.outputs != IGNORE]
        if len(answers) and not 0 <= answers.min() <= answers.max() < len(classes):
            raise ValueError(
                f"classes: expected names for the machine's answers {answers.min()}..{answers.max()}, got "
                f"{truncate(repr(tuple(classes)))}; give the classes of the task"
            )
        self.machine = machine
        self.classes = tuple(classes)
        self.readout = Scores(machine.outputs, len(classes))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Do nothing, because the model has no parameters."""

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self.logits_of(_hidden(self._prefix_classes(self._strings(inputs)), inputs))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B 1"]:
        return _hidden(self._final_classes(self._strings(inputs)), inputs)

    @abstractmethod
    def _prefix_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, "B T"]:
        """Return the hidden state (see `MachineModel`) of every prefix of every string."""

    @abstractmethod
    def _final_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, " B"]:
        """Return the hidden state (see `MachineModel`) of every whole string."""

    def _strings(self, inputs: Int64[Tensor, "B T"]) -> Int64[np.ndarray, "B T"]:
        self.check_inputs(inputs, len(self.machine.symbols))
        return inputs.numpy(force=True)

    def to_json(self) -> dict[str, Any]:
        """Return the machine and the names of its answers as plain lists."""
        return {"kind": self.kind, "classes": list(self.classes), "machine": self.machine.to_json()}

    def save(self, path: Path) -> None:
        """Write the model as a JSON file, by renaming a complete file, so readers never see an incomplete file."""
        write_by_rename(path, (json.dumps(self.to_json()) + "\n").encode())


class TreeMachineModel(AcceptsPads, MachineModel):
    """A tree machine as a model. It accepts pads, and merges each prefix along the prefix's own tree.

    Example:
        >>> from lengthwise.automata import library
        >>> from lengthwise.automata.tree_machine import tree_machine
        >>> model = TreeMachineModel(tree_machine(library.parity()), ("even", "odd"))
        >>> model.last(torch.tensor([[0, 1, 1, 1]])).tolist()
        [[0.0, 1.0]]
    """

    kind = "tree-machine"
    machine: TreeMachine

    def __init__(self, machine: TreeMachine, classes: Sequence[str]) -> None:
        super().__init__(machine, classes)
        self._lookup = TreeLookup(machine)

    def _prefix_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, "B T"]:
        return self._lookup.prefix_classes(strings)

    def _final_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, " B"]:
        return self._lookup.final_classes(strings)


class TransducerModel(MachineModel):
    """A transducer as a model. It reads whole strings, or single symbols with `initial_state` and `step`.

    Example:
        >>> from lengthwise.automata import library
        >>> model = TransducerModel(library.parity(), ("even", "odd"))
        >>> state = model.initial_state(batch_size=1)
        >>> logits, state = model.step(torch.tensor([1]), state)
        >>> model.classes[int(logits.argmax())]
        'odd'
    """

    kind = "transducer"
    machine: Transducer

    def __init__(self, machine: Transducer, classes: Sequence[str]) -> None:
        super().__init__(machine, classes)
        self._lookup = StateLookup(machine.semiautomaton, machine.start)

    def _prefix_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, "B T"]:
        return self._lookup.run(strings)

    def _final_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, " B"]:
        return self._lookup.final_states(strings)

    @checks_batch_size
    def initial_state(self, batch_size: int) -> Int64[Tensor, " B"]:
        """Return the state before the first symbol, for each string of a batch."""
        return torch.full((batch_size,), self.machine.start, device=self.readout.scores.device)

    def step(self, token: Ids, state: Int64[Tensor, " B"]) -> tuple[Logits, Int64[Tensor, " B"]]:
        """Read one symbol of each string; return the logits of `forward` at this position, and the next state.

        Raises:
            ValueError: a symbol is outside the alphabet, or a state does not exist.
        """
        self._strings(token[:, None])
        table, states = self.machine.semiautomaton.table, state.numpy(force=True)
        if states.size and not 0 <= states.min() <= states.max() < len(table):
            raise ValueError(
                f"state: expected states in 0..{len(table) - 1}, got {states.tolist()[:8]}; begin with initial_state"
            )
        successors = torch.from_numpy(table[states, token.numpy(force=True)]).to(state.device)
        return self.readout.scores[successors], successors


def as_model(machine: TreeMachine | Transducer, classes: Sequence[str]) -> MachineModel:
    """Return a tree machine or a transducer as a model."""
    if isinstance(machine, TreeMachine):
        return TreeMachineModel(machine, classes)
    return TransducerModel(machine, classes)


def machine_model_from_json(content: Mapping[str, Any]) -> MachineModel:
    """Return the model from the output of `MachineModel.to_json`."""
    kinds: dict[str, type[TreeMachine] | type[Transducer]] = {
        TreeMachineModel.kind: TreeMachine,
        TransducerModel.kind: Transducer,
    }
    if content["kind"] not in kinds:
        raise ValueError(f"kind: expected one of {', '.join(kinds)}, got {content['kind']!r}; choose one of these")
    return as_model(kinds[content["kind"]].from_json(content["machine"]), content["classes"])


def load_machine_model(path: Path) -> MachineModel:
    """Read a file that `MachineModel.save` wrote.

    Raises:
        ValueError: the file does not exist, or does not describe a machine.
    """
    try:
        content = strict_json_loads(read_file(path))
        if not isinstance(content, dict):
            raise TypeError("it does not contain a JSON object")
        return machine_model_from_json(content)
    except FileNotFoundError:
        raise ValueError(
            f"{path}: expected a file of a machine model, found no such file; save the model first"
        ) from None
    except KeyError as error:
        raise ValueError(
            f"{path}: expected a file of a machine model, got no field {error}; save the model again"
        ) from None
    # This ValueError already has a complete message, which the next `except` clause would put into another message.
    except UnreadableFile:
        raise
    except (ValueError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{path}: expected a file of a machine model, got an error ({str(error).rsplit('; ', 1)[0]}); save the "
            "model again"
        ) from None


class Scores(nn.Module):
    """A read-out for hidden states that are indices of classes: logit 1 for the class's answer, 0 for other answers."""

    scores: Tensor

    def __init__(self, outputs: Int64[np.ndarray, " K"], num_answers: int) -> None:
        super().__init__()
        answers = torch.arange(num_answers)
        scores = (torch.from_numpy(np.array(outputs))[:, None] == answers).to(torch.get_default_dtype())
        self.register_buffer("scores", scores, persistent=False)

    def forward(self, states: Float[Tensor, "*N 1"]) -> Float[Tensor, "*N Y"]:
        return F.embedding(states[..., 0].int(), self.scores)


def _hidden(numbers: Integer[np.ndarray, "*N"], inputs: Tensor) -> Float[Tensor, "*N 1"]:
    """Return indices of classes as hidden states on the inputs' device; float32 is exact for indices up to 2^24."""
    return torch.from_numpy(numbers.astype(np.float32))[..., None].to(inputs.device)
