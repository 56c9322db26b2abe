"""Machines learned from live systems: right whenever the system has as few states as the claim says."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from automaton_strategies import checked_strategies, transducers
from command import exit_code
from hypothesis import given

from lengthwise.automata import Transducer
from lengthwise.automata.labeled import LabeledMachine, difference
from lengthwise.formats.files import read_machine
from lengthwise.learning import systems
from lengthwise.learning.program import Program
from lengthwise.learning.systems import learn_system
from lengthwise.runs.stored import load_stored

DEVICE = """
import sys
state = "closed"
for line in sys.stdin:
    symbol = line.strip()
    if symbol == "RESET":
        state, answer = "closed", "ready"
    elif symbol == "CONNECT" and state == "closed":
        state, answer = "open", "OK"
    elif symbol == "DATA" and state == "open":
        state, answer = "busy", "ACK"
    elif symbol == "WAIT" and state == "busy":
        state, answer = "open", "OK"
    else:
        answer = "ERR"
    print(answer, flush=True)
"""


class MachineSystem:
    """The steps of a machine, with the outputs as numbers."""

    def __init__(self, machine: Transducer) -> None:
        self.machine = machine

    def reset(self) -> None:
        self.state = self.machine.start

    def step(self, symbol: str) -> int:
        self.state = int(self.machine.semiautomaton.table[self.state, self.machine.symbols.index(symbol)])
        return int(self.machine.outputs[self.state])


@checked_strategies
@given(transducers(max_states=5))
def test_a_system_within_the_bound_is_learned_exactly(machine: Transducer) -> None:
    """The bound is the smallest for which the claim says anything, so the test of hypotheses has no slack."""
    names = tuple(map(str, range(-1, 3)))
    there = LabeledMachine(Transducer(machine.semiautomaton, machine.start, machine.outputs + 1), names)
    num_states = there.mealy()[0].num_states
    learned = learn_system(MachineSystem(machine), machine.symbols, max_states=num_states)
    assert (learned.counts.num_states, learned.max_states) == (num_states, num_states)
    assert difference(learned.labeled.without_empty_string(), there.without_empty_string()) is None


class Lock:
    """Opens after the right symbols in a row; any other symbol begins again."""

    def __init__(self, secret: str) -> None:
        self.secret, self.num_right = secret, 0

    def reset(self) -> None:
        self.num_right = 0

    def step(self, symbol: str) -> str:
        self.num_right = self.num_right + 1 if symbol == self.secret[self.num_right] else 0
        if self.num_right < len(self.secret):
            return "closed"
        self.num_right = 0
        return "open"


def test_the_claim_is_as_strong_as_it_can_be() -> None:
    """A lock of four states answers like no lock at all, until four states are allowed."""
    below, exact = (learn_system(Lock("abba"), "ab", max_states=n) for n in (3, 4))
    assert (below.counts.num_states, below.max_states) == (1, 3)
    assert below.claim == "Exact if the system has at most 3 states, and its reset is complete."
    assert exact.counts.num_states == 4
    assert exact.labeled.answer_to("aabba") == "closed"
    assert exact.labeled.answer_to("abbaabba") == "open"


def test_few_steps_cover_fewer_states() -> None:
    learned = learn_system(Lock("ab"), "ab", max_states=9, max_steps=500)
    assert learned.counts.num_steps <= 500
    assert 2 <= learned.max_states < 9
    assert f"at most {learned.max_states} states" in str(learned)
    with pytest.raises(
        ValueError, match="max_steps: expected enough steps to learn and test a machine, got 12; raise max_steps"
    ):
        learn_system(Lock("ab"), "ab", max_states=9, max_steps=12)


class Drifting(Lock):
    """Never forgets."""

    def reset(self) -> None: ...


class Jammed(Lock):
    def step(self, symbol: str) -> str:
        return {"a": "closed"}[symbol]


class Silent(Lock):
    def step(self, symbol: str) -> str:
        return ""


@pytest.mark.parametrize(
    ("system", "symbols", "sentence"),
    [
        (
            Drifting("ab"),
            "ab",
            "system: expected one output to the string .*b, got '.*' and later '.*'; its reset must",
        ),
        (
            Jammed("ab"),
            "ab",
            r"^system: expected an output to the string '.*b', got KeyError \('b'\); return an",
        ),
        (Silent("ab"), "ab", "system: expected outputs whose text is printable and not empty, got ''; return"),
        (Lock("ab"), "aba", "symbols: expected one or more different symbols without blanks"),
        (Lock("ab"), [], "symbols: expected one or more"),
        (Lock("abbbab"), "ab", None),
        (object(), "ab", r"system: expected an object with reset\(\) and step\(symbol\), or with pre\(\), step"),
    ],
)
def test_a_system_without_a_finite_machine_gets_one_sentence(system: object, symbols, sentence: str | None) -> None:
    if sentence is None:
        assert learn_system(system, symbols, max_states=6).counts.num_states == 6
        return
    with pytest.raises(ValueError, match=sentence):
        learn_system(system, symbols, max_states=3)


def test_more_states_than_allowed_are_named() -> None:
    class Counter(Lock):
        def step(self, symbol: str) -> int:
            self.num_right += 1
            return self.num_right

    with pytest.raises(ValueError, match=r"max_states: expected at least 8, because .*, got 7; allow"):
        learn_system(Counter(""), "ab", max_states=7)


class SUL:
    """A class of AALpy's shape, which counts the strings that it begins and ends."""

    def __init__(self, lock: Lock) -> None:
        self.lock, self.num_begun, self.num_ended = lock, 0, 0

    def pre(self) -> None:
        self.num_begun += 1
        self.lock.reset()

    def step(self, letter: str) -> str:
        assert self.num_begun == self.num_ended + 1
        return self.lock.step(letter)

    def post(self) -> None:
        self.num_ended += 1


