"""Tests that all methods of a model from another package give the same answers."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.conventions import Diverged
from lengthwise.devices import device_of
from lengthwise.models.base import MODELS, Alphabet, RecurrentModel, SequenceModel, Vectors, eval_mode
from lengthwise.models.capabilities import HoldsParts
from lengthwise.models.causality import ROUNDING, Outputs, find_dependence, is_close
from lengthwise.models.containers import first_line
from lengthwise.models.set_answers import classes_of
from lengthwise.randomness import generator_for
from lengthwise.registry import is_of_package

NUM_STRINGS, LENGTH, TOLERANCE = 3, 6, 1e-3
"""The number of strings, their length in symbols, and the tolerance for logits, relative to the largest logit (to 1 if
all logits are smaller)."""

LENGTHS = (1, LENGTH, 41)
"""Lengths of strings for tests of methods. With 41 symbols, trees have several levels, and some chunks are
incomplete."""

_SAME = (
    "expected the logits of forward at the same position, got {}; let all methods return the same logits, which "
    "readout computes from the states"
)
_ALONE = (
    "expected an answer that depends only on the prefix, not on what follows or on other strings, got {}; let each "
    "position read only itself and earlier positions"
)


def some_strings(count: int, length: int, num_symbols: int) -> Int64[Tensor, "B T"]:
    """Return random strings, which are the same in every call."""
    return torch.randint(num_symbols, (count, length), generator=generator_for(0, "strings", num_symbols))


def check_consistent(model: SequenceModel, task: Alphabet) -> None:
    """Raise a ValueError if the methods of a model from another package contradict each other.

    Training uses `forward`, measurement uses `last`, and streaming uses `step`, so all three must return the same
    logits. The answer to a prefix must not depend on later symbols or on other strings. The parts of a wrapped net are
    checked again, because they may have been trained or replaced. Our own models are not checked here, because the
    package's tests check them.

    Raises:
        ValueError: the model has no `readout`; a method fails, or returns wrong shapes or numbers; an answer depends on
            more than its prefix; or the parts of a wrapped net do not fit.
    """
    if isinstance(model, HoldsParts):
        try:
            model.check_parts()
        except (AttributeError, TypeError, IndexError) as problem:
            raise ValueError(
                f"model: expected the same parts as when the model was wrapped, got other parts ({first_line(problem)}"
                "); wrap the model again"
            ) from problem
    if is_of_package(type(model)):
        return
    if not callable(getattr(model, "readout", None)):
        raise ValueError(
            f"{type(model).__name__}.readout: expected a module that maps states [B, D] to logits [B, Y], got none; "
            "set self.readout in __init__"
        )
    length = min(LENGTH, model.max_length or LENGTH)
    strings = some_strings(NUM_STRINGS, length, len(task.symbols)).to(device_of(model))
    with eval_mode(model):
        by_step = []
        if isinstance(model, RecurrentModel):  # `readout` first, so that its errors are not reported for `step`
            _call(model, "readout", _first_state(model, strings))
            by_step = list(_steps(model, strings))
            _check_states(model, strings, [state for _, state in by_step])
        # This precedes `forward`, which may call `readout`: an error must be reported for the method that causes it.
        _call(model, "readout", _call(model, "last_state", strings))
        logits = _forward(model, strings, task)
        _compare(model, "last_state", _call(model, "last", strings), logits[:, -1])
        for index, (of_step, _) in enumerate(by_step):
            _compare(model, "step", of_step, logits[:, index])
        # `find_dependence` does not change the length of strings, so it cannot find answers that depend on the length.
        for end in range(1, length):
            _compare(model, "forward", model(strings[:1, :end])[:, -1], logits[:1, end - 1], _ALONE)
        # A user's net may convolve by Fourier transforms, in which later positions cancel only up to rounding.
        if fault := find_dependence(model, strings, len(task.symbols), slack=ROUNDING):
            raise ValueError(f"{type(model).__name__}.forward: {_ALONE.format(f'one that {fault}')}")


@torch.no_grad()
def find_fault(outputs: Outputs, net: nn.Module, num_symbols: int, max_length: int | None) -> str | None:
    """Return a clause that names the first fault that the tests find, or None. The tests check that the net is causal.

    `outputs` maps strings to hidden states or logits. The net reads at most `max_length` symbols. Two calls with the
    same strings must give the same outputs. Gradients with respect to later symbols must be exactly 0. If later symbols
    change, outputs may change only by rounding. The outputs on a prefix must agree to 0.1 % of the largest output, or
    to 0.001, whether the prefix is read alone or in a longer string.
    """
    short, long = (min(length, max_length or length) for length in (LENGTH, LENGTHS[-1]))
    strings = some_strings(NUM_STRINGS, short, num_symbols).to(device_of(net))
    with eval_mode(net):
        if not torch.allclose(outputs(strings), outputs(strings), rtol=0, atol=0, equal_nan=True):
            return "changes from call to call"
        if fault := find_dependence(outputs, strings, num_symbols):
            return fault
        longer = some_strings(1, long, num_symbols).to(device_of(net))
        together = outputs(longer)
        for end in sorted({1, (short + 1) // 2, short, (long + 1) // 2}):
            # Sums over strings of other lengths may have another order, so rounding has to be allowed for.
            if not is_close(outputs(longer[:, :end]), together[:, :end], relative=TOLERANCE):
                return "depends on the length of the string"
    return None


def check_methods(model: SequenceModel, task: Alphabet) -> None:
    """Raise a ValueError if a method of the model raises an error, or returns a wrong type or shape.

    The check also finds models of this package that were changed after they were made. For example, a weight may have
    another shape, or a part may be missing.

    Raises:
        ValueError: the message names the method, and its result or its error.
    """
    logits_shape = (NUM_STRINGS, len(task.classes))
    for length in LENGTHS:
        size = min(length, model.max_length or length)
        strings = some_strings(NUM_STRINGS, size, len(task.symbols)).to(device_of(model))
        with eval_mode(model):
            if isinstance(model, RecurrentModel):
                for logits, _ in _steps(model, strings[:, :LENGTH]):
                    _tensor(model, "step", logits, logits_shape, "logits [B, Y]")
                _all_states(model, strings)
            _forward(model, strings, task)
            state = _call(model, "last_state", strings)
            _tensor(model, "last_state", state, (NUM_STRINGS, -1), "states [B, D]")
            for name, given in (("readout", state), ("last", strings)):
                _tensor(model, name, _call(model, name, given), logits_shape, "logits [B, Y]")


def check_sizes(model: SequenceModel, task: Alphabet) -> None:
    """Raise a ValueError unless a model reads the symbols of a task and has a logit for each of the task's answers.

    A user's net with more symbols than the task is also rejected, because its first ids may be pads or other tokens. A
    class of wrapped nets has an attribute `fewer_symbols_hint`, which becomes part of the message.
    """
    num_symbols, num_classes = len(task.symbols), len(task.classes)
    known = getattr(model, "num_symbols", num_symbols)
    way_out = getattr(model, "fewer_symbols_hint", "")
    if way_out and known > num_symbols:
        raise ValueError(
            f"model: expected a model with the {num_symbols} symbols of the task, got a model with {known:,} symbols, "
            f"whose first {num_symbols} need not be the task's; {way_out}"
        )
    # The first and the last id suffice, because a table that is too small fails for the last id.
    ends = torch.tensor([[0], [num_symbols - 1]], device=device_of(model))
    try:
        with eval_mode(model):
            logits = model.last(ends)
    except (ValueError, IndexError) as problem:
        raise ValueError(
            f"model: expected a model that reads the {num_symbols} symbols of the task, got an error "
            f"({str(problem).rsplit('; ', 1)[0]}); make the model for this task"
        ) from None
    except Exception as problem:
        raise _error_in(model, "last", problem) from problem
    if (named := classes_of(model)) is not None and named != task.classes:
        raise ValueError(
            f"model: expected a model that answers with the task's sets of symbols ({'; '.join(task.classes)}), got a "
            f"model with other sets ({'; '.join(named)}); construct the model's layer SetAnswers from this task"
        )
    num_answers = _tensor(model, "last", logits, (2, -1), "logits [B, Y]").shape[1]
    if num_answers != num_classes:
        raise ValueError(
            f"model: expected a model for the {num_classes} answers of the task, got one for {num_answers}; make the "
            "model for this task"
            + (" (replace the one logit z by the two logits 0 and z)" if (num_answers, num_classes) == (1, 2) else "")
        )


def check_reads_vectors(model: SequenceModel, task: Vectors) -> None:
    """Raise a ValueError unless a model reads the vectors of a task."""
    try:
        with eval_mode(model):
            model(torch.zeros(1, 1, task.input_dim, device=device_of(model)))
    except (ValueError, IndexError, RuntimeError) as problem:  # torch raises a RuntimeError for another dimension
        raise ValueError(
            f"model: expected a model that reads the vectors of the task, with {task.input_dim} numbers each, got an "
            f"error ({first_line(problem).rsplit('; ', 1)[0]}); make the model for this task"
        ) from None


def check_made_alike(one: SequenceModel, again: SequenceModel, task: Alphabet) -> None:
    """Raise a ValueError unless two models that are made from the same seed are equal.

    If they differ, a stored model would be another net after loading.

    Raises:
        ValueError: the models have different weights, or different answers with equal weights.
    """
    name = type(one).__name__
    weights = again.state_dict()
    if not all(torch.equal(tensor, weights[key]) for key, tensor in one.state_dict().items()):
        raise ValueError(
            f"{name}: expected the same weights each time the model is made from one seed, got different weights; draw "
            "every parameter from `generator`"
        )
    strings = some_strings(NUM_STRINGS, min(LENGTH, one.max_length or LENGTH), len(task.symbols))
    with eval_mode(one), eval_mode(again):
        # The tolerance is 0, because the same computation on the same machine gives the same bits.
        if not torch.allclose(one(strings), again(strings), rtol=0, atol=0, equal_nan=True):
            raise ValueError(
                f"{name}: expected the same answers each time the model is made with the same weights, got different "
                "answers; use register_buffer to store numbers that are not trained"
            )


def _all_states(model: RecurrentModel, strings: Int64[Tensor, "B T"]) -> list[Tensor]:
    """Return all tensors that `states` yields, after a check of their types and shapes."""
    given = _call(model, "states", strings)
    if not isinstance(given, list | tuple):
        raise ValueError(
            f"{type(model).__name__}.states: expected an iterator of states [B, _, D], got {type(given).__name__}; "
            "yield the states"
        )
    return [_tensor(model, "states", states, (len(strings), -1, -1), "states [B, _, D]") for states in given]


def _check_states(model: RecurrentModel, strings: Int64[Tensor, "B T"], by_step: list[Tensor]) -> None:
    """Raise a ValueError unless `states` yields the states that `step` returns, one for each symbol."""
    expected = torch.stack(by_step, 1)
    given = _all_states(model, strings)
    # Parts of different widths cannot be joined. Then an empty tensor makes the comparison below fail.
    states = torch.cat(given, 1) if given and len({part.shape[2] for part in given}) == 1 else expected.new_zeros(0)
    limit = TOLERANCE * max(1.0, float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max()))
    if states.shape != expected.shape or not torch.allclose(states, expected, rtol=0, atol=limit, equal_nan=True):
        raise ValueError(
            f"{type(model).__name__}.states: expected the states that step returns, one for each symbol, got different "
            "states; yield the states of step, or delete the method states"
        )


def _first_state(model: RecurrentModel, strings: Int64[Tensor, "B T"]) -> Tensor:
    first = _call(model, "initial_state", len(strings))
    return _tensor(model, "initial_state", first, (len(strings), -1), "states [B, D]")


def _steps(model: RecurrentModel, strings: Int64[Tensor, "B T"]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the logits and the state that `step` returns, symbol by symbol."""
    state = _first_state(model, strings)
    for tokens in strings.unbind(1):
        after = _call(model, "step", tokens, state)
        if not isinstance(after, tuple) or len(after) != 2:
            raise ValueError(
                f"{type(model).__name__}.step: expected a tuple of logits [B, Y] and the next state [B, D], got "
                f"{f'a tuple of {len(after)}' if isinstance(after, tuple) else type(after).__name__}; return these two"
            )
        state = _tensor(model, "step", after[1], tuple(state.shape), "states like those of initial_state")
        yield after[0], state


