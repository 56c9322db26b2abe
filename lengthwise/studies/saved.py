"""Outcomes of long studies, saved one after another, so that a stopped study continues where it stopped."""

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from lengthwise.files import write_by_rename
from lengthwise.printing import write_lines

Problem = TypeVar("Problem")
Outcome = TypeVar("Outcome")


def saved_outcomes(
    folder: Path,
    settings: object,
    outcomes: TypeAdapter[list[Outcome]],
    problems: Sequence[Problem],
    solve: Callable[[Problem], Outcome],
) -> list[Outcome]:
    """Return the outcome of each problem, and save the outcomes so far whenever a problem is solved.

    A second call with the same folder and the same settings reads the saved outcomes, and solves only the other
    problems. The name of the file depends on the text of the settings, so `settings` must contain everything that
    changes a problem. A line on standard error counts the solved problems.

    Raises:
        ValueError: the file does not contain outcomes of these problems.
    """
    path = folder / f"{sha256(repr(settings).encode()).hexdigest()[:10]}.json"
    try:
        solved = outcomes.validate_json(path.read_bytes()) if path.exists() else []
        if len(solved) > len(problems):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{path}: expected at most {len(problems):,} outcomes of this study, one for each problem, got other "
            "content; move this file away to begin the study again"
        ) from None
    for number, problem in enumerate(problems[len(solved) :], len(solved) + 1):
        solved.append(solve(problem))
        path.parent.mkdir(parents=True, exist_ok=True)
        # Pydantic would write NaN as null, which cannot be read back.
        write_by_rename(path, json.dumps(outcomes.dump_python(solved, mode="json")).encode())
        write_lines([f"{folder.name}: {number} of {len(problems)} solved"], is_error=True)
    return solved
