"""What files contain reaches a terminal escaped: symbols, answers, names, settings, and what errors quote of them."""

import ast
import json
import re
from pathlib import Path

import pytest
from command import exit_code
from rich.console import Console

from lengthwise.display import csv_text
from lengthwise.printing import print_grid, print_line

PACKAGE = Path(__file__).parent.parent.parent / "lengthwise"

EVIL = {
    "escape": "x\x1b[2J",
    "csi": "x\x9b2J",
    "bell": "x\x07",
    "newline": "x\nlengthwise: forged",
    "return": "x\rforged",
    "bidi": "x\u202ey",
    "separator": "x\u2028y",
    "title": "x\x1b]0;title\x07",
    "markup": "[red]x[/]:bug:[/]",
}
"""Names that change what a terminal shows, or that a library which formats text takes for its own marks."""


def machine_of(name: str) -> dict[str, object]:
    """Two states, as JSON, with a name as a symbol and as an answer."""
    return {
        "classes": [f"{name}no", f"{name}yes"],
        "symbols": [name, "b"],
        "table": [[1, 0], [0, 1]],
        "outputs": [0, 1],
        "start": 0,
    }


@pytest.fixture(params=EVIL)
def evil(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One such name; the working folder has a machine with it and, under that name, another."""
    monkeypatch.chdir(tmp_path)
    name = EVIL[request.param]
    Path("machine.json").write_text(json.dumps(machine_of(name)))
    Path("plain.json").write_text(json.dumps(machine_of("x")))
    Path(f"{name.replace('/', '')}.json").write_text(json.dumps(machine_of("x")))
    return name


def check_printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of a command and what it printed, which has no control character but ends of lines and tabs."""
    code = exit_code(*arguments)
    printed = "".join(capsys.readouterr())
    raw = {letter for letter in printed if not letter.isprintable()} - {"\n", "\t"}
    assert not raw, f"{' '.join(arguments)}: {sorted(raw)}"
    assert not re.search("^(lengthwise: )*forged", printed, re.MULTILINE), "a name is taken for a line of our own"
    return code, printed


def test_every_command_about_a_machine_escapes_its_names(evil: str, capsys) -> None:
    name = evil.replace("/", "")
    assert check_printed(capsys, "describe", "machine.json")[0] == 0
    for command in (
        ["describe", "machine.json", "--json"],
        ["describe", f"{name}.json"],
        ["diff", "machine.json", "plain.json"],
        ["diff", "machine.json", f"{name}.json"],
        ["diff", "machine.json", "(ab)*"],
        *(["convert", "machine.json", f"out.{suffix}"] for suffix in ("json", "dot", "regex", "mmd", "jff", "txt")),
        ["convert", "machine.json", f"{name}.dot"],
        *(["export", "machine.json", "--to", to, "--out", f"made.{to}"] for to in ("c", "js", "regex", "mermaid")),
        ["describe", f"{name}-missing.json"],
        ["show", evil],
        ["list", evil],
        ["train", "parity", evil],
        ["train", "parity", "gru", "--set", f"task.{evil}=1"],
        ["train", evil, "gru"],
        ["certify", "--check", f"{name}.json"],
        ["compare", evil, "gru", "rnn"],
        ["reproduce", evil],
        [evil],
    ):
        check_printed(capsys, *command)


# Commands about machines escape every name by default; about nets each name costs a certificate.
@pytest.mark.sampled(8)  # each case makes, certifies and exports a net
@pytest.mark.parametrize("evil", EVIL, indirect=True)
@pytest.mark.usefixtures("fewer_strings")
def test_every_command_about_a_net_escapes_its_names(evil: str, capsys) -> None:
    made, _ = check_printed(capsys, "compile", "machine.json", "--to", "block-linear-rnn", "--out", "net")
    if made:  # a name that no task can have is refused
        return
    Path("labeled.jsonl").write_text(json.dumps({"string": [evil, "b"], "label": f"{evil}no"}) + "\n")
    for command in (
        ["certify", "net", "--draw", "net.svg"],
        ["certify", "--check", "net"],
        ["predict", "net", f"{evil} b", "b b", "c"],
        ["predict", "net", "[red]", "[/]"],
        ["evaluate", "net", "--lengths", "3-4", "--strings", "4", "--out", "points.csv"],
        ["evaluate", "net", "--labeled", "labeled.jsonl"],
        ["describe", "net"],
        ["diff", "net", "machine.json"],
        ["extract", "net", "--out", "extracted.json"],
        ["play", "net"],
        ["export", "net", "--to", "onnx", "--out", "net.onnx", "--form", evil],
    ):
        check_printed(capsys, *command)


def test_settings_in_files_are_escaped_where_they_are_refused(evil: str, capsys) -> None:
    quoted = json.dumps(evil)  # is a TOML string, too
    for content in (f"[task]\n{quoted} = 1\n", f"[{quoted}]\nx = 1\n", f"[model]\nname = {quoted}\n"):
        Path("given.toml").write_text(content)
        code, _ = check_printed(capsys, "train", "parity", "gru", "--config", "given.toml")
        assert code == 2
    for content in (f"weights = {quoted}\ntask = 'parity'\n", f"{quoted} = 1\n", f"weights = 'a'\ntask = {quoted}\n"):
        Path("net.toml").write_text(content)
        for command in (["certify", "net.toml"], ["predict", "net.toml", "ab"], ["describe", "net.toml"]):
            assert check_printed(capsys, *command)[0] == 2


def test_lines_and_tables_show_names_as_they_are_or_escaped() -> None:
    console = Console(width=200)
    with console.capture() as captured:
        print_line(console, "[red]x[/] :bug: [/] x\x1b[2J\x07\n")
        print_grid(console, "t\x1b", ("[a]", "b\n"), [("[/]", "\u202e:bug:")])
    lines = captured.get().splitlines()
    assert lines[0] == r"[red]x[/] :bug: [/] x\x1b[2J\x07\n"
    assert [line.split() for line in lines[1:]] == [[r"t\x1b"], ["[a]", r"b\n"], ["[/]", r"\u202e:bug:"]]


def test_one_module_writes_to_standard_streams() -> None:
    """Else a name could reach a terminal on another way."""
    writers, words = set(), ("print", "write", "dump", "console")
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(word in text for word in words) else ():
            if isinstance(node, ast.Call) and re.fullmatch(
                r"print|sys\.std(out|err)\.write(lines)?|json\.dump|.*\bconsole\.(print|log|out)|self\.print",
                ast.unparse(node.func),
            ):
                writers.add(str(file.relative_to(PACKAGE)))
    # The checker is one file that runs without the package; the renderer answers its parent process in JSON.
    assert writers == {"printing.py", "certification/checker.py", "renderer.py"}


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "-"])
def test_no_cell_of_a_csv_is_a_formula(text: str) -> None:
    assert csv_text([(text, "b")]).strip('"\n').startswith(f"'{text}")


def test_numbers_in_a_csv_stay_numbers() -> None:
    assert csv_text([(-1, "-0.5", "+3", -2.5, "a=b", "1e-3")]) == "-1,-0.5,+3,-2.5,a=b,1e-3\n"