def _forward(model: SequenceModel, strings: Int64[Tensor, "B T"], task: Alphabet) -> Float[Tensor, "B T Y"]:
    logits = _call(model, "forward", strings)
    expected = [*strings.shape, len(task.classes)]
    if not isinstance(logits, Tensor) or list(logits.shape) != expected:
        got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"{type(model).__name__}.forward: expected logits of shape {expected} for strings of shape "
            f"{list(strings.shape)}, an answer to each prefix, got {got}; return logits at every position"
        )
    return logits


def _call(model: SequenceModel, method: str, *given: object) -> Any:
    """Return the result of a method, as a list if it is an iterator; any error becomes a ValueError."""
    try:
        result = getattr(model, method)(*given)
        return list(result) if isinstance(result, Iterator) else result
    except Exception as problem:  # nets of other authors, or nets that were changed, may raise any error
        raise _error_in(model, method, problem) from problem


def _error_in(model: SequenceModel, method: str, problem: Exception) -> Exception:
    """Return a ValueError that names the method and a way out; return errors of overflow and of memory unchanged."""
    if isinstance(problem, Diverged | MemoryError | torch.OutOfMemoryError):
        return problem
    way_out = "call the method by itself to see where the error arises"
    if MODELS.has_member(type(model)) and is_of_package(type(model)):
        way_out = "make the model again, and load its weights"
    elif method == "readout":
        way_out = (
            "let readout take a whole state, as last_state returns it, and select a part of the state inside readout"
        )
    return ValueError(
        f"{type(model).__name__}.{method}: expected a result for strings of the task, got an error: "
        f"{first_line(problem)}; {way_out}"
    )


