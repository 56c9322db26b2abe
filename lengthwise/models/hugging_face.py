"""Wrappers for models of the library transformers. This module does not import the library."""

import copy
import inspect
import sys
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.devices import device_of
from lengthwise.layers.recurrent_layer import Topmost
from lengthwise.models.base import ModelConfig, RecurrentModel, SequenceModel, eval_mode
from lengthwise.models.capabilities import HoldsParts
from lengthwise.models.causality import find_dependence
from lengthwise.models.consistency import LENGTH, NUM_STRINGS, some_strings
from lengthwise.models.containers import check_bare, first_line

CACHE_NAMES = ("cache", "cache_params", "past_key_values")
"""Names that the cache has as an argument and in outputs, for all versions of the library and kinds of models."""

TOLERANCE = 1e-3
"""The largest difference, relative to the logits, between reading a string at once and token by token."""


class HuggingFaceConfig(ModelConfig):
    """A description that identifies a net in files. The net cannot be built again from it."""

    model_type: str
    num_parameters: int


def wrap_hugging_face(
    model: nn.Module,
    head: nn.Module | None = None,
    *,
    answers: Sequence[int] | None = None,
    tokens: Sequence[int] | None = None,
) -> "HuggingFaceModel":
    """Wrap a model of the library transformers as a model of this package, which returns logits at every position.

    If the model's cache has a fixed size (Mamba, Mamba-2 and similar models), the result is a recurrent model. Its
    state is the cache and the last hidden state. It reads symbol by symbol, and a machine can be extracted from it.

    If the cache grows, as with attention, the result can only read whole strings, and nothing can be proved about it.
    The same holds if the library cannot continue from the cache. This includes RWKV, whose code for one token mixes the
    strings of a batch (transformers 5.24).

    Args:
        model: for example a ``MambaModel`` or a ``MambaForCausalLM``; `certify` needs float32 or float64.
        head: maps the last hidden state [B, D] to logits [B, Y], in the model's number format.
        answers: instead of `head`, the tokens with which a causal language model answers, one for each class.
        tokens: the token of each symbol; by default, symbol v is token v.

    Raises:
        ValueError: both or neither of `head` and `answers` are given; the model returns no hidden states, or looks
            ahead; the head does not accept hidden states; or the cache is not the model's whole state.
    """
    if (head is None) == (answers is None):
        got = "neither" if head is None else "both"
        raise ValueError(f"head: expected either head or answers, got {got}; give one of them")
    check_bare("model", model)
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        raise ValueError(
            f"model: expected a model of transformers, which has a config, got a {type(model).__name__}; for a net of "
            "torch's own modules, call `wrap`"
        )
    # Hidden states come from the model without its language head, which `head` replaces.
    backbone: nn.Module = getattr(model, "base_model", model)
    for part in (model, backbone):
        if not hasattr(part.config, "vocab_size"):
            raise ValueError(
                "model: expected a model that reads tokens, with vocab_size in its config, got a "
                f"{type(part).__name__}; if it also reads other inputs, give the part that reads text"
            )
    if answers is not None:
        _check_tokens("answers", answers, _num_tokens(model))
        head = _AnswerTokens(_output_embeddings(model), answers)
    if not isinstance(head, nn.Module):
        raise ValueError(f"head: expected a module, got a {type(head).__name__}; nn.Linear is one")
    check_bare("head", head)
    count = _num_tokens(backbone)
    given: Sequence[int] = range(count) if tokens is None else tokens
    _check_tokens("tokens", given, count)
    return _wrapped(backbone, head, list(given))


def _wrapped(backbone: nn.Module, head: nn.Module, ids: list[int]) -> "HuggingFaceModel":
    """Return a recurrent model if reading can continue from the model's cache, or else one that reads whole strings."""
    with eval_mode(backbone), eval_mode(head):
        hidden = _hidden_of(backbone, ids[0])
        _check_head(backbone, head, hidden)
        cache = _cache_of(backbone, ids[0])
    wrapped = HuggingFaceModel(backbone, head, ids)
    # With 16 bits, rounding is too large to compare reading at once with reading token by token.
    if cache is not None and hidden.dtype.itemsize >= torch.float32.itemsize:
        recurrent = RecurrentHuggingFaceModel(backbone, head, ids, cache, hidden.shape[-1])
        if _reads_on(recurrent):
            wrapped = recurrent
    wrapped.check_parts()
    return wrapped


def _num_tokens(model: nn.Module) -> int:
    """Return the size of the vocabulary."""
    count = getattr(model.config, "vocab_size", None)
    if not isinstance(count, int):
        raise ValueError(
            f"model: expected a model that reads tokens, with config.vocab_size, got a {type(model).__name__}; wrap "
            "its language model, if it has one"
        )
    return count


