"""Commands that are cut off by a kill or a full disk write into their own folder again."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command import exit_code
from cut_off import killed_at, with_full_disk
from fewer_strings import draw_fewer_strings
from searched import as_if_searched

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.cli.app import main
from lengthwise.learning import learned as learning
from lengthwise.learning.learned import Learned, learn
from lengthwise.learning.search import SearchResult
from lengthwise.runs.compiled import load_compiled
from lengthwise.runs.stored import load_stored
from lengthwise.tasks.given.examples import Examples

STRINGS = [f"{number:b}" for number in range(1, 200)]
ROWS = [(text, "even" if text.count("1") % 2 == 0 else "odd") for text in STRINGS]
FULL = (0, 300, 1_000, 3_000)
"""The most bytes that a file can have, for disks that are full before or after its description."""


@pytest.fixture(scope="module")
def parity() -> tuple[Learned, list[object]]:
    """What is learned from the rows, and what the search kept before its end."""
    kept: list[object] = []
    machine = Transducer(Semiautomaton(np.array([[0, 1], [1, 0]]), ("0", "1")), 0, np.array([0, 1]))

    def search(examples: Examples, *, keep: Callable[[object, Transducer], None], **_: object) -> SearchResult:
        result = as_if_searched(machine.minimize_nonempty(), examples)
        keep(result.model, result.machine)
        return result

    with pytest.MonkeyPatch.context() as patch:
        draw_fewer_strings(patch.setattr)
        patch.setattr(learning, "search", search)
        return learn(ROWS, keep=kept.append), kept


@pytest.fixture
def commands(
    tmp_path: Path, parity: tuple[Learned, list[object]], monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[str]]:
    """Commands that write a folder, where `learn` learns at once what was learned before."""
    monkeypatch.chdir(tmp_path)
    learned, kept = parity

    def at_once(*given: object, keep, **settings: object) -> Learned:
        for best in kept:
            keep(best)
        return learned

    monkeypatch.setattr(learning, "learn", at_once)
    Path("rows.csv").write_text("string,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    assert exit_code("compile", "--task", "parity", "--to", "block-linear-rnn", "--out", "source") == 0
    return {
        "learn": ["learn", "rows.csv", "--out", "out"],
        "compile": ["compile", "(ab)*", "--to", "block-linear-rnn", "--out", "out"],
        "export": ["export", "source", "--to", "hub-folder", "--out", "out"],
    }


def drafts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


# `learn` writes the most files, and by the same function; each kill is a command of its own.
@pytest.mark.parametrize("name", [pytest.param("learn", marks=pytest.mark.slow), "compile", "export"])
def test_a_command_that_was_killed_at_any_write_goes_through_the_next_time(
    name: str, commands: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    write = 0
    while killed_at(write := write + 1, partial(main, commands[name])):
        assert exit_code(*commands[name]) == 0, f"after a kill at write {write}: {capsys.readouterr().err}"
        load_stored(Path("out"))
        assert not [path for path in drafts(Path("out")) if "safetensors" in path.name], "or they are uploaded"
        Path("out").rename(f"out-{write}")
    assert write > 2


@pytest.mark.parametrize("num_bytes", FULL)
@pytest.mark.parametrize("name", ["learn", "compile", "export"])
def test_a_command_whose_disk_was_full_goes_through_the_next_time(
    name: str, num_bytes: int, commands: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    is_whole = not with_full_disk(num_bytes, partial(main, commands[name]))
    assert num_bytes or not is_whole
    assert exit_code(*commands[name]) == 0, capsys.readouterr().err
    load_stored(Path("out"))


def test_other_files_are_still_refused(commands: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    Path("out/below").mkdir(parents=True)
    Path("out/below/thesis.tex").touch()
    for words in commands.values():
        assert exit_code(*words) == 2
        assert "name another" in capsys.readouterr().err


def test_a_search_that_is_stopped_leaves_its_best_net(
    commands: dict[str, list[str]], parity: tuple[Learned, list[object]], monkeypatch, capsys
) -> None:
    learned, kept = parity

    def stopped(*given: object, keep, **settings: object) -> None:
        keep(kept[0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(learning, "learn", stopped)
        assert exit_code(*commands["learn"]) != 0
    assert "out/unfinished: the best net so far" in capsys.readouterr().err
    assert load_compiled("out/unfinished").target.machine.to_json() == learned.machine.to_json()
    assert exit_code("predict", "out/unfinished", "11") == 0
    assert exit_code(*commands["learn"]) == 0
    assert not Path("out/unfinished").exists()
    assert load_compiled("out").target.machine.to_json() == learned.machine.to_json()


def test_results_of_two_searches_do_not_mix(commands: dict[str, list[str]]) -> None:
    """The next search removes the files of an earlier one as soon as it has written its numbers."""
    assert exit_code(*commands["learn"]) == 0
    earlier = {path.name for path in Path("out").iterdir()}
    assert {"machine.json", "compiled.json", "report.html"} <= earlier
    num_unfinished = 2
    assert killed_at(num_unfinished + 2, partial(main, commands["learn"]))
    assert not {"machine.json", "machine.dot", "machine.svg", "compiled.json", "report.html"} & {
        path.name for path in Path("out").iterdir()
    }
    assert Path("out/unfinished/compiled.json").exists()


def test_an_export_that_was_cut_off_is_said_to_be_so(commands: dict[str, list[str]], capsys) -> None:
    assert killed_at(2, partial(main, commands["export"]))
    assert exit_code("predict", "out", "ab") == 2
    assert "out: expected a folder with model.safetensors, found no model.safetensors" in capsys.readouterr().err
