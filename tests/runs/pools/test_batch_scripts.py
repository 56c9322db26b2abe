"""The batch scripts of the page about clusters, under commands that stand in for those of Slurm and Ray."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command import exit_code

from lengthwise.cli import progress
from lengthwise.experiment import EXPERIMENTS
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.pools.outcome import Outcome

ROOT = Path(__file__).parent.parent.parent.parent
ARRAY, NODES = re.findall(r"```bash\n(.*?)```", (ROOT / "docs/clusters.md").read_text(encoding="utf-8"), re.DOTALL)

SBATCH = r"""#!/bin/bash
read -r first last < <(sed -n 's/^#SBATCH --array=\([0-9]*\)-\([0-9]*\)$/\1 \2/p' "$1")
for task in $(seq "${first:-0}" "${last:-0}"); do
    SLURM_ARRAY_TASK_ID=${first:+$task} SLURM_JOB_NODELIST=node[1-4] bash -eu "$1" > "$1.$task" 2>&1 &
    tasks+=($!)
done
for task in "${tasks[@]}"; do wait "$task" || exit 1; done
"""
SCONTROL = '#!/bin/bash\n[ "$*" = "show hostnames node[1-4]" ] && printf "node%s\\n" 1 2 3 4\n'
SRUN = '#!/bin/bash\nexec "$@"\n'
RAY = """#!/bin/bash
[ "$1" = symmetric-run ] && [ "$2" = --address ] && echo "$3" > head && [ "$4 $5" = "--min-nodes 4" ] && [ "$6" = -- ]
shift 6 && exec "$@"
"""
RECORD = '#!/bin/bash\nprintf "%q " "$@" > "$(mktemp call.XXXXXXXX)"\n'
"""Stands in for lengthwise; each call has a file of its own, since calls of one moment would mix in one file."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with these commands on the path."""
    commands = {"sbatch": SBATCH, "scontrol": SCONTROL, "srun": SRUN, "ray": RAY, "lengthwise": RECORD}
    (tmp_path / "bin").mkdir()
    for name, text in commands.items():
        write_command(tmp_path / "bin" / name, text)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_command(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def sbatch(script: str, folder: Path) -> None:
    (folder / "job.sh").write_text(script)
    done = subprocess.run(["sbatch", "job.sh"], capture_output=True, text=True, timeout=500, check=False)
    printed = "\n".join(path.read_text() for path in folder.glob("job.sh.*"))
    assert done.returncode == 0, done.stderr + printed


def recorded_calls(folder: Path) -> list[list[str]]:
    return [shlex.split(path.read_text()) for path in folder.glob("call.*")]


def test_the_tasks_of_the_array_have_each_run_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch(ARRAY, folder)
    calls = recorded_calls(folder)
    assert len(calls) == 16
    done: list[str] = []

    def execute_here(specs, *_, **__) -> list[Outcome]:
        done.extend(spec.id for spec in specs)
        return [Outcome(spec, None, "left out here") for spec in specs]

    monkeypatch.setattr(progress, "execute_all", execute_here)
    for call in calls:
        words = [word.replace("/shared/runs", "runs").replace("regular-gpt/ours", "recurrent/bounded") for word in call]
        exit_code(*words, "--scale", "smoke", "--pages", "pages")
    assert sorted(done) == sorted(spec.id for spec in EXPERIMENTS["recurrent/bounded"]("smoke").specs)


def test_the_nodes_of_a_job_are_a_cluster_that_the_command_is_told_of(folder: Path) -> None:
    sbatch(NODES, folder)
    (call,) = recorded_calls(folder)
    options = dict(zip(call[2::2], call[3::2], strict=True))
    assert (folder / "head").read_text().strip() == options["--scheduler"] == "node1:6379"
    assert options["--pool"] == "ray"


@pytest.mark.slow
def test_an_array_does_each_run_once_and_the_page_comes_after_it(folder: Path) -> None:
    write_command(folder / "bin" / "lengthwise", f'#!/bin/bash\nexec {sys.executable} -m lengthwise "$@"\n')
    small = ["recurrent/bounded", "--scale", "smoke", "--pages", "pages"]
    script = ARRAY.replace("/shared/runs", "runs").replace("1-16", "1-3").replace("/16", "/3")
    sbatch(script.replace("regular-gpt/ours", " ".join(small)), folder)
    specs = EXPERIMENTS["recurrent/bounded"]("smoke").specs
    begun = {spec.id: len(RunFolder(folder / "runs" / spec.id).read_beginnings()) for spec in specs}
    assert set(begun.values()) == {1}, begun
    assert not (folder / "pages").exists()
    assert exit_code("reproduce", *small, "--runs", "runs", "--page-only") == 0
    (page,) = (folder / "pages").glob("*.md")
    assert "## Without a result" not in page.read_text()
