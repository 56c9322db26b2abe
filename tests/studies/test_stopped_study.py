"""The study of state merging, which takes hours at full size and goes on where it was stopped."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from lengthwise.studies.ours.experiments import state_merging
from lengthwise.studies.ours.experiments.state_merging import Kind, LearnedBy, Outcome, Size, outcomes
from lengthwise.studies.saved import saved_outcomes


def test_a_stopped_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Kind, int, float]] = []

    def outcome(kind: Kind, number: int, share: float, size: Size) -> Outcome:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append((kind, number, share))
        learners = (LearnedBy("learn", 2, "exact", 0, 0.1), LearnedBy("EDSM", None, "wrong", size.examples, 5.0))
        return Outcome(kind, number, share, 2, 2, "states merged", learners)

    monkeypatch.setattr(state_merging, "_outcome", outcome)
    size = Size(machines=2, protocols=1, traced=1, wrong=(0.0, 0.05))
    with pytest.raises(KeyboardInterrupt):
        outcomes(size, tmp_path)
    before, made[:] = list(made), []
    with pytest.raises(KeyboardInterrupt):
        outcomes(size, tmp_path)
    before, made[:] = before + made, []
    complete = outcomes(size, tmp_path)
    assert len(set(before + made)) == len(before + made) == len(complete) == 8
    assert [(one.kind, one.number, one.share_wrong) for one in complete] == before + made
    assert complete[0].learners[1] == LearnedBy("EDSM", None, "wrong", 3_000, 5.0)
    monkeypatch.setattr(state_merging, "_outcome", None)
    assert outcomes(size, tmp_path) == complete
    with pytest.raises(TypeError):  # another size is another study
        outcomes(size._replace(examples=10), tmp_path)


def test_infinite_and_missing_numbers_are_read_back(tmp_path: Path) -> None:
    numbers = TypeAdapter(list[float])
    solved = saved_outcomes(tmp_path, "ratios", numbers, [float("inf"), float("nan")], lambda number: number)
    assert str(saved_outcomes(tmp_path, "ratios", numbers, [0.0, 0.0], lambda number: number)) == str(solved)


def test_a_damaged_file_of_outcomes_is_named(tmp_path: Path) -> None:
    def solve(problem: int) -> int:
        return 2 * problem

    numbers = TypeAdapter(list[int])
    assert saved_outcomes(tmp_path, "doubles", numbers, [1, 2], solve) == [2, 4]
    with pytest.raises(ValueError, match=r"expected at most 1 outcomes of this study, one for each problem, got other"):
        saved_outcomes(tmp_path, "doubles", numbers, [1], solve)
    (file,) = tmp_path.iterdir()
    file.write_text("[2, ")
    with pytest.raises(ValueError, match=rf"{file.name}: .* move this file away to begin the study again"):
        saved_outcomes(tmp_path, "doubles", numbers, [1, 2], solve)
