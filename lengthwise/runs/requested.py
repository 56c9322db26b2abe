"""The machine that a user requests: an expression, a file or a task with settings."""

from collections.abc import Sequence

from lengthwise.constructions.base import Machine
from lengthwise.runs.machine_sources import Expression, machine_or_expression
from lengthwise.runs.spec import parse_assignments
from lengthwise.tasks.base import make_task
from lengthwise.tasks.regular.machine import machine_task
from lengthwise.validation import check_one_given


def requested_machine(
    pattern: str | None, alphabet: Sequence[str] | None, task: str | None, assignments: Sequence[str] = ()
) -> Machine:
    """Return the task of a regular expression, of a machine's file, or of a name with settings as ``task.key=value``.

    `lengthwise.runs.machine_sources.given_machines` explains which texts are expressions.

    Raises:
        ValueError: both or neither of pattern and task are given. An alphabet is given although a task or file has its
            own symbols, or settings are given without a task. The expression has an error or matches nothing. The file
            has no machine. The task or setting does not exist.
    """
    if pattern == "":
        raise ValueError(
            "pattern: expected a regular expression or a machine's file, got an empty text; give an expression or a "
            "file"
        )
    check_one_given("pattern", "a regular expression or a task", pattern, task)
    if task is not None:
        if alphabet is not None:
            raise ValueError(
                f"alphabet: expected no alphabet together with a task, got {alphabet!r}; leave out "
                "the alphabet, because a task has its own symbols"
            )
        settings = parse_assignments(assignments)
        if foreign := sorted(settings.keys() - {"task"}):
            raise ValueError(
                f"assignments: expected settings of the task, as task.key=value, got a setting of {foreign[0]!r}; "
                f"leave out all settings of {foreign[0]!r}"
            )
        return make_task(task, **settings.get("task", {}))
    if assignments:
        raise ValueError(
            f"assignments: expected no settings together with an expression, got {assignments[0]}; leave out "
            f"{assignments[0]}, because only a task has settings"
        )
    assert pattern is not None
    source = machine_or_expression(pattern)
    if isinstance(source, Expression):
        return make_task("regex", **source._asdict(), **({} if alphabet is None else {"alphabet": alphabet}))
    if alphabet is not None:
        raise ValueError(
            f"alphabet: expected no alphabet together with the machine {pattern}, which names its symbols, got "
            f"{alphabet!r}; leave out the alphabet"
        )
    if source.labeled.is_automaton:
        return make_task("dfa", **source.labeled.dfa().to_json())
    return machine_task(source.labeled)
