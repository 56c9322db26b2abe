"""Accuracy on labeled strings of a file: of all labels, matched by name, whatever the task says."""

from pathlib import Path

import pytest
import torch
from command import exit_code

from lengthwise import construct, make_task
from lengthwise.evaluation.labeled import labeled_curve
from lengthwise.models.machine import TransducerModel
from lengthwise.runs.compiled import save_compiled
from lengthwise.tasks.given.reading import read_examples


@pytest.mark.parametrize("names", [("no", "yes"), ("yes", "no"), ("0", "1"), ("+", "-"), ("reject", "accept")])
def test_labels_are_counted_at_each_length(names: tuple[str, str]) -> None:
    """Against the count of a loop over the rows, in any order of symbols, one label of three wrong."""
    task = make_task("regex", pattern="(b|a)*abb", alphabet="cba")
    model = TransducerModel(task.transducer, task.classes)
    accepting = names.index(next(name for name in names if name in ("yes", "1", "+", "accept")))
    generator = torch.Generator().manual_seed(0)
    rows, right = {}, dict.fromkeys(range(1, 9), 0)
    for number in range(300):
        length = 1 + number % 8
        text = task.decode(torch.randint(3, (length,), generator=generator))
        if text in rows:
            continue
        is_right = number % 3 > 0
        rows[text] = names[accepting] if text.endswith("abb") * ("c" not in text) == is_right else names[1 - accepting]
        right[length] += is_right
    curve = labeled_curve(model, task, read_examples(list(rows.items())))
    assert curve.protocol == "labeled"
    assert {point.length: point.num_correct for point in curve.points} == right
    for point in curve.points:
        labels = [label for text, label in rows.items() if len(text) == point.length]
        assert point.num_strings == len(labels)
        assert point.baseline == max(labels.count(name) for name in names) / len(labels)
        assert point.balanced == (len(set(labels)) == 2)


def test_other_symbols_and_labels_are_refused() -> None:
    task = make_task("regex", pattern="(a|b)*abb")
    model = TransducerModel(task.transducer, task.classes)
    rows = [("a", "no"), ("", "no"), ("a", "no"), ("b", "yes"), ("bd", "no"), ("cb", "yes")]
    sentence = (
        "examples: row 5: expected strings over the symbols of regex, got the symbol 'd'; leave the row out, or, if "
        "symbols are words, give the separator between them"
    )
    with pytest.raises(ValueError, match=sentence):
        labeled_curve(model, task, read_examples(rows))
    sentence = r"examples: row 3: expected labels that are answers of regex \(out, in\), got 'maybe'; rename this label"
    with pytest.raises(ValueError, match=sentence):
        labeled_curve(model, task, read_examples([("a", "in"), ("", "in"), ("b", "maybe")]))
    with pytest.raises(ValueError, match=r"^examples: row 1: expected labels that are answers of regex .* got 'maybe'"):
        labeled_curve(model, task, read_examples([("a", "maybe")], min_classes=1))


def test_the_command_measures_a_net_by_a_file(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    save_compiled(construct("rnn", make_task("regex", pattern="(a|b)*abb")), "net")
    Path("test.csv").write_text("string,label\na b b,yes\na b,no\nb b,yes\n,no\n")
    files = ("--out", "points.csv", "--out", "table.tex")
    assert exit_code("evaluate", "net", "--labeled", "test.csv", "--separator", " ", *files) == 0
    out = capsys.readouterr().out
    assert "net: 2 of 3 labels of test.csv (66.66 %); 4 rows read, left out: 0 duplicates, 0 that" in out
    assert len(Path("points.csv").read_text().splitlines()) == 3
    table = Path("table.tex").read_text()
    assert "model & right & 2 & 3 & mean & lowest & chance" in table
    assert r"net & 2/3 & 50.00~\% & 100~\% & 50.00~\% & 50.00~\% at 2 & 50.00~\%" in table
    assert "protocol labeled; mean, lowest and chance over the lengths at which every class can occur}" in table
    Path("named.csv").write_text("number,seq,verdict\n1,abb,yes\n2,ab,no\n")
    assert exit_code("evaluate", "net", "--labeled", "named.csv", "--string", "seq", "--label", "verdict") == 0
    assert "net: 2 of 2 labels of named.csv" in capsys.readouterr().out
    assert exit_code("evaluate", "net", "--string", "seq") == 2
    assert "string: not allowed without --labeled, got 'seq'" in capsys.readouterr().err
    Path("one.csv").write_text("string,label\nabb,in\naabb,in\n")
    assert exit_code("evaluate", "net", "--labeled", "one.csv") == 0
    assert "net: 2 of 2 labels of one.csv" in capsys.readouterr().out
    for more in (("--lengths", "3"), ("--protocol", "structured")):
        assert exit_code("evaluate", "net", "--labeled", "one.csv", *more) == 2
        assert ": not allowed with --labeled, whose file contains the strings" in capsys.readouterr().err
    assert exit_code("evaluate", "net", "--separator", " ") == 2
    assert "not allowed without --labeled" in capsys.readouterr().err
    assert exit_code("evaluate", "net", "--labeled", "none.csv") == 2
    assert "none.csv: expected a file of examples, found no such file" in capsys.readouterr().err


def test_words_are_read_as_the_model_reads_them(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    save_compiled(construct("rnn", make_task("regex", pattern="(SEND ACK)*", tokens="words")), "net")
    Path("logs.csv").write_text("string,label\nSEND ACK,yes\nSEND SEND,no\nACK,yes\n")
    assert exit_code("evaluate", "net", "--labeled", "logs.csv") == 0
    assert "net: 2 of 3 labels of logs.csv" in capsys.readouterr().out
    Path("logs.csv").write_text("string,label\nSEND;ACK,yes\nSEND;SEND,no\n")
    assert exit_code("evaluate", "net", "--labeled", "logs.csv") == 2
    assert (
        "got the symbol 'SEND;ACK'; leave the row out, or, if symbols are words, give the separator"
        in capsys.readouterr().err
    )
    assert exit_code("evaluate", "net", "--labeled", "logs.csv", "--separator", ";") == 0
