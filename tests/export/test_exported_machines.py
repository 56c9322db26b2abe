"""Machines as C and JavaScript answer as they do here, and every text says its certificate and is read back."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command import exit_code

import lengthwise.certification.traces as traces_module
from lengthwise.automata.dfa import DFA
from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.constructions import construct
from lengthwise.conventions import IGNORE
from lengthwise.export.machine_text import NAMES
from lengthwise.formats.base import FORMATS, ReadableFormat
from lengthwise.formats.c import _type_of
from lengthwise.formats.files import write_machine
from lengthwise.formats.notes import NUM_TESTS, notes_on
from lengthwise.runs.compiled import save_compiled
from lengthwise.tasks import make_task

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")


def machine_of(num_states: int, symbols: tuple[str, ...], classes: tuple[str, ...]) -> LabeledMachine:
    """A random one, some states of which answer nothing."""
    chance = np.random.default_rng(num_states)
    table = chance.integers(num_states, size=(num_states, len(symbols)))
    outputs = chance.integers(-1, len(classes), size=num_states)
    outputs[outputs < 0] = IGNORE
    return LabeledMachine(Transducer(Semiautomaton(table, symbols), 1, outputs), classes)


MACHINES = [
    machine_of(3, ("a",), ("yes",)),
    machine_of(256, ('"', "\\", "é", "??/"), ("in", "out", "*/")),
    machine_of(257, tuple(map(str, range(256))), tuple(f"class {k}" for k in range(200))),
]


def changed(machine: LabeledMachine) -> LabeledMachine:
    """One that answers otherwise in the first state of a string."""
    outputs = machine.machine.outputs.copy()
    state = machine.machine.semiautomaton.table[machine.machine.start, 0]
    outputs[state] = 0 if outputs[state] == IGNORE else IGNORE
    return LabeledMachine(Transducer(machine.machine.semiautomaton, machine.machine.start, outputs), machine.classes)


def tried_in_c(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "m.h").write_text(text, encoding="utf-8")
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-x", "c", "-DM_SELF_TEST"]
    subprocess.run(["cc", *flags, "m.h", "-o", "m"], cwd=folder, check=True)
    return subprocess.run([str(folder / "m")], capture_output=True, text=True, check=False)


def ring(num_states: int, num_classes: int) -> LabeledMachine:
    """States in a circle, and answers in turn."""
    index = np.arange(num_states)
    machine = Transducer(Semiautomaton((index[:, None] + 1) % num_states, ("a",)), 0, index % num_classes)
    return LabeledMachine(machine, tuple(f"class {k}" for k in range(num_classes)))


@pytest.mark.parametrize(("num_states", "bits"), [(1, 8), (256, 8), (257, 16), (1 << 16, 16), ((1 << 16) + 1, 32)])
def test_numbers_of_states_have_the_smallest_type(num_states: int, bits: int) -> None:
    """A byte has 256 values, all of which can be states."""
    header = FORMATS["c"].write(ring(num_states, 1))
    assert f"static const uint{bits}_t machine_table[{num_states}][1]" in header
    assert header.count(f"    uint{bits}_t state = MACHINE_START;") == 2
    assert f"const table = Uint{bits}Array.from(" in FORMATS["js"].write(ring(num_states, 1))


@pytest.mark.parametrize(("num_classes", "bits"), [(1, 8), (128, 8), (129, 16)])
def test_numbers_of_answers_have_the_smallest_type(num_classes: int, bits: int) -> None:
    """A signed byte has 128 values that are not negative; -1 means no answer."""
    assert f"static const int{bits}_t machine_answers[129] =" in FORMATS["c"].write(ring(129, num_classes))


def test_each_number_has_a_type_of_its_size() -> None:
    for bits in (8, 16, 32):
        assert _type_of(2**bits - 1, signed=False) == f"uint{bits}_t"
        assert _type_of(2 ** (bits - 1) - 1, signed=True) == f"int{bits}_t"
    for bits in (8, 16):
        assert _type_of(2**bits, signed=False) == f"uint{2 * bits}_t"
        assert _type_of(2 ** (bits - 1), signed=True) == f"int{2 * bits}_t"
    with pytest.raises(ValueError, match=r"^machine: expected fewer than 2\^31 states, got 4,294,967,297; min"):
        _type_of(2**32, signed=False)


@pytest.mark.parametrize("name", [name for name, kind in FORMATS.items() if kind.comment is None])
def test_formats_without_comments_have_no_notes(name: str) -> None:
    """JSON has entries for them."""
    notes = notes_on(MACHINES[0], about=["one"])
    if name == "json":
        content = json.loads(FORMATS[name].write_annotated(MACHINES[0], notes))
        answers = [(one["string"], one["answer"]) for one in content["tests"]]
        assert answers == [(string, MACHINES[0].answer_to(string) or None) for string, _ in answers]
        assert {answer for _, answer in answers} == {"yes", None}
        assert content["about"] == ["one"]
        return
    with pytest.raises(
        ValueError, match=rf"^format: expected a format with comments, got {name}; choose another format$"
    ):
        FORMATS[name].write_annotated(MACHINES[0], notes)


@needs_cc
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: str(machine.machine.num_states))
def test_c_compiles_without_warnings_and_answers_twenty_strings(machine: LabeledMachine, tmp_path: Path) -> None:
    assert tried_in_c(FORMATS["c"].write_annotated(machine, notes_on(machine, "m")), tmp_path).stdout == (
        "20 of 20 strings right\n"
    )


@needs_cc
@pytest.mark.parametrize("sentence", ["C:\\runs\\", "what??/", "a backslash and a blank \\ "])
def test_no_sentence_about_a_machine_takes_the_next_line_of_c_with_it(sentence: str, tmp_path: Path) -> None:
    machine = MACHINES[0]
    header = FORMATS["c"].write_annotated(machine, notes_on(machine, "m", [sentence]))
    assert tried_in_c(header, tmp_path).stdout == "20 of 20 strings right\n"


@needs_cc
def test_the_test_of_c_fails_where_an_answer_is_wrong(tmp_path: Path) -> None:
    machine = MACHINES[0]
    ended = tried_in_c(FORMATS["c"].write_annotated(changed(machine), notes_on(machine, "m")), tmp_path)
    assert ended.returncode == 1
    assert "20 of 20" not in ended.stdout


@needs_cc
def test_c_reports_foreign_symbols_and_streams(tmp_path: Path) -> None:
    machine = machine_of(5, ("a", "b"), ("no", "yes"))
    (tmp_path / "m.h").write_text(FORMATS["c"].write_annotated(machine, notes_on(machine, "m")), encoding="utf-8")
    (tmp_path / "host.c").write_text(
        """
        #include "m.h"
        #include <string.h>
        int main(void) {
            const uint8_t foreign[] = {0, 2, 0}, known[] = {0, 1, 1};
            uint8_t state = M_START;
            for (int i = 0; i < 3; i++) state = m_step(state, known[i]);
            return !(m_classify(foreign, 3) == M_NO_SYMBOL && m_classify(known, 3) == m_answer(state)
                     && strcmp(m_class_name(1), "yes") == 0 && m_class_name(M_NO_ANSWER) == NULL
                     && strcmp(m_symbol_name(1), "b") == 0);
        }
        """,
        encoding="utf-8",
    )
    subprocess.run(["cc", "-Wall", "-Werror", "-O2", "host.c", "-o", "host"], cwd=tmp_path, check=True)
    subprocess.run([str(tmp_path / "host")], check=True)


@needs_cc
def test_two_machines_in_c_stand_side_by_side_and_read_bytes(tmp_path: Path) -> None:
    for name, pattern in (("ends", "(a|b)*abb"), ("one", "(a|b)*b")):
        write_machine(labeled_dfa(dfa_from_regex(pattern)), tmp_path / f"{name}.h")
    (tmp_path / "host.c").write_text(
        """
        #include "ends.h"
        #include "one.h"
        int main(void) {
            return !(ends_classify_text("aabb", 4) == 1 && ends_classify_text("b", 1) == 0
                     && one_classify_text("b", 1) == 1 && one_classify_text("ba", 2) == 0
                     && one_classify_text("b\\n", 2) == ONE_NO_SYMBOL && one_classify_text("\\377", 1) == ONE_NO_SYMBOL
                     && ends_symbol_of_byte('b') == 1 && ends_symbol_of_byte('c') == ENDS_NO_SYMBOL);
        }
        """,
        encoding="utf-8",
    )
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O2", "host.c", "-o", "host"], cwd=tmp_path, check=True)
    subprocess.run([str(tmp_path / "host")], check=True)
    assert "classify_text" not in FORMATS["c"].write(MACHINES[1])


WORDS = machine_of(5, ("SYN", "ACK", "ACKNOWLEDGE", 'a"\\?', "é"), ("no", "yes"))


@needs_cc
def test_c_finds_symbols_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "m.h").write_text(FORMATS["c"].write_annotated(WORDS, notes_on(WORDS, "m")), encoding="utf-8")
    checks = [f"m_symbol_of(m_symbols[{v}]) == {v}" for v in range(5)]
    checks += ['m_symbol_of("ACK") == 1', 'm_symbol_of("ACKN") == M_NO_SYMBOL', 'm_symbol_of("") == M_NO_SYMBOL']
    checks += ['strcmp(m_class_name(1), "yes") == 0', "m_class_name(M_NO_SYMBOL) == NULL"]
    host = f'#include "m.h"\nint main(void) {{ return !({" && ".join(checks)}); }}\n'
    (tmp_path / "host.c").write_text(host, encoding="utf-8")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O2", "host.c", "-o", "host"], cwd=tmp_path, check=True)
    subprocess.run([str(tmp_path / "host")], check=True)


@needs_node
def test_javascript_finds_symbols_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "m.cjs").write_text(FORMATS["js"].write(WORDS), encoding="utf-8")
    code = """const m = require("./m.cjs"), assert = require("assert");
    m.symbols.forEach((name, id) => assert.strictEqual(m.symbolOf(name), id));
    for (const name of ["ACKN", "", "toString", 1]) assert.strictEqual(m.symbolOf(name), null);
    assert.deepStrictEqual(m.classes, ["no", "yes"]);"""
    ended = subprocess.run(["node", "-e", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@needs_node
def test_javascript_answers_as_the_machine_does(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    questions = []
    for number, machine in enumerate(MACHINES):
        (tmp_path / f"{number}.cjs").write_text(FORMATS["js"].write(machine), encoding="utf-8")
        ids = chance.integers(len(machine.symbols), size=(50, 9))
        states = machine.machine.semiautomaton.final_states(ids, machine.machine.start)
        answers = [machine.answer_names()[state] or None for state in states]
        questions.append(
            [[[machine.symbols[v] for v in row], answer] for row, answer in zip(ids, answers, strict=True)]
        )
    (tmp_path / "wrong.cjs").write_text(
        FORMATS["js"].write_annotated(changed(MACHINES[0]), notes_on(MACHINES[0])), encoding="utf-8"
    )
    (tmp_path / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    (tmp_path / "host.cjs").write_text(
        """
        const assert = require("assert");
        require("./questions.json").forEach((asked, number) => {
          const machine = require(`./${number}.cjs`);
          for (const [string, answer] of asked) assert.strictEqual(machine.classify(string), answer);
          assert.strictEqual(machine.numTests, 20);
          assert.deepStrictEqual(machine.selfTest(), []);
          assert.throws(() => machine.classify(["none"]), RangeError);
        });
        assert.notDeepStrictEqual(require("./wrong.cjs").selfTest(), []);
        const text = require("fs").readFileSync("0.cjs", "utf8");
        const page = {};
        new Function("self", "module", text)(page, undefined);
        assert.strictEqual(page.machine.numTests, 20);
        """,
        encoding="utf-8",
    )
    ended = subprocess.run(["node", "host.cjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_more_symbols_than_bytes_are_refused_by_c() -> None:
    with pytest.raises(ValueError, match="symbols: expected at most 256, got 257; use format js"):
        FORMATS["c"].write(machine_of(2, tuple(map(str, range(257))), ("yes",)))


def test_notes_have_twenty_strings_with_the_answers_of_the_machine() -> None:
    machine = MACHINES[1]
    notes = notes_on(machine)
    assert len(set(notes.tests)) == NUM_TESTS
    for string, answer in notes.tests:
        state = machine.machine.start
        for symbol in string:
            state = int(machine.machine.semiautomaton.table[state, machine.symbols.index(symbol)])
        assert answer == machine.answer_names()[state]


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled net of a task with five answers, and its certificate."""
    folder = tmp_path_factory.mktemp("certified") / "net"
    save_compiled(construct("rnn", make_task("cycle-navigation")), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traces_module, "TESTED_LENGTHS", (40,))
        patch.setattr(traces_module, "NUM_STRINGS", 50)
        assert exit_code("certify", str(folder)) == 0
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_texts_say_the_certificate_and_are_read_back(name: str, certified: Path, tmp_path: Path, capsys) -> None:
    kind = FORMATS[name]
    path = tmp_path / f"m{kind.suffixes[0]}"
    answer = ["--answer", "3"] if name == "regex" else []
    assert exit_code("export", str(certified), "--to", name, "--out", str(path), *answer) == 0
    digest = json.loads((certified / "certificate.json").read_text())["digest"]
    assert f"certificate: proved, digest {digest}\n" in capsys.readouterr().out
    text = path.read_text(encoding="utf-8")
    assert f"certificate: proved, digest {digest}" in text
    assert "the answer to the empty string has no meaning" in text
    assert str(certified.parent) not in text
    if issubclass(kind, ReadableFormat):
        again = kind.read(text)
        reference = make_task("cycle-navigation").transducer
        if answer:
            accepts = DFA(reference.semiautomaton, reference.start, reference.outputs == 3)
            assert again.dfa().transducer.equivalent(accepts.transducer)
        else:
            assert again.machine.equivalent(reference)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("net", "--to", "regex", "--out", "m.regex"),
            "--answer: expected one of 0, 1, 2, 3, 4, got none; name the answer of the strings",
        ),
        (
            ("net", "--to", "regex", "--out", "m.regex", "--answer", "five"),
            "--answer: expected one of 0, 1, 2, 3, 4, got",
        ),
        (("net", "--to", "c", "--out", "m.c"), "m.c: expected a file that ends in .h, got '.c'; change the name"),
        (("net", "--to", "c", "--out", "m.h", "--form", "step"), "--form: expected no value for format c, got step"),
        (("net", "--to", "cc", "--out", "m.h"), "unknown export format 'cc'; did you mean 'c'?"),
        (
            ("empty", "--to", "js", "--out", "m.js"),
            "`lengthwise certify empty` writes a certificate,",
        ),
        (("none", "--to", "onnx", "--out", "m.onnx"), "none: expected the folder of a run"),
        (("net", "--to", "torch", "--out", "m.pt"), "m.pt: expected a file that ends in .pt2"),
        (("net", "--to", "onnx", "--out", "m.onnx", "--max-length", "9"), "--max-length: expected no value for rnn"),
    ],
)
def test_requests_that_do_not_fit_end_with_a_sentence(
    arguments: tuple[str, ...], sentence: str, certified: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net").symlink_to(certified)
    Path("empty").mkdir()
    assert exit_code("export", *arguments) == 2
    message = capsys.readouterr().err
    assert sentence in message
    assert len(message.splitlines()) == 1


def test_the_extra_is_named_where_it_is_missing(certified: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("lengthwise.export.onnx.find_spec", lambda name: None)
    assert exit_code("export", str(certified), "--to", "onnx", "--out", str(tmp_path / "m.onnx")) == 2
    assert "got no onnx; install them with `pip install 'lengthwise[onnx]'`" in capsys.readouterr().err


def test_a_text_that_is_no_path_is_said_to_be_read_as_an_expression(tmp_path: Path, capsys) -> None:
    out = str(tmp_path / "m.json")
    assert exit_code("export", "to*st", "--to", "json", "--out", out) == 0
    assert "read as: a regular expression, to*st\n" in capsys.readouterr().out
    assert exit_code("export", out, "--to", "js", "--out", str(tmp_path / "m.js")) == 0
    assert "read as" not in capsys.readouterr().out


def test_a_proof_about_other_weights_is_never_written_into_a_machine(certified: Path, tmp_path: Path, capsys) -> None:
    other, out = tmp_path / "other", tmp_path / "m.js"
    save_compiled(construct("rnn", make_task("parity")), other)
    shutil.copy(certified / "certificate.json", other)
    assert exit_code("export", str(other), "--to", "js", "--out", str(out)) == 2
    assert f"{other}: its certificate is about other weights; certify {other} again" in capsys.readouterr().err
    assert not out.exists()


def test_a_certificate_about_another_machine_is_none_of_this_one(certified: Path, tmp_path: Path, capsys) -> None:
    folder, task = tmp_path / "folder", make_task("cycle-navigation")
    shutil.copytree(certified, folder)
    machine = LabeledMachine(task.transducer, task.classes)
    write_machine(machine, folder / "machine.json")
    assert exit_code("export", str(folder), "--to", "dot", "--out", str(tmp_path / "right.dot")) == 0
    turned = Transducer(machine.machine.semiautomaton, machine.machine.start, (machine.machine.outputs + 1) % 5)
    write_machine(LabeledMachine(turned, task.classes), folder / "machine.json")
    assert exit_code("export", str(folder), "--to", "dot", "--out", str(tmp_path / "wrong.dot")) == 2
    assert "expected the machine that its certificate is about, got another" in capsys.readouterr().err
    assert not (tmp_path / "wrong.dot").exists()


def test_a_long_expression_is_no_path(tmp_path: Path, capsys) -> None:
    pattern = "regex:" + "|".join(["ab"] * 100)
    assert exit_code("export", pattern, "--to", "dot", "--out", str(tmp_path / "long.dot")) == 0
    assert "4 states" in capsys.readouterr().out
