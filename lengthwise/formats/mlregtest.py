"""The automata of MLRegTest's languages, from files that the user has."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.dfa import DFA
from lengthwise.formats.att import ATT, att_rows
from lengthwise.formats.files import parsed_file
from lengthwise.validation import path_of


def read_mlregtest(path: str | Path, alphabet: Sequence[str] = ()) -> DFA:
    r"""Return the smallest automaton of an MLRegTest language, from a file of the repository's `src/fstlib/att_format`.

    The files contain acceptors in AT&T text, as OpenFst prints them. Each edge is ``source target symbol symbol``, with
    equal symbols, and final states are alone on their lines. Missing edges lead to a rejecting sink. The alphabet is
    the sorted list of the edges' symbols. If a language forbids a symbol everywhere, no edge has this symbol. Then
    `alphabet` must list all symbols. MLRegTest has no files for complements of languages, but
    ``read_mlregtest(path).complement()`` returns the complement.

    ``make_task("dfa", **read_mlregtest(path).to_json())`` makes the task of the language. The task draws strings of any
    length, as every recognition task does. Some of them are near misses, which are strings just outside the language.
    `lengthwise.tasks.given` reads MLRegTest's data sets.

    Raises:
        ValueError: the file is missing or not UTF-8, or has other content; or the alphabet lacks a symbol of an edge.

    Source: MLRegTest (JMLR 25(283), 2024), the automata of its repository.
    """
    path = path_of("path", path)
    return parsed_file(path, "a file of MLRegTest", partial(parse_mlregtest, alphabet=alphabet))


def parse_mlregtest(text: str, alphabet: Sequence[str] = ()) -> DFA:
    r"""Return the result of `read_mlregtest` for the text of a file.

    Raises:
        ValueError: for the same reasons as `read_mlregtest`.

    Example:
        >>> parse_mlregtest("0 1 a a\n1 0 b b\n0\n", "abc").to_json()["transitions"]
        [[1, 2, 2], [2, 0, 2], [2, 2, 2]]
    """
    alphabet = tuple(alphabet)
    for number, words in att_rows(text):
        # An edge with another output belongs to a transducer, which must not be read as an acceptor.
        if len(words) > 3 and words[2] != words[3]:
            raise ValueError(
                f"line {number}: expected an edge that writes the symbol it reads, got {words[2]!r} and {words[3]!r}; "
                "for a transducer, use the task 'machine'"
            )
    given = ATT.read(text)
    missing = [symbol for symbol in given.symbols if alphabet and symbol not in alphabet]
    if missing:
        raise ValueError(
            f"alphabet: expected every symbol of the edges, got an alphabet without {missing[0]!r}; add this symbol"
        )
    symbols = alphabet or tuple(sorted(given.symbols))
    return given.with_symbols(symbols).aligned(symbols, REJECT_ACCEPT).dfa().minimize()
