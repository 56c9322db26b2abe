"""Machines wherever they lie, and nets certified by machines that are not their task's."""

import shutil
from pathlib import Path

import pytest

from lengthwise.automata import DFA
from lengthwise.automata.labeled import difference, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.certification.certificate import Certificate
from lengthwise.constructions import construct
from lengthwise.formats.files import write_machine
from lengthwise.runs.certified import certify_against, certify_folder
from lengthwise.runs.compiled import save_compiled
from lengthwise.runs.hub import save_hub
from lengthwise.runs.machine_sources import given_machines
from lengthwise.tasks import make_task
from lengthwise.tasks.regular.machine import machine_task

pytestmark = pytest.mark.usefixtures("fewer_strings")

PARITY = "a*b(ba*b|a)*"


@pytest.fixture
def parity(tmp_path: Path) -> Path:
    """A compiled net for parity; its answers are 0 and 1."""
    save_compiled(construct("rnn", make_task("parity")), tmp_path / "parity")
    return tmp_path / "parity"


def all_but_thirteen() -> DFA:
    """Parity, but for one string: thirteen b."""
    return dfa_from_regex(PARITY) - dfa_from_regex("b{13}", "ab")


def test_what_a_text_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that exists, an expression, and nothing else; symbols of expressions are those of all sources."""
    monkeypatch.chdir(tmp_path)
    Path("m.regex").write_text("a*\n")
    Path("ab.regex").write_text("a*\nalphabet: ab\n")
    write_machine(labeled_dfa(dfa_from_regex("(a|c)*")), "m.json")
    symbols = {source: given_machines([source])[0].labeled.symbols for source in ("b*", "regex:m.dot", "m.regex")}
    assert symbols == {"b*": ("b",), "regex:m.dot": ("d", "m", "o", "t"), "m.regex": ("a",)}
    assert [given.labeled.symbols for given in given_machines(["b*", "m.regex"])] == [("a", "b")] * 2
    assert [given.labeled.symbols for given in given_machines(["m.json", ".b", "m.regex"], "b")] == [
        ("a", "c"),
        ("b", "a", "c"),
        ("b", "a", "c"),
    ]
    assert given_machines(["ab.regex"])[0].labeled.symbols == ("a", "b")
    Path("x*").mkdir()
    with pytest.raises(
        ValueError, match=r"^x\*: expected a folder with machine\.json or certificate\.json, found neither file; `leng"
    ):
        given_machines(["x*"])
    for missing in ("none.dot", "none.JFF", "folder/m", "learnd", "my-net", "runs.old", "net_2"):
        with pytest.raises(
            ValueError, match=rf"^{missing}: expected a file, a folder or .*, found no such path; write reg"
        ):
            given_machines([missing])


def test_a_misspelled_name_is_no_expression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_machine(given_machines(["ab*"])[0].labeled, Path("parity.dot"))
    with pytest.raises(
        ValueError, match=r"^party\.dt: expected .* found no such path, but 'parity\.dot' exists; write parity"
    ):
        given_machines(["party.dt"])
    assert given_machines(["regex:party.dt"])[0].answers_empty
    assert given_machines(["regex:parity"])[0].labeled.symbols == tuple("aiprty")
    with pytest.raises(ValueError, match=r"^lernd: .* no such path; write regex:lernd if you mean an expression"):
        given_machines(["lernd"])


def test_a_certificate_gives_what_was_proved(parity: Path) -> None:
    """The task's machine, without an answer to the empty string."""
    certify_folder(parity)
    shutil.copy(parity / "certificate.json", parity.parent / "copied.json")
    for source in (parity, parity / "certificate.json", parity.parent / "copied.json"):
        ours, other = given_machines([str(source), PARITY])
        assert not ours.answers_empty
        assert ours.labeled.classes == ("0", "1")
        assert difference(ours.compared, other.compared) is None


def test_a_refuted_net_gives_the_machine_that_was_read_off_it(parity: Path) -> None:
    """Where one was: not where a short string refuted it."""
    write_machine(labeled_dfa(all_but_thirteen()), parity / "all_but_thirteen.dot")
    out = parity.parent / "new" / "refuted.json"
    certificate = certify_against(parity, str(parity / "all_but_thirteen.dot"), out)
    assert certificate.level == "refuted"
    assert certificate.counterexample is not None
    assert "".join(certificate.counterexample.string) == 13 * "b"
    assert (certificate.counterexample.got, certificate.counterexample.expected) == ("1", "0")
    assert Certificate.read(out) == certificate
    ours, right, wrong = (
        given.compared for given in given_machines([str(out), PARITY, str(parity / "all_but_thirteen.dot")])
    )
    assert difference(ours, right) is None
    shortest = difference(ours, wrong)
    assert shortest is not None
    assert (shortest.string, shortest.answers) == (13 * ("b",), ("1", "reject"))
    certify_against(parity, "a*", out)
    with pytest.raises(
        ValueError,
        match=r"refuted\.json: expected .* with states, got a certificate of level refuted with no machine",
    ):
        given_machines([str(out)])


