"""Models of the library transformers, which is not imported here, as models of ours."""

import copy
import inspect
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.devices import device_of
from lengthwise.layers.recurrent_layer import Topmost
from lengthwise.models.base import ModelConfig, RecurrentModel, SequenceModel, eval_mode
from lengthwise.models.consistency import NUM_STRINGS, some_strings

CACHE_NAMES = ("cache", "cache_params", "past_key_values")
"""What versions of the library and kinds of models call the argument."""

TOLERANCE = 1e-3
"""How far logits of a string read at once and token by token may be apart, relative to their size."""


class HuggingFaceConfig(ModelConfig):
    """Which model it is: it names a net in files, and does not rebuild one."""

    model_type: str
    num_parameters: int


def wrap_hugging_face(
    model: nn.Module,
    head: nn.Module | None = None,
    *,
    answers: Sequence[int] | None = None,
    tokens: Sequence[int] | None = None,
) -> "HuggingFaceModel":
    """A model of the library transformers as one of ours: logits of `head`, or of some tokens, at every position.

    Where the model's cache has a fixed size (Mamba, Mamba-2 and their kin) it is a recurrent model whose state is
    that cache and the last hidden state: it reads symbol by symbol, and a machine can be read off it. Where the cache
    grows, as with attention, strings are answered, and nothing can be proved; RWKV counts as such, whose one-token path
    mixes the strings of a batch (transformers 5.24).

    Args:
        model: for example a ``MambaModel`` or a ``MambaForCausalLM``, in float32 or float64.
        head: from the last hidden state [B, D] to logits [B, Y].
        answers: instead of `head`, the tokens that a causal language model answers with, one for each class.
        tokens: the token of each symbol; by default symbol v is token v.

    Raises:
        ValueError: both or neither of `head` and `answers` are given; the model returns no hidden states; its cache is
            not all of its state.
    """
    if (head is None) == (answers is None):
        got = "neither" if head is None else "both"
        raise ValueError(f"head: expected a module or the tokens that are answers, got {got}; give one of them")
    if not hasattr(model, "config"):
        raise ValueError(
            f"model: expected one of transformers, with a config, got a {type(model).__name__}; nets of torch's own "
            "are for `wrap`"
        )
    backbone: nn.Module = getattr(model, "base_model", model)
    for part in (model, backbone):
        if not hasattr(part.config, "vocab_size"):
            raise ValueError(
                f"model: expected one that reads tokens, with vocab_size in its config, got a {type(part).__name__}; "
                "of one that also reads other inputs, give the part that reads text"
            )
    if answers is not None:
        count = int(model.config.vocab_size)  # type: ignore[union-attr, arg-type]
        _check_tokens("answers", answers, count)
        head = _AnswerTokens(_output_embeddings(model), answers)
    if not isinstance(head, nn.Module):
        raise ValueError(f"head: expected a module, got a {type(head).__name__}; nn.Linear is one")
    count = int(backbone.config.vocab_size)  # type: ignore[union-attr, arg-type]
    ids = range(count) if tokens is None else tokens
    _check_tokens("tokens", ids, count)
    ids = list(ids)
    cache = _cache_of(backbone, ids[0])
    if cache is None:
        plain = HuggingFaceModel(backbone, head, ids)
        _check_reads_forwards(plain)
        return plain
    wrapped = RecurrentHuggingFaceModel(backbone, head, ids, cache)
    _check_cache_is_the_state(wrapped)
    return wrapped


def _check_tokens(name: str, tokens: Sequence[int], count: int) -> None:
    """Raise a ValueError unless there are some, all of the vocabulary."""
    if not isinstance(tokens, Sequence) or any(isinstance(t, bool) or not isinstance(t, Integral) for t in tokens):
        raise ValueError(f"{name}: expected a list of numbers of tokens, got {tokens!r}; give one")
    if not tokens:
        raise ValueError(f"{name}: expected at least one token, got none; name one for each")
    if others := [token for token in tokens if not 0 <= token < count]:
        raise ValueError(f"{name}: expected tokens of the model, 0 to {count - 1:,}, got {others[0]}; name others")


def _check_reads_forwards(model: "HuggingFaceModel") -> None:
    """Raise a ValueError where the answer to a prefix depends on what follows it, as that of an encoder does."""
    strings = some_strings(NUM_STRINGS, 2, model.num_symbols).to(device_of(model))
    with eval_mode(model):
        whole, alone = model(strings)[:, 0], model(strings[:, :1])[:, 0]
    if not torch.allclose(whole, alone, rtol=TOLERANCE, atol=TOLERANCE * float(whole.abs().max())):
        raise ValueError(
            f"model: expected one that reads forwards, got a {type(model.backbone).__name__}, whose answer to a prefix "
            "depends on what follows; wrap a causal model, or one with is_decoder=True"
        )


