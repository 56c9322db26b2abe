"""The contract of models, and functions that make a model from its name for a task."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lengthwise.devices import Precision, computing_in, device_of
from lengthwise.models.capabilities import AcceptsVectors
from lengthwise.models.checks import (
    check_ids,
    check_indices,
    check_made_from,
    check_state,
    check_symbols,
    checks_batch_size,
)
from lengthwise.models.containers import unwrap_hint
from lengthwise.ops.shapes import check_tensors
from lengthwise.ops.tree import Tree
from lengthwise.randomness import generator_for
from lengthwise.registry import Registry, is_of_package
from lengthwise.validation import Description, check_sizes, validated

Inputs = Int64[Tensor, "B T"] | Float[Tensor, "B T V"]
"""The input of a model: ids of symbols or, if the model accepts vectors, the vectors."""

Ids = Int64[Tensor, " B"]
"""The id of one symbol of each string."""

State = Float[Tensor, "B D"]
"""The state of a recurrent model after a prefix of each string."""

Logits = Float[Tensor, "B Y"]
"""The logits for one prefix of each string."""

MAX_WIDTH = 1 << 18
MAX_LAYERS = 128
MAX_CONVOLUTION = 64
"""The largest width of a short convolution. The state of a convolution consists of all inputs in its window except the
newest one."""

MAX_PARAMETERS = 200_000_000
"""The largest number of parameters of a model. Training keeps up to five numbers for each parameter: its value, its
gradient, its moving average and the two moments of Adam. In float32, these five numbers take 4 GB for the largest
model."""

Width = Annotated[int, Field(ge=1, le=MAX_WIDTH)]
"""The type of settings that are a number of units, for example in a state or in a hidden layer."""

Depth = Annotated[int, Field(ge=1, le=MAX_LAYERS)]
"""The type of settings that are a number of layers."""


class ModelConfig(Description):
    """A frozen, validated description of a model. It rejects unknown fields and fields without an effect.

    `used_with` (`Description`) names the fields that have an effect only for some values of another field. Some fields
    change neither the parameters nor the outputs of a new net. `other_effects` describes what these fields do.
    """

    other_effects: ClassVar[Mapping[str, str]] = {}

    def for_layer(self, kind: type[nn.Module]) -> dict[str, Any]:
        """Return the settings that the constructor of `kind` takes; a model's config may have more settings."""
        names: set[str] = set()
        for base in kind.__mro__:
            if "__init__" in vars(base):
                parameters = inspect.signature(vars(base)["__init__"]).parameters
                names |= parameters.keys()
                # A constructor with **settings passes these on to the constructor of its base.
                if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()):
                    break
        return {name: value for name, value in self if name in names}

    @property
    def takes_probes(self) -> bool:
        """Return whether training may regularly test the model on strings of up to 500 symbols."""
        return True


