"""What users are shown runs: Python and commands of the README and of docs/, and the scripts in examples/."""

import re
import shlex
from pathlib import Path

import pytest
from script_runner import run_script

from lengthwise.cli.app import main
from lengthwise.experiments.base import SMOKE_PLAN
from lengthwise.runs.execute import execute
from lengthwise.runs.spec import make_spec

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
CERTIFICATES = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")
CONSTRUCTIONS = (ROOT / "docs" / "constructions.md").read_text(encoding="utf-8")
LOOPED = (ROOT / "docs" / "looped.md").read_text(encoding="utf-8")
MEMORIZATION = (ROOT / "docs" / "memorization.md").read_text(encoding="utf-8")
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SMOKE = {
    "draw_a_machine.py": ["--steps", "3"],
    "refuted_and_proved.py": ["--steps", "3", "--longest", "100"],
    "train_and_measure.py": ["--steps", "3", "--longest", "300"],
    "your_own_task.py": ["--steps", "3"],
}


def blocks(language: str, document: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", document, flags=re.DOTALL)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_examples_run(script: Path, tmp_path: Path) -> None:
    assert run_script(script, *SMOKE[script.name], folder=tmp_path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("regular_gpt", "plain dense mask"),
        ("depth_cost", "layers_measured"),
        ("machine_model", "tree machine"),
        ("recurrence", "torch's associative_scan"),
        ("looped_approximation", "with factors | 3"),
        ("looped", "activations recomputed"),
    ],
)
def test_benchmarks_run(script: str, said: str, tmp_path: Path) -> None:
    assert said in run_script(ROOT / "benchmarks" / f"{script}.py", "--quick", folder=tmp_path)


def test_the_page_about_learning_to_repeat_words_is_written(tmp_path: Path) -> None:
    run_script(ROOT / "benchmarks" / "memorization.py", "--scale", "smoke", "--to", str(tmp_path), folder=tmp_path)
    page = (tmp_path / "rnn-memorization.md").read_text(encoding="utf-8")
    assert all(title in page for title in ("## Success", "## Learned eigenvalues", "## Lifetime", "A smoke run"))
    assert (tmp_path / "rnn-memorization.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_page_about_the_inside_of_nets_is_written(tmp_path: Path) -> None:
    sizes = {"model": {"d_model": 8, "num_heads": 2}, "train": {"steps": 2, "batch_size": 4}}
    spec = make_spec("parity", "regular-gpt", sizes, preset="fast", seed=0)
    execute(spec, tmp_path, SMOKE_PLAN)
    run_script(ROOT / "benchmarks" / "inside.py", spec.id, "--to", "pages", folder=tmp_path)
    pictures = re.findall(
        r"\]\((.*?\.png)\)", (tmp_path / "pages" / "regular-gpt-inside.md").read_text(encoding="utf-8")
    )
    assert len(pictures) == 4
    assert all((tmp_path / "pages" / name).stat().st_size > 1_000 for name in pictures)


to_the_end = pytest.mark.parametrize("steps", [5, pytest.param(None, marks=pytest.mark.slow)])
"""Nets are trained for a few steps only, or for as many as the page says, and then what it says of them is true."""


def trained_for(steps: int | None, code: str) -> str:
    return code if steps is None else re.sub(r"Recipe\(steps=\d+\)", f"Recipe(steps={steps})", code)


@to_the_end
def test_python_of_the_readme_runs(steps: int | None, capsys) -> None:
    trains, is_supervised = blocks("python")
    exec(compile(trained_for(steps, trains), "README.md", "exec"), {})
    accuracies = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert len(accuracies) == 3
    if steps is None:
        assert accuracies == ["1.000", "1.000", "1.000"], "the README says that it is right"
    exec(compile(is_supervised, "README.md", "exec"), {})
    formula, machine = capsys.readouterr().out.splitlines()
    assert formula == machine, "the README says that both are the same"


def output_of_page(page: str, folder: Path, steps: int | None = None) -> str:
    """What the Python of a page prints, which must be what the page shows."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    script = folder / f"{page}.py"
    script.write_text(trained_for(steps, "\n".join(blocks("python", text))), encoding="utf-8")
    printed = run_script(script, folder=folder)
    for quoted in blocks("text", text):
        assert quoted in printed, "the page shows what its code prints"
    return printed


@pytest.mark.parametrize(
    "page", ["extending", "constructions", "certificates", "propositions", "memorization", "looped"]
)
def test_python_of_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    output_of_page(page, tmp_path)


@to_the_end
def test_python_of_the_tutorial_runs_from_top_to_bottom(steps: int | None, tmp_path: Path) -> None:
    output = output_of_page("tutorial", tmp_path, steps)
    measured = [line for line in output.splitlines() if " symbols: " in line]
    assert len(measured) == 5
    if steps is None:
        assert all(" 1.0000 " in line for line in measured), "the page says that the net is right"
        assert re.search("^(extracted|proved) - A finite machine", output, re.MULTILINE), "and that it is certified"


@pytest.mark.parametrize(
    "document",
    [README, TUTORIAL, CONSTRUCTIONS, CERTIFICATES, MEMORIZATION, LOOPED],
    ids=["README", "tutorial", "constructions", "certificates", "memorization", "looped"],
)
def test_commands_run(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """In order, in one folder, each `train` for a few steps only; a comment says where one is to fail."""
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("console", document) for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("lengthwise")]
    assert len(commands) >= 2
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        words += ["--longest", "60"] if words[0] in ("train", "resume") else []
        if words[0] == "train":
            words += ["--set", "train.batch_size=4", "--set", "train.max_length=6"]
            words += [] if "stepz" in command else ["--set", "train.steps=5"]
        run = max(tmp_path.glob("runs/*"), default=Path("none"), key=lambda path: path.stat().st_mtime)
        words = [word.replace("runs/RUN", str(run)) for word in words]
        if "predict" in words and run.name.startswith("parity"):
            words = [word.replace("0110", "abba").replace("111000", "b") for word in words]
        with pytest.raises(SystemExit) as stopped:
            main(words)
        expected = int(re.search(r"# exits with (\d)", command + "# exits with 0").group(1))
        assert stopped.value.code == expected, f"{command}\n{capsys.readouterr().err}"


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)`|^make ([\w-]+)", README, flags=re.MULTILINE))
    for target in {one or other for one, other in targets}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), f"make {target}"


def test_links_of_the_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / link).exists(), f"{document.name}: {link}"
