"""Wrappers for models of the library transformers. This module does not import the library."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor, nn

from lengthwise.devices import device_of
from lengthwise.layers.recurrent_layer import Topmost
from lengthwise.models.base import Ids, Logits, ModelConfig, RecurrentModel, SequenceModel, State, eval_mode
from lengthwise.models.capabilities import HoldsParts
from lengthwise.models.causality import is_close
from lengthwise.models.consistency import find_fault
from lengthwise.models.containers import check_bare, first_line
from lengthwise.models.fixed_cache import FixedCache, cache_of
from lengthwise.models.set_answers import SetAnswers, set_answers_in
from lengthwise.models.token_ids import MAX_STATED_LENGTH, TokenIds, check_tokens
from lengthwise.validation import check_one_given, type_in_words, whole_number

TOLERANCE = 1e-3
"""The largest difference, relative to the logits, between logits of a string read at once and read token by token."""


class HuggingFaceConfig(ModelConfig):
    """A description that identifies a net in files. It does not suffice to build the net again."""

    model_type: str
    num_parameters: int
    answers: str = Field("", exclude_if=lambda answers: not answers)
    tokens: str = Field("", exclude_if=lambda tokens: not tokens)
    max_length: int | None = Field(None, exclude_if=lambda length: length is None)


def wrap_hugging_face(
    model: nn.Module,
    head: nn.Module | None = None,
    *,
    answers: Sequence[int] | SetAnswers | None = None,
    tokens: Sequence[int] | None = None,
    begin: int | None = None,
    max_length: int | None = None,
) -> "HuggingFaceModel":
    """Wrap a model of the library transformers as a model of this package, which returns logits at every position.

    If the model's cache has a fixed size (Mamba, Mamba-2 and similar models), the result is a recurrent model. The
    state of this model is the cache and the last hidden state. The model reads symbol by symbol, and a machine can be
    extracted from it.

    If the cache grows, as with attention, the result can only read whole strings, and nothing can be proved about it.
    The result can also only read whole strings if `begin` is given, if weights have 16 bits, or if the library cannot
    continue from the cache. For example, the library cannot continue from the cache of RWKV, because the code of RWKV
    for one token mixes the strings of a batch (transformers 5.24). A model that reads whole strings may have a largest
    length. Longer strings are not tried, and nothing is claimed about them.

    Args:
        model: for example a ``MambaModel`` or a ``MambaForCausalLM``; `certify` needs float32 or float64.
        head: maps the last hidden state [B, D] to logits [B, Y], in the model's number format.
        answers: instead of `head`, the tokens with which a causal language model answers, one for each class. The
            argument can also be a `SetAnswers`, which turns scores into sets. The scores are the outputs of `head` or,
            without it, the logits of all tokens.
        tokens: the token of each symbol; by default, symbol v is token v.
        begin: the token that the model reads before each string, if it needs one.
        max_length: the largest length in symbols of a model that reads whole strings; by default the number of
            positions in the model's settings (``max_position_embeddings``), minus 1 with `begin`. Models without
            learned positions can read longer strings.

    Raises:
        ValueError: both or neither of `head` and a list of `answers` are given; an argument is out of range; the model
            is not from the library, returns no hidden states, or looks ahead; the head does not accept hidden states;
            or the cache is not the model's whole state.
    """
    backbone = _backbone_of(model)
    head = _head_of(model, backbone, head, answers)
    count = _num_tokens(backbone)
    if begin is not None:
        (begin,) = check_tokens("begin", [begin], count)
    given = check_tokens("tokens", range(count) if tokens is None else tokens, count)
    ids = TokenIds(given, begin, device_of(backbone))
    return _wrapped(backbone, head, ids, _checked_length(backbone, ids, max_length))


def _backbone_of(model: nn.Module) -> nn.Module:
    """Return the model without its language head; raise a ValueError for anything but a model that reads tokens."""
    check_bare("model", model)
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        raise ValueError(
            "model: expected a model with a config, from the package transformers, got "
            f"{type_in_words(model)}; for a net of torch's own modules, call `wrap` or `wrap_module`"
        )
    backbone: nn.Module = getattr(model, "base_model", model)
    for part in (model, backbone):
        if not hasattr(part.config, "vocab_size"):
            raise ValueError(
                "model: expected a model that reads tokens, with vocab_size in its config, got a "
                f"{type(part).__name__}; if the model also reads other inputs, give the part that reads text"
            )
    return backbone


def _head_of(
    model: nn.Module, backbone: nn.Module, head: nn.Module | None, answers: Sequence[int] | SetAnswers | None
) -> nn.Module:
    """Return a module that maps hidden states to logits; `wrap_hugging_face` describes the arguments."""
    sets = answers if isinstance(answers, SetAnswers) else None
    if sets is None:
        check_one_given("head", "head or answers", head, answers)
    if answers is not None and not isinstance(answers, SetAnswers):
        head = _AnswerTokens(_output_embeddings(model), check_tokens("answers", answers, _num_tokens(model)))
    elif head is None:
        head = _output_embeddings(model)
        _check_language_head(model, backbone, head)
    if not isinstance(head, nn.Module):
        raise ValueError(f"head: expected a module, got {type_in_words(head)}; nn.Linear is one")
    check_bare("head", head)
    return head if sets is None else nn.Sequential(head, sets.to(device_of(backbone)))


def _wrapped(backbone: nn.Module, head: nn.Module, ids: TokenIds, max_length: int | None) -> "HuggingFaceModel":
    """Return a recurrent model if reading can continue from the model's cache, or else one that reads whole strings."""
    first = ids.listed[0]
    with eval_mode(backbone), eval_mode(head):
        hidden = _hidden_of(backbone, first)
        _check_head(backbone, head, hidden)
        cache = cache_of(backbone, first) if ids.begin is None else None
    wrapped = HuggingFaceModel(backbone, head, ids, max_length)
    # With 16 bits, rounding is too large to compare reading at once with reading token by token.
    if cache is not None and hidden.dtype.itemsize >= torch.float32.itemsize:
        recurrent = RecurrentHuggingFaceModel(backbone, head, ids, cache, hidden.shape[-1])
        if _reads_on(recurrent):
            wrapped = recurrent
    wrapped.check_parts()
    return wrapped


