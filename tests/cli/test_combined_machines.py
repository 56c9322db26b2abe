"""Expressions over words, and `lengthwise combine`."""

import json
from pathlib import Path

import pytest
from command import exit_code, printed


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_expressions_over_words_have_a_prefix_and_are_written_as_they_are_read(capsys) -> None:
    session = "words:CONNECT (DATA ACK)* CLOSE"
    assert printed(capsys, "convert", session, "s.dot")[1].startswith("machine: 5 states, 4 symbols, ")
    assert printed(capsys, "convert", "s.dot", "s.regex")[0] == 0
    assert Path("s.regex").read_text() == "CONNECT (DATA ACK)* CLOSE\nwords: ACK CLOSE CONNECT DATA\n"
    assert printed(capsys, "diff", "s.regex", session) == (0, "equal\n", "")
    code, out, _ = printed(capsys, "diff", "s.dot", "words: CONNECT .* CLOSE")
    assert (code, out.splitlines()[:2]) == (1, ["different", "string: CONNECT ACK CLOSE"])
    for other in ("regex:CD*", "words:CD*"):
        assert ("write 'words:' before" in printed(capsys, "diff", "s.dot", other)[2]) == other.startswith("regex")
    assert printed(capsys, "combine", "s.dot", "and", "words:CONNECT CLOSE", "--out", "c.regex")[0] == 0
    assert Path("c.regex").read_text().startswith("CONNECT CLOSE\n")
    assert exit_code("compile", "words:GET (PUT GET)*", "--alphabet", "GET PUT OK", "--to", "rnn", "--out", "net") == 0
    assert printed(capsys, "diff", "net", "words:GET (PUT GET)*", "--alphabet", "OK ")[0] == 0


def test_combine_writes_what_its_words_mean_from_left_to_right(capsys) -> None:
    printed(capsys, "convert", "(a|b)*b", "b.dot")
    for terms, expected in (
        (("(a|b)*abb", "and", "not", "(a|b)*babb"), "abb|(a|b)*aabb"),
        (("a*", "or", "b*", "and", "b.dot"), "b+"),
        (("(a|b)*", "minus", "b.dot", "minus", "regex:aa"), "()|a|(a|b)(a|b)(a|b)*a|ba"),
        (("not", "b.dot"), "()|(a|b)*a"),
    ):
        code, out, _ = printed(capsys, "combine", *terms, "--out", "c.json")
        assert (code, out.splitlines()[0].split(": ")[0]) == (0, "machine")
        assert printed(capsys, "diff", "c.json", expected) == (0, "equal\n", "")
    printed(capsys, "convert", "c*", "c.dot")
    sentence = "or add it to the other machine (--alphabet SYMBOLS)"
    assert sentence in printed(capsys, "combine", "b.dot", "or", "c.dot", "--out", "d.dot")[2]
    assert printed(capsys, "combine", "b.dot", "or", "c.dot", "--out", "d.dot", "--alphabet", "abc")[0] == 0
    assert printed(capsys, "diff", "d.dot", "(a|b)*b|c*") == (0, "equal\n", "")


def test_combine_takes_labels_of_logs_and_names_the_string_that_a_net_does_not_answer(capsys) -> None:
    content = {"symbols": ["a"], "start": 0, "table": [[1], [0]], "outputs": [0, 1], "classes": ["idle", "busy"]}
    Path("log.json").write_text(json.dumps(content))
    assert "(--accept ANSWER)" in printed(capsys, "combine", "not", "log.json", "--out", "c.dot")[2]
    assert printed(capsys, "combine", "not", "log.json", "--out", "c.dot", "--accept", "idle")[0] == 0
    assert printed(capsys, "diff", "c.dot", "a(aa)*")[0] == 0
    printed(capsys, "compile", "a*b", "--to", "rnn", "--out", "net")
    out = printed(capsys, "combine", "not", "net", "--out", "c.dot")[1]
    assert out.endswith("\nnot covered: the empty string, which net does not answer\n")
    assert "no answer: " not in out


def test_combine_prints_what_it_assumes_about_answers(capsys) -> None:
    content = {"symbols": ["a"], "start": 0, "table": [[1], [2], [0]], "outputs": [0, -100, 1]}
    Path("p.json").write_text(json.dumps({**content, "classes": ["FAIL", "OK"]}))
    out = printed(capsys, "combine", "not", "p.json", "and", "p.json", "--out", "c.dot")[1]
    assert out.splitlines()[2:] == [
        "taken: OK as accept, FAIL as reject in p.json",
        "no answer: in 1 state of p.json; strings that lead there are rejected",
    ]


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ((), "terms: expected a machine after 'combine', got none; add a machine"),
        (
            ("a*", "b*"),
            "terms: expected one of 'and', 'or', 'minus' after a*, got 'b*'; write one of these words between machines",
        ),
        (("a*", "and", "not"), "terms: expected a machine after 'not', got none; add a machine"),
        (("a*", "and", "or"), "terms: expected a machine after 'and', got 'or'; name a file of this name as ./NAME"),
    ],
)
def test_terms_that_do_not_alternate_are_rejected(terms: tuple[str, ...], sentence: str, capsys) -> None:
    assert printed(capsys, "combine", *terms, "--out", "c.dot") == (2, "", f"lengthwise: {sentence}\n")
