"""The words that processes of one run exchange, with the other processes played by a test."""

from pathlib import Path

import pytest
import torch

from lengthwise.runs.other_ranks import train_along
from lengthwise.runs.placement import Placement
from lengthwise.runs.spec import make_spec
from lengthwise.training.ranks import RankEnded, Ranks

SPEC = make_spec(
    "parity", "rnn", {"model": {"d_model": 2}, "train": {"steps": 3, "batch_size": 2, "min_length": 2, "max_length": 4}}
)


class Played(Ranks):
    """Ranks whose other process answers `answer` to each question and has done `steps` steps."""

    values: tuple[bool, ...] = ()
    answer: bool | None = True
    steps: tuple[str, ...] = ("0", "0")

    def any(self, value: bool) -> bool:
        type(self).values = (*self.values, value)
        if self.answer is None:
            raise RankEnded("another process has ended")
        return value or self.answer

    def gathered(self, text: str) -> list[str]:
        return list(self.steps)


def played(**answers: object) -> Ranks:
    return type("One", (Played,), answers)()


def test_others_are_told_once_whether_there_is_something_to_train() -> None:
    for begins in (True, False):
        ranks = played()
        with Placement(torch.device("cpu"), ranks).leading() as begin:
            if begins:
                begin()
        assert ranks.values == (begins,)
    ranks = played()
    with pytest.raises(ZeroDivisionError), Placement(torch.device("cpu"), ranks).leading():
        raise ZeroDivisionError
    assert ranks.values == (False,), "others would wait for a process that failed"
    with Placement(torch.device("cpu"), played(answer=None)).leading():
        pass


def test_processes_see_one_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one checkpoint for all processes, got checkpoints of steps 0, 10; keep"):
        train_along(SPEC, tmp_path, lambda: False, device=torch.device("cpu"), ranks=played(steps=("0", "10")))


def test_others_train_only_if_they_are_told_to(tmp_path: Path) -> None:
    """The answer to the first question is about training, and later answers are about a stop."""
    ranks = played(answer=False)
    train_along(SPEC, tmp_path, lambda: False, device=torch.device("cpu"), ranks=ranks)
    assert ranks.values == (False,)
    ranks = played(answer=True)
    train_along(SPEC, tmp_path, lambda: False, device=torch.device("cpu"), ranks=ranks)
    assert ranks.values == (False, False), "it stops after the first step"
