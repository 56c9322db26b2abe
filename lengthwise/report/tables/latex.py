r"""Tables in LaTeX, for papers; they need the package `booktabs`."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lengthwise.display import printable
from lengthwise.report.tables.table import Table, shared_text


def latex_table(
    table: Table, caption: str = "", note: str = "", citations: Mapping[str, str] = MappingProxyType({})
) -> str:
    r"""Return a `table` environment: rules of booktabs, the caption above, and the shared columns and the note below.

    Columns of numbers are aligned on the right. All texts are escaped (`escaped`). A cell whose text is a key of
    `citations` also cites the BibTeX key to which `citations` maps the text.

    Example:
        >>> print(latex_table(Table(("model", "mean"), (("d_model=8", "50 %"),)), "Parity"))
        \begin{table}
        \centering
        \caption{Parity}
        \begin{tabular}{lr}
        \toprule
        model & mean \\
        \midrule
        d\_model=8 & 50~\% \\
        \bottomrule
        \end{tabular}
        \end{table}
    """
    columns = "".join("r" if all(map(_NUMBER.fullmatch, column)) else "l" for column in zip(*table.lines, strict=True))
    shared = [f"The same in every row: {shared_text(table.shared)}."] if table.shared else []
    below = "".join(f"\n\n\\smallskip\n{escaped(text)}" for text in (*shared, *filter(None, [note])))
    return "\n".join(
        [
            "\\begin{table}\n\\centering",
            *([f"\\caption{{{escaped(caption)}}}"] if caption else []),
            f"\\begin{{tabular}}{{{columns or 'l' * len(table.header)}}}\n\\toprule",
            _line(table.header),
            "\\midrule",
            *(_line(line, citations) for line in table.lines),
            f"\\bottomrule\n\\end{{tabular}}{below}",
            "\\end{table}",
        ]
    )


def escaped(text: str) -> str:
    r"""Return a text that LaTeX prints as it is: special characters are escaped, and ligatures are separated.

    A hyphen before a number becomes a minus sign. A number and its % stay on one line.

    Example:
        >>> print(escaped("-1.5 %"), escaped("{a}^2 [b]*"), escaped("a--b_c"))
        $-$1.5~\% \{a\}\textasciicircum{}2 {[}b]{*} a-{}-b\_c
    """
    plain = printable(text).translate(_ESCAPES)
    for pattern, better in _SPACING:
        plain = pattern.sub(better, plain)
    return plain


def _line(cells: Sequence[str], citations: Mapping[str, str] = MappingProxyType({})) -> str:
    texts = (escaped(cell) + (f"~\\cite{{{citations[cell]}}}" if cell in citations else "") for cell in cells)
    return " & ".join(texts) + r" \\"


_NUMBER = re.compile(r"|-|[-+]?[\d,.]+( %)?")

_COMMANDS = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum", "<": "textless", ">": "textgreater"}
_COMMANDS |= {"|": "textbar", "`": "textasciigrave", '"': "char34"}
_ESCAPES = str.maketrans(
    {
        **{character: f"\\{command}{{}}" for character, command in _COMMANDS.items()},
        **{character: f"\\{character}" for character in "&%$#_{}"},
        # After the line break of a row, LaTeX would read [ and * as the beginning of an option.
        **{character: f"{{{character}}}" for character in "[*"},
    }
)
_SPACING = [
    (re.compile(r"(?<![^ ])-(?=\d)"), "$-$"),
    (re.compile(r"(?<=\d) (?=\\%)"), "~"),
    (re.compile(r"([-,'])(?=\1)"), r"\1{}"),
]
"""Patterns in escaped texts and their replacements. LaTeX draws pairs such as ``--`` as one sign."""
