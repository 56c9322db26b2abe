"""`lengthwise describe`, `diff`, `convert` and `certify --machine`: what they print, and their exit codes."""

import json
import os
from pathlib import Path

import pytest
from command import exit_code, printed

from lengthwise.files import write_by_rename
from lengthwise.formats.files import suffixes


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_diff_says_equal_or_gives_the_shortest_string(capsys) -> None:
    assert printed(capsys, "diff", "(a|b)*abb", "(b*a)+bb") == (0, "equal\n", "")
    expected = "different\nstring: bb\n(a|b)*abb: reject\n(a|b)*bb: accept\n"
    assert printed(capsys, "diff", "(a|b)*abb", "(a|b)*bb") == (1, expected, "")
    expected = "different\nstring: the empty one\n-*: accept\n-+: reject\n"
    assert printed(capsys, "diff", "-*", "-+") == (1, expected, "")


def test_describe_says_what_a_language_is_and_what_a_machine_with_other_answers(capsys) -> None:
    code, out, _ = printed(capsys, "describe", "(a|b)*a(a|b){7}")
    assert (code, out.splitlines()[0]) == (0, "states: 256, the fewest")
    assert "transition monoid: 511 elements, aperiodic\nstar-free: yes, because the monoid is aperiodic\n" in out
    Path("even.dot").write_text(
        "digraph { __start0 -> e; e [shape=doublecircle]; o; x [shape=doublecircle];"
        " e -> o [label=a]; o -> x [label=a]; x -> o [label=a] }"
    )
    _, out, _ = printed(capsys, "describe", "even.dot")
    assert out.splitlines()[0] == "states: 3, 2 in the smallest machine"
    assert "transition monoid: 2 elements, a group, commutative\n" in out
    assert "\nstar-free: no, because the monoid is not aperiodic\n" in out
    assert out.endswith("accepted of length 10: 1 of 1\n")
    Path("words.txt").write_text("0 1 push yes\n1 0 push no\n0 0 pop yes\n1 1 pop <eps>\n0\n1\n")
    _, out, _ = printed(capsys, "describe", "words.txt")
    assert "symbols: push pop\nanswers: no, yes\nno answer: in 2 states\n" in out
    assert "shortest strings: no push push, yes push\n" in out
    assert "star-free" not in out


@pytest.mark.usefixtures("fewer_strings")
def test_a_certificate_speaks_for_no_other_net_than_its_own(capsys) -> None:
    assert exit_code("compile", "(a|b)*abb", "--to", "rnn", "--out", "net") == 0
    assert exit_code("certify", "net") == 0
    old = Path("net/certificate.json").read_bytes()
    _, out, _ = printed(capsys, "compile", "ab", "--to", "rnn", "--out", "net")
    assert "net: replaces the earlier net and its certificate" in out
    assert printed(capsys, "diff", "net", "ab")[0] == 0
    Path("net/certificate.json").write_bytes(old)
    for arguments in (("diff", "net", "(a|b)*abb"), ("convert", "net", "net.regex"), ("describe", "net")):
        code, out, err = printed(capsys, *arguments)
        assert (code, out) == (2, "")
        assert "net: its certificate is about other weights; certify net again" in err
    assert printed(capsys, "diff", "net/certificate.json", "(a|b)*abb")[0] == 0, "the certificate itself is asked for"


def test_describe_leaves_the_empty_string_out_where_it_has_no_answer(capsys) -> None:
    """As `diff` does: here of a net, which never reads it."""
    printed(capsys, "compile", "a*", "--alphabet", "ab", "--to", "rnn", "--out", "net")
    out = printed(capsys, "describe", "net")[1]
    assert "\nshortest strings: out b, in a\n" in out
    assert out.endswith("\nnot covered: the empty string, which net does not answer\n")
    assert "accept (the empty one)\n" in printed(capsys, "describe", "a*", "--alphabet", "b")[1]
    facts = json.loads(printed(capsys, "describe", "net", "--json")[1])
    assert (facts["shortest_strings"]["in"], facts["answers_empty"]) == (["a"], False)


