"""Descriptions of all members as plain text that fits a terminal. This module never imports torch.

The registries import torch, which takes seconds. So the descriptions of the package's own members are stored in an
index, which a test compares with the registries.
"""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lengthwise.registry import UnknownName, check_known, nearest

INDEX = Path(__file__).with_name("members.json")
"""The stored descriptions, which ``python -m lengthwise.cli.members`` writes."""


SETTINGS = "settings"
"""The family of settings, which `show` describes, but `list` omits."""


class Line(NamedTuple):
    """A line of text. If the line is too wide, it is wrapped, and the further lines are indented by `hang` blanks.

    A line whose `hang` is None is never wrapped.
    """

    text: str
    hang: int | None = None

    def wrapped(self, width: int) -> list[str]:
        """Return the text as lines of at most `width` characters (more for a long word); one line if `hang` is None."""
        if self.hang is None:
            return [self.text]
        indent = " " * self.hang
        return textwrap.wrap(self.text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


Paragraph = list[Line]


class Member(NamedTuple):
    """A registered task, model or other member: its first sentence, for lists, and the paragraphs that describe it."""

    summary: str
    paragraphs: list[Paragraph]


FamilyIndex = Mapping[str, Mapping[str, Member]]
"""Members by family and name."""


def index_text(index: FamilyIndex) -> str:
    """Return an index of tasks, models and other members as JSON text, with one line for each member."""
    families = []
    for family, members in index.items():
        lines = [f"{json.dumps(name)}: {json.dumps(member, ensure_ascii=False)}" for name, member in members.items()]
        families.append(f"{json.dumps(family)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(families) + "}\n"


def stored_index() -> FamilyIndex:
    """Return the descriptions of the package's own members that `INDEX` stores."""
    content = json.loads(INDEX.read_text(encoding="utf-8"))
    return {
        family: {
            name: Member(summary, [[Line(*line) for line in paragraph] for paragraph in paragraphs])
            for name, (summary, paragraphs) in members.items()
        }
        for family, members in content.items()
    }


def listed_families(index: FamilyIndex, family: str | None) -> FamilyIndex:
    """Return the members of one family, such as tasks, or of all families except the settings of training.

    Raises:
        ValueError: the family is unknown.
    """
    families = {name: members for name, members in index.items() if name != SETTINGS}
    if family is None:
        return families
    check_known("family", family, families)
    return {family: families[family]}


def list_lines(index: FamilyIndex, family: str | None, width: int | None) -> list[str]:
    """Return lines that list the members of a family, or of all families below headings.

    Errors are as in `listed_families`.
    """
    families = listed_families(index, family)
    if family is not None:
        return family_lines(families[family], width)
    return [line for name, members in families.items() for line in (f"{name}:", *family_lines(members, width), "")]


def family_lines(members: Mapping[str, Member], width: int | None) -> list[str]:
    """Return a line with name and summary for each member of a family; lines are cut at `width` unless it is None."""
    indent = max(map(len, members)) + 2
    lines = [f"{name:{indent}}{member.summary}" for name, member in members.items()]
    return [line if width is None else textwrap.shorten(line, width, placeholder=" ...") for line in lines]


def description(index: FamilyIndex, name: str, width: int) -> list[str]:
    """Return the descriptions of all tasks, models and other members called `name`, in the order of their families.

    Lines have at most `width` characters.

    Raises:
        ValueError: no member has this name.
    """
    paragraphs = [part for members in index.values() if name in members for part in members[name].paragraphs]
    # An unknown name is usually a typing error, so the nearest name is shown.
    if not paragraphs:
        known = [member for family, members in index.items() if family != SETTINGS for member in members]
        raise UnknownName(f"unknown name {name!r}{nearest(name, known)}; `lengthwise list` shows all names")
    parts = [[row for line in paragraph for row in line.wrapped(width)] for paragraph in paragraphs]
    return [line for part in parts for line in (*part, "")][:-1]
