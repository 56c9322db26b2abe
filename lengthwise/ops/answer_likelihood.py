r"""The likelihood of a string's answers under an input-output hidden Markov model.

The model has S states. Column s of the matrix A[u] is the distribution over next states after state s and symbol u.
Column s of the matrix E is the distribution over answers in state s. Let f_0 be the initial distribution over states.
After symbol t, m_t is the distribution over states, and f_t is this distribution conditioned on the answer, if there is
one:

    m_t = A[u_t] f_{t-1},   p_t = e_y . m_t  for row e_y of E and answer y = y_t,   f_t = e_y * m_t / p_t.

So p_t is the probability of answer y_t given the symbols up to u_t and the answers before y_t. The sum of all log p_t
is the log likelihood of the answers. At a position without a target, f_t = m_t, and log p_t counts as 0. Because f_t is
normalized at every step, all numbers stay in the range of floats, on strings of any length.

An answer counts as impossible if its probability is below `MIN_PROBABILITY`. Then log `MIN_PROBABILITY`, with a
gradient of 0, replaces log p_t, and f_t = m_t.

The gradient is computed backwards in time. Let g_t be the gradient with respect to log p_t, and l_t the gradient with
respect to f_t. Then

    h_t = (l_t - l_t . f_t + g_t) / p_t,   l_{t-1} = A[u_t]^T (e_y * h_t),   and e_y * h_t is the gradient for m_t.

If every g_t is 1, the l_t before the last answer are the backward messages of the forward-backward algorithm, scaled.
So the gradient for an entry of A or E, times this entry, is the expected count of a transition or an answer
(`lengthwise.training.baum_welch`).

Source: Bengio and Frasconi, "An input output HMM architecture" (NIPS 1995); Rabiner, "A tutorial on hidden Markov
models" (1989), for the scaling.
Differs from the source: transitions depend on a symbol through a table, and answers depend on the state alone.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.conventions import IGNORE
from lengthwise.devices import in_full_precision
from lengthwise.ops.shapes import check_axes, check_one_dtype, check_shape, check_tensors, check_whole
from lengthwise.ops.symbol_recurrence import SymbolStep, Tokens, check_symbols, sums_by_symbol

MIN_PROBABILITY = 1e-30
"""The smallest probability at which an answer counts as possible. The logarithm of this number replaces the logarithms
of smaller probabilities."""

Transitions = Float[Tensor, "V S S"]
Emissions = Float[Tensor, "Y S"]
Distribution = Float[Tensor, "B S"]


def answer_log_probabilities_by_definition(
    transitions: Transitions, emissions: Emissions, tokens: Tokens, targets: Tokens, initial: Distribution
) -> Float[Tensor, "B T"]:
    """Return each answer's log probability given the earlier answers, by a loop with autograd's own gradient."""
    if not torch.compiler.is_exporting():
        _check(transitions, emissions, tokens, targets, initial)
    log_probabilities, state = [], initial
    for symbols, answers in zip(tokens.unbind(1), targets.unbind(1), strict=True):
        moved = torch.einsum("bij,bj->bi", transitions[symbols], state)
        joint = moved * emissions[answers.clamp(min=0)]
        probability = joint.sum(1)
        is_given = answers != IGNORE
        is_possible = is_given & (probability >= MIN_PROBABILITY)
        # Divide by 1 if the probability is not used, because 0 times the infinite gradient of log 0 would be NaN.
        divisor = torch.where(is_possible, probability, torch.ones_like(probability))
        least = torch.full_like(divisor, MIN_PROBABILITY).log() * is_given
        log_probabilities.append(torch.where(is_possible, divisor.log(), least))
        state = torch.where(is_possible[:, None], joint / divisor[:, None], moved)
    return torch.stack(log_probabilities, 1)


@in_full_precision
def answer_log_probabilities(
    transitions: Transitions, emissions: Emissions, tokens: Tokens, targets: Tokens, initial: Distribution
) -> Float[Tensor, "B T"]:
    """Return the log probability of each answer given the symbols and answers so far, or 0 for targets `IGNORE`.

    The gradient is written by hand. For T positions and S states, no tensor of size T S^2 is built.
    `lengthwise.ops.symbol_recurrence` describes how a step applies the matrices A of all strings.

    Raises:
        ValueError: T = 0, a token is not a symbol, a target is neither an answer nor `IGNORE`, or targets and tokens
            differ in shape.

    Example: a symbol turns a coin over with probability 0.1, and the answer is the side that is up.
        >>> turn = torch.tensor([[[0.9, 0.1], [0.1, 0.9]]])
        >>> sides, first = torch.eye(2), torch.tensor([[1.0, 0.0]])
        >>> tokens, targets = torch.zeros(1, 3, dtype=torch.int64), torch.tensor([[0, 1, 1]])
        >>> probabilities = answer_log_probabilities(turn, sides, tokens, targets, first).exp()
        >>> [round(p, 6) for p in probabilities[0].tolist()]
        [0.9, 0.1, 0.9]
    """
    _check(transitions, emissions, tokens, targets, initial)
    result: Tensor = _AnswerLikelihood.apply(transitions, emissions, tokens, targets, initial)  # type: ignore[no-untyped-call]
    return result


def _check(transitions: Tensor, emissions: Tensor, tokens: Tensor, targets: Tensor, initial: Tensor) -> None:
    check_tensors(transitions=transitions, emissions=emissions, tokens=tokens, targets=targets, initial=initial)
    _check_shapes(transitions, emissions, len(tokens), initial)
    check_one_dtype(transitions=transitions, emissions=emissions, initial=initial)
    check_symbols(tokens, len(transitions))
    check_whole("targets", targets)
    _check_targets(targets, tokens, len(emissions))


def _check_shapes(transitions: Tensor, emissions: Tensor, num_strings: int, initial: Tensor) -> None:
    check_axes("transitions", transitions, "V, S, S")
    check_axes("emissions", emissions, "Y, S")
    width = transitions.shape[2]
    square = (len(transitions), width, width)
    check_shape("transitions", transitions, square, "give one square matrix for each symbol")
    a_number = "give one number for each answer and state of transitions"
    check_shape("emissions", emissions, (len(emissions), width), a_number)
    check_shape("initial", initial, (num_strings, width), "give one distribution over states for each string of tokens")


def _check_targets(targets: Tensor, tokens: Tensor, num_answers: int) -> None:
    if targets.shape != tokens.shape:
        raise ValueError(
            f"targets: expected shape {list(tokens.shape)}, like tokens, got {list(targets.shape)}; give one answer "
            f"for each token, or {IGNORE}"
        )
    outside = (targets != IGNORE) & ((targets < 0) | (targets >= num_answers))
    if bool(outside.any()):
        raise ValueError(
            f"targets: expected ids of answers in 0..{num_answers - 1}, or {IGNORE} for no answer, got "
            f"{int(targets[outside][0])}; give the index of a row of emissions"
        )


class _AnswerLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        transitions: Transitions,
        emissions: Emissions,
        tokens: Tokens,
        targets: Tokens,
        initial: Distribution,
    ) -> Float[Tensor, "B T"]:
        step = SymbolStep(transitions[:, None], None, len(tokens))
        # `IGNORE` is negative, so row 0 is read instead. Its values do not count, since `is_possible` is False there.
        weights = emissions[targets.T.clamp(min=0)]
        moved, states = torch.empty_like(weights), torch.empty_like(weights)
        is_given = targets.T != IGNORE
        is_possible = torch.empty_like(is_given)
        divisors = weights.new_empty(is_given.shape)
        state = initial
        for t, symbols in enumerate(tokens.unbind(1)):
            moved[t] = step(state[:, None], symbols)[:, 0]
            torch.mul(moved[t], weights[t], out=states[t])
            torch.sum(states[t], 1, out=divisors[t])
            is_possible[t] = is_given[t] & (divisors[t] >= MIN_PROBABILITY)
            # A divisor that is not used may be 0. It becomes 1, so that its quotients and logarithm stay finite.
            divisors[t].masked_fill_(~is_possible[t], 1)
            states[t] /= divisors[t, :, None]
            torch.where(is_possible[t, :, None], states[t], moved[t], out=states[t])
            state = states[t]
        ctx.save_for_backward(transitions, emissions, tokens, targets, initial, moved, states, divisors, is_possible)
        least = torch.full_like(divisors, MIN_PROBABILITY).log() * is_given
        return torch.where(is_possible, divisors.log(), least).T

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Float[Tensor, "B T"]) -> tuple[Tensor | None, ...]:
        saved: tuple[Tensor, ...] = ctx.saved_tensors  # type: ignore[attr-defined]
        transitions, emissions, tokens, targets, initial, moved, states, divisors, is_possible = saved
        step = SymbolStep(transitions.mT[:, None], None, len(tokens))
        rows = targets.T.clamp(min=0)
        weights = emissions[rows]
        by_moved, by_joint = torch.empty_like(states), torch.empty_like(states)
        by_state = torch.zeros_like(initial)
        for t in reversed(range(len(states))):
            # f_t is a quotient with divisor p_t, and l_t . f_t is the part of the gradient through this divisor.
            weight = gradient[:, t] - (by_state * states[t]).sum(1)
            by_joint[t] = _masked(is_possible[t], (by_state + weight[:, None]) / divisors[t, :, None])
            # If an answer is missing or impossible, f_t = m_t, so the gradient for f_t passes to m_t unchanged.
            by_moved[t] = torch.where(is_possible[t, :, None], by_joint[t] * weights[t], by_state)
            by_state = step(by_moved[t, :, None], tokens[:, t])[:, 0]
        before = torch.cat([initial[None], states[:-1]])
        by_transitions, _ = sums_by_symbol(by_moved[:, :, None], before[:, :, None], tokens, transitions[:, None])
        by_emissions = torch.zeros_like(emissions).index_add_(0, rows.flatten(), (by_joint * moved).flatten(0, 1))
        return by_transitions[:, 0], by_emissions, None, None, by_state


def _masked(is_possible: Bool[Tensor, " B"], values: Distribution) -> Distribution:
    """Return the values, with 0 in the rows whose answers are missing or impossible."""
    return torch.where(is_possible[:, None], values, torch.zeros_like(values))
