"""The languages of MLRegTest by name, from a folder of automata that the user has."""

import re
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from string import ascii_letters
from types import MappingProxyType

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.formats.mlregtest import read_mlregtest
from lengthwise.randomness import generator_for
from lengthwise.registry import nearest

CLASSES = (
    *("SL", "coSL", "TSL", "TcoSL", "SP", "coSP", "LT", "TLT"),
    *("PT", "LTT", "TLTT", "PLT", "TPLT", "SF", "Zp", "Reg"),
)
"""The classes of languages, in the order of the paper's tables."""

COMPLEMENTS: Mapping[str, str] = MappingProxyType({"coSL": "SL", "TcoSL": "TSL", "coSP": "SP"})
"""The classes without files of their own, each with the class whose complements it contains."""

SYMBOLS = ascii_letters + "áàǎéèěóòǒúùǔ"
"""The symbols of the largest alphabet; the first 4 and 16 symbols are the smaller alphabets."""

_NAME = re.compile(r"(04|16|64)\.(\d\d)\.([A-Za-z]+)\.(\d)\.(\d)\.(\d)")


def language_class(name: str) -> str:
    """Return the class in the name of a language: ``ALPHABET.TIER.CLASS.K.J.I``.

    Raises:
        ValueError: the name has another form, or contains an unknown class.

    Example:
        >>> language_class("04.03.TcoSL.2.1.0")
        'TcoSL'
    """
    match = _NAME.fullmatch(name)
    if match is None or match[3] not in CLASSES:
        close = "" if match is None else nearest(match[3], CLASSES)
        way_out = close or "; `language_names` lists all names"
        raise ValueError(f"name: expected a language such as 04.04.SL.2.1.0, got {name!r}{way_out}")
    return match[3]


def language_names(folder: Path) -> list[str]:
    """Return the names of all languages whose automata, or whose complements' automata, are in a folder of .att files.

    Raises:
        ValueError: the folder has no automaton of MLRegTest, or a file name contains an unknown class of languages.
    """
    names = [path.stem for path in sorted(folder.glob("*.att")) if _NAME.fullmatch(path.stem)]
    if not names:
        raise ValueError(
            f"{folder}: expected a folder with automata of MLRegTest such as 04.04.SL.2.1.0.att, got none; name the "
            "folder src/fstlib/att_format of MLRegTest's repository"
        )
    by_class = {of_class: complement for complement, of_class in COMPLEMENTS.items()}
    complements = [
        name.replace(f".{kind}.", f".{by_class[kind]}.") for name in names if (kind := language_class(name)) in by_class
    ]
    return sorted([*names, *complements])


def read_language(folder: Path, name: str) -> DFA:
    """Return the smallest automaton of a language, over its whole alphabet of 4, 16 or 64 symbols.

    Raises:
        ValueError: `language_class` rejects the name, or the file is missing or is not an automaton.
    """
    kind = language_class(name)
    alphabet = SYMBOLS[: int(name[:2])]
    own = COMPLEMENTS.get(kind, kind)
    language = read_mlregtest(folder / f"{name.replace(f'.{kind}.', f'.{own}.')}.att", alphabet)
    return language if own == kind else language.complement()


def draw_languages(folder: Path, count: int, seed: int = 0) -> list[str]:
    """Draw names of languages, about equally many from each class.

    If a class has too few languages, all its languages are drawn.

    Raises:
        ValueError: `count` is below 1, or exceeds the number of languages; the folder has no automata.
    """
    chance = np.random.default_rng(generator_for(seed, "mlregtest").initial_seed())
    names = language_names(folder)
    if not 1 <= count <= len(names):
        raise ValueError(
            f"count: expected 1 to {len(names):,}, the number of languages in {folder}, got {count:,}; choose a "
            "count in this range"
        )
    shuffled = [names[index] for index in chance.permutation(len(names))]
    by_class = {kind: [name for name in shuffled if language_class(name) == kind] for kind in CLASSES}
    rounds = [name for names_of_round in zip_longest(*by_class.values()) for name in names_of_round if name is not None]
    return sorted(rounds[:count], key=lambda name: (CLASSES.index(language_class(name)), name))