class SequenceModel(nn.Module, ABC):
    """A model that answers every prefix of a sequence of any length T >= 1.

    It is built as ``Model(config, vocab_size=..., num_classes=..., generator=...)`` and draws its parameters from
    `generator`. The module `readout` turns hidden states into logits. If the user chooses no preset, `default_preset`
    names the preset for training, and `default_goal_preset` names the preset for training until a goal is reached. A
    model needs `default_goal_preset` only if the `goals` of several presets contain the model's name. Abilities that
    only some models have are classes in `lengthwise.models.capabilities`. A model lists these classes before
    `SequenceModel` among its bases.

    Overflow of states does not raise an error. From the overflow on, no logit is finite, and every measure counts the
    answers as wrong.
    """

    name: ClassVar[str]
    Config: ClassVar[type[ModelConfig]] = ModelConfig
    default_preset: ClassVar[str] = "recurrent"
    default_goal_preset: ClassVar[str] = ""
    config: ModelConfig = ModelConfig()
    readout: nn.Module
    precision: Precision = "float32"
    """The number format of matrix products while the model is measured (`eval_mode`); weights keep their format."""

    def __init_subclass__(cls) -> None:
        """Set `name` to the name of the class; registering the class replaces this name."""
        # A name that the class inherits from a base class is replaced, because it is the name of the base class.
        if getattr(cls, "name", "") in ("", *(base.__name__ for base in cls.__mro__[1:])):
            cls.name = cls.__name__

    @property
    def max_length(self) -> int | None:
        """Return the largest accepted length; longer strings raise a ValueError. None means any length."""
        return None

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again."""

    @abstractmethod
    def forward(self, inputs: Inputs) -> Float[Tensor, "B T Y"]:
        """Return logits at every position. The logits at position t answer the prefix that ends at t."""

    @abstractmethod
    def last_state(self, inputs: Inputs) -> Float[Tensor, "B D"]:
        """Return the hidden state that gives the answer to the whole string, as cheaply as the model can."""

    def logits_at(self, inputs: Inputs, indices: Int64[Tensor, " B"]) -> Float[Tensor, "B Y"]:
        """Return ``forward(inputs)`` at one position of each string, as cheaply as the model can.

        `indices` may be on the CPU even if the model is on another device, so the host need not wait for the device.
        """
        logits: Tensor = self(inputs)
        check_indices(indices, inputs)
        return logits[torch.arange(len(indices), device=logits.device), indices.to(logits.device)]

    def last_states(
        self, batches: Sequence[Int64[Tensor, "_ _"] | Float[Tensor, "_ _ _"]]
    ) -> list[Float[Tensor, "_ D"]]:
        """Return the `last_state` of each of several batches, which may differ in size and length."""
        return [self.last_state(inputs) for inputs in batches]

    def check_inputs(self, inputs: Int64[Tensor, "B T"], num_symbols: int) -> None:
        """Raise a ValueError unless the inputs are strings of symbols 0 ... num_symbols - 1."""
        check_symbols(inputs, num_symbols, accepts_pads=False)

    def last(self, inputs: Inputs) -> Float[Tensor, "B Y"]:
        """Return ``forward(inputs)[:, -1]``, computed from `last_state`."""
        return self.logits_of(self.last_state(inputs))

    def logits_of(self, states: Float[Tensor, "*M D"]) -> Float[Tensor, "*M Y"]:
        """Return the logits that `readout` computes from hidden states."""
        check_tensors(states=states)
        logits: Tensor = self.readout(states)
        return logits


class SymbolModel(SequenceModel):
    """A model that reads symbols. Its constructor calls `build`, and then draws all parameters."""

    def __init__(
        self, config: ModelConfig, *, vocab_size: int, num_classes: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        check_made_from(type(self).Config, config, generator)
        check_sizes(vocab_size=vocab_size, num_classes=num_classes)
        self.config = config
        self.build(vocab_size, num_classes)
        self.reset_parameters(generator or torch.Generator())

    @abstractmethod
    def build(self, vocab_size: int, num_classes: int) -> None:
        """Make the modules and parameters that `config` describes; their values are drawn afterwards."""


class RecurrentModel(SequenceModel):
    """A model that reads a string symbol by symbol and keeps one state, from which `readout` computes the answer.

    Start with ``state = initial_state(B)``, and call ``logits, state = step(inputs[:, t], state)`` for t = 0, 1, ...
    The logits of call t are ``forward(inputs)[:, t]``. Memory does not grow with the length.
    """

    def __init_subclass__(cls) -> None:
        """Make `initial_state` check its argument, also in models of other packages."""
        super().__init_subclass__()
        if inspect.isfunction(own := vars(cls).get("initial_state")):
            cls.initial_state = checks_batch_size(own)  # type: ignore[method-assign, assignment]

    @abstractmethod
    def initial_state(self, batch_size: int) -> Float[Tensor, "B D"]:
        """Return the state before the first symbol, for each string of a batch."""

    @abstractmethod
    def step(self, token: Ids, state: State) -> tuple[Logits, State]:
        """Read one symbol of every string; return the logits for the strings so far, and the next state."""

    def check_step(self, token: Int64[Tensor, " B"], state: Float[Tensor, "B D"], num_symbols: int) -> None:
        """Raise a ValueError unless `token` has symbols 0 ... num_symbols - 1 and `state` has a row for each string."""
        check_tensors(token=token, state=state)
        self.check_inputs(token[:, None], num_symbols)
        if torch.compiler.is_exporting():  # an exported graph must work for any number of strings
            return
        check_state(self, state, self.initial_state(len(token)))

    def states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B _ D"]]:
        """Yield the states at every position, in chunks; by default, a chunk is one position, computed by `step`."""
        check_ids(inputs)
        state = self.initial_state(len(inputs))
        for token in inputs.unbind(1):
            _, state = self.step(token, state)
            yield state[:, None]

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self.logits_of(torch.cat(list(self.states(inputs)), 1))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        for states in self.states(inputs):
            last = states[:, -1]
        return last


class TreeModel(SequenceModel):
    """A model with one state for each node of a tree: leaves are symbols, and layers merge nodes level by level."""

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """Return the leaves and layers that determine every state."""


def check_is_model(model: object, argument: str = "model") -> None:
    """Raise a ValueError unless the argument is a model of this package; plain torch modules are rejected."""
    if not isinstance(model, SequenceModel):
        raise ValueError(
            f"{argument}: expected a model of this package, got {type(model).__name__}; "
            + (
                unwrap_hint(argument, model)
                or "for a recurrent net of your own, call `lengthwise.wrap(embedding, core, head)`, and for any other "
                "net `lengthwise.wrap_module`"
            )
        )


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Put the model into evaluation mode inside the context, and disable gradients.

    Matrix products then have the model's precision (`SequenceModel.precision`). In a module that is not a
    `SequenceModel`, they have float32.

    Afterwards, each module returns to its own former mode, because some modules of a user's net may have to stay in
    evaluation mode.
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


MODELS: Registry[type[SequenceModel]] = Registry("model", "lengthwise.models", base=SequenceModel, names_folders=True)


@runtime_checkable
class Alphabet(Protocol):
    """The attributes of a task over symbols that a model needs: the symbols and the answers (`classes`)."""

    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[str, ...]: ...


@runtime_checkable
class Vectors(Protocol):
    """The attribute of a task over vectors that a model needs: the vectors' dimension. The answers are numbers."""

    @property
    def input_dim(self) -> int: ...


