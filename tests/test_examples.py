"""What users are shown runs: Python and commands of the README and of docs/, and the scripts in examples/."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from script_runner import run_script

from lengthwise.cli.app import app, main
from lengthwise.export.base import export
from lengthwise.learning import learned as learned_module
from lengthwise.learning.search import SearchResult, search

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SMOKE = {
    "draw_a_machine.py": ["--steps", "3"],
    "refuted_and_proved.py": ["--steps", "3", "--longest", "100"],
    "train_and_measure.py": ["--steps", "3", "--longest", "300"],
    "your_own_task.py": ["--steps", "3"],
}


def blocks(language: str, document: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", document, flags=re.DOTALL)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_examples_run(script: Path, tmp_path: Path) -> None:
    assert run_script(script, *SMOKE[script.name], folder=tmp_path)


# All but one are slow: nothing depends on benchmarks, and each compares forms at lengths where they differ in speed.
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("regular_gpt", "plain dense mask", marks=pytest.mark.slow),
        pytest.param("depth_cost", "layers_measured", marks=pytest.mark.slow),
        pytest.param("machine_model", "tree machine", marks=pytest.mark.slow),
        pytest.param("recurrence", "torch's associative_scan", marks=pytest.mark.slow),
        pytest.param("looped_approximation", "with factors | 3", marks=pytest.mark.slow),
        pytest.param("looped", "activations recomputed", marks=pytest.mark.slow),
        ("cell_costs", "all: "),
        pytest.param("exported_machine", "million symbols a second", marks=pytest.mark.slow),
        pytest.param("transformer", "torch.nn.TransformerEncoder", marks=pytest.mark.slow),
        pytest.param("language_model", "the same, a dense mask", marks=pytest.mark.slow),
        pytest.param("language", "drawing a batch takes at most", marks=pytest.mark.slow),
        pytest.param("other_recurrences", "x GRU", marks=pytest.mark.slow),
        pytest.param("gpu", "RegularGPT 64/6", marks=pytest.mark.slow),
        pytest.param("plan_of_claims", "claims per hour", marks=pytest.mark.slow),
        pytest.param("column_norm", "step of three layers", marks=pytest.mark.slow),
    ],
)
def test_benchmarks_run(script: str, expected: str, tmp_path: Path) -> None:
    assert expected in run_script(ROOT / "benchmarks" / f"{script}.py", "--quick", folder=tmp_path)


to_the_end = pytest.mark.parametrize("steps", [3, pytest.param(None, marks=pytest.mark.slow)])
"""Nets are trained for a few steps only, or for as many as the page says, and then what it says of them is true."""


def trained_for(steps: int | None, code: str) -> str:
    return code if steps is None else re.sub(r"(\bsteps=|\"steps\": )\d+", rf"\g<1>{steps}", code)


def output_of_page(page: Path, folder: Path, steps: int | None = None, *, fewer_strings: bool = False) -> str:
    """What the Python of a page prints; with all steps it must be what the page shows."""
    text = page.read_text(encoding="utf-8")
    script = folder / f"{page.stem}.py"
    script.write_text(trained_for(steps, "\n".join(blocks("python", text))), encoding="utf-8")
    printed = run_script(script, folder=folder, fewer_strings=fewer_strings or steps is not None)
    if steps is None:
        for quoted in blocks("text", text):
            assert quoted in printed, "the page shows what its code prints"
    return printed


@to_the_end
def test_python_of_the_readme_runs(steps: int | None, tmp_path: Path) -> None:
    printed = output_of_page(ROOT / "README.md", tmp_path, steps)
    measured = re.findall(r"(\d+) of 256 strings", printed)
    assert measured == ["256"] * 4, "the net is right on random strings"
    levels = dict(re.findall(r"^([\w-]+): (\w+)$", printed, re.MULTILINE))
    assert levels["lstm"] == "refuted"
    (string,) = re.findall("^[ab]+$", printed, re.MULTILINE)
    assert string.count("a") > string.count("b"), "the page says that most of its symbols are a"
    assert len(string) < 1_000, "the page says that it is short"
    assert steps is not None or levels["block-linear-rnn"] == "proved"


@to_the_end
def test_python_of_the_front_page_runs(steps: int | None, tmp_path: Path) -> None:
    printed = output_of_page(DOCS / "index.md", tmp_path, steps)
    assert printed.count(" of 64 strings") == 3
    if steps is None:
        assert printed.count("64 of 64 strings") == 3
        assert "proved The model itself" in printed


# Three nets are certified even after a few steps; by default the README and the tutorial certify nets of theirs.
@pytest.mark.slow
@to_the_end
def test_python_about_nets_of_ones_own_runs(steps: int | None, tmp_path: Path) -> None:
    printed = output_of_page(DOCS / "your-own-net.md", tmp_path, steps)
    levels = re.findall(r"^(?:contracting: )?(refuted|proved)\b", printed, re.MULTILINE)
    assert levels == ["refuted", "refuted" if steps else "proved", "refuted"]


@pytest.mark.usefixtures("fewer_strings", "fewer_steps")
def test_commands_of_the_page_about_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """In order, in one folder, on the file that its first Python writes; the search ends with its first machine.

    The page shows one command twice, on the same file: what its search found is remembered.
    """
    monkeypatch.chdir(tmp_path)
    results: list[SearchResult] = []

    def search_once(*given, **options) -> SearchResult:
        if not results:
            results.append(search(*given, **options))
        return results[0]

    monkeypatch.setattr(learned_module, "search", search_once)
    text = (DOCS / "learn.md").read_text(encoding="utf-8")
    exec(blocks("python", text)[0], {})
    Path("device.py").write_text(blocks("py", text)[0])
    for command in "".join(blocks("console", text)).splitlines()[1:]:
        words = [word.replace("python device.py", f"{sys.executable} device.py") for word in shlex.split(command)[1:]]
        if words[0] == "train":
            words += ["--set", "train.steps=20", "--longest", "60"]
        with pytest.raises(SystemExit) as exit_code:
            main([*words, "--budget", "0"] if words[:2] == ["learn", "traces.csv"] else words)
        assert exit_code.value.code == 0, (command, capsys.readouterr().err)
    out = capsys.readouterr().out
    assert "open read close\tyes\t" in out
    assert "open open\tno\t" in out
    assert "claim: Exact if the system has at most 5 states" in out
    assert "CONNECT DATA CLOSE\tOK\t" in out
    assert out.count("equal\n") == 2


@pytest.mark.usefixtures("fewer_strings")
def test_python_about_a_live_system_prints_what_the_page_shows(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "learn.md").read_text(encoding="utf-8")
    (code,) = [block for block in blocks("python", text) if "learn_system" in block]
    exec(code, {})
    assert capsys.readouterr().out in blocks("text", text)
    assert (tmp_path / "turnstile" / "machine.dot").exists()


def test_commands_of_the_page_about_language_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """In order, on a text that is soon learned to nothing: a step or two, and few and short chunks."""
    monkeypatch.chdir(tmp_path)
    Path("novel.txt").write_text("It was the best of times, it was the worst of times.\n" * 200)
    small = ["--longest", "60"]
    for setting in ("steps=2", "batch_size=2", "min_length=8", "max_length=8"):
        small += ["--set", f"train.{setting}"]
    first, *_ = blocks("console", (DOCS / "language.md").read_text(encoding="utf-8"))
    for command in first.splitlines():
        words = shlex.split(command)[1:]
        words += small if words[0] == "train" else []
        run = max(tmp_path.glob("runs/*"), default=Path("none"))
        words = [
            word.replace("runs/RUN", str(run)).replace("128,512,2048", "8,20").replace("1000", "3") for word in words
        ]
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 0, (command, capsys.readouterr().err)


@to_the_end
def test_python_of_the_page_about_language_runs(steps: int | None, tmp_path: Path) -> None:
    printed = output_of_page(DOCS / "language.md", tmp_path, steps)
    assert [line.partition(":")[0] for line in printed.splitlines()] == ["32", "64", "512"]


@pytest.mark.slow
def test_python_of_the_page_about_examples_runs(tmp_path: Path) -> None:
    assert output_of_page(DOCS / "learn.md", tmp_path).startswith("3 proved (")


PAGES_WITHOUT_TRAINING = (
    "tasks-and-models",
    "extending",
    "constructions",
    "certificates",
    "propositions",
    "looped",
    "machines",
    "routing",
    "devices",
    "tracking",
    "export",
    "random-languages",
    "benchmarks",
)
"""Their nets take a second or less to train, so that what they print is compared in every run of the tests."""


SLOW_PAGES = ("export", "looped")
"""Pages that take seconds, whose exports and networks tests/export and tests/constructions check by default."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW_PAGES))
        for page in (*PAGES_WITHOUT_TRAINING, "memorization")
    ],
)
def test_python_of_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    output_of_page(DOCS / f"{page}.md", tmp_path, fewer_strings=page == "certificates")