def test_a_net_is_proved_to_be_another_machine(parity: Path) -> None:
    """Symbols in another order, more states than needed, answers with other names; nothing is written."""
    first, other = all_but_thirteen(), dfa_from_regex("b{13}", "ab")
    accepting = (first.accepting[:, None] | other.accepting).ravel()
    both = first.semiautomaton.product(other.semiautomaton)
    machine = DFA(both, first.start * other.num_states + other.start, accepting)
    assert machine.num_states > 20
    shuffled = labeled_dfa(machine).aligned(("b", "a"), ("accept", "reject"))
    write_machine(shuffled, parity / "shuffled.json")
    certificate = certify_against(parity, str(parity / "shuffled.json"))
    assert certificate.level == "proved"
    assert certificate.classes == ("0", "1")
    assert certificate.task["name"] == "machine"
    assert not (parity / "certificate.json").exists()


def test_recognizers_are_tried_on_near_misses(tmp_path: Path) -> None:
    save_compiled(construct("rnn", make_task("regex", pattern="(a|b)*abb")), tmp_path / "regex")
    certificate = certify_against(tmp_path / "regex", "(b*a)+bb")
    assert (certificate.level, certificate.task["name"], certificate.classes) == ("proved", "dfa", ("out", "in"))


def test_nets_of_examples_are_certified_by_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own task does not answer other strings; symbols and answers are in the order of the task's names."""
    monkeypatch.chdir(tmp_path)
    task = make_task("examples")
    machine = labeled_dfa(dfa_from_regex(PARITY)).renamed({"accept": "odd", "reject": "even"}, ("odd", "even"))
    write_machine(machine, tmp_path / "parity.json")
    net = construct("rnn", machine_task(machine.aligned(task.symbols, task.classes))).model
    save_hub(tmp_path / "net", net, task, ("test", "a net of examples"))
    with pytest.raises(ValueError, match=r"net: expected a task with an answer to every string, got 'examples'"):
        certify_folder(tmp_path / "net")
    certificate = certify_against(tmp_path / "net", "parity.json")
    assert (certificate.level, certificate.classes) == ("proved", ("even", "odd"))
    other = labeled_dfa(dfa_from_regex("(a|b)*b")).renamed({"accept": "odd", "reject": "even"})
    write_machine(other, tmp_path / "last.json")
    counterexample = certify_against(tmp_path / "net", "last.json").counterexample
    assert counterexample is not None
    assert (counterexample.string, counterexample.got) == (("b", "a"), "odd")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "a*c",
            r"^machine: expected the same symbols in both machines, got 'c' only in the second machine; rename this",
        ),
        ("none.dot", r"^none\.dot: expected a file, a folder or a regular expression, found no such path"),
        ("net.toml", r"^net\.toml: expected a file, a folder or a regular expression, found no such path"),
        ("other.json", r"^machine: expected only answers among 0, 1, got 2; rename this answer$"),
    ],
)
def test_machines_that_do_not_fit_are_refused(source: str, message: str, parity: Path, monkeypatch) -> None:
    monkeypatch.chdir(parity)
    Path("other.json").write_text('{"symbols": ["a", "b"], "start": 0, "table": [[0, 0]], "outputs": [2]}')
    with pytest.raises(ValueError, match=message):
        certify_against(parity, source)


def test_what_was_learned_leaves_the_empty_string_out(tmp_path: Path) -> None:
    """Of a folder as `learn` writes it; the same machine in a file answers it."""
    write_machine(labeled_dfa(dfa_from_regex("a*")), tmp_path / "machine.json")
    shutil.copy(tmp_path / "machine.json", tmp_path / "file.json")
    ours, other, plus = given_machines([str(tmp_path), str(tmp_path / "file.json"), "a+"])
    assert (ours.answers_empty, other.answers_empty) == (False, True)
    assert difference(ours.compared, plus.compared) is None
    assert difference(other.compared, plus.compared) == ((), ("accept", "reject"))
