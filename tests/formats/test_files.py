"""Files of machines: what is read is bounded, and a plain file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lengthwise import make_task
from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.formats import draft as draft_module
from lengthwise.formats import files, limits
from lengthwise.formats.draft import Draft
from lengthwise.formats.files import read_machine, suffixes, write_machine


@pytest.mark.parametrize("suffix", suffixes(readable=True))
def test_a_file_has_a_largest_size(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    path = tmp_path / f"machine{suffix}"
    path.write_text(" " * 101)
    with pytest.raises(
        ValueError, match=r"machine\.\w+: expected a machine's file of at most 100 bytes, got a larger file; make"
    ):
        read_machine(path)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "machine.dot"
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"machine\.dot: expected a file, got a pipe or a device; name a file"):
        read_machine(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"machine\.dot: expected a file, got a pipe or a device; name a file"):
        read_machine(path)


@pytest.mark.unchecked  # the annotations reject a wrong type before the function can
def test_only_machines_with_names_of_answers_are_written_and_the_way_to_one_is_named(tmp_path: Path) -> None:
    task, dfa = make_task("parity"), dfa_from_regex("(a|b)*abb")
    for other in (task, task.transducer, dfa, None):
        message = rf"^machine: expected a LabeledMachine, got {type(other).__name__}; write LabeledMachine\(task\.trans"
        with pytest.raises(ValueError, match=message):
            write_machine(other, tmp_path / "m.dot")
    for machine in (LabeledMachine(task.transducer, task.classes), labeled_dfa(dfa)):
        write_machine(machine, tmp_path / "m.dot")


def test_a_mealy_machine_is_written_as_dot_alone(tmp_path: Path) -> None:
    machine = read_text(tmp_path, 'digraph { __start0 -> q; q -> q [label="a/x"] }')
    with pytest.raises(
        ValueError, match=r"m\.json: expected a path that ends in \.dot for a Mealy machine; change the suffix$"
    ):
        write_machine(machine, tmp_path / "m.json", mealy=True)
    write_machine(machine, tmp_path / "m.dot", mealy=True)
    assert 'label="a/x"' in (tmp_path / "m.dot").read_text()


def test_a_file_that_cannot_express_a_machine_is_named(tmp_path: Path) -> None:
    machine = read_text(tmp_path, 'digraph { __start0 -> q; q [shape=doublecircle]; q -> q [label="push"] }')
    path = tmp_path / "m.jff"
    with pytest.raises(ValueError, match=rf"^{path}: expected symbols of one character|^{path}: symbols: expected"):
        write_machine(machine, path)
    assert not path.exists()
    with pytest.raises(ValueError, match=r"^'\S*a{100}\S*': expected a machine's file, found no such file"):
        read_machine(Path("a" * 201 + ".dot"))


def read_text(folder: Path, text: str) -> LabeledMachine:
    (folder / "machine.dot").write_text(text)
    return read_machine(folder / "machine.dot")


@pytest.mark.parametrize(
    ("limit", "largest", "check", "message"),
    [
        (
            "MAX_CHARACTERS",
            3,
            lambda: limits.check_text("abc"),
            "expected a machine.s text of at most 2 characters, got 3",
        ),
        (
            "MAX_NAME",
            3,
            lambda: limits.check_names(["a", "abc"]),
            "expected names of at most 2 characters, got a name of",
        ),
        ("MAX_NAMED_STATES", 3, lambda: limits.check_table(3, 2), "expected at most 2 states, got 3, including"),
        ("MAX_TRANSITIONS", 6, lambda: limits.check_table(3, 2), r"expected at most 5 transitions, got 6 \(3 states"),
    ],
)
def test_limits_are_the_largest_sizes(
    limit: str, largest: int, check: Callable[[], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, limit, largest)
    check()
    monkeypatch.setattr(limits, limit, largest - 1)
    with pytest.raises(ValueError, match=f"^{message}"):
        check()


@pytest.mark.parametrize(
    ("limit", "largest", "build", "message"),
    [
        ("MAX_EDGES", 4, lambda draft: draft.mealy(), "expected at most 3 edges, got more"),
        ("MAX_NAME", 4, lambda draft: draft.mealy(), "expected symbols and answers of at most 3 characters, got 4 in"),
        # Three states and a sink; the pairs of a target and an output, a start and a sink; three sets.
        (
            "MAX_TRANSITIONS",
            8,
            lambda draft: draft.automaton({"0"}),
            r"expected at most 7 transitions, got 8 \(4 states",
        ),
        ("MAX_TRANSITIONS", 10, lambda draft: draft.mealy(), r"expected at most 9 transitions, got 10 \(5 states"),
    ],
)
def test_limits_of_a_draft_are_the_largest_sizes(
    limit: str, largest: int, build: Callable[[Draft], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drafted() -> Draft:
        draft = Draft()
        for edge in (("0", "a", "1", "x"), ("1", "push", "2", "x"), ("2", "a", "1", "y"), ("2", "push", "2", "x")):
            draft.add_edge(*edge)
        draft.set_start("0")
        return draft

    monkeypatch.setattr(draft_module, limit, largest)
    build(drafted())
    monkeypatch.setattr(draft_module, limit, largest - 1)
    with pytest.raises(ValueError, match=f"^{message}"):
        build(drafted())


def test_an_edge_of_a_draft_has_a_symbol() -> None:
    with pytest.raises(
        ValueError,
        match=r"^expected a symbol on each edge, got no symbol on an edge from state '0'; give this edge a symbol$",
    ):
        Draft().add_edge("0", "", "1")
