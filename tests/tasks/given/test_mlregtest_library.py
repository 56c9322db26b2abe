"""Languages of MLRegTest by name, from a folder with files written here."""

from collections import Counter
from pathlib import Path

import pytest

from lengthwise.tasks.given.mlregtest_library import (
    CLASSES,
    SYMBOLS,
    draw_languages,
    language_class,
    language_names,
    read_language,
)

NO_AA = "0 1 a a\n0 0 b b\n1 0 b b\n0\n1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for kind in ("SL", "TSL", "SP", "LT"):
        for number in range(3):
            (tmp_path / f"04.04.{kind}.2.1.{number}.att").write_text(NO_AA)
    (tmp_path / "16.16.Reg.0.0.0.att").write_text(NO_AA)
    (tmp_path / "notes.att").write_text("no automaton\n")
    return tmp_path


def test_names_have_the_complements_without_files(folder: Path) -> None:
    counts = Counter(language_class(name) for name in language_names(folder))
    assert counts == {"SL": 3, "coSL": 3, "TSL": 3, "TcoSL": 3, "SP": 3, "coSP": 3, "LT": 3, "Reg": 1}


def test_a_language_has_its_whole_alphabet(folder: Path) -> None:
    language, opposite = read_language(folder, "04.04.SL.2.1.0"), read_language(folder, "04.04.coSL.2.1.0")
    assert language.symbols == ("a", "b", "c", "d")
    assert language.complement().equivalent(opposite)
    assert language.count(2) == 3
    assert read_language(folder, "16.16.Reg.0.0.0").symbols == tuple("abcdefghijklmnop")
    assert len(SYMBOLS) == len(set(SYMBOLS)) == 64
    assert len(CLASSES) == 16


def test_classes_are_drawn_equally_often(folder: Path) -> None:
    names = draw_languages(folder, 15, seed=1)
    assert len(set(names)) == 15
    counts = Counter(map(language_class, names))
    assert counts == {"SL": 2, "coSL": 2, "TSL": 2, "TcoSL": 2, "SP": 2, "coSP": 2, "LT": 2, "Reg": 1}
    assert [CLASSES.index(language_class(name)) for name in names] == sorted(
        CLASSES.index(language_class(n)) for n in names
    )
    assert draw_languages(folder, 15, seed=1) == names
    assert any(draw_languages(folder, 15, seed=seed) != names for seed in (2, 3))
    assert draw_languages(folder, 22) == sorted(
        language_names(folder), key=lambda n: (CLASSES.index(language_class(n)), n)
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "04.04.SLL.2.1.0",
            r"name: expected a language such as 04\.04\.SL\.2\.1\.0, got '.*'; did you mean 'SL'\?$",
        ),
        (
            "05.04.SL.2.1.0",
            r"name: expected a language such as .*, got '05\.04\.SL\.2\.1\.0'; `language_names` lists all names$",
        ),
        ("04.04.SL.2.1.0.att", "name: expected a language such as"),
        ("../04.04.SL.2.1.0", "name: expected a language such as"),
        ("04.04.coLT.2.1.0", "name: expected a language such as"),
        (
            "04.04.SL.2.1.9",
            r"04\.04\.SL\.2\.1\.9\.att: expected a file of MLRegTest, found no such file; check its name$",
        ),
    ],
)
def test_other_names_are_rejected(name: str, message: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_language(folder, name)


def test_other_folders_and_counts_are_rejected(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a folder with automata of MLRegTest .*, got none; name the folder"):
        language_names(tmp_path / "empty")
    for count in (0, 23):
        with pytest.raises(
            ValueError, match=rf"count: expected 1 to 22, the number of .*, got {count}; choose a count"
        ):
            draw_languages(folder, count)
