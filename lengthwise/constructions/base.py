"""The contract of a construction: weights in closed form, and the finite machine that they compute."""

from collections.abc import Callable
from inspect import signature
from math import log10
from typing import Any, NamedTuple

from lengthwise.automata import DFA, Transducer
from lengthwise.conventions import IGNORE
from lengthwise.models.base import SequenceModel
from lengthwise.registry import Registry, nearest
from lengthwise.tasks.base import RegularTask, Task

Machine = Task | Transducer | DFA
"""An input of a construction: a task that a finite machine solves, a `DFA` or a `Transducer`."""

MAX_WEIGHTS = 20_000_000
"""The largest number of weights of a model. In float32, this many weights take 80 MB."""

MARGIN = 10.0
"""The smallest logit margin of a compiled model: the correct answer's logit minus the largest other logit."""


class Target(NamedTuple):
    """A minimal machine that answers like the machine to compile, with the names of the answer classes, and the task.

    The task is None if a machine without a task is compiled. `make_model` accepts a target in place of a task, because
    a target has `symbols` and `classes`.
    """

    machine: Transducer
    classes: tuple[str, ...]
    task: RegularTask | None

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the input symbols of the machine."""
        return self.machine.symbols


class Construction(NamedTuple):
    """A model, made without training, that answers exactly as a machine does.

    At every supervised position, `model` gives the same answers as the target's machine, in float32 and in float64.
    This holds for all strings of up to `max_length` symbols, or of any length if `max_length` is None. `source` names
    the publication of the construction. The lines of `about` describe the choices that were made, and the size of the
    model.
    """

    model: SequenceModel
    target: Target
    max_length: int | None
    source: str
    about: tuple[str, ...]

    @property
    def task(self) -> RegularTask | None:
        """Return the task that the model solves; None if a machine without a task was compiled."""
        return self.target.task


CONSTRUCTIONS: Registry[Callable[..., Construction]] = Registry("construction", "lengthwise.constructions")
"""The registry of functions that compile a `Machine`; their other arguments are keywords with defaults."""


def construct(name: str, machine: Machine, **options: Any) -> Construction:
    """Compile a machine with the construction that is registered under `name`.

    Raises:
        ValueError: the name or an option is unknown, or the construction rejects the machine.

    Example:
        >>> from lengthwise.tasks import make_task
        >>> parity = make_task("parity")
        >>> compiled = construct("regular-gpt", parity, chunk_size=3)
        >>> compiled.model.last(parity.encode("abb" * 10_001)[None]).argmax(-1)
        tensor([0])
    """
    construction = CONSTRUCTIONS[name]
    # The first parameter is the machine, all others are options.
    _, *known = signature(construction).parameters
    for option in options:
        if option not in known:
            raise ValueError(
                f"{option}: {name} takes no such option{nearest(option, known)} (known: {', '.join(known) or 'none'})"
            )
    return construction(machine, **options)


def target_of(machine: Machine) -> Target:
    """Return the minimized machine with the names of its answer classes, and the task if the argument is a task.

    The classes of a DFA are named "out" and "in". The classes of a transducer are named 0, 1, ...

    Raises:
        ValueError: the argument is neither a machine nor a task with a finite machine, or the machine's answers are not
            class ids.
    """
    task = machine if isinstance(machine, RegularTask) else None
    if isinstance(machine, RegularTask | DFA):
        transducer = machine.transducer
        classes = ("out", "in") if task is None else task.classes
    elif isinstance(machine, Transducer):
        transducer = machine
        classes = tuple(map(str, range(max(1, int(machine.outputs.max()) + 1))))
    else:
        raise ValueError(
            f"machine: expected a task that a finite machine solves, got "
            f"{getattr(machine, 'name', repr(machine)[:40])}; `lengthwise list` shows tasks"
        )
    answers = transducer.outputs[transducer.outputs != IGNORE]
    if ((answers < 0) | (answers >= len(classes))).any():
        raise ValueError(
            f"machine: expected answers in 0..{len(classes) - 1}, or {IGNORE} where nothing is supervised, got "
            f"{sorted(set(answers.tolist()))}; number the classes from 0"
        )
    return Target(transducer.minimize(), classes, task)


def check_size(num_weights: int, what: str, way_out: str) -> None:
    """Before a model is built, raise a ValueError if its number of weights is too large."""
    if num_weights > MAX_WEIGHTS:
        raise ValueError(
            f"machine: {what} would have {weight_count(num_weights)}, more than {MAX_WEIGHTS:,}; {way_out}"
        )


def weight_count(num_weights: int) -> str:
    """Return a number of weights as text for a message; a number above 10^18 is written as a power of ten."""
    return f"{num_weights:,} weights" if num_weights < 10**18 else f"over 10^{int(log10(num_weights))} weights"
