"""The contract of a model, and how one is made from its name for a task's alphabet."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lengthwise.devices import Precision, computing_in, device_of
from lengthwise.models.capabilities import AcceptsVectors, check_ids, check_symbols
from lengthwise.models.containers import way_to_bare
from lengthwise.ops.tree import Tree
from lengthwise.randomness import generator_for
from lengthwise.registry import Registry, is_of_package
from lengthwise.validation import Description, validated

Inputs = Int64[Tensor, "B T"] | Float[Tensor, "B T V"]
"""Ids of symbols or, for models that accept vectors, the vectors."""


MAX_WIDTH = 1 << 18
MAX_LAYERS = 128
MAX_CONVOLUTION = 64
"""The maximal width of a short convolution, whose state is all inputs under it but one."""

MAX_PARAMETERS = 200_000_000
"""Training keeps five numbers a parameter (its gradient, two moments, an average): 4 GB in float32."""

Width = Annotated[int, Field(ge=1, le=MAX_WIDTH)]
"""A number of units: of a state, of a hidden layer."""

Depth = Annotated[int, Field(ge=1, le=MAX_LAYERS)]
"""A number of layers."""


class ModelConfig(Description):
    """A frozen, validated description of a model; unknown fields are refused, and fields that would do nothing.

    `used_with` names the fields that do something with some values of another field alone: each with that field and
    these values. With others they stay at their default: no two descriptions differ in what makes no difference.
    `other_effects` names the fields that change none of a new net's numbers, each with the effect that it has instead.
    """

    used_with: ClassVar[Mapping[str, tuple[str, Sequence[object]]]] = {}
    other_effects: ClassVar[Mapping[str, str]] = {}

    @property
    def takes_probes(self) -> bool:
        """Whether strings of up to 500 symbols are answered now and then while the model trains."""
        return True

    @classmethod
    def uses(cls, name: str, settings: Mapping[str, Any]) -> bool:
        """Whether there is such a field, and it does something with these settings of others, or their defaults.

        Example:
            >>> MODELS["mamba"].Config.uses("num_heads", {"version": 1})
            False
        """
        if name not in cls.used_with:
            return name in cls.model_fields
        other, values = cls.used_with[name]
        return settings.get(other, cls.model_fields[other].default) in values

    @model_validator(mode="after")
    def _all_is_used(self) -> "ModelConfig":
        settings = dict(self)
        for name, (other, values) in self.used_with.items():
            default = type(self).model_fields[name].default
            if settings[name] != default and not self.uses(name, settings):
                raise ValueError(
                    f"{name}: expected its default, {default!r}, with {other}={settings[other]!r}, where it does "
                    f"nothing, got {settings[name]!r}; leave it out or choose {other}={' or '.join(map(repr, values))}"
                )
        return self


def check_divides_width(name: str, value: int, d_model: int) -> None:
    """Raise a ValueError where a setting that has to divide the width does not."""
    if d_model % value:
        divisors = [n for n in range(1, d_model + 1) if d_model % n == 0]
        raise ValueError(f"{name}: expected a divisor of d_model={d_model}, got {value}; choose from {divisors}")


class SequenceModel(nn.Module, ABC):
    """A model that answers every prefix of a sequence of any length T >= 1.

    States that overflow raise nothing: from there on logits are not finite, which is a wrong answer in every measure.
    Built as ``Model(config, vocab_size=..., num_classes=..., generator=...)``, its parameters drawn from `generator`.
    Its answers are what the module `readout` makes of hidden states. `default_preset` names the recipe that trains it
    where none is chosen. What only some models can do is in the classes of `lengthwise.models.capabilities`, which a
    model inherits before this one.
    """

    name: ClassVar[str]
    Config: ClassVar[type[ModelConfig]] = ModelConfig
    default_preset: ClassVar[str] = "recurrent"
    config: ModelConfig = ModelConfig()
    readout: nn.Module
    precision: Precision = "float32"
    """What products of matrices are computed in while the model is measured (`eval_mode`); weights stay as they are."""

    def __init_subclass__(cls) -> None:
        """Until it is registered under a name, a class has its own."""
        if getattr(cls, "name", "") in ("", *(base.__name__ for base in cls.__mro__[1:])):
            cls.name = cls.__name__

    @property
    def max_length(self) -> int | None:
        """The length of the longest strings that it reads; longer ones are a ValueError. None: it reads any."""
        return None

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again."""

    @abstractmethod
    def forward(self, inputs: Inputs) -> Float[Tensor, "B T Y"]:
        """Logits at every position: position t answers the prefix that ends at t."""

    @abstractmethod
    def last_state(self, inputs: Inputs) -> Float[Tensor, "B D"]:
        """The hidden state that the answer for the whole string is read from, as cheaply as the model can."""

    def logits_at(self, inputs: Inputs, indices: Int64[Tensor, " B"]) -> Float[Tensor, "B Y"]:
        """The same numbers as ``forward(inputs)`` at one position of each row, as cheaply as the model can.

        `indices` may lie on the CPU, whatever the model's device: what depends on them needs no wait for it then.
        """
        logits: Tensor = self(inputs)
        return logits[torch.arange(len(indices), device=logits.device), indices.to(logits.device)]

    def last_states(
        self, batches: Sequence[Int64[Tensor, "_ _"] | Float[Tensor, "_ _ _"]]
    ) -> list[Float[Tensor, "_ D"]]:
        """`last_state` of several batches, each of its own size and length, as cheaply as the model can."""
        return [self.last_state(inputs) for inputs in batches]

    def check_inputs(self, inputs: Int64[Tensor, "B T"], num_symbols: int) -> None:
        """Raise a ValueError unless these are strings of the symbols 0 ... num_symbols - 1."""
        check_symbols(inputs, num_symbols, accepts_pads=False)

    def last(self, inputs: Inputs) -> Float[Tensor, "B Y"]:
        """The same numbers as ``forward(inputs)[:, -1]``, from `last_state`."""
        logits: Tensor = self.readout(self.last_state(inputs))
        return logits