def test_compile_takes_the_file_of_a_machine(capsys) -> None:
    assert printed(capsys, "convert", "(a|b)*abb", "ends.dot")[1].endswith("wrote: ends.dot\n")
    assert exit_code("compile", "ends.dot", "--to", "rnn", "--out", "net") == 0
    assert printed(capsys, "diff", "net", "ends.dot")[0] == 0
    assert printed(capsys, "convert", "a*b", "ends.dot")[1].endswith("replaced: ends.dot\n")
    for arguments, sentence in (
        (("nofile.dot",), "nofile.dot: expected a file, a folder or a regular expression, found no such path"),
        (("",), "pattern: expected a regular expression or a machine's file, got an empty text"),
        (
            ("ends.dot", "--alphabet", "ab"),
            "alphabet: expected no alphabet together with the machine ends.dot, which names its symbols, got 'ab'",
        ),
        (("a", "--out", "ends.dot"), "--out: expected a folder, got the file ends.dot; name another"),
    ):
        code, _, err = printed(capsys, "compile", "--to", "rnn", *arguments)
        assert (code, sentence in err) == (2, True), err
    assert printed(capsys, "diff", "", "a")[2].startswith("lengthwise: machine: expected a file, a folder or a regular")


def test_source_code_is_named_as_its_file_so_that_two_machines_stand_side_by_side(capsys) -> None:
    for name, pattern in (("first", "(a|b)*abb"), ("second", "(a|b)*b")):
        for suffix, words in (("h", (f"{name}_classify", f"{name.upper()}_H")), ("js", (f"root.{name} =",))):
            assert printed(capsys, "convert", pattern, f"{name}.{suffix}")[0] == 0
            text = Path(f"{name}.{suffix}").read_text()
            assert all(word in text for word in words), text[-300:]
            assert "machine_" not in text


def test_expressions_have_more_symbols_where_these_are_given(capsys) -> None:
    assert "symbols: c b a\n" in printed(capsys, "describe", "a.b", "--alphabet", "cb")[1]
    assert "2 symbols" in printed(capsys, "convert", ".*", "any.dot", "--alphabet", "xy")[1]
    for alphabet in ("ab", "a b"):
        assert "length 10: 512 of 1,024\n" in printed(capsys, "describe", "a.*", "--alphabet", alphabet)[1]
    assert (
        "has the symbol 'ab', got an expression over characters"
        in printed(capsys, "describe", "a*", "--alphabet", "ab ")[2]
    )
    assert printed(capsys, "diff", "[^a]*", "b*", "--alphabet", "a")[0] == 0
    assert printed(capsys, "diff", "[^a]*", "b*", "--alphabet", "ac")[:2] == (
        1,
        "different\nstring: c\n[^a]*: accept\nb*: reject\n",
    )


def test_other_programs_get_json(capsys) -> None:
    facts = json.loads(printed(capsys, "describe", "(aa)*", "--json", "--alphabet", "b")[1])
    assert facts == {
        "states": 3,
        "fewest_states": 3,
        "symbols": ["b", "a"],
        "answers": ["reject", "accept"],
        "states_without_answer": 0,
        "shortest_strings": {"reject": ["b"], "accept": []},
        "answers_empty": True,
        "monoid": {"elements": 3, "group": False, "aperiodic": False, "commutative": True},
        "star_free": False,
        "accepted_length": 10,
        "accepted": 1,
    }
    code, out, _ = printed(capsys, "diff", "(a|b)*b", "(a|b)*bb", "--json")
    assert (code, json.loads(out)) == (
        1,
        {"equal": False, "string": ["b"], "answers": ["accept", "reject"], "not_compared": [], "taken": []},
    )
    code, out, _ = printed(capsys, "diff", "a*", "a*", "--json")
    assert (code, json.loads(out)) == (
        0,
        {"equal": True, "string": None, "answers": None, "not_compared": [], "taken": []},
    )
    assert printed(capsys, "convert", "a*", "mealy.dot", "--mealy")[0] == 0
    (sentence,) = json.loads(printed(capsys, "diff", "mealy.dot", "a*", "--json")[1])["not_compared"]
    assert sentence.startswith("strings that mealy.dot does not answer")


