"""The contract of a construction: weights that are written down, and the machine that they compute."""

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from lengthwise.automata import DFA, Transducer
from lengthwise.conventions import IGNORE
from lengthwise.models.base import SequenceModel
from lengthwise.registry import Registry, nearest
from lengthwise.tasks.base import RegularTask, Task

Machine = Task | Transducer | DFA
"""What is compiled: the machine of a regular task, or a machine that is no task's."""

MAX_WEIGHTS = 20_000_000
"""A model with more weights (80 MB in float32) is refused."""

MARGIN = 10.0
"""The logit of the right answer is ahead of all others by at least so much."""


class Target(NamedTuple):
    """What is compiled: the smallest machine with these answers, the names of its classes, and the task, if any.

    Has symbols and classes, as `make_model` wants them.
    """

    machine: Transducer
    classes: tuple[str, ...]
    task: RegularTask | None

    @property
    def symbols(self) -> tuple[str, ...]:
        """What the machine reads."""
        return self.machine.symbols


class Construction(NamedTuple):
    """A model, made without training, that answers exactly as a machine does.

    `model` answers every string of up to `max_length` symbols (None: of any length) as the machine of `target` does,
    wherever that asks anything, in float32 and in float64. `source` is where the construction comes from; `about` says
    in a few lines what was chosen and how large it is.
    """

    model: SequenceModel
    target: Target
    max_length: int | None
    source: str
    about: tuple[str, ...]

    @property
    def task(self) -> RegularTask | None:
        """The task that the model solves; None where a bare machine was compiled."""
        return self.target.task


CONSTRUCTIONS: Registry[Callable[..., Construction]] = Registry("construction", "lengthwise.constructions")
"""Functions that compile a `Machine`; what else they take are keywords with defaults."""


def construct(name: str, machine: Machine, **options: Any) -> Construction:
    """Compile a machine by the construction registered under `name`; problems are one ValueError.

    Example:
        >>> from lengthwise.tasks import make_task
        >>> parity = make_task("parity")
        >>> compiled = construct("regular-gpt", parity, chunk_size=3)
        >>> compiled.model.last(parity.encode("abb" * 10_001)[None]).argmax(-1)
        tensor([0])
    """
    construction = CONSTRUCTIONS[name]
    _, *known = signature(construction).parameters
    for option in options:
        if option not in known:
            raise ValueError(
                f"{option}: {name} takes no such option{nearest(option, known)} (known: {', '.join(known) or 'none'})"
            )
    return construction(machine, **options)


def target_of(machine: Machine) -> Target:
    """What is to be compiled; the classes of a DFA are "out" and "in", those of a transducer are numbers.

    Raises:
        ValueError: a task has no finite machine, or a machine's answers are no class ids.
    """
    if isinstance(machine, RegularTask):
        given, classes, task = machine.transducer, machine.classes, machine
    elif isinstance(machine, DFA):
        given, classes, task = machine.transducer, ("out", "in"), None
    elif isinstance(machine, Transducer):
        given, classes, task = machine, tuple(map(str, range(max(1, int(machine.outputs.max()) + 1)))), None
    else:
        raise ValueError(
            f"machine: expected a task that a finite machine solves, got {machine.name}; `lengthwise list` shows tasks"
        )
    answers = given.outputs[given.outputs != IGNORE]
    if ((answers < 0) | (answers >= len(classes))).any():
        raise ValueError(
            f"machine: expected answers in 0..{len(classes) - 1}, or {IGNORE} where nothing is asked, got "
            f"{sorted(set(answers.tolist()))}; number the classes from 0"
        )
    return Target(given.minimize(), classes, task)


def check_size(num_weights: int, what: str, way_out: str) -> None:
    """Raise a ValueError if a model of so many weights is too large."""
    if num_weights > MAX_WEIGHTS:
        raise ValueError(f"machine: {what} would have {num_weights:,} weights, more than {MAX_WEIGHTS:,}; {way_out}")
