"""What some models can do and others cannot: classes that a model inherits next to `SequenceModel`."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor, nn

from lengthwise.conventions import PAD
from lengthwise.devices import READS_AT_ONCE, on_device_assert
from lengthwise.layers.codebook import Codebook
from lengthwise.ops.intervals import Intervals

Perturbation = Callable[[Tensor], Tensor]
"""What training does to hidden states (adding noise, for example); returns a tensor of the same shape."""

Observer = Callable[[int, Mapping[int, Tensor]], None]
"""Is told a level of trees, and the states [B, N, D] of its nodes in each of the batches that are read together."""

Noisy = TypeVar("Noisy", bound="AcceptsNoise")
Tree = TypeVar("Tree", bound="ShowsNodes")
Random = TypeVar("Random", bound="DrawsInTraining")


class AcceptsPads:
    """Inputs may hold the pad `PAD`, "no symbol", anywhere in a string."""

    @property
    def pad_block(self) -> int:
        """Training inserts pads in blocks of this size; above 1 for models that read their input in chunks."""
        return 1

    def check_inputs(self, inputs: Int64[Tensor, "B T"], num_symbols: int) -> None:
        """Raise a ValueError unless these are strings of the symbols 0 ... num_symbols - 1 and of pads."""
        check_symbols(inputs, num_symbols, accepts_pads=True)


class AcceptsNoise:
    """Training may perturb the hidden states that the model passes on: `self.perturb`, which is None otherwise."""

    perturb: Perturbation | None = None

    def perturbed(self: Noisy, perturb: Perturbation) -> Noisy:
        """This model, its parameters shared, with `perturb` applied to the hidden states that it passes on."""
        other = copy.copy(self)
        other.perturb = perturb
        return other


class ShowsNodes:
    """Training may look at the states of a tree's nodes: `last_states` shows them to `self.observe`, None otherwise."""

    observe: Observer | None = None

    def observed(self: Tree, observe: Observer) -> Tree:
        """This model, its parameters shared, showing its nodes to `observe`."""
        other = copy.copy(self)
        other.observe = observe
        return other


class DrawsInTraining:
    """The model may draw random numbers in training, from `self.generator`, which is None otherwise."""

    generator: Generator | None = None

    def drawing(self: Random, generator: Generator) -> Random:
        """This model, its parameters shared, drawing from `generator` what it draws, if anything."""
        other = copy.copy(self)
        other.generator = generator
        return other


class AcceptsVectors:
    """The model can be made with `input_dim` instead of `vocab_size`, for inputs [B, T, input_dim] of real numbers."""

    def check_vectors(self, inputs: Float[Tensor, "B T V"], input_dim: int) -> None:
        """Raise a ValueError unless these are sequences of vectors of `input_dim` finite numbers."""
        if not isinstance(inputs, Tensor):
            raise ValueError(f"inputs: expected a tensor of vectors [B, T, {input_dim}], got a {type(inputs).__name__}")
        if inputs.ndim != 3 or inputs.shape[2] != input_dim or not inputs.shape[0] * inputs.shape[1]:
            raise ValueError(
                f"inputs: expected shape [B, T, {input_dim}] with B and T of at least 1, got {list(inputs.shape)}; "
                "sample them from the model's own task"
            )
        if inputs.dtype != (own := next(self.parameters()).dtype):  # type: ignore[attr-defined]
            raise ValueError(f"inputs: expected numbers of the model's type {own}, got {inputs.dtype}; convert them")
        if inputs.device.type not in READS_AT_ONCE:
            on_device_assert(inputs.isfinite(), "inputs: expected finite numbers, got others")
        elif not inputs.isfinite().all():
            raise ValueError("inputs: expected finite numbers, got others; find the vectors that are not finite")


class BoundsSteps(ABC):
    """A recurrent model that says what a step makes of states that are known up to intervals.

    Proofs bound its steps by this, and training can make it contract.
    """

    @abstractmethod
    def bounds_after(self, states: Intervals, token: Int64[Tensor, "*N"]) -> Intervals:
        """Intervals [*N, D] that hold the states after a symbol, given some that hold those before it."""


class BoundedReceptiveField(ABC):
    """The model's answer may depend on the last few symbols alone, wherever they stand.

    Then ``last(inputs)`` is ``last(inputs[:, -receptive_field:])``, up to rounding.
    """

    @property
    @abstractmethod
    def receptive_field(self) -> int | None:
        """The number of symbols that an answer depends on; None: all of them."""