def test_the_python_of_every_page_runs_in_some_test() -> None:
    with_tests_of_their_own = {"memorization", "index", "your-own-net", "language", "learn", "tutorial"}
    pages = {path.stem for path in DOCS.glob("*.md") if blocks("python", path.read_text(encoding="utf-8"))}
    assert pages == {*PAGES_WITHOUT_TRAINING, *with_tests_of_their_own}


@pytest.mark.slow
def test_python_of_the_page_about_certificates_runs_with_as_many_strings_as_it_takes(tmp_path: Path) -> None:
    output_of_page(DOCS / "certificates.md", tmp_path)


@to_the_end
def test_python_of_the_tutorial_runs_from_top_to_bottom(steps: int | None, tmp_path: Path) -> None:
    printed = output_of_page(DOCS / "tutorial.md", tmp_path, steps)
    measured = [line for line in printed.splitlines() if " symbols: " in line]
    assert len(measured) == 5
    if steps is None:
        assert all(" 1.0000 " in line for line in measured), "the page says that the net is right"
        assert re.search("^(extracted - A finite machine|proved - The model itself)", printed, re.MULTILINE), (
            "and that it is certified"
        )
        (step,) = re.findall(r"^stopped after step (\d+) of 600$", printed, re.MULTILINE)
        assert int(step) < 400, "the page says that training ends early"
        ours, theirs = (
            [float(score) for score in re.findall(rf"^{sampling} +\d+ ([\d.]+)", printed, re.MULTILINE)]
            for sampling in ("near-miss", "chi2023")
        )
        assert ours[0] > ours[-1], "the page says that the suspect is worse at 400 than at 10"
        assert sum(theirs) > sum(ours), "and looks better on the strings of the published code"


