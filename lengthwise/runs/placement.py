"""The device on which a run is trained, and the processes that train it together."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import torch

from lengthwise.devices import describe_device
from lengthwise.models.base import SequenceModel
from lengthwise.runs.spec import RunSpec
from lengthwise.training.checkpoint import load_checkpoint
from lengthwise.training.loop import TrainingState
from lengthwise.training.ranks import ALONE, RankEnded, Ranks, check_ranks


class Placement(NamedTuple):
    """A device, and the processes that train together, including this process."""

    device: torch.device
    ranks: Ranks = ALONE

    def __str__(self) -> str:
        device = describe_device(self.device)
        return device if self.ranks.size == 1 else f"{self.ranks.size} processes ({self.ranks.kind}), {device}"

    def state(self, spec: RunSpec) -> TrainingState:
        """Return the untrained state of a run on this device."""
        return TrainingState(spec.make_model().to(self.device), spec.recipe, spec.task, self.ranks)

    @contextmanager
    def leading(self) -> Iterator[Callable[[], None]]:
        """Yield a function by which the first process tells the other processes that there is something to train.

        If the function is not called, for whatever reason, the other processes are told at the end that there is
        nothing to train. Otherwise they would wait indefinitely.
        """
        is_announced = False

        def begin() -> None:
            nonlocal is_announced
            is_announced = True
            self.ranks.any(True)

        try:
            yield begin
        finally:
            if not is_announced:
                # An error in this process may also have ended another process. The error `RankEnded` about that process
                # must not hide the first error.
                with suppress(RankEnded):
                    self.ranks.any(False)

    def check_is_shared(self, state: TrainingState, folder: Path) -> None:
        """Raise a ValueError if some processes see another checkpoint in the run's folder than the first process."""
        steps = self.ranks.gathered(str(state.step))
        if len(set(steps)) > 1:
            raise ValueError(
                f"{folder}: expected one checkpoint for all processes, got checkpoints of steps {', '.join(steps)}; "
                "keep the runs on a disk that all machines see"
            )

    def measurable(self, state: TrainingState, spec: RunSpec, checkpoint: Path) -> TrainingState:
        """Return the state of a trained run with all weights in this process, which then measures the run alone."""
        if not self.ranks.is_sharded:
            return state
        # A sharded model needs all processes for each forward pass, but only this process measures.
        alone = Placement(self.device).state(spec)
        load_checkpoint(alone, checkpoint, spec.id)
        return alone

    @contextmanager
    def final_model(self, state: TrainingState, spec: RunSpec) -> Iterator[SequenceModel]:
        """Yield the model that training would give if it ended now.

        With sharded weights, all processes have to call this function.
        """
        if not self.ranks.is_sharded:
            with state.with_final_weights() as model:
                yield model
            return
        model = spec.make_model().to(self.device)
        model.load_state_dict(state.final_weights())
        yield model


def check_ranks_of(spec: RunSpec, ranks: Ranks) -> None:
    """Raise a ValueError if several processes cannot train a run together."""
    if ranks.size > 1 and spec.goal is not None:
        raise ValueError(
            f"goal: expected no goal with {ranks.size} processes, because attempts run in one process, got "
            f"{spec.goal.level!r}; start one process, or leave the goal out"
        )
    check_ranks(spec.recipe, ranks)