class RecurrentModel(SequenceModel):
    """A model that reads a string symbol by symbol and keeps one state: ``step`` repeated gives ``forward``.

    Answers are what `readout` makes of that state. With ``state = initial_state(B)``, the logits of the t-th call
    ``logits, state = step(inputs[:, t], state)`` are ``forward(inputs)[:, t]``; memory does not grow with the length.
    """

    @abstractmethod
    def initial_state(self, batch_size: int) -> Float[Tensor, "B D"]:
        """The state before the first symbol."""

    @abstractmethod
    def step(
        self, token: Int64[Tensor, " B"], state: Float[Tensor, "B D"]
    ) -> tuple[Float[Tensor, "B Y"], Float[Tensor, "B D"]]:
        """Read one symbol of every string: the answers to the strings so far, and the next state."""

    def check_step(self, token: Int64[Tensor, " B"], state: Float[Tensor, "B D"], num_symbols: int) -> None:
        """Raise a ValueError unless these are symbols 0 ... num_symbols - 1, and the states of as many strings."""
        self.check_inputs(token[:, None], num_symbols)
        if torch.compiler.is_exporting():  # the graph is one for any number of strings
            return
        expected = self.initial_state(len(token)).shape
        if state.shape != expected:
            raise ValueError(
                f"state: expected shape {list(expected)}, got {list(state.shape)}; begin with "
                f"initial_state({len(token)})"
            )

    def states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B _ D"]]:
        """The states at every position, chunk by chunk; here one by one, by `step`."""
        check_ids(inputs)
        state = self.initial_state(len(inputs))
        for token in inputs.unbind(1):
            _, state = self.step(token, state)
            yield state[:, None]

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        logits: Tensor = self.readout(torch.cat(list(self.states(inputs)), 1))
        return logits

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        for states in self.states(inputs):
            last = states[:, -1]
        return last


class TreeModel(SequenceModel):
    """A model whose states are those of a tree: a leaf for each symbol, merged level by level."""

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """Leaves and layers, from which every state is computed."""


