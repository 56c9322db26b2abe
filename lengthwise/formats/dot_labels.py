"""Labels in DOT: their escapes, lines, fields and lists of symbols, and the text of labels in HTML."""

import re
from html import unescape

BREAKS = (r"\n", r"\l", r"\r", "\n")
r"""The marks that end a line of a label. A raw line break comes only from ``<br/>``: the parser escapes all other raw
breaks."""

SUBSTITUTED = "NGEHTL"
r"""Letters that, after a ``\``, Graphviz replaces by the name of a node, graph or edge."""

ENTITY = re.compile(r"(?<!\\)&(?:#\w+|\w+);")
r"""A pattern of texts that Graphviz replaces by a character, such as ``&lt;``."""

_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_TOKEN = re.compile(r"\\.|.", re.DOTALL)
_FORMATTING = ("b", "i", "u", "o", "s", "font", "sub", "sup")


def plain_text(label: str) -> str:
    r"""Return a label without escapes, and without spaces around it unless these are escaped.

    Raises:
        ValueError: the label contains a line break, an escape that Graphviz replaces by a name, or an HTML entity.

    Example:
        >>> plain_text(r" a\/b "), plain_text(r"\ a")
        ('a/b', ' a')
    """
    tokens = _tokens(label)
    while tokens and tokens[-1].isspace():
        tokens.pop()
    first = next((index for index, token in enumerate(tokens) if not token.isspace()), 0)
    for token in tokens[first:]:
        if token in BREAKS or (len(token) == 2 and token[1] in SUBSTITUTED):
            raise ValueError(
                "expected symbols and answers without Graphviz's escapes for line breaks and names, got "
                f"{token!r} in the label {quoted(label)}; remove this escape"
            )
    if (entity := ENTITY.search(label)) is not None:
        raise ValueError(
            f"expected characters, got the entity {entity[0][:20]!r} in the label {quoted(label)}; write the "
            "character, or \\& for an ampersand"
        )
    return "".join(token[1:] if len(token) == 2 else token for token in tokens[first:])


def split_once(label: str, mark: str) -> tuple[str, str] | None:
    r"""Return the texts before and after the first mark that has no ``\`` before it; None if there is no such mark.

    Example:
        >>> split_once(r"a\/b/c/d", "/"), split_once("a", "/")
        (('a\\/b', 'c/d'), None)
    """
    if mark not in label:
        return None
    length = 0
    for token in _TOKEN.findall(label):
        if token == mark:
            return label[:length], label[length + 1 :]
        length += len(token)
    return None


def label_lines(label: str) -> list[str]:
    r"""Return the lines of a label, which end at ``\n``, ``\l`` or ``\r``, without an empty last line.

    Example:
        >>> label_lines(r"q0\n1\n"), label_lines("q0")
        (['q0', '1'], ['q0'])
    """
    lines = [""]
    for token in _TOKEN.findall(label):
        if token in BREAKS:
            lines.append("")
        else:
            lines[-1] += token
    return lines[:-1] if len(lines) > 1 and not lines[-1].strip() else lines


def label_items(label: str) -> list[str]:
    r"""Return the parts of a label between commas and ends of lines, with their spaces and escapes.

    The content of brackets stays in one part if there is text before, between and after its commas. A label that
    consists only of commas and ends of lines is one part.

    Raises:
        ValueError: there is nothing between two commas; or the label is a set in braces, which may be one symbol or
            several symbols.

    Example:
        >>> label_items(r"a,b\nACK(V,V)"), label_items("(,)"), label_items("(0,1)"), label_items(r"\,")
        (['a', 'b', 'ACK(V,V)'], ['(', ')'], ['(0,1)'], ['\\,'])
    """
    tokens = _tokens(label)
    if not any(token != "," and token not in BREAKS and token.strip() for token in tokens):
        return [label]
    closing = _closing_brackets(tokens)
    parts: list[list[str]] = [[]]
    index = 0
    while index < len(tokens):
        end = closing.get(index, index)
        if tokens[index] == "," or tokens[index] in BREAKS:
            parts.append([])
        else:
            parts[-1] += tokens[index : end + 1]
        index = end + 1
    if not "".join(parts[-1]).strip() and tokens[-1] in BREAKS:
        parts.pop()
    items = ["".join(part) for part in parts]
    if not all(item.strip() for item in items):
        raise ValueError(
            f"expected symbols between commas, got none in the label {quoted(label)}; write \\, for a comma"
        )
    for part in parts:
        inner = [token for token in part if not token.isspace()]
        if inner[0] == "{" and inner[-1] == "}" and "," in inner:
            raise ValueError(
                f"expected symbols between commas, got the set {quoted(label)}; write a, b for several symbols and "
                "\\{a\\,b\\} for one symbol"
            )
    return items