def test_a_mealy_machine_is_written_in_dot(capsys) -> None:
    assert printed(capsys, "convert", "(a|b)*b", "mealy.dot", "--mealy")[0] == 0
    assert printed(capsys, "convert", "(a|b)*b", "mealy.dot", "--mealy")[1].startswith("Mealy machine: 1 state, 2 sym")
    text = Path("mealy.dot").read_text()
    assert ('label="b/accept"' in text, text.count("shape=circle")) == (True, 1)
    assert printed(capsys, "diff", "mealy.dot", "(a|b)*b")[0] == 0
    code, _, err = printed(capsys, "convert", "(a|b)*b", "mealy.json", "--mealy")
    assert (code, "mealy.json: expected a path that ends in .dot for a Mealy machine" in err) == (2, True)


def test_automata_reject_symbols_that_they_did_not_know(capsys) -> None:
    assert printed(capsys, "convert", "a*b", "known.dot")[0] == 0
    code, _, err = printed(capsys, "diff", "known.dot", "[^c]*b", "--alphabet", "")
    assert (
        code,
        "got 'c' only in the second machine; rename this symbol, or add it to the other machine (--alphabet" in err,
    ) == (2, True)
    assert printed(capsys, "diff", "known.dot", "a*b", "--alphabet", "abc")[0] == 0
    assert printed(capsys, "diff", "known.dot", ".*b", "--alphabet", "abc")[1].startswith("different\nstring: bb\n")
    assert exit_code("compile", "a*b", "--to", "rnn", "--out", "net") == 0
    code, _, err = printed(capsys, "describe", "net", "--alphabet", "abc")
    assert (code, "expected symbols that the net at net reads, got 'c'; leave out 'c'" in err) == (2, True)
    Path("words.dot").write_text("digraph { __start0 -> s; s [shape=doublecircle]; s -> s [label=go] }")
    assert "symbols: go stop\n" in printed(capsys, "describe", "words.dot", "--alphabet", "go stop")[1]
    assert "symbols: go stop\n" in printed(capsys, "describe", "words.dot", "--alphabet", "stop")[1]
    Path("moore.dot").write_text('digraph { __start0 -> s; s [label="s / x"]; s -> s [label="a"] }')
    code, _, err = printed(capsys, "describe", "moore.dot", "--alphabet", "b")
    assert (code, ", got 'b'; leave this symbol out" in err) == (2, True)


def test_what_is_not_printed_is_escaped(capsys) -> None:
    symbols, table = ["\t", "\n"], [[1, 0], [1, 0]]
    content = {"alphabet": symbols, "transitions": table, "accepting": [1], "start": 0}
    Path("tabs.json").write_text(json.dumps(content))
    assert "\nsymbols: \\t \\n\n" in printed(capsys, "describe", "tabs.json")[1]
    Path("lines.json").write_text(json.dumps({**content, "accepting": [0]}))
    assert "\nstring: the empty one\n" in printed(capsys, "diff", "tabs.json", "lines.json")[1]
    Path("lines.json").write_text(json.dumps({**content, "accepting": []}))
    assert "\nstring: \\t\n" in printed(capsys, "diff", "tabs.json", "lines.json")[1]


def test_links_are_replaced_and_pipes_are_not(capsys) -> None:
    Path("link.dot").symlink_to("real.dot")
    Path("real.dot").write_text("old")
    assert printed(capsys, "convert", "a*", "link.dot")[0] == 0
    assert Path("real.dot").read_text() == "old"
    os.mkfifo("pipe.dot")
    code, _, err = printed(capsys, "convert", "a*", "pipe.dot")
    assert (code, err) == (
        2,
        "lengthwise: pipe.dot: expected a file to write, got a pipe or a device; name an ordinary file\n",
    )
    with pytest.raises(OSError, match="expected a file, got a pipe or a device"):
        write_by_rename(Path("pipe.dot"), b"")
    assert Path("pipe.dot").is_fifo()


