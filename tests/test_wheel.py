"""What a wheel contains next to the code: the pages and records that three commands read outside a checkout."""

import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from command import exit_code

from lengthwise.runs import records
from lengthwise.runs.records import records_file, shipped_docs
from lengthwise.studies.claims.claim import CLAIMS, Stated
from lengthwise.studies.leaderboard.experiments import leaderboard

ROOT = Path(__file__).parents[1]


def wheel_mapping() -> dict[str, Path]:
    """Return the page or the records that the wheel has at each of its paths."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    ((source, target),) = wheel["sources"].items()
    matched = [path for pattern in wheel["include"] for path in ROOT.glob(pattern.removeprefix("/"))]
    pages = [path for path in matched if path.is_relative_to(ROOT / source)]
    return {(Path(target) / path.relative_to(ROOT / source)).as_posix(): path for path in pages}


def test_the_build_maps_every_page_and_record_that_claims_cite() -> None:
    mapping = wheel_mapping()
    cited = {
        number.page
        for paper in CLAIMS.values()
        for claim in paper().claims
        if isinstance(claim.evidence, Stated)
        for number in (claim.evidence, *claim.evidence.numbers)
        if hasattr(number, "page")
    }
    recorded = {f"results/records/{path.name}" for path in (ROOT / "docs/results/records").glob("*.gz")}
    assert "results/records/leaderboard.jsonl.gz" in recorded
    assert "constructions.md" in cited
    assert {f"lengthwise/_docs/{name}" for name in cited | recorded} <= mapping.keys()
    assert all(path.suffix in (".md", ".gz") for path in mapping.values()), "no pictures, which nothing reads"


def test_the_wheel_has_the_claims_of_every_paper() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    below = [ROOT / folder.removeprefix("/") for folder in wheel["include"] if "*" not in folder]
    files = {file.parent.name: file for file in (ROOT / "lengthwise").rglob("claims.toml")}
    assert set(files) == set(CLAIMS), "a folder with claims is a paper, without further edits"
    assert all(any(file.is_relative_to(folder) for folder in below) for file in files.values())


def test_the_source_distribution_has_what_the_wheel_has() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert set(targets["wheel"]["include"]) <= set(targets["sdist"]["include"])


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages and records of a package that lies in no checkout, in a folder as the build maps them."""
    for name in ("results/looped-table-2.md", "results/records/looped-table-2.jsonl.gz"):
        target = tmp_path / "site" / "lengthwise/_docs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel_mapping()[f"lengthwise/_docs/{name}"], target)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setattr(records, "files", lambda package: tmp_path / "site" / package)
    return tmp_path / "site/lengthwise/_docs"


def test_recorded_runs_are_those_of_the_package(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shipped_docs() == installed
    assert exit_code("reproduce", "looped/table-2", "--recorded", "--page-only") == 0
    printed = capsys.readouterr().out
    assert f"runs taken from {installed / 'results/records/looped-table-2.jsonl.gz'}" in printed
    assert "0 runs taken" not in printed
    own = Path("docs/results/records/looped-table-2.jsonl.gz")
    assert own.read_bytes(), "and they stay with the page"
    assert records_file(Path("docs/results"), "looped-table-2") == own


def test_claims_read_the_package_whatever_the_folder_has(installed: Path, monkeypatch) -> None:
    read = []
    monkeypatch.setattr(
        "lengthwise.studies.claims.ledger.ledger_lines", lambda docs, *others: read.append(docs) or {"a": None}
    )
    monkeypatch.setattr("lengthwise.studies.claims.page.claims_page", lambda *given: "")
    assert exit_code("claims", "--write", "claims.md") == 0
    Path("docs/results/records").mkdir(parents=True)
    assert exit_code("claims", "--write", "claims.md") == 0
    assert read == [installed, installed]


def test_the_leaderboard_has_the_results_of_the_package(installed: Path, monkeypatch, capsys) -> None:
    recorded = installed / "results/records/leaderboard.jsonl.gz"
    shutil.copy(installed / "results/records/looped-table-2.jsonl.gz", recorded)  # few results, quickly read
    monkeypatch.setattr(leaderboard, "ROWS", leaderboard.ROWS[:1])

    def stop(*given: object) -> None:
        raise ValueError("here training would begin")

    monkeypatch.setattr("lengthwise.cli.benchmarking._with_rate", stop)
    monkeypatch.setattr(leaderboard, "ENTRANTS", leaderboard.ENTRANTS[:1])
    assert exit_code("bench", "leaderboard", "--model", "gru") == 2
    assert f"recorded in {recorded}" in capsys.readouterr().out


@pytest.mark.slow
def test_commands_of_an_installed_wheel_find_the_records(tmp_path: Path) -> None:
    """The wheel is built and installed alone, next to the dependencies of this environment."""

    def run(*words: object, folder: Path = tmp_path) -> str:
        return subprocess.run([*map(str, words)], cwd=folder, check=True, capture_output=True, text=True).stdout

    pip = (sys.executable, "-m", "pip", "-q")
    run(*pip, "wheel", "--no-deps", "-w", tmp_path / "wheels", ROOT)
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"])
    (wheel,) = (tmp_path / "wheels").iterdir()
    run(*pip, "--python", tmp_path / "venv/bin/python", "install", "--no-deps", "--no-index", wheel)
    empty = tmp_path / "empty"
    empty.mkdir()
    command = tmp_path / "venv/bin/lengthwise"
    assert "fan2024: " in run(command, "claims", "--paper", "fan2024", folder=empty)
    printed = run(command, "reproduce", "looped/table-2", "--recorded", "--page-only", folder=empty)
    assert str(packages / "lengthwise/_docs") in printed.replace("\n", "")
    page = run(command, "bench", "leaderboard", "--rows", "parity", folder=empty)
    assert "0 runs taken" not in page
