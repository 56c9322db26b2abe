"""Tables in LaTeX print the texts of their cells; TeX itself is not needed for these tests."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from lengthwise.display import printable
from lengthwise.report.tables.latex import escaped, latex_table
from lengthwise.report.tables.table import Table

TOKEN = re.compile(r"\\[a-z]+\d*\{\}|\\.|\$-\$|\{[\[*]\}|\{\}|.", re.DOTALL)
COMMANDS = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "char34": '"'}
COMMANDS |= {"textless": "<", "textgreater": ">", "textbar": "|", "textasciigrave": "`"}


def shown_by_tex(code: str) -> str:
    """What TeX prints, by its own rules: an unescaped special character or a ligature is an error."""
    texts: list[str] = []
    for token in TOKEN.findall(code):
        if token.startswith("\\"):
            texts.append(COMMANDS[token[1:-2]] if token.endswith("{}") else token[1])
        elif token == "{}":
            texts.append("")
        elif token in ("$-$", "{[}", "{*}"):
            texts.append(token[1])
        else:
            assert token not in '\\&%$#_{}^<>|`"[*', code
            assert token not in "-,'" or not texts or texts[-1] != token, code
            texts.append(" " if token == "~" else token)
    return "".join(texts)


@given(st.text(st.sampled_from("\\~^<>|`\"[]*&%$#_{}-,'?! \na1=ö"), max_size=12))
@example("--''")
@example("-5 % of [a]*")
def test_a_cell_is_printed_as_it_is(text: str) -> None:
    assert shown_by_tex(escaped(text)) == printable(text)


def test_a_table_has_a_row_for_each_line_and_aligns_numbers() -> None:
    table = Table(("model", "at 40"), (("a & b", "-1.50 %"), ("[c]", "-")), shared=(("runs", "2"),))
    lines = latex_table(table, "50 % & more").splitlines()
    assert r"\caption{50~\% \& more}" in lines
    assert r"\begin{tabular}{lr}" in lines
    assert lines[lines.index(r"\midrule") + 1 :][:3] == [r"a \& b & $-$1.50~\% \\", r"{[}c] & - \\", r"\bottomrule"]
    assert "The same in every row: 2 runs." in lines


def test_a_table_without_rows_keeps_its_header() -> None:
    assert "\\begin{tabular}{ll}\n\\toprule\na & b \\\\" in latex_table(Table(("a", "b"), ()))