def _checked_length(backbone: nn.Module, ids: TokenIds, max_length: int | None) -> int | None:
    """Return the largest length in symbols; raise a ValueError if the model cannot read strings of the given length."""
    positions = getattr(backbone.config, "max_position_embeddings", None)
    known = positions - ids.num_before if isinstance(positions, int) and positions > ids.num_before else None
    if max_length is None:
        return known
    max_length = whole_number("max_length", max_length, 1, MAX_STATED_LENGTH)
    if known is not None and max_length > known:
        longest = torch.zeros(1, max_length, dtype=torch.int64, device=device_of(backbone))
        try:
            with eval_mode(backbone):
                backbone(ids(longest), use_cache=False)
        except (IndexError, RuntimeError) as problem:
            raise ValueError(
                f"max_length: expected at most {known:,} symbols, because the {type(backbone).__name__} has no more "
                f"positions, got {max_length:,} ({first_line(problem)}); give a smaller max_length"
            ) from None
    return max_length


@torch.no_grad()
def _check_language_head(model: nn.Module, backbone: nn.Module, head: nn.Module) -> None:
    """Raise a ValueError if a model changes the logits of its head, for example by a cap.

    The wrapped net has logits without this change, so a threshold of `SetAnswers` could give other sets.
    """
    tokens = torch.arange(2, device=device_of(model))[None] % _num_tokens(model)
    with eval_mode(model):
        try:
            logits = model(tokens, use_cache=False).logits
            own = head(backbone(tokens, use_cache=False).last_hidden_state)
        except Exception as problem:  # models of the library, or of its users, may raise anything
            raise ValueError(
                f"model: expected a causal language model that returns logits, got {type_in_words(model)} "
                f"({first_line(problem)}); pass a head that computes logits from hidden states"
            ) from None
    # A cap hardly changes the small logits of two tokens, so the settings are also checked.
    cap = getattr(model.config, "final_logit_softcapping", None)
    if cap is not None or logits.shape != own.shape or not is_close(own, logits):
        raise ValueError(
            "model: expected a model that returns the logits of its last linear map unchanged, got a "
            f"{type(model).__name__}, which changes these logits; give a head that computes logits from hidden states"
        )


def _num_tokens(model: nn.Module) -> int:
    """Return the size of the vocabulary."""
    count = getattr(model.config, "vocab_size", None)
    if not isinstance(count, int):
        raise ValueError(
            f"model: expected a model that reads tokens, with config.vocab_size, got {type_in_words(model)}; wrap "
            "the language model inside this model, if there is one"
        )
    return count


