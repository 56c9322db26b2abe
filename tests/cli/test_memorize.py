"""The command `memorize` as its user meets it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import exit_code


def run(*arguments: str) -> int:
    return exit_code("memorize", *arguments)


def test_says_dimension_matrices_and_lifetimes_and_draws(tmp_path: Path, capsys) -> None:
    picture = tmp_path / "folder" / "orbit.svg"
    assert run("abacabad", "--prove", "--out", str(picture)) == 0
    text = capsys.readouterr().out
    assert "dimension: 3, the smallest" in text
    assert "frequencies: 1, 4 (of 8" in text
    assert re.search(r"^margin: 0\.\d+ ", text, flags=re.MULTILINE)
    assert all(f"\n{name}:\n" in text for name in ("W_h", "W_y", "b_y", "h_1"))
    assert "bfloat16: first wrong symbol at step 6,492\n" in text
    assert "proof: no dimension below 3 is enough. It has 4 maximal sets of frequencies, and" in text
    assert text.endswith(f"wrote {picture}\n")
    assert picture.read_text().startswith("<svg")


def test_rational_matrices_are_integers(tmp_path: Path, capsys) -> None:
    assert run("00000111", "--rational", "--out", str(tmp_path / "orbit.png")) == 0
    text = capsys.readouterr().out
    assert "dimension: 4, the smallest with a rational W_h, as many as a matrix of order 8 needs" in text
    assert "minimal polynomial: Phi_8" in text
    assert "float64: indefinitely" in text
    assert (tmp_path / "orbit.png").read_bytes().startswith(b"\x89PNG")
    assert run("000000011111111", "--rational", "--prove", "--out", str(tmp_path / "orbit.png")) == 0
    assert "dimension: 8, the smallest with a rational W_h, more than the 6 that" in capsys.readouterr().out


def test_more_dimensions_for_the_margin(tmp_path: Path, capsys) -> None:
    out = str(tmp_path / "orbit.png")
    margins = []
    for options in (["--robust"], ["--robust", "--max-dimension", "9"]):
        assert run("0010110111", *options, "--out", out) == 0
        text = capsys.readouterr().out
        margins.append(float(re.search(r"^margin: ([\d.]+)", text, flags=re.MULTILINE).group(1)))
    assert margins[0] < margins[1]
    assert "for a wider margin; the smallest is" in text


def test_words_that_say_less_than_they_seem_to(tmp_path: Path, capsys) -> None:
    out = ("--out", str(tmp_path / "orbit.png"))
    assert run("aaa", *out) == 0
    text = capsys.readouterr().out
    assert "dimension: 0, the bias alone repeats one symbol" in text
    assert "this word 3 times" in text
    assert not list(tmp_path.iterdir())
    assert run("abab", *out) == 0
    assert "word: ab, period 2" in capsys.readouterr().out
    assert run("-+-", *out) == 0
    text = capsys.readouterr().out
    assert "symbols + -" in text
    assert re.search(r"bfloat16: first wrong symbol at step [\d,]+ \(1,804\)\n", text), "next to the formula"


def test_bounds_are_marked(tmp_path: Path, capsys) -> None:
    assert run("00101101110100011110", "--budget", "1", "--out", str(tmp_path / "orbit.png")) == 0
    text = capsys.readouterr().out
    assert "BOUNDS ONLY: the smallest dimension is at least" in text
    assert "maybe not the smallest" in text
    assert run("000000011111111", "--rational", "--budget", "1", "--out", str(tmp_path / "orbit.png")) == 0
    text = capsys.readouterr().out
    assert "BOUNDS ONLY: the smallest dimension of a rational W_h is at least 8 and at most 14" in text
    assert run("0010110111", "--robust", "--budget", "1", "--out", str(tmp_path / "orbit.png")) == 0
    assert "NOT ALL frequencies were tried, for lack of budget" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([""], "word: expected at least one symbol, got an empty word; give the word to repeat"),
        (["".join(map(chr, range(200, 265)))], "word: expected at most 64 different symbols, got 65; use fewer"),
        (
            ["abacabad", "--max-dimension", "2"],
            "--max-dimension: expected at least 3, which 'abacabad' needs, got 2; allow more",
        ),
        (
            ["00000111", "--rational", "--max-dimension", "3"],
            "needs with a rational matrix, got 3",
        ),
        (["ab", "--rational", "--robust"], "--robust: not allowed with --rational"),
        (
            ["ab", "--max-dimension", "x"],
            "--max-dimension: expected a whole number of at least 1, got x; give such a number",
        ),
        (
            ["ab", "--max-dimension", "5000"],
            "at most 999, which is enough for every word, got 5000; lower",
        ),
        (["ab", "--budget", "0"], "--budget: expected a whole number of at least 1, got 0"),
        (["ab", "--out", "orbit.jpg"], "--out: expected a name that ends in .png, .svg, .pdf, got 'orbit.jpg'"),
        ([], "WORD"),
    ],
)
def test_mistakes_get_one_sentence_and_code_2(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", [30, 120])
def test_a_matrix_fits_a_terminal(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run("0010110111", "--out", str(tmp_path / "orbit.png")) == 0
    matrices = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("  [", "   "))]
    assert matrices
    assert all(len(line) <= columns for line in matrices)


def test_what_has_no_weights_needs_no_torch(tmp_path: Path) -> None:
    """One process runs all commands, since most of its time goes to imports."""
    commands = [["memorize", "abac"], ["diff", "(a|b)*", "[ab]*"], ["convert", "ab*", "m.dot"], ["describe", "a*"]]
    code = (
        f"import sys\nfrom lengthwise.cli.app import main\n"
        f"for command in {commands}:\n    try:\n        main(command)\n"
        "    except SystemExit as stopped:\n        assert not stopped.code\n"
        "    assert 'torch' not in sys.modules, command"
    )
    environment = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
