"""The answers of a model to all prefixes of a string, each prefix followed by each of several tails."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.models.capabilities import ReadsContinuations

BIN_SIZE = 16
"""The number of prefix lengths whose strings are read in one batch, padded to the longest of these lengths."""

Strings = Int64[Tensor, "B T"]
Tails = Int64[Tensor, "W S"]
Logits = Float[Tensor, "B P W S Y"]


def continued_logits(model: SequenceModel, inputs: Strings, tails: Tails) -> Logits:
    """Return the logits at each symbol of each tail, after each prefix of 1 ... P symbols.

    There are B strings of T symbols and W tails of S symbols, and P = T - S.

    Entry [b, p, w, s] answers the string ``inputs[b, :p + 1] + tails[w, :s + 1]``. A model that can continue from a
    prefix reads about W S + 1 symbols for each symbol of the inputs. Any other model reads each of these strings from
    the start, and thus many more symbols (`num_symbols_read`). The results are equal up to rounding.

    Raises:
        ValueError: the tails are empty, or the strings are not longer than the tails.

    Example:
        >>> from lengthwise import make_model, make_task
        >>> model = make_model("gru", make_task("parity"))
        >>> strings, tails = torch.tensor([[0, 1, 1, 0, 1]]), torch.tensor([[0, 1], [1, 1]])
        >>> continued_logits(model, strings, tails).shape
        torch.Size([1, 3, 2, 2, 2])
    """
    if not 1 <= tails.shape[1] < inputs.shape[1]:
        raise ValueError(
            "tails: expected tails of at least 1 symbol that are shorter than the strings, got tails of "
            f"{tails.shape[1]} symbols for strings of {inputs.shape[1]}; change one of the two lengths"
        )
    if isinstance(model, ReadsContinuations):
        return model.continued_logits(inputs, tails)
    if isinstance(model, RecurrentModel):
        return _by_states(model, inputs, tails)
    return _by_strings(model, inputs, tails)


def continued_by_definition(model: SequenceModel, inputs: Strings, tails: Tails) -> Logits:
    """Return the logits of `continued_logits` by their definition: call the model once for each prefix length."""
    by_prefix = []
    for length in range(1, inputs.shape[1] - tails.shape[1] + 1):
        strings = _joined(inputs[:, :length], tails)
        by_prefix.append(model(strings.flatten(0, 1))[:, length:].unflatten(0, strings.shape[:2]))
    return torch.stack(by_prefix, 1)


def num_symbols_read(model: SequenceModel, inputs_shape: tuple[int, int], tails_shape: tuple[int, int]) -> int:
    """Return the number of symbols that the model reads in `continued_logits`, computed from the shapes alone."""
    (batch_size, length), (num_tails, tail_length) = inputs_shape, tails_shape
    num_prefixes = length - tail_length
    if isinstance(model, ReadsContinuations | RecurrentModel):
        return batch_size * (length + num_prefixes * num_tails * tail_length)
    bins = [prefixes[-1] + tail_length for prefixes in _bins(num_prefixes) for _ in prefixes]
    return batch_size * num_tails * sum(bins)


def _by_states(model: RecurrentModel, inputs: Strings, tails: Tails) -> Logits:
    """Return the logits: step through the tails from the state after each prefix, with all pairs in one batch."""
    num_prefixes = inputs.shape[1] - tails.shape[1]
    before = torch.cat(list(model.states(inputs[:, :num_prefixes])), 1).flatten(0, 1)
    state = before.repeat_interleave(len(tails), 0)
    logits = []
    for tokens in tails.unbind(1):
        answered, state = model.step(tokens.repeat(len(before)), state)
        logits.append(answered)
    by_symbol: Tensor = torch.stack(logits, 1)
    return torch.unflatten(by_symbol, 0, (len(inputs), num_prefixes, len(tails)))


def _by_strings(model: SequenceModel, inputs: Strings, tails: Tails) -> Logits:
    """Return the logits: read strings of similar lengths in one batch; padding at the end changes no earlier answer."""
    num_tails, tail_length = tails.shape
    by_prefix = []
    for prefixes in _bins(inputs.shape[1] - tail_length):
        strings = torch.cat(
            [
                torch.nn.functional.pad(_joined(inputs[:, :length], tails), (0, prefixes[-1] - length))
                for length in prefixes
            ]
        ).flatten(0, 1)
        logits = model(strings).unflatten(0, (len(prefixes), len(inputs), num_tails))
        by_prefix += [
            of_prefix[:, :, length : length + tail_length] for of_prefix, length in zip(logits, prefixes, strict=True)
        ]
    return torch.stack(by_prefix, 1)


def _joined(prefixes: Int64[Tensor, "B P"], tails: Int64[Tensor, "W S"]) -> Int64[Tensor, "B W _"]:
    """Return each prefix followed by each tail."""
    shape = (len(prefixes), len(tails), -1)
    return torch.cat([prefixes[:, None].expand(*shape), tails[None].expand(*shape)], 2)


def _bins(num_prefixes: int) -> list[range]:
    """Return the lengths from 1 to `num_prefixes` in groups of `BIN_SIZE`."""
    return [range(first, min(first + BIN_SIZE, num_prefixes + 1)) for first in range(1, num_prefixes + 1, BIN_SIZE)]