@pytest.mark.usefixtures("fewer_strings", "small_plan")
@pytest.mark.parametrize(
    "page",
    [
        *("command-line", "certificates", "memorization"),
        # Their commands train nets, or resemble the commands of the pages above and of tests of the same commands.
        *(pytest.param(page, marks=pytest.mark.slow) for page in ("tutorial", "constructions", "looped", "machines")),
        *(pytest.param(page, marks=pytest.mark.slow) for page in ("compare", "devices", "export", "playground")),
        pytest.param("tracking", marks=pytest.mark.slow),
    ],
)
def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """In order, in one folder, each `train` for a few steps only; a comment says where one is to fail."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    lines = [line for block in blocks("console", text) for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("lengthwise")]
    assert len(commands) >= 2
    for command in commands:
        if page != "command-line" and "reproduce" in command:
            continue  # it stands on that page, too
        words = shlex.split(command, comments=True)[1:]
        words += ["--longest", "60"] if words[0] in ("train", "resume") and "--longest" not in words else []
        if words[0] == "train":
            words += ["--set", "train.batch_size=4", "--set", "train.max_length=6"]
            words += [] if "stepz" in command else ["--set", "train.steps=5"]
            shorter = ["--set", "train.pace.contract_steps=2", "--set", "train.min_length=1", "--budget", "0"]
            words += shorter if "--until" in words else []
            words += ["--set", "train.num_examples=40"] if "num_examples" in command else []
        words += ["--length", "60"] if words[0] == "analyze" else []
        run = max(tmp_path.glob("runs/*"), default=Path("none"), key=lambda path: path.stat().st_mtime)
        words = [word.replace("runs/RUN", str(run)) for word in words]
        words = [word.replace("41-100,5000", "41-43,500") for word in words]
        if "predict" in words and run.name.startswith("parity"):
            words = [word.replace("0110", "abba").replace("111000", "b") for word in words]
        with pytest.raises(SystemExit) as stopped:
            main(words)
        expected = int(re.search(r"# exits with (\d)", command + "# exits with 0").group(1))
        error = capsys.readouterr().err
        is_refuted = words[0] == "certify" and "because the net is refuted" in error  # it learned five steps here
        assert stopped.value.code == (1 if is_refuted else expected), f"{command}\n{error}"


def rows_of_tables(printed: str) -> list[str]:
    """Return the rows of the tables of a comparison, without the times or the p-value at its end."""
    rows = re.findall(r"^(?:(?:rnn|gru) .* [a-z]+ \d+ +[\d,]+|dense range .* to \S+ +\S+)", printed, re.MULTILINE)
    return [" ".join(row.split()) for row in rows]


@pytest.mark.slow
def test_models_are_compared_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "compare.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(shlex.split(blocks("console", text)[0].splitlines()[0])[1:])
    assert stopped.value.code == 0
    quoted, printed = rows_of_tables(text), rows_of_tables(capsys.readouterr().out)
    assert [row.split()[0] for row in quoted] == ["rnn", "gru", "dense"]
    percentages = r"[+-]?\d+\.\d\d"
    assert [re.sub(percentages, "", row) for row in printed] == [re.sub(percentages, "", row) for row in quoted]
    pairs = zip(re.findall(percentages, str(printed)), re.findall(percentages, str(quoted)), strict=True)
    # Kernels of other CPUs round differently, so trained nets differ slightly.
    assert all(abs(float(first) - float(second)) <= 1.0 for first, second in pairs)


def test_the_workflow_has_commands_and_options_that_exist() -> None:
    (workflow,) = blocks("yaml", (DOCS / "command-line.md").read_text(encoding="utf-8"))
    commands = re.findall(r"- run: lengthwise (.*)", workflow)
    # Only the folder of a learned machine shows whether the empty string has an answer.
    assert "diff learned machines/login.dot" in commands
    assert {command.split()[0] for command in commands} == {"certify", "learn", "diff"}
    for command in commands:
        app.parse_args(shlex.split(command), exit_on_error=False, print_error=False)


@pytest.mark.parametrize(("language", "tool", "suffix"), [("c", "cc", "h"), ("js", "node", "js")])
def test_hosts_of_the_page_about_export_run(language: str, tool: str, suffix: str, tmp_path: Path) -> None:
    """In C and in JavaScript they print what the page's Python prints, and the whole string's answer again."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} here")
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    export("(a|b)*abb", language, tmp_path / f"ends.{suffix}")
    (tmp_path / f"host.{language}").write_text(blocks(language, page)[0], encoding="utf-8")
    command = ["node", "host.js"]
    if language == "c":
        subprocess.run(["cc", "-Wall", "-Werror", "-O2", "host.c", "-o", "host"], cwd=tmp_path, check=True)
        command = [str(tmp_path / "host")]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    names = {"in": "accept", "out": "reject"}  # of the task in Python, and of the expression here
    steps = [line.split() for line in blocks("text", page)[0].splitlines()]
    expected = [f"{symbol} {names[answer]}" for symbol, answer in steps]
    assert printed.splitlines() == [*expected, names[steps[-1][1]]]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_unknown_words_are_noticed_by_the_c_of_the_page_about_export(tmp_path: Path) -> None:
    export("(a|b)*abb", "c", tmp_path / "ends.h")
    code = blocks("c", (DOCS / "export.md").read_text(encoding="utf-8"))[1]
    words = "".join(
        f' || next_state(&state, "{word}") != {returned}' for word, returned in (("a", 0), ("c", -1), ("b", 0))
    )
    host = f"{code}\nint main(void) {{ uint8_t state = ENDS_START; return state != ENDS_START{words}; }}\n"
    (tmp_path / "host.c").write_text(host, encoding="utf-8")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "host.c", "-o", "host"], cwd=tmp_path, check=True)
    subprocess.run([str(tmp_path / "host")], check=True)


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)`|^make ([\w-]+)", README, flags=re.MULTILINE))
    for target in {one or other for one, other in targets}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), f"make {target}"


def test_the_numbers_that_documents_print_are_compared_before_a_change_lands() -> None:
    assert "make test-printed" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (words,) = re.findall(
        r'^PRINTED := "(.*)"\ntest-printed: .*\n\t.* -m slow -k \$\(PRINTED\)', makefile, re.MULTILINE
    )
    slow = (test_python_of_the_readme_runs, test_python_of_the_front_page_runs, test_python_about_nets_of_ones_own_runs)
    assert all(any(word in test.__name__ for word in words.split(" or ")) for test in slow)


def test_no_document_states_a_time_or_a_size_that_nothing_prints() -> None:
    """Times of results are on their pages with the commit, and no text repeats them as if they held everywhere."""
    count = r"(\d[\d.,]*|two|three|five|ten|fifteen|twenty)"
    stated = re.compile(rf"\babout {count} (s|(CPU )?seconds|GB)\b|\d s after", re.IGNORECASE)
    for document in [ROOT / "README.md", *DOCS.glob("*.md")]:
        assert not stated.search(document.read_text(encoding="utf-8")), document.name


def test_links_of_the_documents_lead_somewhere() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for document in [*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            is_api = document.parent == DOCS and link.startswith("api/")  # by docs/api_pages.py; `make docs` checks
            is_made = f"docs/{link}: |" in makefile  # by `make docs`
            assert is_api or is_made or (document.parent / link).exists(), f"{document.name}: {link}"