def _check_head(backbone: nn.Module, head: nn.Module, hidden: Float[Tensor, "1 1 D"]) -> None:
    """Raise a ValueError unless the head makes logits from the model's hidden states."""
    width = hidden.shape[-1]
    try:
        logits = head(hidden[:, 0].repeat(3, 1))
    except Exception as problem:  # the head may be any user's code
        dtypes = {weight.dtype for weight in head.parameters() if weight.is_floating_point()}
        if dtypes and hidden.dtype not in dtypes:
            raise ValueError(
                f"head: expected weights of {hidden.dtype}, like the hidden states of the {type(backbone).__name__}, "
                f"got {min(map(str, dtypes))}; make both float32, by model.float() and head.float()"
            ) from None
        raise ValueError(
            f"head: expected a module that takes hidden states [B, {width}] of {hidden.dtype}, got an error "
            f"({first_line(problem)}); for Y classes, use for example nn.Linear({width}, Y)"
        ) from None
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != 3 or not logits.is_floating_point():
        got = f"shape {list(logits.shape)} for B=3" if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"head: expected logits [B, Y] from hidden states [B, {width}], got {got}; use for example "
            f"nn.Linear({width}, Y)"
        )


class HuggingFaceModel(HoldsParts, SequenceModel):
    """A model of the library transformers that reads whole strings, for example because its cache grows."""

    name: ClassVar[str] = "hugging-face"
    fewer_symbols_hint: ClassVar[str] = "pass tokens=, the token of each symbol, to wrap_hugging_face"
    Config = HuggingFaceConfig
    config: HuggingFaceConfig

    def __init__(self, backbone: nn.Module, head: nn.Module, ids: TokenIds, max_length: int | None) -> None:
        super().__init__()
        self.backbone = backbone
        self.readout = head
        self.ids = ids
        self.num_symbols = ids.num_symbols
        sets = set_answers_in(head)
        self.config = HuggingFaceConfig(
            model_type=str(backbone.config.model_type),  # type: ignore[union-attr]
            num_parameters=sum(parameter.numel() for parameter in backbone.parameters()),
            answers="" if sets is None else sets.describe(),
            tokens=ids.describe(),
            max_length=max_length,
        )

    @property
    def max_length(self) -> int | None:
        """Return the largest length in symbols, set by the user or by the model's positions; None means any length."""
        return self.config.max_length

    def check_parts(self) -> None:
        """Raise a ValueError if an answer depends on other strings or, as in an encoder, on later symbols."""
        fault = find_fault(self._hidden_and_logits, self, self.num_symbols, self.max_length)
        if fault is not None:
            raise ValueError(
                f"model: expected a causal model, got {type_in_words(self.backbone)}, whose answer to a prefix "
                f"{fault}; wrap a causal model (some need is_decoder=True) that draws nothing at random"
            )

    def _hidden_and_logits(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Z"]:
        """Return hidden states and logits together, because a head of zeros would hide dependences of hidden states."""
        hidden = self._hidden(inputs)
        return torch.cat([hidden, self._logits_of(hidden)], -1)

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self._logits_of(self._hidden(inputs))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        return self._hidden(inputs)[:, -1]

    def _logits_of(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B T Y"]:
        # The states are flattened into a batch, because a head may need two axes, as a softmax over axis 1 does.
        return torch.unflatten(self.logits_of(hidden.flatten(0, 1)), 0, hidden.shape[:2])

    def _hidden(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        self.check_inputs(inputs, self.num_symbols)
        if self.max_length is not None and inputs.shape[1] > self.max_length:
            raise ValueError(
                f"inputs: expected at most {self.max_length:,} symbols, the max_length of the model, got "
                f"{inputs.shape[1]:,}; give shorter strings, or a larger max_length to wrap_hugging_face"
            )
        try:
            hidden: Tensor = self.backbone(self.ids(inputs), use_cache=False).last_hidden_state
        except IndexError as problem:  # a table of positions that the settings do not name
            raise ValueError(
                f"inputs: expected no more symbols than the model has positions, got {inputs.shape[1]:,} "
                f"({first_line(problem)}); give shorter strings"
            ) from None
        return self.ids.without_begin(hidden)


class RecurrentHuggingFaceModel(HuggingFaceModel, RecurrentModel):
    """A model whose cache has a fixed size: its state is the cache, followed by the last hidden state."""

    def __init__(self, backbone: nn.Module, head: nn.Module, ids: TokenIds, cache: FixedCache, width: int) -> None:
        super().__init__(backbone, head, ids, None)
        self.cache = cache
        self.sizes = [first.numel() for first in cache.first] + [width]
        # The head reads the end of the state, the last hidden state.
        self.readout = nn.Sequential(Topmost(width, copies=True), head)

    def check_parts(self) -> None:
        """Run the checks of `HuggingFaceModel`; also raise a ValueError if reading token by token changes an answer."""
        super().check_parts()
        _check_cache_is_the_state(self)

    def initial_state(self, batch_size: int) -> Float[Tensor, "B Z"]:
        first = [part.flatten().to(self.ids.tokens.device) for part in self.cache.first]
        return torch.cat([*first, first[0].new_zeros(self.sizes[-1])]).expand(batch_size, -1)

    def step(self, token: Ids, state: State) -> tuple[Logits, State]:
        self.check_step(token, state, self.num_symbols)
        # Only the read-out uses the last hidden state; the next step does not read it.
        *before, _ = state.split(self.sizes, 1)
        shaped = [
            part.reshape(len(token), *first.shape).clone()  # the model writes into its cache
            for part, first in zip(before, self.cache.first, strict=True)
        ]
        hidden, after = self.cache.read(self.backbone, self.ids.tokens[token][:, None], shaped)
        state = torch.cat([*(part.flatten(1) for part in after), hidden[:, -1]], 1)
        return self.readout(state), state

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        if torch.is_grad_enabled():  # gradients do not pass through caches, because the library writes them in place
            return HuggingFaceModel.forward(self, inputs)
        return self._logits_of(torch.cat(list(self.states(inputs)), 1))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B Z"]:
        return RecurrentModel.last_state(self, inputs)


def _hidden_of(backbone: nn.Module, token: int) -> Float[Tensor, "1 1 D"]:
    """Return the hidden states for one token; raise a ValueError unless the model computes them from tokens alone."""
    tokens = torch.full((1, 1), token, device=device_of(backbone))
    try:
        hidden = backbone(tokens, use_cache=False).last_hidden_state
        if not isinstance(hidden, Tensor) or hidden.shape[:2] != (1, 1):
            raise TypeError(f"last_hidden_state: {type(hidden).__name__} {list(getattr(hidden, 'shape', []))}")
    except Exception as problem:  # models of the library, or of its users, may raise anything
        raise ValueError(
            "model: expected a model from the package transformers that returns last_hidden_state [B, T, D] for tokens "
            f"alone, got {type_in_words(backbone)} ({first_line(problem)}); wrap a language model such as MambaModel "
            "or GPT2Model"
        ) from None
    return hidden


def _reads_on(model: RecurrentHuggingFaceModel) -> bool:
    """Return whether transformers can continue from a cache for two more tokens, with a state of constant size."""
    tokens = torch.zeros(2, dtype=torch.int64, device=device_of(model))
    with eval_mode(model):
        try:
            first = model.initial_state(2)
            _, second = model.step(tokens, first)
            _, third = model.step(tokens, second)
        except Exception:  # the type of the error depends on the kind of model and on the library's version
            return False
    return first.shape == second.shape == third.shape and first.dtype == second.dtype == third.dtype


@torch.no_grad()
def _check_cache_is_the_state(model: RecurrentHuggingFaceModel) -> None:
    """Raise a ValueError unless reading strings at once and token by token gives the same answers."""
    # The strings of the batch differ, because some models mix them when they read token by token.
    strings = torch.arange(4 * 9, device=device_of(model)).reshape(4, 9) * 7 // 3 % model.num_symbols
    with eval_mode(model):
        by_step, at_once = model(strings), HuggingFaceModel.forward(model, strings)
    limit = TOLERANCE * float(at_once.nan_to_num(0.0, 0.0, 0.0).abs().max())
    if not torch.allclose(by_step, at_once, rtol=TOLERANCE, atol=limit, equal_nan=True):
        raise ValueError(
            f"model: expected a {model.config.model_type} whose logits are equal if it reads a string at once or "
            "token by token (with its cache), got logits that differ by up to "
            f"{float((by_step - at_once).abs().max()):.2g}; write a module that returns logits, and call wrap_module "
            "on it"
        )


class _AnswerTokens(nn.Module):
    """A head that returns only the logits of the tokens that are answers."""

    def __init__(self, logits: nn.Module, answers: Sequence[int]) -> None:
        super().__init__()
        self.logits = logits
        self.register_buffer("answers", torch.tensor(list(answers), device=device_of(logits)), persistent=False)

    answers: Tensor

    def forward(self, hidden: Float[Tensor, "*M D"]) -> Float[Tensor, "*M Y"]:
        logits: Tensor = self.logits(hidden)
        return logits[..., self.answers]


def _output_embeddings(model: nn.Module) -> nn.Module:
    """Return the linear map from the last hidden state to the logits of tokens."""
    get = getattr(model, "get_output_embeddings", None)
    embeddings = get() if callable(get) else None
    if not isinstance(embeddings, nn.Module):
        raise ValueError(
            f"model: expected a model with output embeddings, which answers= needs, got {type_in_words(model)}; pass "
            "head=, a module that computes logits from hidden states"
        )
    return embeddings