class HoldsParts(ABC):
    """The model is made of modules that somebody else wrote, which may be trained or exchanged afterwards."""

    @abstractmethod
    def check_parts(self) -> None:
        """Raise a ValueError unless the parts fit together, and answers to a prefix depend on that prefix alone."""


class AnswersUpTo(ABC):
    """The model can be exported for strings of up to a stated length, though its computation grows with the length."""

    @abstractmethod
    def forward_up_to(self, inputs: Int64[Tensor, "B T"], max_length: int) -> Float[Tensor, "B T Y"]:
        """The same numbers as `forward`, T of at most `max_length`, by operations that do not depend on T."""


class HasHiddenMatrices(ABC):
    """The model names its weight matrices between hidden states, which the optimizer `"muon"` moves."""

    @property
    @abstractmethod
    def hidden_matrices(self) -> Sequence[nn.Parameter]: ...


class FollowsTraining(ABC):
    """The model changes as training proceeds, as a temperature does that falls."""

    @abstractmethod
    def set_progress(self, fraction: float) -> None:
        """Called before each step with the fraction of training that is done."""


class HasPenalty(ABC):
    """Training adds the model's `penalty`, a number that its weights alone make, to the loss that it minimizes."""

    @abstractmethod
    def penalty(self) -> Float[Tensor, ""]: ...


class AnswersNumbers(ABC):
    """The model's answer is a number, and class k stands for the integer k: the nearest class is the answer.

    Logits of class k are -`sharpness` times the squared distance to k. Training minimizes the `integer_loss` of the
    number (`lengthwise.ops.integer_answers`), a cross-entropy of all integers: in one of the classes alone, a number
    below the least class would count as right where that class is.
    """

    @property
    @abstractmethod
    def sharpness(self) -> float: ...

    @abstractmethod
    def numbers(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """The number that answers each prefix."""


class QuantizesStates(ABC):
    """The model moves its states to the codes of `codebook`, which training fills once states have settled."""

    codebook: Codebook

    @property
    @abstractmethod
    def quantize_after(self) -> float:
        """The fraction of training after which codes are sought."""


def check_ids(inputs: object) -> None:
    """Raise a ValueError unless these are strings of ids, a tensor of int64; an exported graph has none yet."""
    if torch.compiler.is_exporting():
        return
    if not isinstance(inputs, Tensor):
        raise ValueError(
            f"inputs: expected a tensor of ids of symbols [B, T], got a {type(inputs).__name__}; "
            "torch.as_tensor(ids) makes one"
        )
    if inputs.ndim != 2 or inputs.dtype != torch.int64:
        raise ValueError(
            f"inputs: expected ids of symbols [B, T], torch.int64, got {list(inputs.shape)} of {inputs.dtype}; "
            "ids[None] is a batch of one string, and ids.long() has whole numbers of that type"
        )
    if not len(inputs):
        raise ValueError("inputs: expected at least 1 string, got none")
    if not inputs.shape[1]:
        raise ValueError("length: expected at least 1 symbol, got 0; a string must not be empty")


def check_symbols(inputs: Int64[Tensor, "B T"], num_symbols: int, *, accepts_pads: bool) -> None:
    """Raise a ValueError unless these are strings of symbols 0 ... num_symbols - 1, or of pads where accepted.

    Nothing is checked where a graph is exported: it has no numbers to look at.
    """
    if torch.compiler.is_exporting():
        return
    check_ids(inputs)
    lowest = PAD if accepts_pads else 0
    if inputs.device.type not in READS_AT_ONCE:
        expected = f"inputs: expected symbol ids in {lowest}..{num_symbols - 1}, got others"
        on_device_assert((lowest <= inputs) & (inputs < num_symbols), expected)
    elif inputs.numel() and not lowest <= int(inputs.min()) <= int(inputs.max()) < num_symbols:
        or_pad = f" or the pad {PAD}" if accepts_pads else ""
        way_out = "encode strings with the model's own task"
        if inputs.min() == PAD and not accepts_pads and inputs.max() < num_symbols:
            way_out = f"{PAD} is the pad, in which shorter strings of a batch end; take a model that reads pads"
        raise ValueError(
            f"inputs: expected symbol ids in 0..{num_symbols - 1}{or_pad}, got ids in "
            f"{int(inputs.min())}..{int(inputs.max())}; {way_out}"
        )
