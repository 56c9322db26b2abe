"""Bounds on the steps and the answers of recurrent models, for each kind of model whose formulas have bounds."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from lengthwise.certification.methods.usual_parts import check_bias, check_usual, unlike_settings
from lengthwise.layers.gated_cells import GRULayer, LSTMLayer
from lengthwise.layers.recurrent_layer import Topmost
from lengthwise.models.base import RecurrentModel
from lengthwise.models.gru import GRU
from lengthwise.models.lstm import LSTM
from lengthwise.models.rnn import RNN
from lengthwise.models.stacked_rnn import BoundedStackedRNN
from lengthwise.models.wrapped import WrappedRNN, chain_of
from lengthwise.ops.intervals import LARGEST, SMALLEST, UNIT, Intervals
from lengthwise.registry import Registry
from lengthwise.validation import narrow, type_in_words


class Steps(ABC):
    """Bounds on the steps of one kind of recurrent model, registered under the model's name.

    `kind` is the model's class. Models of a subclass are rejected, because they may compute something else. `parts`
    contains the classes of modules that have bounds. A model with a part of another class is rejected.
    """

    name: ClassVar[str]
    kind: ClassVar[type[RecurrentModel]]
    parts: ClassVar[set[type[nn.Module]]]
    logits: nn.Linear
    """The last linear map of the read-out."""

    def __init__(self, model: Any) -> None:
        check_usual(model, self.parts)  # bounds of a formula hold only if the parts compute this formula
        self.model = model

    def after(self, states: Intervals, symbol: int) -> Intervals:
        """Return bounds on the states after a symbol, float32 rounding included."""
        after: Intervals = self.model.bounds_after(states, torch.full(states.low.shape[:-1], symbol))
        return after

    @abstractmethod
    def features(self, states: Intervals) -> Intervals:
        """Return bounds on the features, which are the input of the read-out's last linear map."""

    def margin(self, states: Intervals, outputs: Int64[Tensor, " K"]) -> float:
        """Return a lower bound on the logit margin over all states, as the function `margin` defines it."""
        return margin(self.logits, self.features(states), outputs)


def margin(logits: nn.Linear, features: Intervals, outputs: Int64[Tensor, " K"]) -> float:
    """Return a lower bound on the logit margin, however float32 rounds; infinite if there is only one answer.

    The margin is the smallest lead of an expected logit over every other logit, for all features in the intervals.
    `outputs` contains the index of each expected logit. If float32 may overflow, the result is minus infinity or NaN,
    even for one answer. Neither is above 0, so callers test `margin > 0`.

    Example:
        >>> linear = nn.Linear(1, 2, bias=False).requires_grad_(False)
        >>> linear.weight[:] = torch.tensor([[1.0], [-1.0]])
        >>> features = Intervals(torch.tensor([[0.25]]).double(), torch.tensor([[1.0]]).double())
        >>> round(margin(linear, features, torch.tensor([0])), 5)
        0.5
    """
    weight = logits.weight.double()
    bias = weight.new_zeros(len(weight)) if logits.bias is None else logits.bias.double()
    # Two logits share their features. A change of a feature that moves both logits by the same amount cancels in the
    # difference of their weight rows. A difference of two bounds would count this change twice.
    lead = weight[outputs][:, None] - weight
    ahead = (lead @ features.center[..., None])[..., 0] + bias[outputs][:, None] - bias
    # In real numbers, the lead is smallest if each feature is at one end of its interval. The sign of its weight
    # decides at which end.
    ahead = ahead - (lead.abs() @ features.radius[..., None])[..., 0]
    # A float32 logit is a sum of n products and a bias. In any order of summation, its error is at most (n + 2) units
    # of the sum of absolute values. The errors of two logits may have opposite signs, so both are subtracted.
    size = features.size @ weight.abs().T + bias.abs()
    slack = torch.where(size < LARGEST, (weight.shape[1] + 2) * UNIT * (size + SMALLEST), torch.inf)
    margins = ahead - slack - slack.gather(1, outputs[:, None])
    return float(margins.scatter(1, outputs[:, None], torch.inf).where(slack.isfinite(), -torch.inf).min())