@pytest.mark.usefixtures("fewer_strings")
def test_compile_keeps_a_proof_of_the_same_net_and_no_other(capsys) -> None:
    compiled = ("compile", "(a|b)*abb", "--to", "rnn", "--out", "net")
    assert exit_code(*compiled) == 0
    assert exit_code("certify", "net", "--proof") == 0
    assert "net: already contains this net, and keeps its certificate\n" in printed(capsys, *compiled)[1]
    assert exit_code("certify", "net", "--check", "net") == 0
    certificate = Path("net/certificate.json").read_text()
    assert exit_code("compile", "a*b", "--to", "rnn", "--out", "other") == 0
    assert exit_code("certify", "other", "--out", "net/certificate.json") == 0
    assert "keeps" not in printed(capsys, *compiled)[1], "it is another net's"
    assert not Path("net/certificate.json").exists()
    Path("net/certificate.json").write_text(certificate)
    other = printed(capsys, "compile", "a*b", "--to", "rnn", "--out", "net")[1]
    assert "net: replaces the earlier net and its certificate\n" in other
    assert sorted(path.name for path in Path("net").iterdir()) == ["compiled.json", "model.safetensors"]
    Path("hidden").mkdir()
    Path("hidden/.DS_Store").write_text("")
    assert exit_code("compile", "a*b", "--to", "rnn", "--out", "hidden") == 0


def test_compile_writes_into_no_folder_of_others(capsys) -> None:
    for name in ("run.json", "config.json", "notes.txt", "machine.json"):
        Path("other").mkdir(exist_ok=True)
        Path("other", name).write_text("{}")
        code, _, err = printed(capsys, "compile", "a*b", "--to", "rnn", "--out", "other")
        assert (code, "other: expected a new or empty folder, or one that `compile` wrote" in err) == (2, True)
        assert [path.name for path in Path("other").iterdir()] == [name]
        Path("other", name).unlink()


@pytest.mark.parametrize("command", ["predict", "evaluate", "certify"])
def test_a_machine_is_no_model(command: str, capsys) -> None:
    Path("m.dot").write_text("digraph { __start0 -> s; s; s -> s [label=a] }")
    code, _, err = printed(capsys, command, "m.dot", *(["a"] if command == "predict" else []))
    assert code == 2
    assert "m.dot: expected a model, got the file of a machine or a certificate; `lengthwise compile` makes" in err


def test_diff_separates_words_and_says_what_is_not_compared(capsys) -> None:
    Path("words.txt").write_text("0 1 push yes\n1 0 push no\n0 0 pop yes\n1 1 pop <eps>\n0\n1\n")
    Path("other.txt").write_text("0 1 push yes\n1 0 push yes\n0 0 pop yes\n1 1 pop <eps>\n0\n1\n")
    assert printed(capsys, "diff", "words.txt", "words.txt") == (
        0,
        "equal\n" + 2 * "not compared: strings that words.txt does not answer (states without an answer: 2)\n",
        "",
    )
    code, out, _ = printed(capsys, "diff", "words.txt", "other.txt")
    assert (code, out.splitlines()[:4]) == (1, ["different", "string: push push", "words.txt: no", "other.txt: yes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("diff", "a*", "none.dot"),
            "none.dot: expected a file, a folder or a regular expression, found no such path",
        ),
        (("diff", "a*", "(a"), "pattern: expected a closing ) at position 3 of '(a', got the end; close the group"),
        (
            ("diff", "m.dot", "(a|c)*"),
            "machine: expected the same symbols in both machines, got 'c' only in the second machine; re",
        ),
        (("diff", "a*", "bad.dot"), "bad.dot: line 1: expected a directed graph, which begins with digraph, got graph"),
        (("convert", "a*", "m.docx"), "m.docx: expected a machine's file (.att, .txt, "),
        (
            ("convert", "a*", "folder.dot"),
            "folder.dot: expected a file to write, got a folder; name a file in this folder",
        ),
        (("certify", "none", "--machine", "a*"), "none: "),
        (("certify", "none", "--out", "bad.dot/c.json"), "bad.dot/c.json: expected a file in a folder, but bad.dot is"),
        (
            ("certify", "none", "--machine", "a*", "--min-level", "prove"),
            "--min-level: expected one of refuted, tested, extracted, bounded, proved, got 'prove'; did you mean 'pr",
        ),
        (
            ("certify", "none", "--draw", "m.jpg"),
            "--draw: expected a name that ends in .png, .svg, .pdf, got 'm.jpg'",
        ),
        (("certify", "none", "--machine", "a*", "--proof"), "--machine: not allowed with --proof"),
    ],
)
def test_wrong_requests_are_one_sentence(arguments: tuple[str, ...], message: str, capsys) -> None:
    Path("m.dot").write_text("digraph { __start0 -> s; s [shape=doublecircle]; s -> s [label=a]; s -> s [label=b] }")
    Path("folder.dot").mkdir()
    Path("bad.dot").write_text("graph { }")
    code, out, error = printed(capsys, *arguments)
    assert (code, out) == (2, ""), error
    assert error.startswith(f"lengthwise: {message}")
    assert len(error.splitlines()) == 1