def check_is_model(model: object) -> None:
    """Raise a ValueError where something else is given for a model, a plain module of torch, say."""
    if not isinstance(model, SequenceModel):
        raise ValueError(
            f"model: expected a model of this package, got {type(model).__name__}; "
            + (way_to_bare("model", model) or "`lengthwise.wrap(embedding, core, head)` makes one of a net of your own")
        )


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Within it, the model is in evaluation mode, computes in its own precision, and nothing has a gradient.

    Afterwards each module is in the mode that it was in: some of a user's net may be meant to stay in evaluation mode.
    """
    modes = [(module, module.training) for module in model.modules()]
    precision = model.precision if isinstance(model, SequenceModel) else "float32"
    model.eval()
    try:
        with torch.no_grad(), computing_in(precision, device_of(model)):
            yield
    finally:
        for module, is_training in modes:
            module.training = is_training


def first_names(model: nn.Module) -> dict[str, str]:
    """Each parameter's first name by all its names: of tied weights, which are one parameter, there are several."""
    named = list(model.named_parameters(remove_duplicate=False))
    first = {parameter: name for name, parameter in reversed(named)}
    return {name: first[parameter] for name, parameter in named}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load a state dict, and with it the precision that its weights have."""
    dtype = next((tensor.dtype for tensor in weights.values() if tensor.is_floating_point()), None)
    model.to(dtype).load_state_dict(weights)


MODELS: Registry[type[SequenceModel]] = Registry("model", "lengthwise.models", base=SequenceModel, names_folders=True)


@runtime_checkable
class Alphabet(Protocol):
    """What a model needs to know about a task over symbols: its symbols and its answers."""

    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[str, ...]: ...


@runtime_checkable
class Vectors(Protocol):
    """What a model needs to know about a task whose inputs are vectors; its answers are single numbers."""

    @property
    def input_dim(self) -> int: ...


def make_model(name: str, task: Alphabet | Vectors, *, seed: int = 0, **config: Any) -> SequenceModel:
    """Make the model registered under `name` for a task's symbols and answers; problems are one ValueError.

    Its parameters are drawn from `seed`, as in a run of that seed.

    Example:
        >>> from lengthwise.tasks import make_task
        >>> model = make_model("regular-gpt", make_task("parity"), d_model=16, num_heads=2)
        >>> model.config.chunk_size
        2
    """
    model: type[Any] = MODELS[name]
    if not isinstance(task, Alphabet | Vectors):
        raise ValueError(f"task: expected a task, which has symbols and classes, got {task!r}; make one with make_task")
    return build_model(name, validated(model.Config, config, path="model"), task, seed)


def build_model(name: str, config: ModelConfig, task: Alphabet | Vectors, seed: int) -> SequenceModel:
    """`make_model` from a configuration that is validated already."""
    outline(name, config, task)
    model: type[Any] = MODELS[name]
    # Torch's parts draw numbers from its own generator, which are drawn again; what others draw from it is looked at.
    with torch.random.fork_rng(devices=[], enabled=is_of_package(model)):
        made: SequenceModel = model(config, **_sizes(model, task), generator=generator_for(seed, "parameters"))
    return made


def outline(name: str, config: ModelConfig, task: Alphabet | Vectors) -> SequenceModel:
    """The model's shapes without any numbers: its parameters are on torch's device "meta".

    Raises:
        ValueError: there are more than `MAX_PARAMETERS` parameters, or the model does not read the task's inputs.
    """
    model = MODELS[name]
    return _outline(model, config, **_sizes(model, task))


@lru_cache(maxsize=1024)
def _outline(model: type[Any], config: ModelConfig, **sizes: int) -> SequenceModel:
    _check_class(model, config, sizes)
    made: SequenceModel = object.__new__(model)
    with torch.device("meta"), _NothingDrawn():
        if is_of_package(model.reset_parameters):  # they draw numbers and do nothing else; what others do may matter
            made.__dict__["reset_parameters"] = lambda generator: None
        made.__init__(config, **sizes, generator=None)  # type: ignore[misc]
    made.__dict__.pop("reset_parameters", None)
    count = sum(parameter.numel() for parameter in made.parameters())
    if count > MAX_PARAMETERS:
        raise ValueError(
            f"model: expected at most {MAX_PARAMETERS:,} parameters, got {count:,}; lower its width or number of layers"
        )
    return made


def _check_class(model: type[Any], config: ModelConfig, sizes: Mapping[str, int]) -> None:
    """Reject a class that is made from other arguments than all models are."""
    try:
        inspect.signature(model).bind(config, **sizes, generator=None)
    except TypeError as error:
        raise ValueError(
            f"{model.__name__}.__init__: expected to be called with config and, by name, {', '.join(sizes)} and "
            f"generator, got: {error}; give it these parameters"
        ) from None


class _NothingDrawn(TorchFunctionMode):
    """Nor does a layer of torch draw any: for normal ones torch would import its compiler, in a second."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func in (nn.init.normal_, Tensor.normal_):
            return args[0] if args else named["tensor"]
        return func(*args, **named)


def _sizes(model: type[SequenceModel], task: Alphabet | Vectors) -> dict[str, int]:
    """What a model is made for: the sizes and symbols of its task."""
    if isinstance(task, Vectors):
        check_accepts_vectors(model)
        return {"input_dim": task.input_dim, "num_classes": 1}
    return {"vocab_size": len(task.symbols), "num_classes": len(task.classes)}


def check_accepts_vectors(model: type[SequenceModel]) -> None:
    """Raise a ValueError where a model reads only symbols."""
    if not issubclass(model, AcceptsVectors):
        able = ", ".join(name for name in MODELS if issubclass(MODELS[name], AcceptsVectors))
        raise ValueError(f"model: {model.name} reads symbols, and this task has vectors; choose from {able}")
