"""Any finite machine as a linear recurrence: the matrix of a symbol maps one-hot states to one-hot next states."""

import torch
from torch import nn

from lengthwise.constructions.base import CONSTRUCTIONS, MARGIN, Construction, Machine, Target, check_size, target_of
from lengthwise.conventions import IGNORE
from lengthwise.models.base import build_model
from lengthwise.models.block_linear_rnn import BlockLinearRNN, BlockLinearRNNConfig
from lengthwise.validation import narrow

SHARP = 1_000.0
"""A difference of two logits that is so large that their softmax is exactly 1 and 0, in float32 and float64."""


@CONSTRUCTIONS.register("block-linear-rnn")
def compile_block_linear_rnn(machine: Machine) -> Construction:
    """Compile any finite machine to a net of one layer with one block: A(u) e_p = e_q if symbol u leads from p to q.

    A(u) is the layer's matrix for symbol u, and e_p is the one-hot vector of state p. The layer multiplies its state by
    A(u), and adds no vector. The state of the net is exactly the one-hot vector of the machine's state, because a
    column of A(u) is a softmax of logits that are 1,000 apart. Two linear maps, W_1 and W_2, compute A(u) from the
    symbol. W_1 has one hidden unit for each symbol. From the unit of symbol u, W_2 computes the logits of A(u).

    Raises:
        ValueError: `target_of` rejects the machine, or the model would have more than 20,000,000 weights.

    Example:
        >>> from lengthwise.automata import library
        >>> model = compile_block_linear_rnn(library.cycle(5)).model
        >>> model(torch.tensor([[1, 2, 0, 2, 2]])).argmax(-1)
        tensor([[1, 0, 0, 4, 3]])

    Source: Fan et al. (2024), section 3: transitions of a finite machine are input-dependent, with columns of norm 1.
    Differs from the source: the source states these two properties, but gives no weights.
    """
    target = target_of(machine)
    num_states, num_symbols = target.machine.semiautomaton.table.shape
    width = max(num_states, num_symbols, 2)  # a LayerNorm of a single number is always 0
    num_classes = len(target.classes)
    num_weights = width * width * (num_symbols + 2) + width * (2 * num_symbols + num_classes + 6)
    num_weights += num_symbols + num_classes
    check_size(num_weights, f"a block of {width} states and {num_symbols} symbols", "take a smaller machine")
    about = (
        f"states: {num_states} (of the smallest machine)",
        f"model: one block of dimension {width} in one layer, {num_weights:,} weights",
    )
    return Construction(_assemble_weights(target, width), target, None, "Fan et al. (2024), section 3", about)


@torch.no_grad()
def _assemble_weights(target: Target, width: int) -> BlockLinearRNN:
    """Return the model with the weights of the construction; other weights are 0, but LayerNorms have gain 1.

    A normalized one-hot vector is positive at the index of its 1 and negative elsewhere. So ReLU keeps only the
    positive entry.
    """
    machine, num_symbols = target.machine, len(target.symbols)
    config = BlockLinearRNNConfig(d_model=width, block_dim=width, hidden=num_symbols)
    model = narrow(build_model("block-linear-rnn", config, target, seed=0), BlockLinearRNN)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            parameter.fill_(1.0 if isinstance(module, nn.LayerNorm) and name == "weight" else 0.0)
    (layer,) = model.layers
    make_hidden, _, make_blocks = layer.transition_map  # type: ignore[misc]
    model.embedding.weight[:, :num_symbols] = torch.eye(num_symbols)
    make_hidden.weight[:, :num_symbols] = torch.eye(num_symbols)
    blocks = make_blocks.weight.view(width, width, num_symbols)
    next_states = torch.tensor(machine.semiautomaton.table)
    states, symbols = torch.meshgrid(torch.arange(len(next_states)), torch.arange(num_symbols), indexing="ij")
    blocks[next_states, states, symbols] = SHARP
    # Unused states map to themselves, because a column of equal logits would not be one-hot.
    unused = torch.arange(len(next_states), width)
    blocks[unused, unused] = SHARP
    # The first state is a softmax of logits, like the columns of A(u).
    layer.first_state[0, machine.start] = SHARP  # type: ignore[operator]
    _, _, identity, _, answer = narrow(model.readout, nn.Sequential)
    narrow(identity, nn.Linear).weight.copy_(torch.eye(width))
    outputs = torch.tensor(machine.outputs)
    supervised = torch.nonzero(outputs != IGNORE)[:, 0]
    # LayerNorm maps the 1 of a one-hot vector to slightly less than 1 for two numbers, and to more for longer vectors.
    # So twice the margin is enough.
    narrow(answer, nn.Linear).weight[outputs[supervised], supervised] = 2 * MARGIN
    return model.eval()
