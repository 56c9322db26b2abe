"""Wrapping a user's own recurrent net of torch modules as a model."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor, nn

from lengthwise.devices import device_of, in_full_precision
from lengthwise.layers.gated_cells import gru_bounds, lstm_bounds, rnn_bounds
from lengthwise.layers.recurrent_layer import Topmost
from lengthwise.models.base import Ids, Logits, ModelConfig, RecurrentModel, State, eval_mode
from lengthwise.models.capabilities import BoundsSteps, HoldsParts
from lengthwise.models.containers import check_bare, first_line, unwrap_hint
from lengthwise.ops.intervals import Intervals
from lengthwise.validation import type_in_words, whole_number

MAX_SYMBOLS = 10_000_000
"""The largest accepted number of symbols. A larger number is probably a mistake."""

MAX_POSITIONS_PER_CHUNK = 1024
"""The largest number of symbols in a chunk. Long strings are read chunk by chunk."""

DEFAULT_EPSILON = 1e-5
"""The default epsilon of torch's norms."""

CORES: dict[type[nn.Module], Literal["rnn", "gru", "lstm"]] = {
    nn.RNN: "rnn",
    nn.RNNCell: "rnn",
    nn.GRU: "gru",
    nn.GRUCell: "gru",
    nn.LSTM: "lstm",
    nn.LSTMCell: "lstm",
}


class WrappedConfig(ModelConfig):
    """A description that identifies a wrapped net in files. It does not suffice to build the net again.

    `nonlinearity` is a setting of an `nn.RNN` or its cell, and weights do not determine it. `embedding` and `head`
    contain the names of the parts' classes, because nets with equal weights may have different parts. For a class that
    is not torch's own, the name includes its Python module.
    """

    core: Literal["rnn", "gru", "lstm"]
    hidden_size: int
    num_layers: int
    head: str
    nonlinearity: Literal["tanh", "relu"] = Field("tanh", exclude_if=lambda name: name == "tanh")
    embedding: str = Field("Embedding", exclude_if=lambda name: name == "Embedding")


def wrap(embedding: nn.Module, core: nn.Module, head: nn.Module, *, num_symbols: int | None = None) -> "WrappedRNN":
    """Wrap a net of torch's own modules as a recurrent model: ``head(core(embedding(symbols)))``.

    The result shares the weights of the modules. It can be used like the recurrent models of this package, for example
    in `certify` and `length_curve`. Its symbols and classes have the ids of the task: row v of the embedding is symbol
    v, and logit y is class y. The first state is zero.

    Args:
        embedding: maps ids [B, T] to features [B, T, E], each id by itself, as `nn.Embedding` does.
        core: an `nn.RNN`, `nn.GRU` or `nn.LSTM` that reads forwards, with any number of layers, or one of their cells.
        head: maps the last layer's hidden state [B, H] to logits [B, Y], for example an `nn.Linear`.
        num_symbols: the number of symbols, if `embedding` is not an `nn.Embedding`.

    Raises:
        ValueError: a part has a wrong type, the parts do not fit together, or `num_symbols` is missing or out of range.

    Example:
        >>> from lengthwise import certify, make_task
        >>> net = wrap(nn.Embedding(2, 8), nn.LSTM(8, 24), nn.Linear(24, 2))
        >>> certify(net, make_task("parity")).level
        'refuted'
    """
    for name, part in (("embedding", embedding), ("head", head)):
        if not isinstance(part, nn.Module):
            raise ValueError(f"{name}: expected a torch module, got {type(part).__name__}; give an nn.Module")
    _check_core(core)
    if isinstance(embedding, nn.Embedding):
        num_symbols = embedding.num_embeddings if num_symbols is None else num_symbols
        if embedding.max_norm is not None:
            raise ValueError(
                "embedding: expected an embedding without max_norm, which changes weights when they are read, got "
                f"max_norm={embedding.max_norm}; set it to None"
            )
    check_bare("embedding", embedding)
    check_bare("head", head)
    if num_symbols is None:
        raise ValueError(
            "num_symbols: expected the number of symbols, because the embedding is not an nn.Embedding but a "
            f"{type(embedding).__name__}, got none; pass num_symbols"
        )
    known = embedding.num_embeddings if isinstance(embedding, nn.Embedding) else MAX_SYMBOLS
    num_symbols = whole_number("num_symbols", num_symbols, 1, known)
    model = WrappedRNN(embedding, core, head, num_symbols)
    _check_parts(model)
    return model


