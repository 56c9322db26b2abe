"""Columns of a table of examples: which ones contain strings and labels, and which ones are not used."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lengthwise.registry import nearest

STRINGS = ("string", "text", "input", "trace", "word", "sequence")
LABELS = ("label", "class", "output", "answer", "accepted", "target")
"""Standard names of the column of labels; `STRINGS` are the standard names of the column of strings. These names are
recognized if the user names no columns."""

MAX_NAMED = 20
"""The largest number of columns that a message names."""

MEANINGS = {
    **dict.fromkeys(
        ("weight", "weights", "sample_weight", "count", "counts", "frequency", "freq", "multiplicity", "repeats"),
        "every row counts once, so repeat rows instead, or remove the column",
    ),
    **dict.fromkeys(
        ("probability", "prob", "confidence", "score", "logit"),
        "labels are taken as certain, so remove the column",
    ),
    **dict.fromkeys(("split", "fold", "subset", "partition"), "all rows are read, so write one file for each split"),
}
"""Names of columns that are not supported (weights, probabilities, splits of the data), and what to do instead."""


@dataclass
class Columns:
    """The names of the columns of strings and labels, if the user gives them, and the names of unused columns.

    Without a given name, the column of strings is the column whose name is in `STRINGS`. The column of labels is the
    column whose name is in `LABELS`.
    """

    string: str | None = None
    label: str | None = None
    unused: dict[str, None] = field(default_factory=dict)

    def has_header(self, names: Sequence[str]) -> bool:
        """Return whether the first row names columns; a table of two columns may begin with its first example."""
        are_given = bool(self.string or self.label)
        return are_given or len(names) != 2 or any(str(name).lower() in STRINGS + LABELS for name in names)

    def find(self, names: Sequence[str]) -> tuple[int, int]:
        """Return the indices of the strings' and the labels' columns.

        Raises:
            ValueError: a column is missing or ambiguous, or is not supported (`MEANINGS`); strings and labels are in
                the same column; or the table has a separator other than the format's.
        """
        # If a table has another separator, it is read as one column, and the separator in this column's name reveals
        # the mistake.
        if len(names) == 1 and (mark := next((mark for mark in ";\t|" if mark in names[0]), None)):
            raise ValueError(
                f"examples: expected columns with commas (.csv) or tabs (.tsv) between them, got {names[0]!r}, one "
                f"column with {mark!r} in its name; write the file with commas"
            )
        indices = []
        for given, usual, what in ((self.string, STRINGS, "string"), (self.label, LABELS, "label")):
            candidates = [name for name in names if (name.lower() in usual if given is None else name == given)]
            if len(candidates) != 1:
                known = ", ".join(map(repr, names[:MAX_NAMED])) + ", ..." * (len(names) > MAX_NAMED)
                expected = f"one column with a standard name ({', '.join(usual)})"
                got = f"{len(candidates)} among {known}; set {what} to the name of the column to read"
                if given is not None:
                    expected = f"one of the columns {known}"
                    times = f" {len(candidates)} times; rename all but one"
                    got = f"{given!r}{times if candidates else nearest(given, names)}"
                raise ValueError(f"{what}: expected {expected}, got {got}")
            indices.append(names.index(candidates[0]))
        if indices[0] == indices[1]:
            raise ValueError(
                f"label: expected a column other than the column of strings, got {names[indices[0]]!r}; name another "
                "column"
            )
        for index, name in enumerate(names):
            if index in indices:
                continue
            if meaning := MEANINGS.get(name.strip().lower()):
                raise ValueError(
                    f"examples: expected no column of weights, probabilities or splits, got {name!r}; {meaning}"
                )
            self.unused[name] = None
        return indices[0], indices[1]
