"""Labels of edges in DOT: the symbols that an edge reads, and its outputs."""

import re
from collections.abc import Sequence
from functools import cache

from lengthwise.formats.arcs import EPSILONS, is_doubtful
from lengthwise.formats.dot_labels import label_items, label_lines, plain_text, quoted, split_once
from lengthwise.formats.dot_syntax import Edge
from lengthwise.validation import with_article

_PROBABILITY = re.compile(r"(?:^|[\s:,;(\[=/|])(?:0?\.\d+|1\.0+|\d+(?:\.\d+)?%)[)\]]?\s*$")
"""A pattern that finds a probability or weight at the end of a label, as in ``a:0.5`` or ``a (50%)``."""

_SEVERAL = re.compile(r"\[\^.*\]|\[?\w\s*(?:-|\.\.)\s*\w\]?|(?i:else|otherwise)|[Σ∑].*", re.DOTALL)
"""A pattern of labels that may mean a range of symbols, or all other symbols."""

_STACK = re.compile(r"(push|pop)\(.*\)", re.DOTALL)
"""A pattern of the stack operation that AALpy writes after the slash in edge labels of pushdown automata."""


def edge_label(edge: Edge) -> str:
    """Return the label of an edge, or an empty text if the edge has no label."""
    return edge.attributes.get("label", "")


def has_output(label: str) -> bool:
    r"""Return whether a label has a ``/`` that is not escaped, with something before it."""
    parts = split_once(label, "/")
    return parts is not None and bool(parts[0].strip())


def ends_like_certainty(label: str) -> bool:
    """Return whether a label ends in ``:0`` or ``:1``, which are probabilities only if all labels end like this."""
    return re.search(r":\s*[01]\s*$", label) is not None


@cache
def symbols_of_label(label: str) -> tuple[str, ...]:
    r"""Return the symbols of an edge; an empty symbol means that the edge reads nothing.

    Raises:
        ValueError: part of the label may be an output or a probability, or may mean several symbols or no symbol.

    Example:
        >>> symbols_of_label("a, b"), symbols_of_label("ε"), symbols_of_label(r"\ε")
        (('a', 'b'), ('',), ('ε',))
    """
    _check_end(label, "symbol")
    symbols = []
    for item in label_items(label):
        raw = item.strip()
        _check_symbol(raw, label)
        symbols.append("" if raw and raw in EPSILONS else plain_text(item))
    return tuple(symbols)


@cache
def pairs_of_label(label: str) -> tuple[tuple[str, str], ...]:
    r"""Return the symbols of a Mealy machine's edge, each with its output.

    ``a/x, b/y`` has two outputs, and ``a, b/x`` has one output for both symbols. An output may contain commas and
    slashes.

    Raises:
        ValueError: the label ends like a probability; an output changes a stack, as in a pushdown automaton; an output
            has no symbol; or part of the label has an unclear meaning.

    Example:
        >>> pairs_of_label("a/x, b/y"), pairs_of_label("a, b/x=1,y=2")
        ((('a', 'x'), ('b', 'y')), (('a', 'x=1,y=2'), ('b', 'x=1,y=2')))
    """
    _check_end(label, "output")
    first = split_once(label, "/")
    assert first is not None  # the caller has checked `has_output`
    pairs: list[tuple[str, str]] = []
    if split_once(first[1], "/") is not None:  # either several pairs, or a slash in one output
        items = [split_once(item, "/") or (item, "") for item in label_items(label)]
        if all(symbol.strip() and output.strip() and split_once(output, "/") is None for symbol, output in items):
            pairs = items
    if not pairs and len(label_lines(first[0])) > 1:
        raise ValueError(
            f"expected a symbol and its output on each line, got {quoted(label)}; write a, b/x for two symbols with "
            "one output, and \\/ for a slash in a symbol"
        )
    pairs = pairs or [(item, first[1]) for item in label_items(first[0])]
    named = []
    for item, output in pairs:
        raw = item.strip()
        lines = [line for line in label_lines(output) if line.strip()]
        answer = plain_text(lines[0] if len(lines) == 1 else output)
        _check_symbol(raw, label)
        if raw in EPSILONS:
            raise ValueError(
                f"expected a symbol before each output, got {quoted(label)}, which reads nothing; remove the edge or, "
                "if the text before the slash is a symbol, write \\ before this text"
            )
        if _STACK.fullmatch(output.strip()):
            raise ValueError(
                f"expected outputs, got {quoted(label)}, which changes a stack; write \\ before this output if it is "
                "an answer"
            )
        named.append((plain_text(item), answer))
    return tuple(named)


def _check_end(label: str, what: str) -> None:
    if _PROBABILITY.search(label):
        raise ValueError(
            f"expected {what}s without probabilities, got {quoted(label)}; remove the probability, or write \\ before "
            f"the number if it is part of {with_article(what)}"
        )


def _check_symbol(symbol: str, label: str) -> None:
    """Raise a ValueError if a symbol could also be read as several parts, as several symbols or as no symbol."""
    for mark in ":|→⇒":
        parts = split_once(symbol, mark)
        if parts is not None and all(part.strip() for part in parts):
            raise ValueError(
                f"expected symbols, got {quoted(label)}, which may be one symbol or several parts; write \\{mark} in a "
                "symbol, and a/x for a symbol and its output"
            )
    if _SEVERAL.fullmatch(symbol):
        raise ValueError(
            f"expected symbols, got {quoted(label)}, which may mean several symbols; list them with commas, or write "
            "\\ before a single symbol"
        )
    if is_doubtful(symbol):
        raise ValueError(
            f"expected symbols, got {quoted(label)}, which may mean no symbol; write ε for no symbol, or \\ before a "
            "symbol"
        )


def symbols_of_edge(edge: Edge) -> tuple[str, ...]:
    """Return an edge's symbols, as `symbols_of_label` does; errors in the label mention the edge's line."""
    label = edge_label(edge)
    if not label.strip():
        raise ValueError(
            f"expected a symbol on each edge, got no symbol on an edge from state {edge.source!r}; give this edge a "
            "symbol"
        )
    try:
        return symbols_of_label(label)
    except ValueError as problem:
        raise ValueError(f"line {edge.line}: {problem}") from None


def pairs_of_edge(edge: Edge) -> tuple[tuple[str, str], ...]:
    """Return an edge's symbols with their outputs, as `pairs_of_label` does; errors mention the edge's line."""
    try:
        return pairs_of_label(edge_label(edge))
    except ValueError as problem:
        raise ValueError(f"line {edge.line}: {problem}") from None


def pairs_on_two_lines(edges: Sequence[Edge]) -> list[tuple[str, str]] | None:
    """Return each edge's symbol and output if every label is HTML of two lines: the symbol and then the output.

    The two lines could also be two symbols that the edge reads. So the result is None unless there are at least two
    symbols and two outputs, and some symbol has several outputs. The result is also None if a symbol is also an output,
    or is on two edges from one state.
    """
    lines = [edge_label(edge).split("\n") for edge in edges]
    if not all(len(pair) == 2 and all(part.strip() for part in pair) for pair in lines):
        return None
    pairs = [(plain_text(symbol), plain_text(output)) for symbol, output in lines]
    symbols, outputs = {symbol for symbol, _ in pairs}, {output for _, output in pairs}
    if len(symbols) < 2 or len(outputs) < 2 or len(set(pairs)) == len(symbols) or symbols & outputs:
        return None
    are_single = len({(edge.source, symbol) for edge, (symbol, _) in zip(edges, pairs, strict=True)}) == len(edges)
    return pairs if are_single else None
