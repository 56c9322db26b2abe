"""Abilities that only some models have: classes that a model inherits before `SequenceModel`."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from jaxtyping import Float, Int64
from torch import Generator, Tensor, nn

from lengthwise.devices import SYNCHRONOUS_DEVICES, on_device_assert
from lengthwise.layers.codebook import Codebook
from lengthwise.models.checks import check_symbols
from lengthwise.ops.intervals import Intervals
from lengthwise.ops.tree import Observer, Perturbation
from lengthwise.validation import type_in_words

# `Self` would be simpler, but beartype, which checks shapes, rejects it in methods that are decorated one by one.
Changed = TypeVar("Changed")


def changed_copy(model: Changed, **attributes: Any) -> Changed:
    """Return a copy of a model with the given values of some attributes; the copy shares all weights with the model."""
    other = copy.copy(model)
    for name, value in attributes.items():
        setattr(other, name, value)
    return other


class AcceptsPads:
    """A model whose inputs may contain the pad `PAD`, which means "no symbol", anywhere in a string."""

    @property
    def pad_block(self) -> int:
        """Return the number of pads that training inserts as one block; it is above 1 if the model reads chunks."""
        return 1

    def check_inputs(self, inputs: Int64[Tensor, "B T"], num_symbols: int) -> None:
        """Raise a ValueError unless the inputs are strings of symbols 0 ... num_symbols - 1 and pads."""
        check_symbols(inputs, num_symbols, accepts_pads=True)


class AcceptsNoise:
    """A model whose hidden states may be changed in training, for example by added noise.

    The model applies the function `self.perturb` to its hidden states, unless the function is None.
    """

    perturb: Perturbation | None = None

    def perturbed(self: Changed, perturb: Perturbation) -> Changed:
        """Return a copy of this model that applies `perturb` to its hidden states; the copy shares all parameters."""
        return changed_copy(self, perturb=perturb)


class ShowsNodes:
    """A model whose tree nodes can be observed in training.

    `last_states` passes the states of the nodes to the function `self.observe`, unless the function is None.
    """

    observe: Observer | None = None

    def observed(self: Changed, observe: Observer) -> Changed:
        """Return a copy of this model that passes node states to `observe`; the copy shares all parameters."""
        return changed_copy(self, observe=observe)


class DrawsInTraining:
    """A model that may draw random numbers in training, from `self.generator`, unless the generator is None."""

    generator: Generator | None = None

    def drawing(self: Changed, generator: Generator) -> Changed:
        """Return a copy of this model that draws random numbers from `generator`; the copy shares all parameters."""
        return changed_copy(self, generator=generator)


class AcceptsVectors:
    """A model that can read vectors. If made with `input_dim` instead of `vocab_size`, it reads [B, T, input_dim]."""

    def check_vectors(self, inputs: Float[Tensor, "B T V"], input_dim: int) -> None:
        """Raise a ValueError unless the inputs are sequences of vectors of `input_dim` finite numbers."""
        if not isinstance(inputs, Tensor):
            raise ValueError(
                f"inputs: expected a tensor of vectors [B, T, {input_dim}], got {type_in_words(inputs)}; "
                "torch.as_tensor(vectors) makes one"
            )
        if inputs.ndim != 3 or inputs.shape[2] != input_dim or not inputs.shape[0] * inputs.shape[1]:
            raise ValueError(
                f"inputs: expected shape [B, T, {input_dim}] with B and T of at least 1, got {list(inputs.shape)}; "
                "give one or more sequences of such vectors"
            )
        if inputs.dtype != (own := next(self.parameters()).dtype):  # type: ignore[attr-defined]
            raise ValueError(f"inputs: expected the model's dtype {own}, got {inputs.dtype}; call inputs.to({own})")
        # If the host looked at the numbers, it would have to wait for the device. So the device checks them.
        if inputs.device.type not in SYNCHRONOUS_DEVICES:
            on_device_assert(
                inputs.isfinite(), "inputs: expected finite numbers, got NaN or infinity; correct these vectors"
            )
        elif not inputs.isfinite().all():
            raise ValueError("inputs: expected finite numbers, got NaN or infinity; correct these vectors")


class BoundsSteps(ABC):
    """A recurrent model that can compute bounds on its next states from intervals that contain the previous states.

    Proofs use these bounds, and training can use them to make errors of states shrink from step to step.
    """

    @abstractmethod
    def bounds_after(self, states: Intervals, token: Int64[Tensor, "*N"]) -> Intervals:
        """Return intervals that contain the states after a symbol, given intervals that contain the states before."""


class BoundedReceptiveField(ABC):
    """A model that can have a bounded receptive field: only the last few symbols then determine its answer.

    The answer does not depend on the number of symbols before them, so ``last(inputs)`` equals
    ``last(inputs[:, -receptive_field:])`` up to rounding.
    """

    @property
    @abstractmethod
    def receptive_field(self) -> int | None:
        """Return the number of last symbols on which an answer depends; None means all symbols."""


class HoldsParts(ABC):
    """A model that wraps the modules of a user. The modules may be trained or replaced after they were wrapped."""

    @abstractmethod
    def check_parts(self) -> None:
        """Raise a ValueError unless the modules fit together and the answer to a prefix depends only on the prefix."""

    def reset_parameters(self, generator: Generator) -> None:
        """Raise a ValueError, because a wrapped net keeps the weights of the user's modules."""
        raise ValueError(
            "model: expected a model that initializes its weights, got a wrapped net; initialize the modules "
            "before you wrap them"
        )


