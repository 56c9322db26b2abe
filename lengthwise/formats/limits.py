"""Limits for the content of a machine file, so that reading the file takes less than a gigabyte of memory."""

from collections.abc import Iterable

from lengthwise.automata.semiautomaton import MAX_TRANSITIONS
from lengthwise.validation import check_kind

MAX_CHARACTERS = 20_000_000
"""The largest number of characters in a text; parsed JSON or XML takes about twenty times as many bytes."""

MAX_NAMED_STATES = 200_000
"""The largest number of named states that are kept while a file is read, about a kilobyte each."""

MAX_NAME = 10_000
"""The largest number of characters in the name of a symbol, a state or an answer."""


def check_text(text: str) -> None:
    """Raise a ValueError if a file is longer than `MAX_CHARACTERS`."""
    check_kind("text", text, str, "the text of a machine")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"expected a machine's text of at most {MAX_CHARACTERS:,} characters, got {len(text):,}; minimize the "
            "machine before you write it"
        )


def check_names(names: Iterable[str]) -> None:
    """Raise a ValueError if a name is longer than `MAX_NAME`."""
    for name in names:
        if len(name) > MAX_NAME:
            raise ValueError(
                f"expected names of at most {MAX_NAME:,} characters, got a name of {len(name):,} characters that "
                f"begins with {name[:20]!r}; shorten it"
            )


def check_table(num_states: int, num_symbols: int) -> None:
    """Raise a ValueError for more than `MAX_NAMED_STATES` states, or more than `MAX_TRANSITIONS` transitions."""
    if num_states > MAX_NAMED_STATES:
        raise ValueError(
            f"expected at most {MAX_NAMED_STATES:,} states, got {num_states:,}, including states that "
            "reading adds; make the machine smaller"
        )
    if num_states * num_symbols > MAX_TRANSITIONS:
        raise ValueError(
            f"expected at most {MAX_TRANSITIONS:,} transitions, got {num_states * num_symbols:,} ({num_states:,} "
            f"states and {num_symbols:,} symbols); make the machine smaller"
        )
