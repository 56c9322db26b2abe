"""Wrapping any net of a user as a model that reads whole strings: a torch module or a function of token ids."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor, nn

from lengthwise.devices import device_of
from lengthwise.models.base import ModelConfig, SequenceModel
from lengthwise.models.capabilities import HoldsParts
from lengthwise.models.consistency import find_fault
from lengthwise.models.containers import check_bare, first_line
from lengthwise.models.set_answers import SetAnswers
from lengthwise.models.token_ids import MAX_STATED_LENGTH, MAX_TOKEN, TokenIds, check_tokens
from lengthwise.validation import check_one_given, truncate, type_in_words, whole_number

MAX_CLASSES = 1_000_000
"""The largest accepted number of classes or symbols. A larger number is probably a mistake."""


class WrappedModuleConfig(ModelConfig):
    """A description that identifies a wrapped net in files. It does not suffice to build the net again.

    `module` names the class of the module, or the function. The weights of a module are identified by their digest.
    Weights inside a function are not seen, so two functions with the same name have the same description.
    """

    module: str
    num_symbols: int
    num_classes: int | None = None
    answers: str = Field("", exclude_if=lambda answers: not answers)
    tokens: str = Field("", exclude_if=lambda tokens: not tokens)
    max_length: int | None = None


def wrap_module(
    module: Callable[[Tensor], Tensor],
    *,
    num_classes: int | None = None,
    answers: SetAnswers | None = None,
    num_symbols: int | None = None,
    tokens: Sequence[int] | None = None,
    begin: int | None = None,
    max_length: int | None = None,
) -> "WrappedModule":
    """Make a model of this package from a torch module or function that maps token ids [B, T] to logits [B, T, Y].

    The result can be measured, attacked and certified. The net always reads whole strings, so nothing is proved about
    it: the level is `refuted` or `tested`. For recurrent nets, use `wrap`, which allows proofs.

    The logits at a position must answer the prefix that ends there. Tests on a few strings check this during wrapping,
    and again before the net is attacked, certified or trained. Gradients with respect to later symbols must be exactly
    0. If later symbols change, logits may change only by rounding. The logits for a prefix must agree to 0.1 % of the
    largest logit, or to 0.001, whether the prefix is read alone or in a longer string.

    Args:
        module: maps ids, torch.int64, to logits. A certificate identifies a module by its class and weights, and a
            function by its name alone.
        num_classes: Y, the number of the task's answers; logit y belongs to ``task.classes[y]``.
        answers: instead of `num_classes`, the rule by which the net's outputs become a set of symbols.
        num_symbols: the number of the task's symbols, if symbol v is token v.
        tokens: instead of `num_symbols`, the token of each symbol.
        begin: an optional token that the module reads before each string. The logits at this token are left out.
        max_length: the largest length in symbols that the module reads. Longer strings are not tried, and nothing is
            claimed about them.

    Raises:
        ValueError: an argument is out of range, or the module returns no logits of the right shape, answers at random,
            or depends on later symbols, on other strings of the batch, or on the length.

    Example:
        >>> from lengthwise import attack, make_task
        >>> def parity_up_to_2(ids):
        ...     ones = ids.cumsum(1)
        ...     return torch.stack([ones % 2 == 0, (ones % 2 == 1) & (ones < 3)], 2).float()
        >>> result = attack(wrap_module(parity_up_to_2, num_classes=2, num_symbols=2), make_task("parity"))
        >>> "".join(result.string)
        'bbb'
    """
    _check_module(module)
    ids = _ids_of(num_symbols, tokens, begin, device_of(module) if isinstance(module, nn.Module) else "cpu")
    expected = "num_classes (the number of the task's answers) or answers (a SetAnswers)"
    check_one_given("num_classes", expected, num_classes, answers)
    if answers is not None and not isinstance(answers, SetAnswers):
        raise ValueError(f"answers: expected a SetAnswers, got {truncate(repr(answers))}; make one for the task")
    if max_length is not None:
        max_length = whole_number("max_length", max_length, 1, MAX_STATED_LENGTH)
    given = answers or whole_number("num_classes", num_classes, 1, MAX_CLASSES)
    model = WrappedModule(module, ids, given, max_length)
    model.check_parts()
    return model


def _check_module(module: object) -> None:
    """Raise a ValueError unless the object is a module or a function."""
    if not callable(module):
        raise ValueError(
            f"module: expected a torch module or a function of token ids, got {truncate(repr(module))}; give a module "
            "or a function"
        )
    owner = getattr(module, "__self__", None)
    if isinstance(owner, nn.Module):  # a certificate would not name its weights
        raise ValueError(
            f"module: expected a torch module, got a method of {type_in_words(owner)}; give the module itself"
        )
    check_bare("module", module)


def _ids_of(
    num_symbols: int | None, tokens: Sequence[int] | None, begin: int | None, device: torch.device | str
) -> TokenIds:
    """Return the token ids of symbols, given either their number or their tokens."""
    expected = "num_symbols (the number of the task's symbols) or tokens (the token of each symbol)"
    check_one_given("num_symbols", expected, num_symbols, tokens)
    if tokens is None:
        tokens = range(whole_number("num_symbols", num_symbols, 1, MAX_CLASSES))
    if begin is not None:
        begin = whole_number("begin", begin, 0, MAX_TOKEN)
    return TokenIds(check_tokens("tokens", tokens, MAX_TOKEN + 1), begin, device)


class WrappedModule(HoldsParts, SequenceModel):
    """A model that `wrap_module` makes; it runs a user's module or function on whole strings."""

    name: ClassVar[str] = "wrapped-module"
    fewer_symbols_hint: ClassVar[str] = "pass num_symbols= or tokens= (the token of each symbol) to wrap_module"
    Config = WrappedModuleConfig
    config: WrappedModuleConfig

    def __init__(
        self, module: Callable[[Tensor], Tensor], ids: TokenIds, answers: int | SetAnswers, max_length: int | None
    ) -> None:
        super().__init__()
        self.module = module
        self.ids = ids
        self.readout = answers.to(ids.tokens.device) if isinstance(answers, SetAnswers) else nn.Identity()
        self.num_symbols = ids.num_symbols
        self.config = WrappedModuleConfig(
            module=_name_of(module),
            num_symbols=ids.num_symbols,
            num_classes=answers if isinstance(answers, int) else None,
            answers=answers.describe() if isinstance(answers, SetAnswers) else "",
            tokens=ids.describe(),
            max_length=max_length,
        )

    @property
    def max_length(self) -> int | None:
        """Return the `max_length` that `wrap_module` was given; None means any length."""
        return self.config.max_length

    def check_parts(self) -> None:
        """Raise a ValueError if an answer depends on later symbols, other strings, the length or chance."""
        if _name_of(self.module) != self.config.module:
            raise ValueError(
                "model: expected the same module as when the model was wrapped, got another module; call wrap_module "
                "with the new module"
            )
        fault = find_fault(self._outputs, self, self.num_symbols, self.max_length)
        if fault is not None:
            raise ValueError(
                f"module: expected a causal net, got {self.config.module}, whose answer to a prefix "
                f"{fault}; let each position read only itself and earlier positions, and call .eval() on modules with "
                "dropout"
            )

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self.logits_of(self._outputs(inputs))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B O"]:
        return self._outputs(inputs)[:, -1]

    def _outputs(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T O"]:
        self.check_inputs(inputs, self.num_symbols)
        if self.max_length is not None and inputs.shape[1] > self.max_length:
            raise ValueError(
                f"inputs: expected at most {self.max_length:,} symbols, the max_length of the net, got "
                f"{inputs.shape[1]:,}; give shorter strings"
            )
        ids = self.ids(inputs)
        try:
            logits = self.module(ids)
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as problem:  # the module may be any user's code
            raise ValueError(
                f"module: expected a net that takes token ids [B, T], got an error for shape {list(ids.shape)} "
                f"({first_line(problem)}); if the net reads only shorter strings, give max_length"
            ) from problem
        size = self.config.num_classes
        is_tensor = isinstance(logits, Tensor) and logits.is_floating_point() and logits.ndim == 3
        if not is_tensor or logits.shape[:2] != ids.shape or logits.shape[2] != (size or logits.shape[2]):
            expected = f"[{ids.shape[0]}, {ids.shape[1]}, {size or 'Y'}]"
            got = f"{logits.dtype} {list(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
            raise ValueError(
                f"module: expected logits of shape {expected}, an answer to each prefix, for token ids "
                f"{list(ids.shape)}, got {got}; return a tensor of this shape"
            )
        return self.ids.without_begin(logits)


def _name_of(module: Any) -> str:
    """Return the name of a module's class, or of a function."""
    named = module if hasattr(module, "__qualname__") else type(module)
    return f"{named.__module__}.{named.__qualname__}"
