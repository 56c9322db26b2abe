"""The table of a benchmark, and its files."""

import csv
import io
import json
import re
from pathlib import Path
from statistics import fmean

from synthetic_runs import PLAN, synthetic_run

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.parts import Counterexample, Level
from lengthwise.experiment import Cell, Experiment, Printed
from lengthwise.report.pages.benchmark import WRITERS, BenchmarkReport, write_benchmark
from lengthwise.report.tables.benchmark import CLAIMS, MAX_ROWS, Measured, benchmark_tables, citations
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.spec import make_spec

ENTRIES = {
    ("Parity", "LSTM"): (Printed("99.9 (.1)", "A: percent.", citation="a"), Printed(".98", "B: a share.")),
    ("Even", "LSTM"): (Printed("50", "A: percent.", citation="a"),),
}
PRINTED = {"": ENTRIES, "another part": ENTRIES}


def outcome(task: str, seed: int, right: int, level: Level, error: str = "") -> Outcome:
    """A run with `right` of 256 right answers at each length."""
    named = Counterexample.model_construct(string=tuple(error)) if error else None
    result = synthetic_run(task, seed=seed, num_correct=lambda length, strings: min(right, strings)).result
    certificate = Certificate.model_construct(level=level, counterexample=named)
    return Outcome(
        make_spec(task, "regular-gpt", {}, seed=seed), result.model_copy(update={"certificate": certificate})
    )


OUTCOMES = [
    outcome("parity", 0, 256, "proved"),
    outcome("parity", 1, 128, "refuted", "a" * 30),
    outcome("even-pairs", 0, 64, "refuted", "ab"),
]


def experiment(*rows: str) -> Experiment:
    tasks = {"Parity": OUTCOMES[:2], "Even": OUTCOMES[2:]}
    cells = [Cell(row, "mine", tuple(each.spec for each in tasks[row])) for row in rows]
    return Experiment("T", "A.", cells, PLAN)


def lines(score=fmean, *rows: str) -> tuple[list[dict[str, str]], list[str]]:
    measured = [Measured(experiment(*(rows or ("Parity", "Even"))), OUTCOMES, "here")]
    tables, notes = benchmark_tables(measured, PRINTED, score)
    return [dict(zip(tables[""].header, line, strict=True)) for line in tables[""].lines], notes


def test_published_entries_of_each_protocol_come_first_as_they_are_printed() -> None:
    (first, second, mine), notes = lines()
    assert (first["model"], first["Parity"], first["Even"], first["from"]) == ("LSTM", "99.9 (.1)", "50", "[1]")
    assert (second["Parity"], second["Even"], second["from"]) == (".98", "-", "[2]")
    assert notes == ["[1] A: percent.", "[2] B: a share.", CLAIMS]
    assert (first["mean"], first["proved"]) == ("-", "-"), "the package computes nothing from claims of others"
    assert mine["from"] == "here"


def test_scores_are_means_or_best_runs() -> None:
    mine = lines()[0][-1]
    assert (mine["Parity"], mine["Even"], mine["mean"], mine["runs"]) == ("75.00 %", "25.00 %", "50.00 %", "3")
    assert lines(max)[0][-1]["Parity"] == "100 %"


def test_certificates_are_counted_and_the_shortest_wrong_string_has_its_task() -> None:
    mine = lines()[0][-1]
    assert (mine["proved"], mine["refuted by"]) == ("1 of 3", '"ab" (Even)')
    alone = lines(fmean, "Parity")[0][-1]
    assert (alone["proved"], alone["refuted by"], "mean" in alone) == ("1 of 2", "30 symbols", False)


def test_a_task_without_a_result_is_counted_in_the_mean() -> None:
    tables, _ = benchmark_tables([Measured(experiment("Parity", "Even"), OUTCOMES[:2], "here")], {}, fmean)
    line = dict(zip(tables[""].header, tables[""].lines[0], strict=True))
    assert (line["Even"], line["mean"]) == ("-", "75.00 % (1 of 2)")


def test_many_tasks_have_only_their_mean() -> None:
    cells = [Cell(f"row {number}", "mine", (OUTCOMES[0].spec,)) for number in range(MAX_ROWS + 1)]
    tables, notes = benchmark_tables([Measured(Experiment("T", "A.", cells, PLAN), OUTCOMES, "here")], PRINTED, fmean)
    assert tables[""].header == ("model", "mean", "runs", "proved", "refuted by", "from")
    assert notes == [f"Published numbers of single tasks are shown for at most {MAX_ROWS} tasks; select tasks."]


def test_a_published_mean_stands_in_the_column_of_means() -> None:
    published = {"": {("mean", "LSTM"): (Printed("77.5", "A: percent."),)}}
    for rows in (("Parity", "Even"), ("Parity",)):
        tables, _ = benchmark_tables([Measured(experiment(*rows), OUTCOMES, "here")], published, fmean)
        line = dict(zip(tables[""].header, tables[""].lines[0], strict=True))
        assert line["model"] == "LSTM"
        assert line.get("mean", "77.5") == "77.5"


def report() -> BenchmarkReport:
    tables, notes = benchmark_tables([Measured(experiment("Parity"), OUTCOMES, "here")], PRINTED, fmean)
    keys = citations(PRINTED, notes)
    return BenchmarkReport("T", "A paper", "small", "lengthwise bench t", tables, notes, ("Ours.",), "@misc{a}\n", keys)


def test_every_format_has_the_numbers_and_says_whose_they_are(tmp_path: Path) -> None:
    texts = {}
    for suffix in WRITERS:
        write_benchmark(report(), tmp_path / f"table{suffix}")
        texts[suffix] = (tmp_path / f"table{suffix}").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert texts[".bib"] == "@misc{a}\n"
    *_, mine = csv.DictReader(io.StringIO(texts[".csv"]))
    assert (mine["model"], mine["Parity"]) == ("mine", "75.00 %")
    assert json.loads(texts[".json"])["tables"][-1]["Parity"] == "75.00 %"
    assert "| mine | 75.00 % |" in texts[".md"]
    assert "mine & 75.00~\\%" in texts[".tex"]
    assert "\\toprule" in texts[".tex"]
    assert re.findall(r"^LSTM & .*& (.*) \\\\$", texts[".tex"], re.MULTILINE) == [r"{[}1]~\cite{a}", "{[}2]"]
    for suffix in (".md", ".json", ".tex"):
        assert "99.9 (.1)" in texts[suffix]
        assert "A: percent." in texts[suffix]
        assert CLAIMS in texts[suffix]
        assert "Ours." in texts[suffix]