class HuggingFaceModel(SequenceModel):
    """A model whose cache grows with the string: it is run on whole strings."""

    name: ClassVar[str] = "hugging-face"
    way_to_fewer_symbols: ClassVar[str] = "give tokens=, those of the symbols, to wrap_hugging_face"
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
        """It has the weights that it was given: a ValueError."""
        raise ValueError("model: expected one that draws its weights, got a wrapped net; initialize its own modules")

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        logits: Tensor = self.readout(self._hidden(inputs))
        return logits

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        return self._hidden(inputs)[:, -1]

    def _hidden(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        self.check_inputs(inputs, self.num_symbols)
        try:
            hidden: Tensor = self.backbone(self.tokens[inputs], use_cache=False).last_hidden_state
        except IndexError as problem:
            raise ValueError(
                f"inputs: expected no more symbols than the model has positions, got {inputs.shape[1]:,} ({problem})"
            ) from None
        return hidden


class RecurrentHuggingFaceModel(HuggingFaceModel, RecurrentModel):
    """A model whose cache has a fixed size, which is its state, followed by the last hidden state."""

    def __init__(self, backbone: nn.Module, head: nn.Module, tokens: list[int], cache: "_Cache") -> None:
        super().__init__(backbone, head, tokens)
        self.cache = cache
        width = int(backbone.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.sizes = [first.numel() for first in cache.first] + [width]
        self.readout = nn.Sequential(Topmost(width, copies=True), head)

    def initial_state(self, batch_size: int) -> Float[Tensor, "B Z"]:
        first = [part.flatten().to(self.tokens.device) for part in self.cache.first]
        return torch.cat([*first, first[0].new_zeros(self.sizes[-1])]).expand(batch_size, -1)

    def step(
        self, token: Int64[Tensor, " B"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B Y"], Float[Tensor, "B Z"]]:
        self.check_step(token, state, self.num_symbols)
        *before, _ = state.split(self.sizes, 1)
        shaped = [
            part.reshape(len(token), *first.shape).clone()  # caches are changed in the model
            for part, first in zip(before, self.cache.first, strict=True)
        ]
        hidden, after = self.cache.read(self.backbone, self.tokens[token][:, None], shaped)
        state = torch.cat([*(part.flatten(1) for part in after), hidden[:, -1]], 1)
        return self.readout(state), state

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        if torch.is_grad_enabled():  # the library writes into caches in place, through which no gradient goes
            return HuggingFaceModel.forward(self, inputs)
        return RecurrentModel.forward(self, inputs)

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B Z"]:
        return RecurrentModel.last_state(self, inputs)


class _Entry(NamedTuple):
    """Where a tensor of a cache is: layer, ``conv_states`` or ``recurrent_states``, and its number there."""

    layer: int
    states: str
    number: int


class _Cache:
    """A ``DynamicCache`` all of whose layers have convolutional and recurrent states, as a list of tensors.

    `first`: those before any token, which are zero.
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
        cache = copy.deepcopy(self.template)
        for entry, tensor in zip(self.entries, before, strict=True):
            self._tensors(cache, entry)[entry.number] = tensor
        hidden = backbone(tokens, **{self.argument: cache}, use_cache=True).last_hidden_state
        return hidden, [self._tensors(cache, entry)[entry.number] for entry in self.entries]

    @staticmethod
    def _tensors(cache: Any, entry: _Entry) -> dict[int, Tensor]:
        tensors: dict[int, Tensor] = getattr(cache.layers[entry.layer], entry.states)
        return tensors


@torch.no_grad()
def _cache_of(backbone: nn.Module, token: int) -> _Cache | None:
    """The cache that a model returns after a token; None where it grows."""
    tokens = torch.full((1, 1), token, device=device_of(backbone))
    try:
        outputs = backbone(tokens, use_cache=True)
        outputs.last_hidden_state  # noqa: B018  # the attribute may be missing
    except (AttributeError, TypeError) as problem:
        raise ValueError(
            f"model: expected one of transformers that returns last_hidden_state, got a {type(backbone).__name__} "
            f"({problem})"
        ) from None
    template = next((value for name in CACHE_NAMES if (value := getattr(outputs, name, None)) is not None), None)
    layers = getattr(template, "layers", ())
    if not layers or not all(hasattr(layer, "recurrent_states") and not hasattr(layer, "keys") for layer in layers):
        return None
    parameters = inspect.signature(backbone.forward).parameters
    return _Cache(template, next(name for name in CACHE_NAMES if name in parameters))


@torch.no_grad()
def _check_cache_is_the_state(model: RecurrentHuggingFaceModel) -> None:
    """Raise a ValueError unless strings that are read at once and token by token have the same answers."""
    strings = torch.arange(4 * 9, device=device_of(model)).reshape(4, 9) * 7 // 3 % model.num_symbols
    with eval_mode(model):
        by_step, at_once = model(strings), model.readout(HuggingFaceModel._hidden(model, strings))
    if not torch.allclose(by_step, at_once, rtol=TOLERANCE, atol=TOLERANCE * float(at_once.abs().max())):
        raise ValueError(
            f"model: expected a {model.config.model_type} whose cache is all of its state, got other logits token by "
            f"token than at once, by up to {float((by_step - at_once).abs().max()):.2g}"
        )


class _AnswerTokens(nn.Module):
    """The logits of some tokens."""

    def __init__(self, logits: nn.Module, answers: Sequence[int]) -> None:
        super().__init__()
        self.logits = logits
        self.register_buffer("answers", torch.tensor(list(answers), device=device_of(logits)), persistent=False)

    answers: Tensor

    def forward(self, hidden: Float[Tensor, "*M D"]) -> Float[Tensor, "*M Y"]:
        logits: Tensor = self.logits(hidden)
        return logits[..., self.answers]


def _output_embeddings(model: nn.Module) -> nn.Module:
    """The linear map from the last hidden state to the logits of tokens."""
    get = getattr(model, "get_output_embeddings", None)
    embeddings = get() if callable(get) else None
    if not isinstance(embeddings, nn.Module):
        raise ValueError(
            f"answers: expected a causal language model, got a {type(model).__name__}; give a head instead"
        )
    return embeddings
