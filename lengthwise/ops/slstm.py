r"""The recurrence of sLSTM: exponential input gates, a normalizer, and the output fed back into all gates.

For each unit, with (i, f, z, o)_t = g_t + R h_{t-1} and a matrix R that is block-diagonal over heads,

    c_t = sigmoid(f) c_{t-1} + exp(i) tanh(z),   n_t = sigmoid(f) n_{t-1} + exp(i),   h_t = sigmoid(o) c_t / n_t.

Initially, c and n are 0. The state consists of h, r = c / n and l = log n, each [B, H, E] for H heads of E units. All r
are in [-1, 1], and `MINIMUM` replaces log 0. The inputs g of the gates have shape [B, T, 4, H, E]. R maps units to
gates and has shape [4, H, E, E].

The definition follows the source, which replaces the gates by exp(i - m) and exp(log sigmoid(f) + m' - m). Here m =
max(log sigmoid(f) + m', i), and m' is the previous m. `slstm` computes with r and l instead. In these coordinates, the
recurrence is a moving average that cannot overflow. With x = log sigmoid(f) + l_{t-1} and w = sigmoid(x - i),

    r_t = w r_{t-1} + (1 - w) tanh(z),     l_t = log(e^x + e^i),     h_t = sigmoid(o) r_t.

The gradient is written by hand. Second derivatives are not implemented.

Source: Beck et al., "xLSTM: extended long short-term memory" (NeurIPS 2024), section 2.2 and appendix A.2.
Differs from the source: the coordinates r and l replace the source's c, n and m.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.devices import in_full_precision
from lengthwise.ops.shapes import check_shapes

MINIMUM = -1e30
"""The number that replaces log 0. It is finite, so that differences of two such numbers are finite."""

Gates = Float[Tensor, "B T 4 H E"]
Feedback = Float[Tensor, "4 H E E"]
Units = Float[Tensor, "B H E"]
Results = tuple[Float[Tensor, "B T H E"], Units, Units, Units]


@check_shapes
def slstm_by_definition(gates: Gates, feedback: Feedback, h: Units, average: Units, log_norm: Units) -> Results:
    """Return the outputs h at all positions, and the last h, c / n (`average`) and log n (`log_norm`).

    This definition follows the equations of the source, which `lengthwise.ops.slstm` describes.

    Example:
        >>> nothing, no_feedback = torch.zeros(1, 2, 4, 1, 1), torch.zeros(4, 1, 1, 1)
        >>> empty = torch.zeros(1, 1, 1)
        >>> _, _, _, log_norm = slstm_by_definition(nothing, no_feedback, empty, empty, empty + MINIMUM)
        >>> log_norm.exp().item()  # n is 1, then 0.5 * 1 + 1
        1.5
    """
    c = average
    n = torch.ones_like(average)
    m = log_norm
    outputs = []
    for g in gates.unbind(1):
        i, f, z, o = (g + torch.einsum("bhe,khed->bkhd", h, feedback)).unbind(1)
        kept = F.logsigmoid(f) + m
        m = torch.maximum(kept, i)
        c = torch.exp(kept - m) * c + torch.exp(i - m) * torch.tanh(z)
        n = torch.exp(kept - m) * n + torch.exp(i - m)
        h = torch.sigmoid(o) * c / n
        outputs.append(h)
    return torch.stack(outputs, 1), h, c / n, n.log() + m


@check_shapes
@in_full_precision
def slstm(gates: Gates, feedback: Feedback, h: Units, average: Units, log_norm: Units) -> Results:
    """Return the results of `slstm_by_definition`, with a gradient written by hand; exported graphs use the definition.

    Raises:
        ValueError: T = 0, or shapes do not match.

    Example:
        >>> nothing, no_feedback = torch.zeros(1, 2, 4, 1, 1), torch.zeros(4, 1, 1, 1)
        >>> empty = torch.zeros(1, 1, 1)
        >>> _, _, _, log_norm = slstm(nothing, no_feedback, empty, empty, empty + MINIMUM)
        >>> log_norm.exp().item()
        1.5
    """
    if torch.compiler.is_exporting():
        return slstm_by_definition(gates, feedback, h, average, log_norm)
    by_time = gates.permute(1, 2, 3, 0, 4).contiguous()  # the numbers of one gate become contiguous
    units = (each.transpose(0, 1).contiguous() for each in (h, average, log_norm))
    outputs, *last = _SLSTM.apply(by_time, feedback, *units)  # type: ignore[no-untyped-call]
    h, average, log_norm = (each.transpose(0, 1) for each in last)
    return outputs.permute(2, 0, 1, 3), h, average, log_norm


class _SLSTM(torch.autograd.Function):
    """The recurrence of sLSTM with gate inputs [T, 4, H, B, E] and states [H, B, E]."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, gates: Tensor, feedback: Tensor, h: Tensor, average: Tensor, log_norm: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        length, _, heads, size, width = gates.shape
        matrices = feedback.flatten(0, 1)
        hidden, averages = (each.new_empty(length + 1, *each.shape) for each in (h, average))
        hidden[0], averages[0] = h, average
        computed = torch.empty_like(gates)  # w, sigmoid(-f), tanh(z), sigmoid(o)
        fed = h.new_empty(4, heads, size, width)
        for t in range(length):
            fed.copy_(hidden[t].expand_as(fed))
            total = torch.baddbmm(gates[t].flatten(0, 1), fed.flatten(0, 1), matrices).unflatten(0, (4, heads))
            weight, closing, new, opening = computed[t]
            kept = F.logsigmoid(total[1]).add_(log_norm)
            torch.sub(kept, total[0], out=weight)
            # log(e^x + e^i) = softplus(x - i) + i never overflows. For y above 40, softplus(y) is y to the last bit.
            log_norm = F.softplus(weight, threshold=40.0).add_(total[0])
            torch.sigmoid(total[1].neg_(), out=closing)
            torch.tanh(total[2], out=new)
            torch.sigmoid(total[3], out=opening)
            # This is a convex combination, so the average stays in [-1, 1] for all gates.
            torch.lerp(new, averages[t], weight.sigmoid_(), out=averages[t + 1])
            torch.mul(opening, averages[t + 1], out=hidden[t + 1])
        ctx.save_for_backward(feedback, computed, hidden, averages)
        return hidden[1:].clone(), hidden[-1].clone(), averages[-1].clone(), log_norm

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionCtx, by_outputs: Tensor, by_last: Tensor, by_average: Tensor, by_log_norm: Tensor
    ) -> tuple[Tensor, ...]:
        feedback, computed, hidden, averages = ctx.saved_tensors  # type: ignore[attr-defined]
        weight, closing, new, opening = computed.unbind(1)
        matrices = feedback.flatten(0, 1).mT.contiguous()
        weight_slopes = (averages[:-1] - new) * weight * (1 - weight)
        new_slopes = (1 - weight) * (1 - new.square())
        opening_slopes = averages[1:] * opening * (1 - opening)
        by_gates = torch.empty_like(computed)
        for t in reversed(range(len(computed))):
            by_h = by_outputs[t] + by_last
            by_average = torch.addcmul(by_average, by_h, opening[t])
            by_difference = torch.mul(by_log_norm, weight[t]).addcmul_(by_average, weight_slopes[t])
            i, f, z, o = by_gates[t]
            torch.sub(by_log_norm, by_difference, out=i)
            torch.mul(by_difference, closing[t], out=f)
            torch.mul(by_average, new_slopes[t], out=z)
            torch.mul(by_h, opening_slopes[t], out=o)
            by_average.mul_(weight[t])
            by_log_norm = by_difference
            by_last = torch.bmm(by_gates[t].flatten(0, 1), matrices).unflatten(0, (4, -1)).sum(0)
        # One product over all positions after the loop, instead of a small product at each step.
        by_feedback = torch.einsum("thbe,tkhbd->khed", hidden[:-1], by_gates)
        return by_gates, by_feedback, by_last, by_average, by_log_norm
