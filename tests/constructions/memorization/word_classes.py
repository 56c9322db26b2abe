"""All words of some size, one of each class up to rotation and renaming of symbols."""

from collections.abc import Iterator
from itertools import product


def word_classes(num_symbols: int, period: int) -> Iterator[str]:
    """Primitive words in which every symbol occurs, the least of each class."""
    for letters in product(range(num_symbols), repeat=period):
        if letters[0] or len(set(letters)) < num_symbols:
            continue
        rotations = [letters[shift:] + letters[:shift] for shift in range(period)]
        if min(map(renamed, rotations)) == letters and rotations.count(letters) == 1:
            yield "".join("abcdefgh"[letter] for letter in letters)


def renamed(letters: tuple[int, ...]) -> tuple[int, ...]:
    names: dict[int, int] = {}
    return tuple(names.setdefault(letter, len(names)) for letter in letters)
