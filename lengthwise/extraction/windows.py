"""The machine of a model whose answers depend only on the last few positions."""

from typing import NamedTuple

import numpy as np
import torch

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.models.capabilities import BoundedReceptiveField
from lengthwise.models.own_answers import OwnAnswers
from lengthwise.ops.answers import finite_answers_of

MAX_WINDOWS = 100_000
"""The largest number of windows that are enumerated."""

Window = tuple[int, ...]


class WindowMachine(NamedTuple):
    """A machine whose states are windows of the last symbols, with the model's smallest logit margin over all windows.

    `margin` is the smallest difference, over all windows, between the largest logit and the second largest logit.
    `receptive_field` is the length of the longest window.
    """

    machine: Transducer
    margin: float
    receptive_field: int


def window_machine(model: SequenceModel, symbols: tuple[str, ...]) -> WindowMachine:
    """Run the model on all windows in which strings can end, and return a machine with these windows as states.

    With receptive field k, a window has up to k positions. The model's answer to a string is its answer to the string's
    last k positions. If a model reads its own answers (`OwnAnswers`), these positions include its answers to earlier
    windows, and each window still leads to one next window for each symbol. The machine answers every string as the
    model does if rounding changes no logit by half of `margin` or more.

    Raises:
        ValueError: the model's receptive field is not bounded, a logit is not finite, or there are more than
            `MAX_WINDOWS` windows.

    Source: ours. If the model does not read its own answers, the machine is definite: Perles, Rabin and Shamir, "The
        theory of definite automata" (1963).
    """
    inner = model.model if isinstance(model, OwnAnswers) else model
    size = inner.receptive_field if isinstance(inner, BoundedReceptiveField) else None
    if size is None:
        raise ValueError(
            "model: expected a model whose answers depend only on a fixed number of last positions, got a model that "
            "reads all positions; choose a model with a bounded receptive field"
        )
    numbers: dict[Window, int] = {(): 0}
    outputs = [IGNORE]
    table = []
    margin = float("inf")
    frontier: list[Window] = [()]
    while frontier:
        next_windows: dict[Window, None] = {}  # a dictionary, because a set has no fixed order
        for window in frontier:
            answer = outputs[numbers[window]]
            own_answer = (len(symbols) + answer,) if isinstance(model, OwnAnswers) and window else ()
            successors = [(*window, *own_answer, symbol)[-size:] for symbol in range(len(symbols))]
            next_windows |= dict.fromkeys(other for other in successors if other not in numbers)
            table.append(successors)
        frontier = list(next_windows)
        if len(numbers) + len(frontier) > MAX_WINDOWS:
            raise ValueError(
                f"model: expected at most {MAX_WINDOWS:,} windows of symbols that fit in its receptive field, got "
                "more; choose a model with a smaller receptive field"
            )
        if frontier:
            numbers |= {window: len(numbers) + index for index, window in enumerate(frontier)}
            with eval_mode(inner):
                logits = inner.last(torch.tensor(frontier))
            outputs += finite_answers_of(logits).tolist()
            if logits.shape[1] > 1:
                margin = min(margin, float(logits.topk(2, dim=1).values.diff(dim=1).abs().min()))
    steps = np.array([[numbers[window] for window in successors] for successors in table])
    return WindowMachine(Transducer(Semiautomaton(steps, symbols), 0, np.array(outputs)), margin, size)
