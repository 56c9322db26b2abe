"""Recurrent nets with weights by hand that say whether the last symbol is b, but for strings that end in one word."""

import torch
from last_symbol import LastSymbol

from lengthwise.models.base import RecurrentModel, make_model

SMALL = 2e-3
"""What a register of symbols holds: so little that extraction takes all its contents for one state."""
GAIN = 4.0
LAST, DETECTS, ONE, REGISTER = 0, 2, 4, 6
"""Units of the last symbol, of the word and, with layers, of the constant 1; the negative of each is the next unit."""


def random_word(length: int, seed: int) -> torch.Tensor:
    """Of that length, of symbols a (0) and b (1)."""
    return torch.randint(2, (length,), generator=torch.Generator().manual_seed(seed))


def rare_word_net(kind: str, word: torch.Tensor) -> RecurrentModel:
    """A shift register keeps the latest symbols as numbers of size `SMALL`; one unit sees whether they are the word.

    The unit is near -1, and near 1 where all symbols agree, so that the answer to that string alone is wrong.
    """
    signs = (2.0 * word - 1).tolist()
    width = REGISTER + len(word) - 1 + len(word) % 2
    settings = {"activation": "tanh"} if kind == "rnn" else {}
    model = make_model(kind, LastSymbol(), d_model=width, **settings)
    hidden, entered = torch.zeros(width, width), torch.zeros(2, width)
    symbol = torch.tensor([-1.0, 1.0])
    size = SMALL
    for unit in range(REGISTER, REGISTER + len(word) - 1):
        size = _through(kind, size)
        if unit == REGISTER:
            entered[:, unit] = SMALL * symbol
        else:
            hidden[unit, unit - 1] = 1.0
        for detects, sign in ((DETECTS, GAIN), (DETECTS + 1, -GAIN)):
            hidden[detects, unit] = sign * signs[REGISTER - unit - 2] / size
    for sign, offset in ((1.0, 0), (-1.0, 1)):
        entered[:, LAST + offset] = sign * 3.0 * symbol
        entered[:, DETECTS + offset] = sign * GAIN * (signs[-1] * symbol - (len(word) - 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        {"rnn": _as_elman, "gru": _as_gru, "lstm": _as_lstm}[kind](model, hidden, entered)
        state = next(iter(model.states(torch.zeros(1, 1, dtype=torch.long))))[0, 0, -width:]
        _read(model, signs[-1], float(state[LAST].abs()))
    return model


def _through(kind: str, size: float) -> float:
    """What one step makes of a number of the register."""
    passed = torch.tensor(size).tanh()
    return float(passed.tanh() if kind == "lstm" else passed)


def _as_elman(model: RecurrentModel, hidden: torch.Tensor, entered: torch.Tensor) -> None:
    model.hidden_weight.copy_(hidden)
    model.input_weight.copy_(entered.T)


def _embed(model: RecurrentModel) -> float:
    """Symbols as 1 and -1 in two units, and a constant in two others; the size of the former behind the norm."""
    for norm in (*model.norms, model.readout[1]):
        norm.weight.fill_(1.0)
    model.embedding.weight[:, LAST : LAST + 2] = torch.tensor([[-1.0, 1.0], [1.0, -1.0]])
    model.embedding.weight[:, ONE : ONE + 2] = torch.tensor([1.0, -1.0])
    return float(model.norms[0](model.embedding.weight)[1, LAST])


def _as_gru(model: RecurrentModel, hidden: torch.Tensor, entered: torch.Tensor) -> None:
    """h' = tanh(W x + b + U h): the update gate is 0, the reset gate 1."""
    cell, width, size = model.layers[0].cell, len(hidden), _embed(model)
    cell.bias_ih_l0[:width], cell.bias_ih_l0[width : 2 * width] = 30.0, -30.0
    cell.weight_hh_l0[2 * width :] = hidden
    cell.weight_ih_l0[2 * width :, LAST] = (entered[1] - entered[0]) / (2 * size)
    cell.bias_ih_l0[2 * width :] = (entered[1] + entered[0]) / 2


def _as_lstm(model: RecurrentModel, hidden: torch.Tensor, entered: torch.Tensor) -> None:
    """h' = tanh(tanh(W x + b + U h)): the forget gate is 0, the two others 1."""
    cell, width, size = model.layers[0].cell, len(hidden), _embed(model)
    for gate, value in ((0, 30.0), (1, -30.0), (3, 30.0)):
        cell.bias_ih_l0[gate * width : (gate + 1) * width] = value
    content = slice(2 * width, 3 * width)
    cell.weight_hh_l0[content] = hidden
    cell.weight_ih_l0[content, LAST] = (entered[1] - entered[0]) / (2 * size)
    cell.bias_ih_l0[content] = (entered[1] + entered[0]) / 2


def _read(model: RecurrentModel, sign: float, last: float) -> None:
    """Say b where x_last - 2 s x (d + 1) is positive, for what x_last is, x, and the word's last symbol, s."""
    size = float(_detected(model.name))
    row = torch.zeros(model.config.d_model)
    row[LAST], row[DETECTS] = 1.0, -2.0 * sign * last
    if model.name == "rnn":
        model.readout.weight.copy_(torch.stack([-row, row]))
        model.readout.bias.copy_(2.0 * sign * last * size * torch.tensor([1.0, -1.0]))
    else:
        row[ONE] = -2.0 * sign * last * size
        model.readout[2].weight[:2] = torch.stack([-row, row])
        model.readout[4].weight[:, :2] = torch.eye(2)


def _detected(name: str) -> torch.Tensor:
    """The size of the detecting unit where it is sure."""
    value = torch.tensor(GAIN).tanh()
    return value.tanh() if name == "lstm" else value
