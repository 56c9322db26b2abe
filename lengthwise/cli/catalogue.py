"""Commands about the registered members: list, show."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.cli.outputs import AsJSON, write_object
from lengthwise.cli.streams import Output
from lengthwise.registry import extensions

if TYPE_CHECKING:
    from lengthwise.cli.index import FamilyIndex


MAX_WIDTH = 100
"""The largest width of a description's lines, in characters."""


def list_members(
    family: Annotated[
        str | None, Parameter(help="tasks, models, presets, constructions or experiments; all if not given.")
    ] = None,
    /,
    *,
    as_json: AsJSON = False,
) -> int:
    """List tasks, models, presets, constructions and experiments, one per line."""
    from lengthwise.cli.index import list_lines, listed_families

    if as_json:
        summaries = {
            name: {member: one.summary for member, one in members.items()}
            for name, members in listed_families(read_index(), family).items()
        }
        write_object({"families": summaries})
        return 0
    console = Output()
    console.print_lines(list_lines(read_index(), family, console.width if console.is_terminal else None))
    console.print_line(
        "`lengthwise show NAME` describes one of these; `lengthwise show train` lists the settings of training"
    )
    return 0


def show(
    name: Annotated[str, Parameter(help="Name of a task, model, preset, construction or experiment; or train.")],
    /,
    *,
    as_json: AsJSON = False,
) -> int:
    """Describe a task, model, preset, construction or experiment.

    The description contains its source, its settings with their defaults, its presets and its pages of results.
    """
    from lengthwise.cli.index import description

    if as_json:
        index = read_index(name)
        text = description(index, name, MAX_WIDTH)
        families = [family for family, members in index.items() if name in members]
        write_object({"name": name, "families": families, "text": text})
        return 0
    console = Output()
    console.print_lines(description(read_index(name), name, min(console.width, MAX_WIDTH)))
    return 0


def read_index(name: str = "") -> "FamilyIndex":
    """Return descriptions of all tasks, models and other members of the registries.

    The descriptions are stored with the package. But if files of the user register further members, the descriptions
    are read from the registries, and only the member `name` is described in full.
    """
    if extensions():
        from lengthwise.cli.members import FAMILIES, describe_members

        return describe_members(FAMILIES, {name})
    from lengthwise.cli.index import stored_index

    return stored_index()


COMMANDS = {"list": list_members, "show": show}
