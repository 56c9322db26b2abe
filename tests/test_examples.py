"""What users are shown runs: the README's Python and commands, and the scripts in examples/."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SMOKE = {
    "train_and_measure.py": ["--steps", "3", "--longest", "300"],
    "your_own_task.py": ["--steps", "3"],
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_examples_run(script: Path) -> None:
    command = [sys.executable, "-W", "error", str(script), *SMOKE[script.name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("block", blocks("python"), ids=range(len(blocks("python"))))
def test_python_of_the_readme_runs(block: str, capsys) -> None:
    exec(compile(block, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines
    if "length_curve" in block:
        assert [line.split()[1] for line in lines] == ["1.000", "1.000", "1.000"], "the README says that it is right"
    else:
        assert lines[0] == lines[1], "the README says that both are the same"


def test_commands_of_the_readme_run(tmp_path: Path) -> None:
    """In order, in one folder, each `train` for a few steps only."""
    commands = [line for block in blocks("console") for line in block.splitlines() if line.startswith("lengthwise")]
    assert len(commands) >= 6
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        if words[0] == "train":
            words += ["--set", "train.steps=5", "--set", "train.batch_size=4", "--set", "train.max_length=6"]
        run = max(tmp_path.glob("runs/tomita-*"), default=Path("none"))
        words = [word.replace("runs/RUN", str(run)) for word in words]
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "lengthwise", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)`|^make ([\w-]+)", README, flags=re.MULTILINE))
    for target in {one or other for one, other in targets}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), f"make {target}"


def test_links_of_the_documents_lead_somewhere() -> None:
    for document in ROOT.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / link).exists(), f"{document.name}: {link}"