class ReadsContinuations(ABC):
    """A model that reads a string once, and then answers continuations of each prefix of this string."""

    @abstractmethod
    def continued_logits(self, inputs: Int64[Tensor, "B T"], tails: Int64[Tensor, "W S"]) -> Float[Tensor, "B P W S Y"]:
        """Append each tail to each string's prefixes of 1 ... P symbols; return the logits at the tail's symbols.

        Strings have T symbols, tails have S symbols, and P is T - S. The logits equal the logits of ``forward`` for the
        prefix followed by the tail, up to rounding (`lengthwise.evaluation.continuations`).
        """


class AnswersUpTo(ABC):
    """A model that can be exported for strings up to a given length, although its computation depends on the length."""

    @abstractmethod
    def forward_bounded(self, inputs: Int64[Tensor, "B T"], max_length: int) -> Float[Tensor, "B T Y"]:
        """Return the logits of `forward` for lengths up to `max_length`; the operations do not depend on the length."""


class HasHiddenMatrices(ABC):
    """A model that lists its weight matrices between hidden states; the optimizer `"muon"` updates these matrices."""

    @property
    @abstractmethod
    def hidden_matrices(self) -> Sequence[nn.Parameter]: ...


class FollowsTraining(ABC):
    """A model that changes during training, for example by a falling temperature."""

    @abstractmethod
    def set_progress(self, fraction: float) -> None:
        """Prepare the model for the next step, given the fraction of training that is done; called before each step."""


class HasPenalty(ABC):
    """A model with a `penalty` that training adds to the loss: a number that depends only on the weights."""

    @abstractmethod
    def penalty(self) -> Float[Tensor, ""]: ...


class Distributions(NamedTuple):
    """Logits of the distributions in one parameter; after a reshape to `shape`, probabilities sum to 1 along `dim`."""

    logits: Tensor
    shape: tuple[int, ...]
    dim: int


class HoldsDistributions(ABC):
    """A model that some settings turn into a hidden Markov model.

    Its state is then a distribution, and its tables consist of distributions. `lengthwise.training.baum_welch` learns
    the tables.
    """

    @property
    @abstractmethod
    def distributions(self) -> Sequence[Distributions]:
        """Return the distributions in each parameter; raise a ValueError unless this is a hidden Markov model."""

    @abstractmethod
    def answer_log_probabilities(
        self, inputs: Int64[Tensor, "B T"], targets: Int64[Tensor, "B T"]
    ) -> Float[Tensor, "B T"]:
        """Return the log probability of each answer, given the symbols up to its position and the answers before it.

        Positions without a target have the value 0. The tables are exp(logits), and the logits have to be normalized.
        The gradient of the sum of all log probabilities with respect to the logits then contains expected counts.
        """


class AnswersNumbers(ABC):
    """A model that computes a number. Class k is the integer k, and the answer is the class nearest to the number.

    The logit of class k is -`sharpness` times the squared distance from k. Training minimizes the `integer_loss` of the
    number (`lengthwise.ops.integer_answers`), a cross-entropy over all integers. If the smallest class is the target, a
    cross-entropy over only the classes would reward numbers far below this class.
    """

    @property
    @abstractmethod
    def sharpness(self) -> float: ...

    @abstractmethod
    def numbers(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """Return the number that the model computes for each prefix; the answer is the class nearest to this number."""


class QuantizesStates(ABC):
    """A model that replaces its states by the nearest codes, the vectors in its `codebook` (`Codebook`)."""

    codebook: Codebook

    @property
    @abstractmethod
    def quantize_after(self) -> float:
        """Return the fraction of training steps after which training first searches for codes to fill the codebook."""
