"""Any finite machine as an Elman network with one unit for each pair of state and symbol."""

import torch
import torch.nn.functional as F

from lengthwise.constructions.base import CONSTRUCTIONS, MARGIN, Construction, Machine, Target, check_size, target_of
from lengthwise.conventions import IGNORE
from lengthwise.models.base import build_model
from lengthwise.models.rnn import RNN, RNNConfig


@CONSTRUCTIONS.register("rnn")
def compile_rnn(machine: Machine) -> Construction:
    """Compile any finite machine to an Elman network of Q V + 1 ReLU units: one unit is 1, and all others are 0.

    Q is the number of states, and V is the number of symbols. Unit (q, v) is 1 after symbol v was read in state q, and
    the last unit is 1 before the first symbol. W_h has a 1 from unit (p, u) to each unit (q, v) such that symbol u
    leads from state p to state q. W_x subtracts 1 from all units whose v is not the current symbol. Since ReLU(1 - 1) =
    ReLU(0 - 1) = 0, exactly one unit remains 1. All units are 0 or 1, so no error can grow. For unit (q, v), W_o gives
    the answer of the state to which symbol v leads from state q.

    Raises:
        ValueError: the network has more than 20,000,000 weights.

    Example:
        >>> from lengthwise.automata import library
        >>> model = compile_rnn(library.cycle(5)).model
        >>> model(torch.tensor([[1, 2, 0, 2, 2]])).argmax(-1)
        tensor([[1, 0, 0, 4, 3]])

    Source: Minsky, "Computation: Finite and Infinite Machines" (1967), chapter 3: a net with a cell for each pair of
        state and input.
    Differs from the source: the source's cells apply a threshold to state and input together; for bits, ReLU computes
        the same.
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
    """Return the model with the weights of the construction; all other weights are 0."""
    machine, num_symbols = target.machine, len(target.symbols)
    model = build_model("rnn", RNNConfig(d_model=width, activation="relu"), target, seed=0)
    assert isinstance(model, RNN)
    for parameter in model.parameters():
        parameter.zero_()
    next_states = torch.tensor(machine.semiautomaton.table).flatten()
    # The last unit is 1 before the first symbol. The state of the machine is then its start state.
    one_hot = F.one_hot(F.pad(next_states, (0, 1), value=machine.start), machine.num_states)
    model.hidden_weight[:-1] = one_hot.T.repeat_interleave(num_symbols, 0).float()
    model.input_weight[:-1] = torch.eye(num_symbols).repeat(machine.num_states, 1) - 1.0
    model.first_state[-1] = 1.0
    answers = torch.tensor(machine.outputs)[next_states]
    supervised = torch.nonzero(answers != IGNORE)[:, 0]
    model.readout.weight[answers[supervised], supervised] = MARGIN
    return model.eval()
