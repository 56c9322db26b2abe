"""Any finite machine as an Elman network with one unit for each pair of state and symbol."""

import torch
import torch.nn.functional as F

from lengthwise.constructions.base import CONSTRUCTIONS, MARGIN, Construction, Machine, Target, check_size, target_of
from lengthwise.conventions import IGNORE
from lengthwise.models.base import build_model
from lengthwise.models.rnn import RNN, RNNConfig


@CONSTRUCTIONS.register("rnn")
def compile_rnn(machine: Machine) -> Construction:
    """Any finite machine as an Elman network of Q V + 1 ReLU units, of which exactly one is on.

    Unit (q, v) is on after symbol v was read in state q; the last unit is on before the first symbol. W_h leads from
    (p, u), with p the state before and u its symbol, to all (q, v) where u leads from p to q, and W_x takes 1 away from
    all but those whose v is being read: ReLU(1 - 1) = 0 and ReLU(0 - 1) = 0, so one unit is left. Numbers stay 0 and 1,
    so that no error can grow. W_o answers for (q, v) what the machine does in the state that v leads to.

    Raises:
        ValueError: it has more than 20,000,000 weights.

    Example:
        >>> from lengthwise.automata import library
        >>> model = compile_rnn(library.cycle(5)).model
        >>> model(torch.tensor([[1, 2, 0, 2, 2]])).argmax(-1)
        tensor([[1, 0, 0, 4, 3]])

    Source: Minsky, "Computation: Finite and Infinite Machines" (1967), chapter 3: a net with a cell for each pair of
        state and input.
    Differs from the source: his cells are thresholds that fire on state and input together; ReLU does the same on
        zeros and ones.
    """
    target = target_of(machine)
    num_states, num_symbols = target.machine.semiautomaton.table.shape
    width = num_states * num_symbols + 1
    num_weights = width * (width + num_symbols + 1 + len(target.classes)) + len(target.classes)
    check_size(num_weights, f"an RNN of {num_states} states and {num_symbols} symbols", "take a smaller machine")
    about = (
        f"states: {num_states} (of the smallest machine)",
        f"model: D={width} (pairs of {num_states} states and {num_symbols} symbols, and the start), "
        f"{num_weights:,} weights",
    )
    return Construction(_assemble_weights(target, width), target, None, "Minsky (1967), chapter 3", about)


@torch.no_grad()
def _assemble_weights(target: Target, width: int) -> RNN:
    """The model with these weights; all that is not named is 0."""
    machine, num_symbols = target.machine, len(target.symbols)
    model = build_model("rnn", RNNConfig(d_model=width, activation="relu"), target, seed=0)
    assert isinstance(model, RNN)
    for parameter in model.parameters():
        parameter.zero_()
    following = torch.tensor(machine.semiautomaton.table).flatten()
    led_to = F.one_hot(F.pad(following, (0, 1), value=machine.start), machine.num_states)
    model.hidden_weight[:-1] = led_to.T.repeat_interleave(num_symbols, 0).float()
    model.input_weight[:-1] = torch.eye(num_symbols).repeat(machine.num_states, 1) - 1.0
    model.first_state[-1] = 1.0
    answers = torch.tensor(machine.outputs)[following]
    supervised = torch.nonzero(answers != IGNORE)[:, 0]
    model.readout.weight[answers[supervised], supervised] = MARGIN
    return model.eval()