def test_classes_of_the_shape_of_aalpy_are_systems() -> None:
    system = SUL(Lock("abb"))
    learned = learn_system(system, "ab", max_states=4)
    assert learned.machine.equivalent(learn_system(Lock("abb"), "ab", max_states=4).machine)
    assert system.num_begun == system.num_ended == learned.counts.num_strings
    broken = SUL(Silent(""))
    with pytest.raises(ValueError, match="system: expected outputs"):
        learn_system(broken, "ab", max_states=4)
    assert broken.num_begun == broken.num_ended == 1


def test_systems_of_aalpy_are_learned_as_aalpy_has_them() -> None:
    aalpy = pytest.importorskip("aalpy")
    there = aalpy.utils.get_Angluin_dfa()
    learned = learn_system(aalpy.SULs.AutomatonSUL(there), there.get_input_alphabet(), max_states=5)
    for string in ("a", "aa", "abab", "bb", "aabbab"):
        assert learned.labeled.answer_to(string) == str(there.execute_sequence(there.initial_state, string)[-1])


@pytest.fixture
def device(tmp_path: Path) -> str:
    (tmp_path / "device.py").write_text(DEVICE)
    return f"{sys.executable} {tmp_path / 'device.py'}"


@pytest.mark.usefixtures("fewer_strings")
def test_the_command_learns_from_a_program(device: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    for stale in ("learned.json", "contradicted.csv", "report.html"):
        Path("out", stale).write_text("{}")
    words = ("--system", device, "--symbols", "CONNECT DATA WAIT", "--max-states", "4", "--out", "out")
    assert exit_code("learn", *words) == 0
    printed = capsys.readouterr()
    assert "machine: 3 states, 3 symbols, as a Mealy machine\n" in printed.out
    assert "claim: Exact if the system has at most 4 states, and its reset is complete.\n" in printed.out
    assert "net: proved" in printed.out
    assert "hypothesis of 3 states after " in printed.err
    assert not Path("out/contradicted.csv").exists()
    assert not Path("out/report.html").exists()
    assert read_machine("out/machine.dot").answer_to(("CONNECT", "DATA", "DATA")) == "ERR"
    assert "CONNECT/OK" in Path("out/machine.dot").read_text()
    assert load_stored(Path("out")).task.classes == ("OK", "ERR", "ACK")
    assert exit_code("predict", "out", "CONNECT DATA WAIT") == 0
    assert "\tOK\t" in capsys.readouterr().out
    assert exit_code("diff", "out", "out/machine.dot") == 0
    assert exit_code("learn", *words, "--max-steps", "200") == 0
    assert "note: the steps did not suffice for 4 states; raise --max-steps\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["x.csv", "--system", "cat"],
            "--system: expected no FILE together with --system, got x.csv; leave out FILE or --system",
        ),
        (["--system", "cat", "--exact"], "--exact: not allowed with --system, got True; leave --exact out"),
        (["x.csv", "--max-states", "3"], "--max-states: not allowed without --system, got 3; leave --max-states out"),
        (["--system", "cat", "--max-states", "3"], "--symbols: expected a value with --system, got none; add"),
        (
            ["--system", "cat", "--symbols", "CONNECT,DATA", "--max-states", "3"],
            "--symbols: expected no comma, or spaces between all symbols, got 'CONNECT,DATA'; ",
        ),
        (["--system", "cat", "--symbols", "ab"], "--max-states: expected a value with --system, got none; add"),
        (
            ["--system", "cat", "--symbols", "ab", "--max-states", "3", "--timeout", "0"],
            "--timeout: expected a number of seconds above 0, up to 86,400, got 0.0; try 10",
        ),
    ],
)
def test_a_file_and_a_system_exclude_one_another(
    words: list[str], sentence: str, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code("learn", *words, "--out", "out") == 2
    assert sentence in capsys.readouterr().err
    assert not Path("out").exists()


@pytest.mark.usefixtures("fewer_strings")
def test_a_machine_too_large_for_a_net_is_saved_without_one(tmp_path: Path, monkeypatch) -> None:
    learned = learn_system(Lock("ab"), "ab", max_states=3)
    assert learned.save(tmp_path).level == "proved"

    def construct(*given: object) -> None:
        raise ValueError("too large")

    monkeypatch.setattr(systems, "construct", construct)
    assert learned.save(tmp_path) is None
    assert {path.name for path in tmp_path.iterdir()} >= {"machine.dot", "machine.json", "learned.json"}
    assert not (tmp_path / "compiled.json").exists()
    assert not (tmp_path / "certificate.json").exists()


@pytest.fixture
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Program]:
    """A program whose code for each line is the parameter."""
    file = tmp_path / "broken.py"
    file.write_text(
        f"import sys, os, time\nfor line in sys.stdin:\n    if 1: {request.param}\n    sys.stdout.flush()\n"
    )
    program = Program(f"{sys.executable} {file}", timeout=5.0 if "sleep" not in request.param else 0.2)
    yield program
    program.close()