def record_fields(label: str) -> list[str]:
    """Return the fields of a label of shape record, without the names of its ports.

    Raises:
        ValueError: the label contains nested fields.

    Example:
        >>> record_fields("{<left> s0 | x }"), record_fields("s0|x|y")
        ([' s0 ', ' x '], ['s0', 'x', 'y'])
    """
    tokens = _tokens(label.lstrip())
    while tokens and tokens[-1].isspace():
        tokens.pop()
    if tokens[:1] == ["{"] and tokens[-1:] == ["}"]:
        tokens = tokens[1:-1]
    if "{" in tokens or "}" in tokens:
        raise ValueError(
            f"expected a label {{state|answer}}, got nested fields in {quoted(label)}; remove the inner braces"
        )
    text = "".join(tokens)
    fields = []
    while (parts := split_once(text, "|")) is not None:
        fields.append(parts[0])
        text = parts[1]
    return [re.sub(r"^\s*<[^<>\\]*>", "", field) for field in (*fields, text)]


def html_label(html: str) -> str:
    r"""Return the lines of a label in HTML as a label with escapes; formatting is left out.

    Raises:
        ValueError: the label contains tags other than ``<br/>`` and formatting tags; or part of a line is formatted,
            and the rest is not.

    Example:
        >>> html_label("<b>a/x</b><br/>b &lt; c")
        'a/x\nb \\< c'
    """
    lines = [""]
    is_closed = False  # a formatted text ended on this line, and nothing may follow it
    for piece in re.findall(r"<[^<>]*>|[^<>]+", html):
        tag = re.fullmatch(r"</?\s*([A-Za-z]+)[^<>]*>", piece)
        name = tag[1].lower() if tag else ""
        if name == "br":
            lines.append("")
            is_closed = False
        elif tag and name in ("sub", "sup"):
            is_closed = False
        elif tag and name in _FORMATTING:
            is_closed = piece.startswith("</") and bool(lines[-1].strip())
            if not piece.startswith("</") and lines[-1].strip():
                _reject_html(piece, html)
        elif piece.startswith("<"):
            _reject_html(piece, html)
        elif piece.strip():
            if is_closed:
                _reject_html(piece, html)
            lines[-1] += _escaped_text(piece)
    return "\n".join(lines)


def quoted(label: str) -> str:
    """Return at most 60 characters of a label, in quotes, for a message."""
    return repr(label if len(label) <= 60 else f"{label[:60]}...")


def _reject_html(piece: str, html: str) -> None:
    raise ValueError(
        f"expected a label in HTML whose lines are formatted as a whole, got {quoted(piece)} in {quoted(html)}; write "
        "the label as plain text"
    )


def _escaped_text(piece: str) -> str:
    r"""Return a text of HTML with escapes, so that a ``\`` and entities such as ``&lt;`` are ordinary characters."""
    pieces = re.split(r"(&[#\w]+;)", re.sub(r"\s+", " ", piece).replace("\\", r"\\"))
    return "".join(
        "".join(f"\\{letter}" if letter in "/|,<>{}:&\\" else letter for letter in unescape(text))
        if index % 2
        else text
        for index, text in enumerate(pieces)
    )


def _tokens(label: str) -> list[str]:
    return _TOKEN.findall(label)


def _closing_brackets(tokens: list[str]) -> dict[int, int]:
    """Map the index of each opening bracket to the index of its closing bracket.

    Brackets are left out if text is missing before, between or after their commas. There is one pass over the tokens,
    with a stack for each kind of bracket. This pass takes linear time, so labels of many brackets cannot slow the
    reader down.
    """
    closing: dict[int, int] = {}
    open_brackets: dict[str, list[tuple[int, int]]] = {mark: [] for mark in _BRACKETS.values()}
    num_gaps = 0  # the number of commas so far that directly follow a comma
    last = ""  # the last token other than a space
    gap_after: set[int] = set()  # brackets that are directly followed by a comma
    opened = -1  # the bracket that the previous token opened
    for index, token in enumerate(tokens):
        if token.isspace():
            continue
        if token == ",":
            num_gaps += last == ","
            gap_after.add(opened)
        opened = index if token in _BRACKETS else -1
        if open_brackets.get(token):
            begin, gaps = open_brackets[token].pop()
            if num_gaps == gaps and begin not in gap_after and last != ",":
                closing[begin] = index
        elif token in _BRACKETS:
            open_brackets[_BRACKETS[token]].append((index, num_gaps))
        last = token
    return closing
