"""Recurrent nets with weights by hand that say whether the last symbol is b, until a slow unit has seen many a."""

import torch
from last_symbol import LastSymbol

from lengthwise.models.base import RecurrentModel, make_model

LAST, SLOW = 2, 4
"""The units of the last symbol and of the slow unit; with layers, the negative of each is the unit after it."""
NEVER = 90
"""A number of a after which the slow unit no longer rises much."""


def slow_net(kind: str, num_right: int | None, pace: float = 0.02) -> RecurrentModel:
    """Right on strings with at most `num_right` a in a row (None: on all), wrong where there is one more."""
    model = make_model(kind, LastSymbol(), d_model=8, **({"activation": "tanh"} if kind == "rnn" else {}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        PLANTED[kind](model, pace)
        if kind != "rnn":
            model.embedding.weight[:, :2] = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
            for norm in (*model.norms, model.readout[1]):
                norm.weight.fill_(1)
        features = _after_a(model)
        last, slow = -features[0, LAST], features[:, SLOW] - features[0, SLOW].clamp(max=0)
        threshold = 1.5 * slow.max() if num_right is None else (slow[num_right - 1] + slow[num_right]) / 2
        _read(model, float(last / threshold), float(features[0, SLOW].clamp(max=0)))
    return model


def _after_a(model: RecurrentModel) -> torch.Tensor:
    """The topmost numbers of the states after 1, 2, ... a."""
    return torch.cat(list(model.states(torch.zeros(1, NEVER, dtype=torch.long))), 1)[0, :, -8:]


def _read(model: RecurrentModel, slope: float, lowest: float) -> None:
    """Say b where x_last + slope (x_slow - lowest) is positive."""
    row = torch.zeros(8)
    row[LAST], row[SLOW] = 1.0, slope
    if model.name == "rnn":
        model.readout.weight.copy_(torch.stack([-row, row]))
        model.readout.bias.copy_(slope * lowest * torch.tensor([1.0, -1.0]))
    else:
        model.readout[2].weight[:2] = torch.stack([-row, row])
        model.readout[4].weight[:, :2] = torch.eye(2)


def _elman(model: RecurrentModel, pace: float) -> None:
    """x' = tanh(x + pace) creeps from near -1 over 0; b throws it back."""
    model.input_weight[LAST] = torch.tensor([-3.0, 3.0])
    model.hidden_weight[SLOW, SLOW] = 1.0
    model.input_weight[SLOW] = torch.tensor([pace / 4, -3.0])
    model.first_state[SLOW] = -0.99


def _gru(model: RecurrentModel, pace: float) -> None:
    """h' = (1 - z) n + z h with z = 1 - pace and n = 1 on a; both are 0 on b. Inputs are 2 on a, -2 on b."""
    cell = model.layers[0].cell
    width = 8
    for unit, sign in ((LAST, 1.0), (LAST + 1, -1.0)):
        cell.bias_ih_l0[width + unit] = -30.0
        cell.weight_ih_l0[2 * width + unit, 0] = -3.0 * sign
    stays = torch.logit(torch.tensor(1 - pace))
    for unit, sign in ((SLOW, 1.0), (SLOW + 1, -1.0)):
        cell.weight_ih_l0[width + unit, 0] = (stays + 30) / 4
        cell.bias_ih_l0[width + unit] = (stays - 30) / 2
        cell.weight_ih_l0[2 * width + unit, 0] = 3.0 * sign
        cell.bias_ih_l0[2 * width + unit] = 6.0 * sign


def _lstm(model: RecurrentModel, pace: float) -> None:
    """c' = f c + i g with f = 1 and g = pace on a, and f = 0 on b; for the last symbol f = 0 and g = -1 or 1."""
    cell = model.layers[0].cell
    enter, forget, content, leave = (8 * index for index in range(4))
    cell.bias_ih_l0[leave : leave + 8] = 30.0
    for unit, sign in ((LAST, 1.0), (LAST + 1, -1.0)):
        cell.bias_ih_l0[forget + unit] = -30.0
        cell.bias_ih_l0[enter + unit] = 30.0
        cell.weight_ih_l0[content + unit, 0] = -3.0 * sign
    for unit, sign in ((SLOW, 1.0), (SLOW + 1, -1.0)):
        cell.weight_ih_l0[forget + unit, 0] = (torch.logit(torch.tensor(1 - pace)) + 30) / 4
        cell.bias_ih_l0[forget + unit] = (torch.logit(torch.tensor(1 - pace)) - 30) / 2
        cell.weight_ih_l0[enter + unit, 0] = 15.0
        cell.weight_ih_l0[content + unit, 0] = pace * sign / 4
        cell.bias_ih_l0[content + unit] = pace * sign / 2


PLANTED = {"rnn": _elman, "gru": _gru, "lstm": _lstm}
