"""Every command that prints a result prints it as JSON as well: strictly, alone on standard output, with its keys."""

import inspect
import re
from pathlib import Path

import pytest
from command import exit_code
from small_runs import PLAN, small_spec

from lengthwise.cli.app import GROUPS
from lengthwise.cli.outputs import write_object
from lengthwise.files import strict_json_loads
from lengthwise.runs.execute import execute

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (
    (DOCS / "command-line.md").read_text(encoding="utf-8").split("## Results for other programs")[1].split("\n## ")[0]
)
COMMANDS = {name: command for group in GROUPS for name, command in group.COMMANDS.items()}
RUNS = {name: small_spec(steps=steps) for steps, name in enumerate(("run", "other", "third"), 1)}
MINIMAL = ["--lengths", "3-5", "--strings", "4"]
EXAMPLES = {
    "list": ["list"],
    "show": ["show", "parity"],
    "train": ["train", "parity", "gru", "--set", "train.steps=1", "--longest", "42"],
    "resume": ["resume", "{third}", "--longest", "42"],
    "evaluate": ["evaluate", "net", *MINIMAL, "--out", "points.tex"],
    "evaluate --labeled": ["evaluate", "net", "--labeled", "labels.csv"],
    "predict": ["predict", "net", "abb", "ba"],
    "certify": ["certify", "net", "--draw", "net.svg"],
    "extract": ["extract", "net", "--out", "extracted.json"],
    "attack": ["attack", "net", "(a|b)*bb", "--longest", "12", "--budget", "0.1"],
    "learn": ["learn", "labels.csv", "--out", "learned", "--budget", "0", "--min-accuracy", "0.9"],
    "describe": ["describe", "(aa)*"],
    "diff": ["diff", "(a|b)*b", "(a|b)*bb"],
    "compare": ["compare", "{run}", "{other}", "--out", "compared.tex"],
    "reproduce": ["reproduce", "recurrent/bounded", "--scale", "smoke", "--page-only", "--out", "tables.csv"],
    "bench": ["bench", "flare", "--scale", "smoke", "--rows", "parity", "--columns", "lstm", "--budget", "0"],
    "claims": ["claims", "--paper", "memorization", "--docs", "{docs}", "--out", "claims.md"],
}
CODES = {"attack": 1, "bench": 1, "diff": 1, "reproduce": 1}
"""The exit codes of examples that do not exit with 0."""


def named(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


DOCUMENTED = {
    title: named(keys)
    for cells in re.findall(r"^\| (`.*) \| (.*) \|$", SECTION, re.MULTILINE)
    for title, keys in ((name, cells[1]) for name in re.sub("`", "", cells[0]).split(", "))
}
KEYS = {noun: named(text) for noun, text in re.findall(r"- A (run|point) .*? the keys ([^.]*)\.", SECTION, re.DOTALL)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled net, two runs, and labeled strings."""
    made = tmp_path_factory.mktemp("json")
    assert exit_code("compile", "(a|b)*abb", "--to", "rnn", "--out", str(made / "net")) == 0
    for spec in RUNS.values():
        execute(spec, made / "runs", PLAN)
    strings = [f"{number:b}"[1:].translate(str.maketrans("01", "ab")) for number in range(2, 130)]
    rows = [f"{text},{'yes' if text.endswith('abb') else 'no'}" for text in strings]
    (made / "labels.csv").write_text("\n".join(["string,label", *rows]) + "\n")
    return made


def test_each_command_has_it_or_is_named_as_one_that_does_not() -> None:
    with_json = {name for name, command in COMMANDS.items() if "as_json" in inspect.signature(command).parameters}
    assert {title.split()[0] for title in DOCUMENTED} == with_json
    without = named(SECTION.split("These commands have no `--json`:")[1].split(".")[0])
    assert sorted([*with_json, *without]) == sorted(COMMANDS)
    assert with_json == {title.split()[0] for title in EXAMPLES}, "each has an example"


@pytest.mark.unchecked
@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("title", EXAMPLES)
def test_a_result_is_one_line_of_strict_json(title: str, folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    paths = {name: f"runs/{spec.id}" for name, spec in RUNS.items()}
    arguments = [word.format(**paths, docs=DOCS) for word in EXAMPLES[title]]
    capsys.readouterr()
    assert exit_code(*arguments, "--json") == CODES.get(title, 0)
    results = [strict_json_loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(results) == (2 if title == "predict" else 1)
    expected = DOCUMENTED[title]
    if title == "learn":
        expected = [key for key in expected if key != "learned.json"]
        expected += strict_json_loads((folder / "learned" / "learned.json").read_bytes()).keys() - {"digest"}
    for result in results:
        assert sorted(result) == sorted(expected)
        for point in result.get("points", []):
            assert list(point) == KEYS["point"]
        runs = [*result.get("runs", []), *(run for model in result.get("models", []) for run in model["runs"])]
        for run in runs:
            assert [key for key in run if key != "folder"] == KEYS["run"]
    assert all(Path(word).stat().st_size for word in arguments if word.endswith((".tex", ".csv", ".md", ".svg")))


def test_numbers_that_are_not_finite_become_null(capsys) -> None:
    write_object({"a": float("nan"), "b": (1.5, [float("inf")]), "c": {"d": float("-inf")}, "e": "\x1b"})
    printed = capsys.readouterr().out
    assert strict_json_loads(printed) == {"a": None, "b": [1.5, [None]], "c": {"d": None}, "e": "\x1b"}
    assert printed[:-1].isprintable()
