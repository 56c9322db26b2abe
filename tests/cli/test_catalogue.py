"""What there is to choose from, as a terminal of 80 columns shows it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import exit_code

from lengthwise.cli.catalogue import read_index
from lengthwise.cli.index import description, list_lines
from lengthwise.cli.members import own_families
from lengthwise.constructions import CONSTRUCTIONS
from lengthwise.layers.positions.base import POSITIONS
from lengthwise.registry import EXTENSIONS, load_extensions

FAMILIES = own_families()
NAMES = sorted({name for family in FAMILIES.values() for name in family})


def run(capsys, *arguments: str) -> str:
    assert exit_code(*arguments) == 0
    return capsys.readouterr().out


def test_list_has_a_line_for_every_member(capsys) -> None:
    lines = run(capsys, "list").splitlines()
    for family, members in FAMILIES.items():
        begin = lines.index(f"{family}:") + 1
        assert [line.split()[0] for line in lines[begin : begin + len(members)]] == list(members)


@pytest.mark.parametrize("arguments", [["list"], ["show", "parity"], ["show", "prity"], ["--help"]])
def test_the_catalogue_imports_neither_torch_nor_numpy_nor_pydantic(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom lengthwise.cli.app import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(*{'torch', 'numpy', 'pydantic'} & set(sys.modules), 'loaded')"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]


def test_members_of_users_are_listed_and_shown(tmp_path: Path, capsys, monkeypatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from lengthwise.constructions import CONSTRUCTIONS\n\n"
        "@CONSTRUCTIONS.register('catalogue-test')\ndef mine(*, size: int = 3):\n    'A construction of mine.'\n"
    )
    monkeypatch.setattr(CONSTRUCTIONS, "_members", dict(CONSTRUCTIONS._discover()))
    monkeypatch.setenv(EXTENSIONS, str(file))
    load_extensions()
    assert re.search(r"^catalogue-test +A construction of mine\.$", run(capsys, "list", "constructions"), re.MULTILINE)
    text = run(capsys, "show", "catalogue-test")
    assert f"mine in {file}" in text.replace("\n", " ")
    assert "size  integer; default 3" in text
    assert "presets with settings of this model" in run(capsys, "show", "regular-gpt")


def test_list_of_one_family(capsys) -> None:
    lines = run(capsys, "list", "presets").splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(FAMILIES["presets"])
    assert "lengthwise show NAME" in lines[-1]


@pytest.mark.parametrize("family", FAMILIES)
def test_lines_are_cut_where_a_terminal_ends(family: str) -> None:
    lines = list_lines(read_index(), family, 60)
    assert all(len(line) <= 60 for line in lines)
    assert len(lines) == len(FAMILIES[family])


@pytest.mark.parametrize("name", [*NAMES, "train"])
def test_every_description_fits_80_columns(name: str) -> None:
    lines = description(read_index(), name, 80)
    assert lines[0].startswith(f"{name}: ")
    assert all(len(line) <= 80 for line in lines if ">>>" not in line and not line.startswith("    "))
    assert not re.search(r"<class|typing\.|FieldInfo|<function", "\n".join(lines))


def test_a_task_is_shown_with_definition_settings_source_and_pages(capsys) -> None:
    text = run(capsys, "show", "parity")
    assert "``answer_t = (number of b among symbols 1 ... t) mod 2``" in text
    assert "task.p  number > 0 and < 1; default 0.5" in text
    assert "symbols: a b\nclasses: 0 1\n" in text
    assert "\nSource: Chi et al." in text
    assert "Differs from the source: no difference." in " ".join(text.split())
    assert "regular-gpt/table-1: docs/results/regular-gpt-table-1.md" in text
    assert "linear-rnn/table-2" not in text


def test_a_preset_is_shown_with_what_it_changes(capsys) -> None:
    text = run(capsys, "show", "fan2024")
    assert re.search(r"^  steps +40000$", text, flags=re.MULTILINE)
    assert re.search(r"^  columns +rescaled$", text, flags=re.MULTILINE)
    assert "\nSource: Fan et al." in text
    assert "default preset of: " in run(capsys, "show", "recurrent")


def test_a_name_of_two_families_is_shown_in_both(capsys) -> None:
    lines = run(capsys, "show", "rnn").splitlines()
    assert [line for line in lines if line.startswith("rnn: ")] == [
        "rnn: a model",
        "rnn: a construction",
    ]


def test_settings_within_settings_have_dotted_names(capsys) -> None:
    text = run(capsys, "show", "train")
    assert re.search(r"train\.optimizer\.name +muon or adamw or adam or\s+baum-welch;\s+default\s+muon", text)
    assert re.search(
        r"train\.rise +section or none; default none\n +train\.rise\.by +integer >= 1 and <= 10,000; default 5", text
    )


def test_a_setting_that_does_nothing_with_some_others_says_with_which_it_does(capsys) -> None:
    text = " ".join(run(capsys, "show", "mamba").split())
    assert "model.num_heads integer >= 1 and <= 262,144; default 4; only with version=2" in text


def test_a_setting_that_is_a_name_shows_what_there_is(capsys) -> None:
    text = " ".join(run(capsys, "show", "transformer").split())
    assert f"model.positions {' or '.join(POSITIONS)}; default sinusoidal" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "prity"], "unknown name 'prity'; did you mean 'parity'?; `lengthwise list` shows all names"),
        (["list", "task"], ", got 'task'; did you mean 'tasks'?"),
    ],
)
def test_unknown_names_are_refused(arguments: list[str], sentence: str, capsys) -> None:
    assert exit_code(*arguments) == 2
    assert sentence in capsys.readouterr().err
