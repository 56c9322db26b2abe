"""Arcs of acceptors and transducers, as OpenFst, foma and HFST write them."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.draft import Draft

EPSILON = "<eps>"
"""The word that written files contain to mean "no symbol" or "no output"."""

EPSILONS = frozenset({"", EPSILON, "<epsilon>", "ε", "ϵ", "@0@", "@_EPSILON_SYMBOL_@"})
"""The words with which other tools mean "no symbol" or "no output"."""

_DOUBTFUL = re.compile(r"λ|Λ|lambda|eps|epsilon|&epsilon;|\*e\*|@.+@", re.IGNORECASE | re.DOTALL)
"""A pattern of words that mean "no symbol" or "any symbol" in some tools, and are ordinary symbols in other tools."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?|nan", re.IGNORECASE)


class Arc(NamedTuple):
    """An edge that reads a symbol and may write an output, with its line number in the file.

    `output` is None if the arcs of the file have no outputs.
    """

    source: str
    target: str
    symbol: str
    output: str | None
    line: int


def is_doubtful(word: str) -> bool:
    """Return whether a word is ambiguous: it may mean no symbol or any symbol, or it may be a symbol.

    Example:
        >>> is_doubtful("λ"), is_doubtful("@_IDENTITY_SYMBOL_@"), is_doubtful("@"), is_doubtful("<eps>")
        (True, True, False, False)
    """
    return word not in EPSILONS and _DOUBTFUL.fullmatch(word) is not None


def are_weights(outputs: Iterable[str]) -> bool:
    """Return whether the outputs look like weights: each is a number, or several numbers separated by commas.

    Example:
        >>> are_weights(["1", "0.5"]), are_weights(["1", "x"]), are_weights([])
        (True, False, False)
    """
    # OpenFst prints a weight as the last column, like an output. A reader cannot distinguish weights from answers that
    # are numbers, so such files are rejected.
    words = [word for output in outputs for word in output.split(",")]
    return bool(words) and all(_NUMBER.fullmatch(word) for word in words)


def are_copies(arcs: Iterable[tuple[str, str]]) -> bool:
    """Return whether each arc writes the symbol that it reads.

    If all symbols and outputs are the same number, the result is False, because the outputs may be weights.
    """
    labels = set(arcs)
    numbers = {symbol for symbol, _ in labels}
    return all(symbol == output for symbol, output in labels) and not (len(numbers) == 1 and are_weights(numbers))


def machine_of_arcs(start: str, arcs: Sequence[Arc], final: Collection[str]) -> LabeledMachine:
    """Return the machine that has these arcs; its symbols are texts.

    Arcs without outputs make an acceptor. Arcs that all write the symbol that they read also make an acceptor, because
    OpenFst stores and prints acceptors in this way. All other arcs make a transducer, whose answer is the last output.
    A string has no answer if its last output is empty or its last state is not final.

    Raises:
        ValueError: all outputs are numbers, which may be weights. An arc of a transducer reads nothing. A word is
            ambiguous, because it may mean no symbol or no output. For example, 0 may mean no symbol if all symbols are
            numbers, and a state lacks an edge for one of them.
    """
    arcs = [_normalized(arc) for arc in arcs]
    outputs = [arc.output for arc in arcs if arc.output is not None]
    is_acceptor = not outputs or are_copies((arc.symbol, arc.output or "") for arc in arcs)
    if not is_acceptor and are_weights(named := [output for output in outputs if output]):
        raise ValueError(
            f"expected outputs, got only numbers such as {named[0]}, which are read as weights; remove the weights, or "
            "rename the outputs"
        )
    _check_zero(arcs)
    draft = Draft()
    draft.set_start(start)
    for arc in arcs:
        if arc.symbol:
            output = "" if is_acceptor or arc.target not in final else arc.output or ""
            draft.add_edge(arc.source, arc.symbol, arc.target, output)
        elif is_acceptor:
            draft.add_empty_edge(arc.source, arc.target)
        else:
            raise ValueError(f"line {arc.line}: expected a symbol, got {EPSILON}; remove edges that read nothing")
    for state in final:
        draft.add_state(state)
    return draft.automaton(final) if is_acceptor else draft.mealy()


def _normalized(arc: Arc) -> Arc:
    """Return the arc with empty texts for words that mean "no symbol" or "no output"; reject ambiguous words."""
    for word in (arc.symbol, arc.output or ""):
        if is_doubtful(word):
            raise ValueError(
                f"line {arc.line}: expected symbols, got {word!r}, which may mean no symbol; write {EPSILON} for no "
                "symbol, or rename the symbol"
            )
    symbol = "" if arc.symbol in EPSILONS else arc.symbol
    output = "" if arc.output in EPSILONS else arc.output
    return arc if (symbol, output) == (arc.symbol, arc.output) else arc._replace(symbol=symbol, output=output)


def _check_zero(arcs: Sequence[Arc]) -> None:
    """Raise a ValueError if 0 may stand for no symbol, as it does in files without a table of symbols.

    If each state has exactly one edge for each number, then 0 is a symbol.
    """
    symbols = {arc.symbol for arc in arcs}
    if "0" not in symbols or not all(re.fullmatch("[0-9]+", symbol) for symbol in symbols):
        return
    states = {state for arc in arcs for state in (arc.source, arc.target)}
    pairs = {(arc.source, arc.symbol) for arc in arcs}
    if not len(pairs) == len(arcs) == len(states) * len(symbols):
        line = next(arc.line for arc in arcs if arc.symbol == "0")
        raise ValueError(
            f"line {line}: expected symbols with names, got the number 0, which may mean no symbol; write names "
            "instead of numbers or, if 0 is a symbol, give each state one edge for each number"
        )