def describe_parts(embedding: nn.Module, core: nn.Module, head: nn.Module) -> WrappedConfig:
    """Return a description of the three parts of a wrapped net."""
    return WrappedConfig(
        core=CORES[type(core)],
        hidden_size=int(core.hidden_size),  # type: ignore[arg-type]  # all of `CORES` have one
        num_layers=core.num_layers if isinstance(core, nn.RNNBase) else 1,
        head=", ".join(map(_name_of, chain_of(head))),
        nonlinearity=getattr(core, "nonlinearity", "tanh"),
        embedding=_name_of(embedding),
    )


class WrappedRNN(BoundsSteps, HoldsParts, RecurrentModel):
    """The model ``head(core(embedding(symbols)))`` with a recurrent core of torch, which `wrap` makes.

    The state of a string consists of the hidden states of all layers, and `head` reads the hidden state of the last
    layer. For an LSTM, the cell states of all layers come first.
    """

    name: ClassVar[str] = "wrapped"
    fewer_symbols_hint: ClassVar[str] = (
        "keep only the embeddings of the task's symbols: nn.Embedding.from_pretrained(embedding.weight[ids]), where "
        "ids lists the id of each symbol"
    )
    Config = WrappedConfig
    config: WrappedConfig
    readout: nn.Sequential

    def __init__(self, embedding: nn.Module, core: nn.Module, head: nn.Module, num_symbols: int) -> None:
        super().__init__()
        self.is_cell = not isinstance(core, nn.RNNBase)
        self.num_symbols = num_symbols
        self.config = describe_parts(embedding, core, head)
        size = self.config.hidden_size
        projected = core.proj_size if isinstance(core, nn.RNNBase) else 0
        self.widths = ([size] if self.config.core == "lstm" else []) + [projected or size]
        self.embedding, self.core = embedding, core
        # The head reads the end of the state, which is the hidden state of the last layer.
        self.readout = nn.Sequential(Topmost(projected or size, copies=True), head)

    @property
    def matches_config(self) -> bool:
        """Return whether the parts of the net still match its configuration; a user may have replaced a module."""
        return type(self.core) in CORES and describe_parts(self.embedding, self.core, self.readout[1]) == self.config

    def check_parts(self) -> None:
        """Raise a ValueError unless the parts match the configuration and fit together; any weights are accepted."""
        if not self.matches_config:
            way_out = unwrap_hint("core", self.core) or "call wrap with the new parts"
            raise ValueError(
                f"model: expected the same parts as when the model was wrapped, got other parts; {way_out}"
            )
        _check_core(self.core)
        _check_parts(self)

    def initial_state(self, batch_size: int) -> Float[Tensor, "B Z"]:
        like: Tensor = next(self.core.parameters())
        return like.new_zeros(batch_size, self.config.num_layers * sum(self.widths))

    def step(self, token: Ids, state: State) -> tuple[Logits, State]:
        self.check_step(token, state, self.num_symbols)
        _, after = self._read(self.embedding(token[:, None]), state)
        return self.readout(after), after

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        self.check_inputs(inputs, self.num_symbols)
        state, outputs = self.initial_state(len(inputs)), []
        for tokens in inputs.split(MAX_POSITIONS_PER_CHUNK, 1):
            features, state = self._read(self.embedding(tokens), state)
            outputs.append(features)
        # The states are flattened into a batch, because a user's head may need two axes.
        return torch.unflatten(self.logits_of(torch.cat(outputs, 1).flatten(0, 1)), 0, inputs.shape)

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B Z"]:
        self.check_inputs(inputs, self.num_symbols)
        state = self.initial_state(len(inputs))
        for tokens in inputs.split(MAX_POSITIONS_PER_CHUNK, 1):
            _, state = self._read(self.embedding(tokens), state)
        return state

    def states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B _ Z"]]:
        """Yield the states at every position, in chunks.

        LSTMs and cores with several layers run position by position, because torch returns the whole state only for the
        last position.
        """
        self.check_inputs(inputs, self.num_symbols)
        state = self.initial_state(len(inputs))
        # With a single layer and without cell states, the output at a position is the whole state.
        is_output = self.config.num_layers == 1 and self.config.core != "lstm"
        for tokens in inputs.split(MAX_POSITIONS_PER_CHUNK, 1):
            if is_output:
                outputs, state = self._read(self.embedding(tokens), state)
            else:
                by_position = []
                for token in self.embedding(tokens).split(1, 1):
                    _, state = self._read(token, state)
                    by_position.append(state)
                outputs = torch.stack(by_position, 1)
            yield outputs

    @in_full_precision
    def _read(
        self, features: Float[Tensor, "B T E"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B Z"]]:
        """Return the core's outputs at these positions, and the state after them."""
        # The first axis of our states is the string, and the first axis of torch's states is the layer.
        layers = self.config.num_layers
        before = [
            part.unflatten(1, (layers, -1)).transpose(0, 1).contiguous()
            for part in state.split([layers * width for width in self.widths], 1)
        ]
        outputs, after = (self._read_by_cell if self.is_cell else self._read_by_core)(features, before)
        return outputs, torch.cat([part.transpose(0, 1).flatten(1) for part in after], 1)

    def _read_by_core(
        self, features: Float[Tensor, "B T E"], before: list[Float[Tensor, "L B _"]]
    ) -> tuple[Float[Tensor, "B T H"], list[Float[Tensor, "L B _"]]]:
        hidden = before[0] if len(before) == 1 else tuple(reversed(before))  # torch expects the hidden state first
        is_batch_first = self.core.batch_first
        outputs, after = self.core(features if is_batch_first else features.transpose(0, 1), hidden)
        states = [after] if len(before) == 1 else [*reversed(after)]
        return outputs if is_batch_first else outputs.transpose(0, 1), states

    def _read_by_cell(
        self, features: Float[Tensor, "B T E"], before: list[Float[Tensor, "1 B _"]]
    ) -> tuple[Float[Tensor, "B T H"], list[Float[Tensor, "1 B _"]]]:
        latest, outputs = [part[0] for part in before], []
        for feature in features.unbind(1):
            after = self.core(feature, latest[0] if len(latest) == 1 else tuple(reversed(latest)))
            latest = [after] if len(latest) == 1 else [*reversed(after)]
            outputs.append(latest[-1])
        return torch.stack(outputs, 1), [part[None] for part in latest]

    def bounds_after(self, states: Intervals, token: Int64[Tensor, "*N"]) -> Intervals:
        """Return bounds on the next states; raise a ValueError for cores that are cells or have projections."""
        core = self.core
        if not isinstance(core, nn.RNNBase) or core.proj_size:
            raise ValueError(
                "model: expected an nn.RNN, nn.GRU or nn.LSTM without projections, because no other core has bounds, "
                f"got {'a cell' if self.is_cell else f'proj_size={core.proj_size}'}; wrap one of these three"
            )
        features = Intervals.around(self.embedding(token).to(states.low.dtype))
        size, layers = self.config.hidden_size, self.config.num_layers
        parts = states.split(size)
        contents, hidden = parts[:-layers], parts[-layers:]
        after: list[Intervals] = []
        for layer in range(layers):
            if contents:
                features, contents[layer] = lstm_bounds(core, layer, features, hidden[layer], contents[layer])
            else:
                features = (rnn_bounds if self.config.core == "rnn" else gru_bounds)(
                    core, layer, features, hidden[layer]
                )
            after.append(features)
        return Intervals.joined([*contents, *after])


def chain_of(head: nn.Module) -> list[nn.Module]:
    """Return the modules of a head in their order, including modules inside nested chains."""
    if type(head) is not nn.Sequential or not _is_as_in_torch(head):  # a subclass may compute something else
        return [head]
    return [part for inner in head for part in chain_of(inner)]


def _name_of(part: nn.Module) -> str:
    """Return the name of a part's class, and the epsilon of a norm if it differs from torch's default.

    The name of a class that is not torch's own contains dots. The prover and the checker do not accept such names.
    """
    if not _is_as_in_torch(part):
        return f"{type(part).__module__}.{type(part).__qualname__}"
    epsilon = getattr(part, "eps", DEFAULT_EPSILON)
    return type(part).__name__ + (f"(eps={epsilon})" if epsilon != DEFAULT_EPSILON else "")


def _is_as_in_torch(part: nn.Module) -> bool:
    """Return whether a part is of a class of torch itself, without hooks or a replaced `forward`."""
    is_torch = type(part) is getattr(nn, type(part).__name__, None)
    return is_torch and not (part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part))


def _check_core(core: nn.Module) -> None:
    if type(core) not in CORES:
        raise ValueError(
            f"core: expected an nn.RNN, nn.GRU, nn.LSTM or one of their cells, got {type_in_words(core)}; "
            + (
                unwrap_hint("core", core)
                or "for a net of another kind, write a class that inherits lengthwise.RecurrentModel (see "
                "docs/your-own-net.md)"
            )
        )
    if isinstance(core, nn.RNNBase) and core.bidirectional:
        raise ValueError(
            f"core: expected a core that reads forwards, got a bidirectional nn.{type(core).__name__}, whose answer to "
            "a prefix depends on what follows; train one with bidirectional=False"
        )


def _check_parts(model: WrappedRNN) -> None:
    """Raise a ValueError unless each part accepts the output of the part before it."""
    if len(dtypes := {weight.dtype for weight in model.parameters()}) > 1:
        got = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(f"model: expected parts of one dtype, got {got}; call .float() on each part")
    tokens = torch.arange(model.num_symbols, device=device_of(model))
    with eval_mode(model):
        # Each symbol is embedded alone, and with two sets of neighbors, on which its features must not depend.
        both = torch.stack([tokens, tokens.flip(0)])
        features = _run("embedding", "ids of symbols", model.embedding, both)
        apart = _run("embedding", "ids of symbols", model.embedding, both.reshape(-1, 1))
        if features.ndim != 3 or not torch.equal(features.flatten(0, 1), apart[:, 0]):
            raise ValueError(
                "embedding: expected features [B, T, E] from ids [B, T], computed for each symbol by itself, got "
                "features of another shape or features that depend on other symbols; give a module such as "
                "nn.Embedding"
            )
        width = int(model.core.input_size)  # type: ignore[arg-type]  # all of `CORES` have one
        if features.shape[2] != width:
            raise ValueError(
                f"core: expected input_size={features.shape[2]}, the width of the embedding, got {width}; change "
                "the core or the embedding"
            )
        logits = _run("head", "hidden states", model.readout, model.initial_state(3))
        if logits.ndim != 2 or len(logits) != 3:
            raise ValueError(
                f"head: expected logits [B, Y] from states [B, H], got shape {list(logits.shape)} for B=3; give a "
                "module such as nn.Linear"
            )


def _run(name: str, what: str, part: nn.Module, values: Tensor) -> Tensor:
    try:
        result = part(values)
    except Exception as problem:  # the part may be any user's code
        raise ValueError(
            f"{name}: expected a module that takes {what} of shape {list(values.shape)}, got an error "
            f"({first_line(problem)}); adapt the module to this input"
        ) from None
    if not isinstance(result, Tensor):
        got = type(result).__name__
        raise ValueError(
            f"{name}: expected a module that returns a tensor, got {got}; let its forward return one tensor"
        )
    return result
