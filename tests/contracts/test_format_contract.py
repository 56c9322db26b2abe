"""Every registered format: what it writes it reads back, and what is no machine is refused in a sentence."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, dfas, labeled_machines
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata.answers import accepting_index
from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.formats.base import FORMATS, Drawing, ReadableFormat
from lengthwise.formats.files import format_of, read_machine, suffixes, write_machine

pytestmark = [checked_strategies, pytest.mark.unchecked]

READABLE = {name: kind for name, kind in FORMATS.items() if issubclass(kind, ReadableFormat)}
ALPHABETS = (
    ("a", "b", "c"),
    ("b", "a"),
    ("1", "0"),
    ('"', "\\", "{"),
    ("|", "/", "<"),
    ("+", ".", "é"),
    ("-", "^", "]"),
)
PARITY = labeled_dfa(dfa_from_regex("(b*ab*a)*b*ab*", ("a", "b")))
WORDS = ((" ", "x"), ("push", "pop"), ("a/b", "c d"), (" x", "y "), ("#1;", "--", "->"))


def refusal(work: Callable[[], object]) -> str:
    """The sentence of the ValueError, or nothing where there is none."""
    try:
        work()
    except ValueError as problem:
        return str(problem) or "no sentence"
    return ""


def check_sentence(sentence: str) -> None:
    """Check what a reader is told, if anything: one sentence, which is not the whole file."""
    assert sentence != "no sentence"
    assert len(sentence) < 1_000
    assert len(sentence.splitlines()) <= 1


def answers(machine: LabeledMachine, symbols: tuple[str, ...], length: int) -> list[str]:
    """The names of its answers to all strings over the symbols in this order; of automata, which they accept."""
    ids = np.array([machine.symbols.index(symbol) for symbol in symbols])
    states = machine.machine.semiautomaton.final_states(ids[all_strings(len(symbols), length)], machine.machine.start)
    names = machine.answer_names()
    if machine.accepting_class is not None:
        accepted = machine.classes[machine.accepting_class]
        return [f"accepted: {names[state] == accepted}" if names[state] else "" for state in states]
    return [names[state] for state in states]


@pytest.mark.parametrize("name", FORMATS)
def test_it_describes_itself_and_its_suffixes_are_its_own(name: str) -> None:
    kind = FORMATS[name]
    assert kind.suffixes
    for suffix in kind.suffixes:
        assert suffix == suffix.lower()
        assert format_of(Path(f"machine{suffix.upper()}")) is kind
        assert (suffix in suffixes(readable=True)) == issubclass(kind, ReadableFormat)


@pytest.mark.parametrize("name", READABLE)
@given(data=st.data(), symbols=st.sampled_from(ALPHABETS))
def test_an_automaton_comes_back(name: str, data: st.DataObject, symbols: tuple[str, ...]) -> None:
    machine = labeled_dfa(data.draw(dfas(symbols)))
    text = READABLE[name].write(machine)
    again = READABLE[name].read(text)
    assert set(again.symbols) == set(symbols), text
    assert again.accepting_class is not None
    for length in range(5):
        assert answers(again, symbols, length) == answers(machine, symbols, length), text


@pytest.mark.parametrize("name", READABLE)
@given(data=st.data(), symbols=st.sampled_from(ALPHABETS + WORDS))
def test_any_machine_it_holds_comes_back(name: str, data: st.DataObject, symbols: tuple[str, ...]) -> None:
    machine = data.draw(labeled_machines(symbols))
    if sentence := refusal(lambda: READABLE[name].write(machine)):
        assert "; " in sentence, "there is a way out"
        return
    if not occurs_whole(machine):
        return
    text = READABLE[name].write(machine)
    again = READABLE[name].read(text)
    assert set(again.symbols) == set(symbols), text
    for length in range(1, 5):
        assert answers(again, symbols, length) == answers(machine, symbols, length), text


def occurs_whole(machine: LabeledMachine) -> bool:
    """Not one of three answers of which only two occur that say accept and reject: what is read has just these."""
    occurring = tuple(sorted(set(machine.answer_names()) - {""}))
    return machine.accepting_class is not None or accepting_index(occurring) is None


@pytest.mark.parametrize("suffix", suffixes())
def test_files_hold_what_is_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"machine{suffix}"
    write_machine(PARITY, path)
    if not (content := path.read_bytes()).isascii():
        assert content.startswith((b"\x89PNG", b"%PDF-")), "the content of pictures is tested elsewhere"
        return
    assert content.decode() == format_of(path).write(PARITY)
    if suffix in suffixes(readable=True):
        assert read_machine(path).machine.equivalent(PARITY.machine)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        assert read_machine(path).machine.equivalent(PARITY.machine)


DRAWINGS = {suffix for suffix, kind in suffixes().items() if issubclass(kind, Drawing)}


@pytest.mark.parametrize("suffix", suffixes())
def test_drawings_alone_omit_a_sink_with_a_note(suffix: str, tmp_path: Path) -> None:
    path, machine = tmp_path / f"machine{suffix}", labeled_dfa(dfa_from_regex("ab*c"))
    write_machine(machine, path)
    content = path.read_bytes()
    if suffix not in DRAWINGS:
        with pytest.raises(
            ValueError, match=r"with_sinks: expected a drawing \(.*\), got \.\w+, a format that contains"
        ):
            write_machine(machine, path, with_sinks=True)
        assert b"Not drawn" not in content
        return
    write_machine(machine, path, with_sinks=True)
    assert content != path.read_bytes()
    if content.isascii():
        assert b"Not drawn" in content
        assert b"Not drawn" not in path.read_bytes()


@pytest.mark.parametrize("suffix", suffixes(readable=True))
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"{", b"<*)", b"[" * 100_000, b"digraph {", b"(" * 99])
def test_files_that_hold_no_machine_are_named(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"machine{suffix}"
    with pytest.raises(ValueError, match=r"machine\.\w+: expected a machine's file, found no such file"):
        read_machine(path)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"machine\.\w+: ") as problem:
        read_machine(path)
    assert len(str(problem.value).splitlines()) == 1
    assert len(str(problem.value)) < 1_000
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        read_machine(path)


@pytest.mark.parametrize("name", READABLE)
@given(text=st.text(max_size=40) | st.text('digraph{}[]->;="ab 01\n<>/|:,', max_size=60))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    check_sentence(refusal(lambda: READABLE[name].read(text)))


@pytest.mark.parametrize("name", READABLE)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(name: str, data: st.DataObject) -> None:
    machine = data.draw(labeled_machines(("a", "b")))
    if refusal(lambda: READABLE[name].write(machine)):
        return
    text = READABLE[name].write(machine)
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    damaged = text[:begin] + data.draw(st.text('"[]{}->\n ab0', max_size=3)) + text[end:]
    check_sentence(refusal(lambda: READABLE[name].read(damaged)))


@pytest.mark.parametrize("name", READABLE)
def test_a_file_that_was_cut_off_is_read_or_refused_with_the_line(name: str) -> None:
    """At any character behind the first line; a text of one line has positions instead."""
    text = READABLE[name].write(labeled_dfa(dfa_from_regex("(a|b)*abb", ("a", "b"))))
    for end in range(text.index("\n"), len(text)):
        sentence = refusal(lambda end=end: READABLE[name].read(text[:end]))
        check_sentence(sentence)
        lines = [int(number) for number in re.findall(r"\bline (\d+)", sentence)]
        assert not sentence or (lines and lines[0] <= text[:end].count("\n") + 1), f"{sentence} of {text[:end]!r}"


@pytest.mark.parametrize("suffix", sorted({*suffixes(), ".docx"} - {*suffixes(readable=True)}))
def test_suffixes_that_are_not_read_are_refused_with_all_that_are(suffix: str, tmp_path: Path) -> None:
    known = re.escape(", ".join(suffixes(readable=True)))
    with pytest.raises(ValueError, match=rf"m\{suffix}: expected a machine's file \({known}\), got suffix '\{suffix}'"):
        read_machine(tmp_path / f"m{suffix}")


def test_the_way_from_a_function_to_a_machine_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"got suffix '\.py'; in Python, task_from_function and write_machine write"):
        read_machine(tmp_path / "mine.py")


def test_suffixes_that_are_not_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"got suffix '\.docx'; choose one of these suffixes"):
        write_machine(PARITY, tmp_path / "m.docx")