def _check_tokens(name: str, tokens: Sequence[int], count: int) -> None:
    """Raise a ValueError unless `tokens` has at least one token and all are in the vocabulary."""
    if not isinstance(tokens, Sequence) or any(isinstance(t, bool) or not isinstance(t, Integral) for t in tokens):
        raise ValueError(f"{name}: expected a list of token ids, got {tokens!r}; give whole numbers")
    if not tokens:
        raise ValueError(f"{name}: expected at least one token, got none; give one for each class or symbol")
    if others := [token for token in tokens if not 0 <= token < count]:
        raise ValueError(f"{name}: expected tokens of the model, 0 to {count - 1:,}, got {others[0]}; give others")


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
            f"head: expected a module that takes hidden states [B, {width}] of {hidden.dtype}, got an error: "
            f"{first_line(problem)}; for Y classes, use for example nn.Linear({width}, Y)"
        ) from None
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != 3 or not logits.is_floating_point():
        got = f"shape {list(logits.shape)} for B=3" if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"head: expected logits [B, Y] of hidden states [B, {width}], got {got}; use for example "
            f"nn.Linear({width}, Y)"
        )


class HuggingFaceModel(HoldsParts, SequenceModel):
    """A model that reads whole strings, because its cache grows with the string."""

    name: ClassVar[str] = "hugging-face"
    fewer_symbols_hint: ClassVar[str] = "give tokens=, the tokens of the symbols, to wrap_hugging_face"
    Config = HuggingFaceConfig
    config: HuggingFaceConfig

    def __init__(self, backbone: nn.Module, head: nn.Module, tokens: list[int]) -> None:
        super().__init__()
        self.backbone = backbone
        self.readout = head
        self.num_symbols = len(tokens)
        self.register_buffer("tokens", torch.tensor(tokens, device=device_of(backbone)), persistent=False)
        self.config = HuggingFaceConfig(
            model_type=str(backbone.config.model_type),  # type: ignore[union-attr]
            num_parameters=sum(parameter.numel() for parameter in backbone.parameters()),
        )

    tokens: Tensor

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Raise a ValueError, because a wrapped net keeps the weights of the user's modules."""
        raise ValueError(
            "model: expected a model that draws its weights, got a wrapped net; initialize its own modules"
        )

    def check_parts(self) -> None:
        """Raise a ValueError if an answer depends on later symbols, as in an encoder, or on other strings."""
        strings = some_strings(NUM_STRINGS, min(LENGTH, _max_tokens(self.backbone)), self.num_symbols)
        with eval_mode(self):
            fault = find_dependence(self._hidden_and_logits, strings.to(device_of(self)), self.num_symbols)
        if fault is not None:
            raise ValueError(
                f"model: expected a model that reads forwards, got a {type(self.backbone).__name__}, whose answer to a "
                f"prefix {fault}; wrap a causal model, or one with is_decoder=True"
            )

    def _hidden_and_logits(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Z"]:
        """Return logits and hidden states together, because a head of zeros would hide dependences of hidden states."""
        hidden = self._hidden(inputs)
        return torch.cat([hidden, self._logits_of(hidden)], -1)

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self._logits_of(self._hidden(inputs))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        return self._hidden(inputs)[:, -1]

    def _logits_of(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B T Y"]:
        # The states are flattened into a batch, because a head may need two axes, as a softmax over axis 1 does.
        logits: Tensor = self.readout(hidden.flatten(0, 1))
        by_position: Tensor = logits.unflatten(0, hidden.shape[:2])
        return by_position

    def _hidden(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        self.check_inputs(inputs, self.num_symbols)
        try:
            hidden: Tensor = self.backbone(self.tokens[inputs], use_cache=False).last_hidden_state
        except (IndexError, RuntimeError) as problem:
            # If the length is legal, the error has another cause, for example a lack of memory.
            if isinstance(problem, RuntimeError) and inputs.shape[1] <= _max_tokens(self.backbone):
                raise
            raise ValueError(
                f"inputs: expected no more symbols than the model has positions, got {inputs.shape[1]:,} "
                f"({first_line(problem)}); give shorter strings"
            ) from None
        return hidden


def _max_tokens(backbone: nn.Module) -> int:
    """Return the number of positions in the model's settings; models without a table of positions have no limit."""
    count = getattr(backbone.config, "max_position_embeddings", None)
    return count if isinstance(count, int) and count > 0 else sys.maxsize


class RecurrentHuggingFaceModel(HuggingFaceModel, RecurrentModel):
    """A model whose cache has a fixed size: its state is the cache, followed by the last hidden state."""

    def __init__(self, backbone: nn.Module, head: nn.Module, tokens: list[int], cache: "_Cache", width: int) -> None:
        super().__init__(backbone, head, tokens)
        self.cache = cache
        self.sizes = [first.numel() for first in cache.first] + [width]
        # The head reads the end of the state, the last hidden state.
        self.readout = nn.Sequential(Topmost(width, copies=True), head)

    def check_parts(self) -> None:
        """Also raise a ValueError if reading token by token gives other answers than reading the string at once."""
        super().check_parts()
        _check_cache_is_the_state(self)

    def initial_state(self, batch_size: int) -> Float[Tensor, "B Z"]:
        first = [part.flatten().to(self.tokens.device) for part in self.cache.first]
        return torch.cat([*first, first[0].new_zeros(self.sizes[-1])]).expand(batch_size, -1)

    def step(
        self, token: Int64[Tensor, " B"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B Y"], Float[Tensor, "B Z"]]:
        self.check_step(token, state, self.num_symbols)
        # Only the read-out uses the last hidden state; the next step does not read it.
        *before, _ = state.split(self.sizes, 1)
        shaped = [
            part.reshape(len(token), *first.shape).clone()  # the model writes into its cache
            for part, first in zip(before, self.cache.first, strict=True)
        ]
        hidden, after = self.cache.read(self.backbone, self.tokens[token][:, None], shaped)
        state = torch.cat([*(part.flatten(1) for part in after), hidden[:, -1]], 1)
        return self.readout(state), state

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        if torch.is_grad_enabled():  # gradients do not pass through caches, because the library writes them in place
            return HuggingFaceModel.forward(self, inputs)
        return self._logits_of(torch.cat(list(self.states(inputs)), 1))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B Z"]:
        return RecurrentModel.last_state(self, inputs)


class _Entry(NamedTuple):
    """The location of a tensor in a cache: its layer, ``conv_states`` or ``recurrent_states``, and its key in them."""

    layer: int
    states: str
    number: int


class _Cache:
    """A ``DynamicCache`` whose layers all have convolutional and recurrent states, as a list of tensors.

    `first` contains the tensors before any token, which are zero.
    """

    def __init__(self, template: Any, argument: str) -> None:
        self.template, self.argument = template, argument
        self.entries = [
            _Entry(layer_number, states, number)
            for layer_number, layer in enumerate(template.layers)
            for states in ("conv_states", "recurrent_states")
            for number, tensor in getattr(layer, states).items()
            if tensor is not None
        ]
        self.first = [torch.zeros_like(self._tensors(template, entry)[entry.number][0]) for entry in self.entries]

    def read(
        self, backbone: nn.Module, tokens: Int64[Tensor, "B 1"], before: list[Tensor]
    ) -> tuple[Float[Tensor, "B 1 D"], list[Tensor]]:
        # The library writes into caches, so every call needs its own cache.
        cache = copy.deepcopy(self.template)
        for entry, tensor in zip(self.entries, before, strict=True):
            self._tensors(cache, entry)[entry.number] = tensor
        hidden = backbone(tokens, **{self.argument: cache}, use_cache=True).last_hidden_state
        return hidden, [self._tensors(cache, entry)[entry.number] for entry in self.entries]

    @staticmethod
    def _tensors(cache: Any, entry: _Entry) -> dict[int, Tensor]:
        tensors: dict[int, Tensor] = getattr(cache.layers[entry.layer], entry.states)
        return tensors


def _hidden_of(backbone: nn.Module, token: int) -> Float[Tensor, "1 1 D"]:
    """Return the hidden states for one token; raise a ValueError if the model needs more than tokens."""
    tokens = torch.full((1, 1), token, device=device_of(backbone))
    try:
        hidden = backbone(tokens, use_cache=False).last_hidden_state
        if not isinstance(hidden, Tensor) or hidden.shape[:2] != (1, 1):
            raise TypeError(f"last_hidden_state: {type(hidden).__name__} {list(getattr(hidden, 'shape', []))}")
    except Exception as problem:  # models of the library, or of its users, may raise anything
        raise ValueError(
            "model: expected a model of transformers that returns last_hidden_state [B, T, D] given only tokens, got a "
            f"{type(backbone).__name__} ({first_line(problem)}); wrap a language model such as MambaModel or GPT2Model"
        ) from None
    return hidden


def _cache_of(backbone: nn.Module, token: int) -> _Cache | None:
    """Return the cache after one token, or None if the cache grows with the string or cannot be made."""
    try:
        outputs = backbone(torch.full((1, 1), token, device=device_of(backbone)), use_cache=True)
    except Exception:  # the model can still read whole strings, because it has already run without a cache
        return None
    template = next((value for name in CACHE_NAMES if (value := getattr(outputs, name, None)) is not None), None)
    layers = getattr(template, "layers", ())
    # Layers of attention keep keys, which grow with the string.
    if not layers or not all(hasattr(layer, "recurrent_states") and not hasattr(layer, "keys") for layer in layers):
        return None
    parameters = inspect.signature(backbone.forward).parameters
    argument = next((name for name in CACHE_NAMES if name in parameters), None)
    return None if argument is None else _Cache(template, argument)


def _reads_on(model: RecurrentHuggingFaceModel) -> bool:
    """Return whether the library can continue from a cache for two more tokens, with a state of constant size."""
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
            f"model: expected a {model.config.model_type} whose cache is its whole state, got logits that differ by up "
            f"to {float((by_step - at_once).abs().max()):.2g} between reading token by token and at once"
        )


class _AnswerTokens(nn.Module):
    """The logits of the tokens that are answers."""

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
            f"answers: expected a causal language model, got a {type(model).__name__}; give a head instead"
        )
    return embeddings
