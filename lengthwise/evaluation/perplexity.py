"""Perplexity of language models against length, at the same positions of a text for all lengths and models.

In a chunk of T tokens, the last token has a context of T - 1 tokens. Two perplexities are measured on the same chunks.
The first is over the last tokens. The second is over whole chunks, in which most tokens have a shorter context.
"""

import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor

from lengthwise.devices import device_of, moved, one_thread
from lengthwise.evaluation.interval import check_numbers, mean_interval
from lengthwise.evaluation.length_curve import SetProgress, ascending
from lengthwise.models.base import RecurrentModel, SequenceModel, check_is_model, eval_mode
from lengthwise.randomness import generator_for
from lengthwise.text.language import LanguageTask, Split, Tokens, check_is_text, parse_split
from lengthwise.validation import FrozenRecord, whole_number

MAX_NLL = 100.0
"""The largest negative log-likelihood of a token, in nats. Tokens at which states overflow get this value."""

MAX_LOGITS_PER_CHUNK = 1 << 25
"""The largest number of logits that are computed at once; more logits are computed in parts."""

MAX_RECURRENT = 256
"""The largest number of chunks that a recurrent model reads at once. This limit bounds the memory of states, because
`RecurrentModel.states` may yield the states at a thousand positions at a time."""

MAX_CHUNKS = 1_000_000
"""The largest number of chunks of one length."""

CURVES_OF_ANSWERS = "use length_curve, or error_curve if the answers are numbers"
"""The way out in the error for a task that is not a text."""


class PerplexityPoint(FrozenRecord, allow_inf_nan=False):
    """Losses of chunks of one length, in nats.

    The letter p is the probability that the model gives to a token. `last` contains -log p of the last token of each
    chunk. `whole` is the mean of -log p over all tokens of the chunks except their first tokens.
    """

    length: int = Field(ge=2)
    last: tuple[float, ...] = Field(min_length=1)
    whole: float

    @property
    def perplexity(self) -> float:
        """Return exp of the mean negative log-likelihood of the chunks' last tokens."""
        return math.exp(fmean(self.last))

    @property
    def interval(self) -> tuple[float, float]:
        """Return Student's 95 % confidence interval of the perplexity, over chunks of the text; NaN for one chunk."""
        low, high = mean_interval(self.last)
        return math.exp(low), math.exp(high)

    @property
    def whole_perplexity(self) -> float:
        """Return exp of the mean negative log-likelihood of all tokens except the first of each chunk."""
        return math.exp(self.whole)


class PerplexityCurve(FrozenRecord):
    """Perplexities in order of length; the chunks of all lengths end at the same positions of a split.

    `ends` is a hash of these positions and of the text: curves with equal hashes can be compared chunk by chunk.
    `baseline` is the perplexity of a model that predicts each token with its frequency in the training split.
    Perplexities of different tokenizers are not comparable.
    """

    split: Split
    num_chunks: int = Field(ge=1)
    ends: str
    baseline: float
    points: tuple[PerplexityPoint, ...] = Field(min_length=1)

    def at(self, length: int) -> PerplexityPoint | None:
        """Return the curve's point at a length, or None if the length was not measured."""
        return next((point for point in self.points if point.length == length), None)


class PairedRatio(NamedTuple):
    """The ratio of two perplexities on the last tokens of the same chunks, and the ratio's 95 % confidence interval."""

    ratio: float
    low: float
    high: float


MAX_EXPONENT = 700.0
"""The largest exponent for which exp is computed. In float64, exp overflows at slightly larger exponents."""


def paired_ratio(first: Sequence[float], second: Sequence[float]) -> PairedRatio:
    """Return the ratio of two perplexities on the same chunks, with its 95 % confidence interval (Student's).

    The ratio is exp of the mean, over chunks, of the first negative log-likelihood minus the second.

    The difficulty of a chunk mostly cancels in this difference. Therefore this interval is far narrower than the two
    intervals of the perplexities.

    Example:
        >>> ratio = paired_ratio([5.0, 1.0, 3.0], [4.9, 0.9, 2.8])
        >>> f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        '1.143 (0.990 to 1.319)'
    """
    check_numbers("first", first)
    check_numbers("second", second)
    if not first:
        raise ValueError("first: expected at least one chunk, got none; measure one or more")
    if len(first) != len(second):
        raise ValueError(
            f"second: expected {len(first)} chunks, as in `first`, got {len(second)}; measure both on the same chunks"
        )
    gaps = [one - other for one, other in zip(first, second, strict=True)]
    low, high = mean_interval(gaps)
    return PairedRatio(*(math.inf if gap > MAX_EXPONENT else math.exp(gap) for gap in (fmean(gaps), low, high)))


MIN_ENDS_PER_CHUNK = 8
"""Last tokens are drawn with replacement if there are at least this many possible last tokens for each chunk."""


def chunk_ends(num_tokens: int, longest: int, num_chunks: int, *, seed: int) -> Int64[Tensor, " N"]:
    """Draw the indices of the last tokens of chunks uniformly, such that chunks of `longest` tokens fit into the text.

    If fewer than `MIN_ENDS_PER_CHUNK` indices per chunk are possible, all drawn indices are different. Then the number
    of indices may also be less than `num_chunks`.

    Example:
        >>> sorted(chunk_ends(5, 3, 10, seed=0).tolist())
        [2, 3, 4]
    """
    if not 2 <= longest <= num_tokens:
        raise ValueError(
            f"lengths: expected lengths from 2 to {num_tokens:,} tokens (the length of the text), got {longest:,}; "
            "give lengths in this range, or a longer text"
        )
    num_chunks = whole_number("num_chunks", num_chunks, 1, MAX_CHUNKS)
    generator, num_ends = generator_for(seed, "chunks"), num_tokens - longest + 1
    if num_ends < MIN_ENDS_PER_CHUNK * num_chunks:
        return longest - 1 + torch.randperm(num_ends, generator=generator)[:num_chunks]
    # A permutation of a long text would take memory for all its tokens.
    draws = torch.rand(num_chunks, generator=generator, dtype=torch.float64)
    return longest - 1 + (draws * num_ends).long()


