"""Strings that look like words with a separator between them, although each character was read as a symbol."""

import warnings
from collections import Counter

from lengthwise.tasks.given.examples import Examples

SEPARATORS = " ,;|>:/-_."
"""Characters that commonly separate words; if several are likely, the first one counts."""

MAX_STRINGS = 1_000
"""The largest number of strings that are inspected: the first strings of the examples."""

MIN_SHARE = 0.5
"""A separator other than a blank must occur in at least this fraction of the strings with several symbols."""


MIN_REPEATS = 10
"""The smallest average number of times that a word occurs: a log has few different events, and they repeat."""


def are_characters(examples: Examples) -> bool:
    """Return whether every symbol is a single character."""
    return all(len(symbol) == 1 for symbol in examples.symbols)


def warn_of_likely_separator(examples: Examples) -> None:
    """Warn if strings seem to be words with a separator between them."""
    if likely := likely_separator(examples):
        mark, text = likely
        warnings.warn(
            f"strings look like words with {mark!r} between them ({text[:60]!r}), but each character is read as a "
            f"symbol, because no separator is given; if symbols are words, give {mark!r} as the separator",
            stacklevel=4,  # past `learn` and the wrapper of `one_thread`, so that the caller's line is named
        )


def likely_separator(examples: Examples) -> tuple[str, str] | None:
    """Return the separator that strings of characters seem to have, and a string that contains it, or None.

    A blank between other characters of one string is enough. Any other separator must be in at least half of the
    strings of several characters. Most words between separators must have several characters. The words must also
    repeat, because most words of a log occur in several rows.
    """
    if not are_characters(examples):
        return None
    bounds = zip(examples.starts[:-1].tolist(), examples.starts[1 : MAX_STRINGS + 1].tolist(), strict=False)
    texts = ["".join(examples.symbols[v] for v in examples.ids[start:end].tolist()) for start, end in bounds]
    for separator in SEPARATORS:
        separated = [text for text in texts if separator in text.strip(separator)]
        if separated and (separator.isspace() or _has_words(separated, texts, separator)):
            return separator, separated[0]
    return None


def _has_words(separated: list[str], texts: list[str], separator: str) -> bool:
    words = Counter(word for text in separated for word in text.split(separator) if word)
    has_several = sum(len(text) > 1 for text in texts)
    is_common = len(separated) >= MIN_SHARE * has_several
    are_long = 2 * sum(count for word, count in words.items() if len(word) > 1) > words.total()
    return is_common and are_long and MIN_REPEATS * len(words) <= words.total()
