"""Claims of papers are read strictly: what a file has wrong is one sentence with the file, the claim and the key."""

from pathlib import Path

import pytest

from lengthwise.studies.claims.claim import CLAIMS, Claim, Entry, Paper, Parameters, Phrase, Stated, TableNumber, Unrun
from lengthwise.studies.claims.papers import read_paper

HEAD = 'title = "Me (2026), On Ends"\n'
STATED = '[[claims]]\nsection = "1"\nclaim = "A."\nevidence = "stated"\nverdict = "reproduced"\npage = "p.md"\n'
TABLE = """[[claims]]
section = "2"
claim = "{row}, {column}."
evidence = "entry"
experiment = "ends"
column = "C=2"
columns = ["row", "fails"]
rows = [["Parity"], ["Sum", true]]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "claims.toml"


def paper(file: Path, text: str) -> Paper:
    file.write_text(text, encoding="utf-8")
    return read_paper(file)


def test_a_file_becomes_claims_with_their_evidence(file: Path) -> None:
    text = (
        'note = "A note."\n[smaller]\nends = "half"\n[takes]\nends = "a GPU"\n'
        f'{STATED}heading = "Speed"\nnumbers = [["T=40", "scan", "ms"]]\nwhy = "for once"\npublished = "3"\n{TABLE}'
    )
    read = paper(file, HEAD + text)
    assert (read.title, read.note, read.smaller, read.takes) == (
        "Me (2026), On Ends",
        "A note.",
        {"ends": "half"},
        {"ends": "a GPU"},
    )
    number = TableNumber("p.md", "T=40", ("scan", "ms"), "Speed")
    assert read.claims == (
        Claim("1", "A.", Stated("reproduced", "p.md", numbers=(number,), why="for once"), "3"),
        Claim("2", "Parity, C=2.", Entry("ends", "Parity", "C=2")),
        Claim("2", "Sum, C=2.", Entry("ends", "Sum", "C=2", fails=True)),
    )


def test_numbers_are_also_phrases_and_parameters(file: Path) -> None:
    text = f'{HEAD}{STATED}phrases = [\'(\\d+) nets\']\nparameters = [["ends", "Sum", "C=2"]]\n'
    (claim,) = paper(file, text).claims
    assert isinstance(claim.evidence, Stated)
    assert claim.evidence.numbers == (Phrase("p.md", r"(\d+) nets"), Parameters("ends", "Sum", "C=2"))


def test_what_was_not_run_has_a_reason(file: Path) -> None:
    (claim,) = paper(file, f'{HEAD}[[claims]]\nsection = "3"\nclaim = "B."\nevidence = "unrun"\nwhy = "cost"\n').claims
    assert claim == Claim("3", "B.", Unrun("cost"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}claims = 3", "`claims`: expected a list, got 3; correct"),
        (f"{HEAD}titel = 1\n{STATED}", r"claims\.toml: unknown key 'titel'; did you mean 'title'\?"),
        (STATED, r"claims\.toml: `title`: expected a value, got none; give one"),
        (f"{HEAD}claims = []", r"claims\.toml: `claims`: expected at least 1 item, got"),
        (f"{HEAD}{STATED}pages = 1", r"claims\.toml: claim 'A\.': unknown key 'pages'; did you mean 'page'\?"),
        (f"{HEAD}{STATED}row = 'x'", r"claim 'A\.': unknown key 'row'"),
        (HEAD + STATED.replace('page = "p.md"\n', ""), r"claim 'A\.': `page`: expected a value, got none; give one"),
        (HEAD + STATED.replace('claim = "A."\n', ""), r"table 1 of claims: `claim`: expected a value, got none"),
        (
            HEAD + STATED.replace("reproduced", "repeated"),
            r"claim 'A\.': `verdict`: expected 'reproduced', .*got 'repe",
        ),
        (HEAD + STATED.replace('"stated"', '"state"'), r"`evidence`: unknown kind 'state'; did you mean 'stated'\?"),
        (f"{HEAD}{STATED}why = 3", r"claim 'A\.': `why`: expected a string, got 3; correct"),
        (f"{HEAD}{STATED}numbers = [['T=40']]", r"claim 'A\.': `numbers\.0`: expected at least 2 items"),
        (HEAD + STATED + STATED, r"claim 'A\.': .* got this claim twice in section '1'; remove one"),
        (HEAD + TABLE.replace("{row}", ""), r"claim ', C=2\.': .* twice in section '2'"),
        (HEAD + TABLE.replace("true]", "true, 1]"), "table 1 of claims: `rows`: expected at most 2 values"),
        (HEAD + TABLE.replace('"fails"]', '"column"]'), "table 1 of claims: `columns`: expected each key once"),
        (HEAD + TABLE.replace('columns = ["row", "fails"]\n', ""), "table 1 of claims: `columns`: expected a value"),
        (HEAD + TABLE.replace("true", "1"), r"claim 'Sum, C=2\.': `fails`: expected true or false, got 1; correct"),
    ],
)
def test_what_is_wrong_is_one_sentence(file: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        paper(file, text)
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)


def test_papers_are_listed_by_their_folders_and_an_unknown_one_has_a_suggestion() -> None:
    assert list(CLAIMS) == ["chi2023", "fan2024", "memorization", "xu2024"]
    with pytest.raises(ValueError, match="unknown paper 'chi2024'; did you mean 'chi2023'"):
        CLAIMS["chi2024"]
