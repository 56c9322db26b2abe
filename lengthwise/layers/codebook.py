"""Codebooks: finite sets of points to which the states of a layer are rounded."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.ops.shapes import check_tensors
from lengthwise.ops.tree import TreeLayer
from lengthwise.validation import check_sizes


class Codebook(nn.Module):
    """A set of up to Q vectors c_k, the codes; each state is replaced by the nearest code.

    q(y) = c_k with k = argmin_k |y - c_k| = argmax_k (c_k . y - |c_k|^2 / 2);  dq / dy = 1 (straight-through).

    Codes are buffers, which are saved with the weights but not trained. An empty codebook returns states unchanged.

    Example:
        >>> codebook = Codebook(max_codes=4, d_model=2)
        >>> codebook.fill(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        >>> codebook(torch.tensor([[0.9, 0.2], [-3.0, 0.0]])).tolist()
        [[1.0, 0.0], [0.0, 1.0]]

    Source: van den Oord et al. (2017), Neural Discrete Representation Learning, section 3.1, eq. (1)-(2), and 3.2.
    Differs from the source: codes are not learned, but set once, when states have settled. There is neither a codebook
        loss nor a commitment loss.
    """

    codes: Float[Tensor, "Q D"]
    count: Tensor

    def __init__(self, *, max_codes: int, d_model: int) -> None:
        super().__init__()
        check_sizes(max_codes=max_codes, d_model=d_model)
        self.register_buffer("codes", torch.zeros(max_codes, d_model))
        self.register_buffer("count", torch.tensor(0))

    @property
    def is_empty(self) -> bool:
        """Return whether the codebook has no codes; True on the device `meta`, where tensors have no values."""
        # In a graph that is exported, the count is a plain number, so shapes may depend on it.
        return getattr(self.count, "is_meta", False) or not bool(self.count)

    @property
    def known(self) -> Float[Tensor, "K D"]:
        """Return the codes in use."""
        return self.codes[: int(self.count)]

    @property
    def gap(self) -> float:
        """Return the smallest distance between two codes, which is infinite if there are fewer than two codes."""
        return float(torch.pdist(self.known).min()) if int(self.count) > 1 else math.inf

    def fill(self, codes: Float[Tensor, "K D"]) -> None:
        """Replace all codes of the codebook by the given codes.

        Raises:
            ValueError: the number of given codes is 0 or above `max_codes`.
        """
        check_tensors(codes=codes)
        if codes.ndim != 2 or codes.shape[1] != self.codes.shape[1]:
            got = list(codes.shape)
            raise ValueError(f"codes: expected shape [K, {self.codes.shape[1]}], got {got}; give one vector per code")
        if not bool(codes.isfinite().all()):
            raise ValueError("codes: expected finite numbers, got NaN or infinity; check the states they come from")
        if not 1 <= len(codes) <= len(self.codes):
            raise ValueError(
                f"codes: expected 1 to {len(self.codes)} codes, got {len(codes)}; give 1 code or more, and at most "
                "max_codes"
            )
        # The codes are replaced in place, so that the buffer keeps its size, and files of weights keep their shapes.
        self.codes.zero_()[: len(codes)] = codes.detach()
        self.count.fill_(len(codes))

    def forward(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        if self.is_empty:
            return states
        codes = self.known
        # The argmax of scores needs only one product of matrices. Distances would need the differences to all codes.
        nearest = F.linear(states, codes, -0.5 * codes.square().sum(-1)).argmax(-1)
        # The added difference is exactly 0, so the results are codes to the last bit.
        return F.embedding(nearest, codes) + (states - states.detach())


@dataclass(frozen=True, eq=False)
class QuantizingLayer:
    """A tree layer (`lengthwise.ops.tree.TreeLayer`) whose output states are rounded to the nearest code."""

    layer: TreeLayer
    codebook: Codebook

    def window_bias(self) -> Float[Tensor, "H C"]:
        return self.layer.window_bias()

    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        return self.layer.normalize(states)

    def query(self, normed: Float[Tensor, "*N D"]) -> Float[Tensor, "*N H E"]:
        return self.layer.query(normed)

    def key_value(self, normed: Float[Tensor, "*N D"]) -> tuple[Float[Tensor, "*N H E"], Float[Tensor, "*N H E"]]:
        return self.layer.key_value(normed)

    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        merged: Tensor = self.codebook(self.layer.output(newest, attended))
        return merged
