"""Regular expressions in files: a line, and the symbols where it does not name them."""

import pytest

from lengthwise.formats.json import JSON
from lengthwise.formats.regex import Regex


@pytest.mark.parametrize(
    ("text", "symbols", "rewritten"),
    [
        ("(a|b)*abb", "ab", "(b*a)+bb\n"),
        ("a*\nalphabet: ba\n", "ba", "a*\nalphabet: ba\n"),
        ("\nalphabet: a", "a", "\nalphabet: a\n"),
        ("[^ab]", "ab", "[^ab]\nalphabet: ab\n"),
        (" *\r\n", " ", " *\n"),
    ],
)
def test_symbols_are_kept(text: str, symbols: str, rewritten: str) -> None:
    machine = Regex.read(text)
    assert machine.symbols == tuple(symbols)
    assert Regex.write(machine) == rewritten
    assert Regex.read(rewritten).dfa().equivalent(machine.dfa())


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("GET (PUT OK)*\nwords: OK PUT GET", "GET (PUT OK)*\nwords: OK PUT GET\n"),
        ("a|b\nwords: b a", "[ab]\nalphabet: ba\n"),
        ("\nwords:  GET  PUT", "\nwords: GET PUT\n"),
        ("[^GET a]\nwords: GET a", "[^GET a]\nwords: GET a\n"),
    ],
)
def test_words_are_listed(text: str, rewritten: str) -> None:
    machine = Regex.read(text)
    assert Regex.write(machine) == rewritten
    again = Regex.read(rewritten)
    assert again.symbols == machine.symbols
    assert again.dfa().equivalent(machine.dfa())


def test_states_without_an_answer_reject() -> None:
    machine = JSON.read(
        '{"symbols": ["a"], "start": 0, "table": [[1], [0]], "outputs": [-100, 0], "classes": ["yes", "no"]}'
    )
    assert Regex.write(machine) == "a(aa)*\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a\nb\n",
            r"^expected a regular expression and at most .* 'alphabet: abc' or 'words: DATA ACK', got another",
        ),
        ("a\nalphabet: a\n\n", r"got another line; remove this line, or write # before a comment$"),
        ("a\nalphabet: a\nwords: a", r"got another line; remove this line, or write # before a comment$"),
        (
            "GET\nwords: PUT",
            r"^alphabet: expected the symbols of 'GET', got 'PUT', without 'GET'; add the missing symbols$",
        ),
        ("(a", r"^pattern: expected a closing \) at position 3 of '\(a', got the end; close the group$"),
        ("", r"^alphabet: expected at least one symbol, got none, and pattern '' contains none; give an alphabet$"),
        ("a\nalphabet: b", r"^alphabet: expected the symbols of 'a', got 'b', without 'a'; add the missing symbols$"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Regex.read(text)


def test_symbols_can_be_printed() -> None:
    machine = JSON.read('{"alphabet": ["\\u0007"], "transitions": [[0]], "accepting": [], "start": 0}')
    with pytest.raises(ValueError, match=r"^expected symbols that can be printed, got '\\x07'; rename this symbol$"):
        Regex.write(machine)


def test_other_answers_are_refused() -> None:
    machine = JSON.read('{"symbols": ["a"], "start": 0, "table": [[0]], "outputs": [0], "classes": ["x", "y"]}')
    with pytest.raises(
        ValueError,
        match=r"^classes: expected two answers such as reject and accept, got 'x', 'y'; name the accepting answer",
    ):
        Regex.write(machine)