def make_model(name: str, task: Alphabet | Vectors, *, seed: int = 0, **config: Any) -> SequenceModel:
    """Make the model registered under `name` for a task's symbols and answers.

    Parameters are drawn from `seed`, as in a run with this seed. A single ValueError lists all invalid settings.

    Example:
        >>> from lengthwise.tasks import make_task
        >>> model = make_model("regular-gpt", make_task("parity"), d_model=16, num_heads=2)
        >>> model.config.chunk_size
        2
    """
    model: type[Any] = MODELS[name]
    if isinstance(task, type) or not isinstance(task, Alphabet | Vectors):
        raise ValueError(f"task: expected a task, got {task!r}; make one with make_task")
    return build_model(name, validated(model.Config, config, path="model"), task, seed)


def build_model(name: str, config: ModelConfig, task: Alphabet | Vectors, seed: int) -> SequenceModel:
    """Make a model as `make_model` does, from a configuration that is already validated."""
    # The outline has only shapes, so a model that is too large is rejected before it takes memory.
    outline(name, config, task)
    model: type[Any] = MODELS[name]
    # Torch's modules first draw from torch's global generator, and then our models draw again. Forking the global
    # generator keeps the user's later draws the same. Models of other packages may rely on draws from the global
    # generator, so it is not forked for them.
    with torch.random.fork_rng(devices=[], enabled=is_of_package(model)):
        made: SequenceModel = model(config, **_sizes(model, task), generator=generator_for(seed, "parameters"))
    return made


def outline(name: str, config: ModelConfig, task: Alphabet | Vectors) -> SequenceModel:
    """Return the model on torch's device "meta", where its parameters have shapes but no values.

    Raises:
        ValueError: there are more than `MAX_PARAMETERS` parameters, the model cannot read the task's inputs, or its
            constructor lacks an argument that all models take.
    """
    model = MODELS[name]
    return _outline(model, config, **_sizes(model, task))


@lru_cache(maxsize=1024)
def _outline(model: type[Any], config: ModelConfig, **sizes: int) -> SequenceModel:
    _check_class(model, config, sizes)
    # The instance is made without `__init__`, so that `reset_parameters` can be replaced before `__init__` calls it.
    made: SequenceModel = object.__new__(model)
    with torch.device("meta"), _NoDraws():
        # In our models, `reset_parameters` only draws values, so it is skipped: tensors on "meta" have no values. In
        # other packages, the method may do more.
        if is_of_package(model.reset_parameters):
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
    """Raise a ValueError unless the constructor of a class takes the arguments that all models take."""
    try:
        inspect.signature(model).bind(config, **sizes, generator=None)
    except TypeError as error:
        raise ValueError(
            f"{model.__name__}.__init__: expected the parameter config, then {', '.join(sizes)} and generator as "
            f"keywords, got an error ({error}); declare all these parameters"
        ) from None


class _NoDraws(TorchFunctionMode):
    """A mode that skips draws of normal numbers, because on "meta" they import torch's compiler, which is slow."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func in (nn.init.normal_, Tensor.normal_):
            return args[0] if args else named["tensor"]
        return func(*args, **named)


def _sizes(model: type[SequenceModel], task: Alphabet | Vectors) -> dict[str, int]:
    """Return the constructor's arguments that a task determines: `vocab_size` or `input_dim`, and `num_classes`."""
    if isinstance(task, Vectors):
        check_accepts_vectors(model)
        return {"input_dim": task.input_dim, "num_classes": 1}
    return {"vocab_size": len(task.symbols), "num_classes": len(task.classes)}


def check_accepts_vectors(model: type[SequenceModel]) -> None:
    """Raise a ValueError if a model reads only symbols."""
    if not issubclass(model, AcceptsVectors):
        able = ", ".join(name for name in MODELS if issubclass(MODELS[name], AcceptsVectors))
        raise ValueError(
            f"model: expected a model that reads vectors, because this task has vectors, got {model.name}, which reads "
            f"symbols; choose from {able}"
        )