STEPS: Registry[type[Steps]] = Registry("steps", "lengthwise.certification.methods")


def steps_of(model: RecurrentModel) -> Steps:
    """Return the bounds on this model's steps.

    Raises:
        ValueError: this kind of model has no bounds, or the model has unexpected parts or settings.
    """
    name = getattr(model, "name", "")
    # Types are compared exactly, because a subclass with the same name may compute another step.
    if name not in STEPS or type(model) is not STEPS[name].kind:
        raise ValueError(
            f"model: expected a model whose steps have bounds ({', '.join(STEPS)}), got {type_in_words(model)}; "
            "certify a model from this list"
        )
    return STEPS[name](model)


def check_core(core: nn.RNNBase, **expected: object) -> None:
    """Reject a torch RNN with unexpected settings, or one that multiplies by tensors other than its parameters.

    By default, the module must have one recurrent layer, one direction, the batch as its first axis, and no projection.
    `expected` replaces some of these settings, or requires more settings.
    """
    # Torch selects the kernel by `mode` alone, whatever the attribute `nonlinearity` is. So the two must agree.
    kind = core.nonlinearity if isinstance(core, nn.RNN) else ""
    mode = f"{type(core).__name__}_{kind}".upper().rstrip("_")
    usual = {"num_layers": 1, "bidirectional": False, "batch_first": True, "proj_size": 0, "mode": mode, **expected}
    for setting, value in usual.items():
        if (got := getattr(core, setting)) != value:
            raise ValueError(f"model: expected a cell with {setting}={value}, got {got}; build the cell again")
    parts = ("weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if core.bias else []))
    names = [f"{part}_l{layer}" for layer in range(core.num_layers) for part in parts]
    if missing := [name for name in names if not isinstance(core._parameters.get(name), nn.Parameter)]:
        raise ValueError(f"model: expected a cell with the parameter {missing[0]}, got none; build the cell again")
    parameters = [core.get_parameter(name) for name in names]
    if core.bias:  # each layer has two matrices, and then their two biases
        for first in range(0, len(parameters), 4):
            check_bias(parameters[first], parameters[first + 2])
            check_bias(parameters[first + 1], parameters[first + 3])
    used = core._flat_weights  # torch multiplies by these tensors, which need not be the parameters
    if len(used) != len(parameters) or any(one is not other for one, other in zip(used, parameters, strict=True)):
        raise ValueError(
            "model: expected cells that multiply by their registered parameters in torch's order, got a cell that uses "
            "other tensors or another order; build the cell again, and load its weights"
        )


@STEPS.register("rnn")
class ElmanSteps(Steps):
    """Bounds on Elman's network and its linear read-out."""

    kind = RNN
    parts: ClassVar = {nn.RNN, nn.Linear}
    model: RNN

    def __init__(self, model: RNN) -> None:
        super().__init__(model)
        check_core(model.recurrence, bias=False, nonlinearity=model.config.activation)
        self.logits = model.readout

    def features(self, states: Intervals) -> Intervals:
        return states


READOUT: list[type[nn.Module]] = [Topmost, nn.LayerNorm, nn.Linear, nn.ReLU, nn.Linear]
"""The classes of the parts of a read-out with one hidden layer, in order."""


def check_readout(readout: nn.Sequential) -> None:
    """Reject a read-out that does not have a norm and one hidden ReLU layer (`hidden_layer_readout`)."""
    if (kinds := [type(part) for part in readout]) != READOUT:
        expected, names = (", ".join(kind.__name__ for kind in each) for each in (READOUT, kinds))
        raise unlike_settings(f"expected the readout {expected}, got {names}")


def hidden_features(readout: nn.Sequential, states: Intervals) -> Intervals:
    """Return bounds on the hidden units of a read-out that `check_readout` accepts."""
    check_readout(readout)
    hidden = narrow(readout[2], nn.Linear)
    # The read-out reads only the last layer, whose state is at the end of the model's state.
    own = states[:, -narrow(readout[0], Topmost).width :]
    return own.normed(narrow(readout[1], nn.LayerNorm)).linear(hidden.weight, hidden.bias).relu()


class StackedSteps(Steps):
    """Bounds on residual layers with a norm before each layer, and on a read-out with one hidden ReLU layer."""

    parts: ClassVar = {*READOUT, *(nn.Embedding, nn.ModuleList, nn.Sequential, GRULayer, nn.GRU, LSTMLayer, nn.LSTM)}
    model: BoundedStackedRNN

    def __init__(self, model: BoundedStackedRNN) -> None:
        super().__init__(model)
        check_readout(model.readout)
        for layer in model.layers:
            check_core(layer.cell, bias=True)  # type: ignore[arg-type]  # a module's attributes have no types
        self.logits = narrow(model.readout[-1], nn.Linear)

    def features(self, states: Intervals) -> Intervals:
        return hidden_features(self.model.readout, states)


@STEPS.register("gru")
class GRUSteps(StackedSteps):
    """Bounds on the steps of `GRU`."""

    kind = GRU


@STEPS.register("lstm")
class LSTMSteps(StackedSteps):
    """Bounds on the steps of `LSTM`."""

    kind = LSTM


HEAD: set[type[nn.Module]] = {nn.Linear, nn.LayerNorm, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Dropout, nn.Identity}
"""The kinds of parts in the head of a wrapped net. They may be nested, in any order, but a linear map must be last."""


@STEPS.register("wrapped")
class WrappedSteps(Steps):
    """Bounds on a user's own net that is made of torch's recurrent layers."""

    kind = WrappedRNN
    parts: ClassVar = {nn.Embedding, nn.RNN, nn.GRU, nn.LSTM, nn.Sequential, Topmost, *HEAD}
    model: WrappedRNN

    def __init__(self, model: WrappedRNN) -> None:
        super().__init__(model)
        if not isinstance(model.embedding, nn.Embedding):
            raise ValueError(
                f"model: expected an nn.Embedding for the symbols, got {type_in_words(model.embedding)}; use an "
                "nn.Embedding"
            )
        core = model.core
        assert isinstance(core, nn.RNNBase), "`parts` contains layers such as nn.RNN, and no nn.RNNCell"
        check_core(core, num_layers=core.num_layers, batch_first=core.batch_first)
        topmost, head = model.readout
        if not isinstance(topmost, Topmost):  # a user may have replaced it
            raise ValueError(
                f"model: expected the Topmost that `wrap` puts before the head, got {type_in_words(topmost)}; "
                "wrap the net again with `lengthwise.wrap`"
            )
        self.width = topmost.width
        self.head = chain_of(head)
        if not self.head or not isinstance(self.head[-1], nn.Linear):
            raise ValueError(
                "model: expected a head that ends in an nn.Linear, got another head; remove the parts after the last "
                "linear map"
            )
        if foreign := sorted({type(part).__name__ for part in self.head if type(part) not in HEAD}):
            names = ", ".join(sorted(kind.__name__ for kind in HEAD))
            raise ValueError(f"model: expected a head made of {names}, got {', '.join(foreign)}; use only these parts")
        self.logits = self.head[-1]

    def features(self, states: Intervals) -> Intervals:
        features = states[..., -self.width :]
        for part in self.head[:-1]:  # dropout and identity change nothing in evaluation mode, in which proofs run
            if isinstance(part, nn.Linear):
                features = features.linear(part.weight, part.bias)
            elif isinstance(part, nn.LayerNorm):
                features = features.normed(part)
            elif isinstance(part, nn.ReLU):
                features = features.relu()
            elif isinstance(part, nn.Tanh | nn.Sigmoid):
                features = features.tanh() if isinstance(part, nn.Tanh) else features.sigmoid()
        return features