def gather_chunks(tokens: Tokens, ends: Int64[Tensor, " N"], length: int) -> Int64[Tensor, "N T"]:
    """Return for each index in `ends` the `length` tokens up to this index."""
    windows = ends[:, None] + torch.arange(1 - length, 1)
    return torch.from_numpy(tokens[windows.numpy()].astype(np.int64))


@one_thread()
def perplexity_curve(
    model: SequenceModel,
    task: LanguageTask,
    lengths: Iterable[int],
    *,
    num_chunks: int = 256,
    split: Split = "test",
    seed: int = 0,
    set_progress: SetProgress = lambda fraction: None,
) -> PerplexityCurve:
    """Measure the perplexity of chunks of each length. Chunks of all lengths end at the same positions of the text.

    The positions depend on the seed and on the longest length, but not on the model. So two curves can be compared
    chunk by chunk only if their longest lengths are equal. A text with fewer possible last tokens than `num_chunks` has
    one chunk for each possible last token. Recurrent models keep the states of only some positions, so memory does not
    grow with the length.

    Raises:
        ValueError: no length is given, or a length is below 2 or above the number of tokens in the split. `num_chunks`
            is not in 1 ... `MAX_CHUNKS`. The task is not a language task, or the split is unknown.

    Source: Chi et al. (2023), section 6: the last tokens of 1,000 random chunks.
    Differs from the source: the chunks of all lengths and models have the same last tokens.
    """
    check_is_model(model)
    check_is_text(task, CURVES_OF_ANSWERS)
    split = parse_split(split)
    in_order = ascending(lengths)
    if in_order[0] < 2:
        raise ValueError(
            "lengths: expected lengths of at least 2 tokens (a context and the predicted token), got "
            f"{in_order[0]}; leave out shorter lengths"
        )
    tokens = task.tokens(split)
    ends = chunk_ends(len(tokens), in_order[-1], num_chunks, seed=seed)
    points = []
    with eval_mode(model):
        for length in in_order:
            points.append(_point(model, tokens, ends, length, len(task.classes)))
            set_progress(sum(in_order[: len(points)]) / sum(in_order))
    return PerplexityCurve(
        split=split,
        num_chunks=len(ends),
        ends=_digest(tokens, ends),
        baseline=frequency_perplexity(task.tokens("train"), tokens[ends.numpy()], len(task.symbols)),
        points=tuple(points),
    )


def _point(
    model: SequenceModel, tokens: Tokens, ends: Int64[Tensor, " N"], length: int, num_classes: int
) -> PerplexityPoint:
    is_recurrent, device = isinstance(model, RecurrentModel), device_of(model)
    num_read = MAX_RECURRENT if is_recurrent else max(1, MAX_LOGITS_PER_CHUNK // (length * num_classes))
    parts = [token_nlls(model, moved(gather_chunks(tokens, part, length), device)) for part in ends.split(num_read)]
    last, whole = (torch.cat(values) for values in zip(*parts, strict=True))
    rounded = tuple(round(nll, 5) for nll in last.tolist())  # in float32, further digits of these sums are rounding
    return PerplexityPoint(length=length, last=rounded, whole=float(whole.double().mean()))


def token_nlls(model: SequenceModel, chunks: Int64[Tensor, "B T"]) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Return -log p of each chunk's last token, and the mean of -log p over all tokens of the chunk but the first.

    The letter p is the probability of a token, given the tokens before it in the chunk.
    """
    inputs, targets = chunks[:, :-1], chunks[:, 1:]
    if not isinstance(model, RecurrentModel):
        nlls = _nlls(model(inputs), targets)
        return nlls[:, -1], nlls.mean(1)
    total = torch.zeros(len(chunks), device=chunks.device)
    position = 0
    num_logits = model.readout(model.initial_state(len(chunks))).numel()
    for states in model.states(inputs):
        for part in states.split(max(1, MAX_LOGITS_PER_CHUNK // num_logits), dim=1):
            nlls = _nlls(model.readout(part), targets[:, position : position + part.shape[1]])
            position += part.shape[1]
            total += nlls.sum(1)
    return nlls[:, -1], total / targets.shape[1]


def _nlls(logits: Float[Tensor, "B T Y"], targets: Int64[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    nlls = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none").reshape(targets.shape)
    return nlls.nan_to_num(nan=MAX_NLL).clamp(max=MAX_NLL)


def frequency_perplexity(train: Tokens, targets: Tokens, vocab_size: int) -> float:
    """Return the perplexity of tokens under their frequencies in the training split, with 1 added to each count.

    Example:
        >>> train, targets = np.array([0, 0, 0, 1], dtype=np.uint16), np.array([0, 1], dtype=np.uint16)
        >>> round(frequency_perplexity(train, targets, 2) ** 2, 3)  # 1 / (4/6 * 2/6)
        4.5
    """
    counts = np.bincount(train, minlength=vocab_size) + 1
    return float(np.exp(-np.log(counts / counts.sum())[targets.astype(np.int64)].mean()))


def _digest(tokens: Tokens, ends: Int64[Tensor, " N"]) -> str:
    digest = blake2b(np.ascontiguousarray(tokens).tobytes(), digest_size=8)
    digest.update(ends.numpy().tobytes())
    return digest.hexdigest()
