"""The command attack."""

from typing import Annotated

from cyclopts import Parameter

from lengthwise.cli.machines import Source
from lengthwise.cli.options import StoredPath, StringSeed, count
from lengthwise.cli.outputs import AsJSON, write_object
from lengthwise.printing import write_lines


def attack(
    net: StoredPath,
    machine: Source | None = None,
    /,
    *,
    budget: Annotated[float, Parameter(help="CPU seconds of the search.")] = 5.0,
    longest: Annotated[int, Parameter(converter=count, help="Try strings of at most this number of symbols.")] = 150,
    seed: StringSeed = 0,
    as_json: AsJSON = False,
) -> int:
    """Search for a short string that a net answers wrongly.

    Random samples hardly ever contain most of the strings that the search tries. The right answers come from the net's
    own task. If you give a machine (a file, a folder or a regular expression), the right answers come from this
    machine. The search tries all short strings, and strings u w^n v with short words u, w and v and every n. It also
    tries strings that distinguish the machine from other machines, and strings on which the logit of the right answer
    is barely the largest. Exits with code 1 if a wrong answer is found, and with 0 if not. Code 0 proves nothing.
    """
    from lengthwise.certification.attacks.attack import attack as attack_model
    from lengthwise.runs.certified import task_of_machine
    from lengthwise.runs.stored import load_stored

    stored = load_stored(net)
    task = stored.task if machine is None else task_of_machine(net, stored.task, machine)
    result = attack_model(stored.model, task, budget=budget, max_length=longest, seed=seed)
    if as_json:
        write_object(result.model_dump())
    else:
        write_lines(f"{name}: {sentence}" for name, sentence in result.lines())
    return 1 if result.is_refuted else 0


COMMANDS = {"attack": attack}
