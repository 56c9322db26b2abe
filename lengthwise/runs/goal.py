"""Runs that train until they reach a goal: the goal, the attempts to reach it, and their outcomes."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args

from pydantic import Field

from lengthwise.certification.methods.base import highest_level
from lengthwise.certification.parts import CLAIMS, Level, reaches
from lengthwise.display import counted
from lengthwise.models.base import SequenceModel
from lengthwise.registry import check_known
from lengthwise.tasks.base import MachineTask, Task
from lengthwise.training.batches import training_lengths
from lengthwise.training.final_loss import final_loss
from lengthwise.training.loop import TrainingState
from lengthwise.training.recipe import Recipe
from lengthwise.validation import FrozenRecord

GoalLevel = Literal["solved", "extracted", "bounded", "proved"]
"""The level at which training ends: a low training loss without a certificate, or the level of a certificate."""

BUDGET = 600.0
"""The default number of CPU seconds after which no further attempt begins."""


class Attempt(FrozenRecord):
    """One attempt to reach a run's goal: the changes to the model's settings, the seed, the steps, and the outcome.

    `solved_at`: the step at which the loss fell below the threshold that starts the contraction of states
    (`PaceRecipe`); None if the loss never fell below this threshold.
    `loss`: the loss of the final weights if the contraction of states began, else the running loss; None if training
    diverged.
    `is_solved`: whether `loss` is low enough. `level`: the level of the net's certificate; None without a certificate.
    `longest`: the longest training length reached, if lengths grow during training and training ended before the last
    length; otherwise None.
    """

    model: dict[str, Any]
    seed: int
    steps: int
    solved_at: int | None
    loss: float | None
    is_solved: bool = False
    level: Level | None = None
    longest: int | None = Field(None, exclude_if=lambda longest: longest is None)

    @property
    def outcome(self) -> str:
        """The outcome of the attempt, as a clause for a sentence."""
        if self.level is not None:
            return f"its certificate is {self.level}"
        if self.loss is None:
            return "training diverged"
        if self.is_solved:
            return f"the loss is {self.loss:.2g} at the end"
        if self.longest is not None:
            return f"it reached lengths up to {self.longest} only, with a loss of {self.loss:.2g}"
        if self.solved_at is None:
            return f"the loss stayed at {self.loss:.2g}"
        return f"with contracted states the loss is {self.loss:.2g}, which is too high"


class Goal(FrozenRecord, allow_inf_nan=False):
    """The level that a run should reach, by repeated attempts; no attempt begins after `budget` CPU seconds.

    An attempt that ends with a low loss (`PaceRecipe`) reaches level ``solved``. If the goal is another `level`, the
    net of such an attempt is then certified. The CPU seconds include training and certificates of all processes that
    worked on the run. Each entry of `models` changes the model's settings for one attempt; after the last entry, the
    first is used again. Each attempt has its own seed, and does not depend on time.
    """

    level: GoalLevel
    budget: Annotated[float, Field(ge=0)] = BUDGET
    models: tuple[dict[str, Any], ...] = Field(({},), min_length=1)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def is_certified(self) -> bool:
        """True if a certificate, and not the loss alone, decides whether the goal is reached."""
        return self.level != "solved"

    def is_reached_by(self, attempt: Attempt) -> bool:
        """Return whether a finished attempt reaches the goal."""
        if self.level == "solved":
            return attempt.is_solved
        return attempt.level is not None and reaches(attempt.level, self.level)


def parse_goal_level(name: str) -> GoalLevel:
    """Return `name` as the level of a run's goal; an unknown name raises a ValueError."""
    check_known("goal", name, get_args(GoalLevel))
    return cast(GoalLevel, name)


def check_reachable(model: SequenceModel, task: Task, level: GoalLevel) -> None:
    """Raise a ValueError if no certificate of the model can reach the level, or if the task cannot be certified."""
    if level == "solved":
        return
    if not isinstance(task, MachineTask):
        raise ValueError(
            f"goal: expected a task with a reference machine, got {task.name}, which cannot be certified; choose goal "
            "'solved', which only the training loss decides, or choose a regular task"
        )
    highest = highest_level(model)
    if not reaches(highest, level):
        possible = [goal for goal in get_args(GoalLevel) if goal in CLAIMS and reaches(highest, goal)]
        ways = f"choose {' or '.join(['solved', *possible])}, or "
        raise ValueError(
            f"goal: expected a level that {model.name} can reach with these settings, at most {highest!r}, got "
            f"{level!r}; {ways}train another model, such as a block-linear-rnn"
        )


def loss_at_end(state: TrainingState, task: Task, recipe: Recipe, *, seed: int) -> tuple[float, bool]:
    """Return the loss at the end of an attempt, and whether it is low enough for the attempt to succeed.

    If the running loss became low, the rest of the schedule (`contract_steps`) may have raised the loss again. So the
    loss of the final weights is measured.
    """
    pace = recipe.pace
    assert pace is not None
    # The loss was never low enough, so the attempt has failed whatever its final weights are.
    if state.solved_at is None:
        return state.loss, False
    loss = final_loss(state, task, recipe, seed=seed)
    return loss, loss < (pace.final_loss or pace.solved_loss)


def reached_length(state: TrainingState, task: Task, recipe: Recipe) -> int | None:
    """Return the largest training length reached so far, if lengths grow during training.

    The result is None if this is the final length, or if lengths do not grow.
    """
    lengths, _ = training_lengths(task, recipe)
    is_held = recipe.length_sampling == "growing" and state.growth.num_reached < len(lengths)
    return lengths[state.growth.num_reached - 1] if is_held else None


class Attempts(NamedTuple):
    """The progress of a run with a goal: its finished attempts, and the sum of their training steps."""

    finished: tuple[Attempt, ...] = ()

    @property
    def steps(self) -> int:
        """The sum of the training steps of all finished attempts."""
        return sum(attempt.steps for attempt in self.finished)

    def to_notes(self) -> dict[str, str]:
        """Return the finished attempts as notes for a checkpoint; the notes are empty until an attempt is finished."""
        # Attempts are saved in the checkpoint itself. In another file, after a crash, they could disagree with the
        # weights in the checkpoint.
        return {"attempts": json.dumps([attempt.model_dump() for attempt in self.finished])} if self.finished else {}

    @classmethod
    def from_notes(cls, notes: Mapping[str, str]) -> "Attempts":
        """Return the progress that is stored in notes of a checkpoint, as `to_notes` writes them."""
        return cls(tuple(Attempt.model_validate(entry) for entry in json.loads(notes.get("attempts", "[]"))))

    def announce(self, changes: Mapping[str, Any], seed: int) -> str:
        """Return a sentence with the settings of the next attempt and the outcome of the last attempt."""
        settings = ", ".join([*(f"{name}={value}" for name, value in changes.items()), f"seed {seed}"])
        why = f"; attempt {len(self.finished)}: {self.finished[-1].outcome}" if self.finished else ""
        return f"attempt {len(self.finished) + 1}: {settings}{why}"


def attempts_text(attempts: Sequence[Attempt]) -> list[str]:
    """Return a line for each attempt, with its settings, its steps and its outcome."""
    return [
        f"attempt {number}: {', '.join(f'{name}={value}' for name, value in attempt.model.items()) or 'as given'}, "
        f"{counted(attempt.steps, 'step')}, {attempt.outcome}"
        for number, attempt in enumerate(attempts, start=1)
    ]