def _compare(
    model: SequenceModel, method: str, given: Tensor, expected: Float[Tensor, "B Y"], expectation: str = _SAME
) -> None:
    logits = _tensor(model, method, given, tuple(expected.shape), "logits [B, Y] from readout")
    limit = TOLERANCE * max(1.0, float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max()))
    if not torch.allclose(logits, expected, rtol=0, atol=limit):
        are_finite = bool(logits.isfinite().all() & expected.isfinite().all())
        got = "different logits" if are_finite else "logits that are not finite"
        raise ValueError(f"{type(model).__name__}.{method}: {expectation.format(got)}")


def _tensor(model: SequenceModel, method: str, given: object, shape: tuple[int, ...], what: str) -> Tensor:
    """Return the object if it is a floating-point tensor of this shape, where -1 means any size; otherwise, raise."""
    got = type(given).__name__
    if isinstance(given, Tensor):
        fits = given.ndim == len(shape) and all(
            limit in (-1, size) for size, limit in zip(given.shape, shape, strict=True)
        )
        if fits and given.is_floating_point():
            return given
        got = f"shape {list(given.shape)}" if not fits else f"{given.dtype}"
    sizes = ", ".join("any" if size == -1 else str(size) for size in shape)
    raise ValueError(
        f"{type(model).__name__}.{method}: expected {what}, here [{sizes}], got {got}; return a floating-point tensor "
        "of this shape"
    )