def test_convert_writes_every_format(capsys) -> None:
    """And from each that is read the same machine comes back."""
    readable = suffixes(readable=True)
    for suffix in suffixes():
        code, out, _ = printed(capsys, "convert", "(a|b)*abb", f"new/m{suffix}")
        assert code == 0
        assert out == f"machine: 4 states, 2 symbols, answers reject, accept\nwrote: new/m{suffix}\n"
        if suffix in readable:
            assert printed(capsys, "convert", f"new/m{suffix}", "again.json")[0] == 0
            assert printed(capsys, "diff", "again.json", "(a|b)*abb") == (0, "equal\n", "")


def test_convert_says_where_there_is_no_answer(capsys) -> None:
    Path("m.json").write_text(
        '{"symbols": ["a"], "start": 0, "table": [[1], [0]], "outputs": [-100, 0], "classes": ["yes", "no"]}'
    )
    code, out, _ = printed(capsys, "convert", "m.json", "m.regex")
    assert code == 0
    assert "no answer: in 1 state; in a format that cannot express this, such states reject\n" in out
    assert Path("m.regex").read_text() == "a(aa)*\n"


@pytest.mark.usefixtures("fewer_strings")
def test_a_net_is_certified_by_a_machine(capsys) -> None:
    assert exit_code("compile", "(a|b)*abb", "--to", "rnn", "--out", "net") == 0
    assert exit_code("convert", "(b*a)+bb", "right.dot") == 0
    capsys.readouterr()
    code, out, _ = printed(capsys, "certify", "net", "--machine", "right.dot", "--out", "right.json")
    assert (code, out.split(":")[0], out.splitlines()[-1]) == (0, "proved", "wrote: right.json")
    assert printed(capsys, "diff", "right.json", "right.dot")[:2] == (
        0,
        "equal\nnot compared: the empty string, which right.json does not answer\n",
    )
    assert not Path("net", "certificate.json").exists(), "by another machine than its own, only where it is told"
    code, out, error = printed(capsys, "certify", "net", "--machine", "(a|b)*bb", "--min-level", "tested")
    assert code == 1
    assert "counterexample: bb: the model answers out; the right answer is in" in out
    assert error.startswith("lengthwise: --min-level: expected tested or higher, got refuted; train the net further")
    code, _, error = printed(capsys, "certify", "net", "--machine", "(a|b)*bb")
    assert (code, error) == (
        1,
        "lengthwise: the exit code is 1, because the net is refuted; with --min-level refuted it is 0\n",
    )
    assert printed(capsys, "certify", "net", "--machine", "(a|b)*bb", "--min-level", "refuted")[0] == 0


@pytest.mark.parametrize("name", ["learnd", "my-net", "net.old", "runs/x", "learned2"])
def test_a_mistyped_name_is_no_expression_for_any_command(name: str, capsys) -> None:
    Path("learned").mkdir()
    for arguments in (
        *(["export", name, "--to", to, "--out", f"out.{suffix}"] for to, suffix in (("c", "h"), ("dot", "dot"))),
        ["describe", name],
        ["diff", name, "a*"],
        ["convert", name, "out.dot"],
        ["compile", name, "--to", "rnn", "--out", "net"],
    ):
        code, out, err = printed(capsys, *arguments)
        assert (code, out) == (2, "")
        assert f"{name}: expected a file, a folder or a regular expression, found no such path" in err
        assert f"regex:{name} if you mean an expression" in err
    assert [path.name for path in Path().iterdir()] == ["learned"]
    assert printed(capsys, "describe", f"regex:{name}")[0] == 0