LINE = "print(line.strip())"


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        ("time.sleep(9)", "expected a line of output, got none within 0.2 seconds, after RESET; print one line for"),
        (f"{LINE} if line != 'b\\n' else sys.exit(3)", r"got the end of the output \(exit code 3\), after ab; print"),
        ("os.close(1); time.sleep(9)", r"got the end of the output \(the program still runs\), after RESET"),
        ("print(2 * line, end='')", "expected one line of output for each line of input, got one more line: b'RESET"),
        ("print(line * (1 + (line == 'b\\n')), end='')", r"got one more line: b'b\\n', after ab; print one line"),
        ("sys.stdout.buffer.write(b'\\xff\\n')", r"expected text in UTF-8, got b'\\xff', after RESET"),
        (
            "print('x' * 20_000)",
            "at most 10,000 bytes, got more bytes without a line break, after RESET",
        ),
    ],
    indirect=["broken"],
)
def test_programs_that_break_the_protocol_get_one_sentence(broken: Program, sentence: str) -> None:
    def send() -> None:
        broken.reset()
        for symbol in "abc":
            assert broken.step(symbol) == symbol

    with pytest.raises(ValueError, match=f"^system: .*{sentence}"):
        send()
    broken.close()
    assert broken._process.returncode is not None


@pytest.mark.parametrize("command", ["", "no-such-program", "'open quote"])
def test_commands_that_do_not_start_are_named(command: str) -> None:
    with pytest.raises(ValueError, match="command: expected a command that can be started, got "):
        Program(command)


LATE = """
import sys, time
print("ready", flush=True)
for line in sys.stdin:
    time.sleep(0.3)
    print(line.strip(), flush=True)
"""
"""A program that prints a line too many, before it reads anything."""


def test_a_line_before_the_first_answer_is_an_error(tmp_path: Path) -> None:
    """At the latest at the end: the line is taken for the first answer, and so on, and the last answer is left."""
    (tmp_path / "late.py").write_text(LATE)

    def converse() -> None:
        with Program(f"{sys.executable} {tmp_path / 'late.py'}") as program:
            program.reset()
            program.step("a")

    with pytest.raises(ValueError, match="expected one line of output for each line of input, got one more line"):
        converse()


def test_no_program_that_the_command_started_is_left(tmp_path: Path) -> None:
    file = tmp_path / "wrapper.sh"
    file.write_text("sleep 60 &\necho $! > child\nwhile read line; do echo $line; done\n")
    with Program(f"sh -c 'cd {tmp_path}; . ./wrapper.sh'") as program:
        program.reset()
    child = int((tmp_path / "child").read_text())
    for _ in range(200):
        if not is_running(child):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {child} still runs")


def is_running(process: int) -> bool:
    """Whether a process exists and is no zombie."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_reset_line_is_rejected_as_a_symbol(device: str) -> None:
    with (
        Program(device) as program,
        pytest.raises(ValueError, match="symbols: expected printable texts except RESET"),
    ):
        learn_system(program, ["CONNECT", "RESET"], max_states=3)
