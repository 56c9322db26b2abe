"""Numbers in headlines come from results: from those on record, and from made-up ones."""

import gzip
import re
from inspect import unwrap
from pathlib import Path

import pytest
from command import exit_code
from synthetic_runs import PLAN, synthetic_run

from lengthwise.certification.certificate import Certificate
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scoring
from lengthwise.report.pages.results import file_stem
from lengthwise.report.tables.headline import combined, headline
from lengthwise.runs.pools.outcome import NOT_RUN, Outcome
from lengthwise.runs.records import read_diverged, read_records
from lengthwise.runs.spec import make_spec
from lengthwise.studies import text

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SCALES = {"linear-rnn/table-2": ("small", "paper")}
"""The scales with a headline, of experiments that have one at several."""

ON_RECORD = [
    (name, scale)
    for name in EXPERIMENTS
    for scale in SCALES.get(name, ("small",))
    if (RESULTS / "records" / f"{file_stem(name, scale)}.jsonl.gz").exists()
]

LONG = {
    *("bench/flare", "leaderboard", "leaderboard/strings", "linear-rnn/random-languages", "looped/figure-5"),
    *("looped/table-1", "recurrent/proved", "regular-gpt/ours", "regular-gpt/table-1", "transformers/positions"),
    "transformers/proved",
}
"""The experiments whose pages take several seconds to write."""


@pytest.mark.parametrize(("name", "scale"), ON_RECORD)
def test_a_page_begins_with_what_the_records_say(name: str, scale: str) -> None:
    """If this fails, make the page again: `lengthwise reproduce NAME --recorded --page-only`.

    Studies have headlines of their own, and pages on language have one if the text is given.
    """
    experiment, stem = EXPERIMENTS[name](scale), file_stem(name, scale)
    title, first, second, *_ = (RESULTS / f"{stem}.md").read_text(encoding="utf-8").split("\n\n")
    bullets = second.removeprefix("- ").split("\n- ") if second.startswith("- ") else []
    about = experiment.about.splitlines()
    assert title == f"# {experiment.title}"
    assert [first, *bullets][-len(about) :] == about
    if experiment.headline:
        records = RESULTS / "records" / f"{stem}.jsonl.gz"
        results = {result.run_id: result for result in read_records(records)}
        lost = {run.run_id: f"Diverged: {run.diverged.message}" for run in read_diverged(records)}
        outcomes = [Outcome(spec, results.get(spec.id), lost.get(spec.id, NOT_RUN)) for spec in experiment.specs]
        stated = experiment.introduction(scale, headline(experiment, outcomes))
        assert stated == "\n\n".join([first, *([second] if bullets else [])])


@pytest.mark.sampled(8)  # each case writes a page
@pytest.mark.parametrize(
    ("name", "scale"),
    [pytest.param(*each, marks=pytest.mark.slow if each[0] in LONG else ()) for each in ON_RECORD],
)
def test_a_page_from_records_alone_changes_neither_page_nor_records(name: str, scale: str, tmp_path: Path) -> None:
    stem, requires = file_stem(name, scale), EXPERIMENTS[name](scale).requires
    folders = ["--pages", str(tmp_path), "--runs", str(tmp_path / "runs")]
    code = exit_code("reproduce", name, "--scale", scale, "--recorded", "--page-only", *folders)
    if requires.weights or requires.lacks:
        assert code == 2
        return
    assert code < 2, "1 is the code of a page with runs that diverged"
    made_page, recorded_page = (
        re.sub(r"^- page written: [\d-]+$", "", (folder / f"{stem}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
        for folder in (tmp_path, RESULTS)
    )
    assert made_page == recorded_page
    for table in tmp_path.glob("*.csv"):
        assert table.read_bytes() == (RESULTS / table.name).read_bytes()
    made, recorded = (folder / "records" / f"{stem}.jsonl.gz" for folder in (tmp_path, RESULTS))
    # Another version of zlib compresses the same lines differently.
    assert gzip.decompress(made.read_bytes()) == gzip.decompress(recorded.read_bytes())


@pytest.mark.parametrize(
    "name", ["regular-gpt/table-3", "looped/table-3", "linear-rnn/language", "regular-gpt/chunk-sizes"]
)
def test_names_in_headlines_without_results_exist(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "NOVELS", text.given_text("small").header.source)
    experiment = unwrap(EXPERIMENTS[name])("small")  # tests make an experiment once
    stated = headline(experiment, [])
    assert "{" in experiment.headline
    assert "{" not in stated
    assert " - " in stated, "numbers that are not there"


@pytest.mark.parametrize("name", ["regular-gpt/table-3", "looped/table-3", "linear-rnn/language"])
def test_pages_on_language_begin_with_perplexities_of_their_tables(name: str) -> None:
    parts = (RESULTS / f"{file_stem(name, 'small')}.md").read_text(encoding="utf-8").split("\n\n")
    stated = parts[1] + parts[2]
    (table,) = (part for part in parts if part.startswith(("| row | column | 128 |", "| column | 128 |")))
    perplexities = re.findall(r"\d+\.\d\d", stated)
    assert len(perplexities) > 6
    assert all(f"| {perplexity} |" in table for perplexity in perplexities)


def outcome(task: str, seed: int, num_wrong: int = 0, level: str = "proved") -> Outcome:
    spec = make_spec(task, "regular-gpt", {}, seed=seed)
    run = synthetic_run(task, seed=seed, num_correct=lambda length, count: count - num_wrong * (length == 50))
    certificate = Certificate.model_construct(level=level, counterexample=None)
    return Outcome(spec, run.result.model_copy(update={"certificate": certificate}))


OUTCOMES = {
    ("Parity", "C=2"): [outcome("parity", 0), outcome("parity", 1, num_wrong=64)],
    ("Parity", "C=3"): [outcome("parity", 2, level="tested"), outcome("parity", 3)],
    ("Even Pairs", "C=2"): [outcome("even-pairs", 0, num_wrong=128, level="tested")],
}


def stated(template: str, last: str = "") -> str:
    """Return the headline; the last run has no result for the reason `last`, if there is one."""
    published = {("Parity", "C=2"): "100.0 / 99.5", ("Parity", "C=3"): "100.0 / 100.0", ("Even Pairs", "C=2"): "98.0"}
    cells = [Cell(*names, tuple(run.spec for run in runs), published[names]) for names, runs in OUTCOMES.items()]
    experiment = Experiment("Title", "About.", cells, PLAN, headline=template)
    outcomes = [run for runs in OUTCOMES.values() for run in runs]
    if last:
        outcomes[-1] = Outcome(outcomes[-1].spec, None, last)
    return headline(experiment, outcomes)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{cells[Parity][C=2][mean]}", "99.37 %"),  # of 40 points one is 75 %
        ("{cells[Parity][*][solved]} of parity", "3 of 4 of parity"),
        ("{cells[*][not C=3][solved]}", "1 of 3"),
        ("{cells[*][C=2][mean]}", "97.50 to 99.37 %"),
        ("{cells[Parity | Even*][*][lowest]}", "50.00 to 100 %"),
        ("{cells[not Parity][*][100,000]}", "100 %"),
        ("{highest[*][*][mean]}, {lowest[*][*][mean]}", "100 %, 97.50 %"),
        ("{share[*][*][lowest][100 %]}", "1 of 3"),
        ("{cells[*][*][level proved]}, {cells[*][C=3][level tested]}", "3 of 5, 1 of 2"),
        ("{reached[*][*]}, {reached[*][C=3]}", "1 of 3, 1 of 1"),
        ("{runs}, {diverged}, {compared}, {decided}", "5, 0, 0, 0"),
        ("All is right.", "All is right."),
        ("", ""),
    ],
)
def test_fields_are_numbers_of_the_results(template: str, sentence: str) -> None:
    assert stated(template) == sentence


def test_cells_without_a_result_are_left_out() -> None:
    template = "{cells[*][*][mean]}, {diverged}, {cells[Even Pairs][*][mean]}"
    assert stated(template, last="Diverged: NaN") == "99.37 to 100 %, 1, -"
    assert stated("{highest[Even Pairs][*][mean]}, {reached[Even Pairs][*]}", last="Diverged: NaN") == "-, 0 of 0"


def test_a_headline_waits_for_the_runs_of_the_cells_that_it_names() -> None:
    assert stated("{cells[Parity][*][solved]}", last=NOT_RUN) == "3 of 4"
    for template in ("{cells[*][C=2][solved]}", "{cells[Parity][*][solved]} of {runs}", "{compared}", "All is right."):
        assert stated(template, last=NOT_RUN) == ""
        assert stated(template) != ""


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{cell[Parity][C=2][mean]}", r"headline: unknown field 'cell'; did you mean 'cells'\?"),
        ("{cells[Party][C=2][mean]}", r"headline: unknown row 'Party'; did you mean 'Parity'\?"),
        ("{cells[Parity][C=22][mean]}", r"headline: unknown column 'C=22'; did you mean 'C=2'"),
        ("{cells[not *][C=2][mean]}", r"headline: unknown row 'not \*'"),
        ("{cells[Parity][C=2][means]}", r"headline: unknown figure 'means'; did you mean 'mean'\?"),
        ("{cells[Parity][C=2]}", "headline: expected 3 names in brackets after a field, got 2"),
        (
            "{highest[*][*][column]}",
            "headline: expected a figure whose text is a number, got the text 'C=2'",
        ),
    ],
)
def test_names_that_do_not_exist_are_refused_in_one_sentence(template: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stated(template)


def test_differences_that_are_decided_are_counted() -> None:
    def runs(num_wrong: int, chunk_size: int) -> list[Outcome]:
        made = []
        for seed in range(4):
            wrong = num_wrong + seed % 2
            settings = {"model": {"chunk_size": chunk_size}}
            run = synthetic_run(
                "parity", settings, seed=seed, num_correct=lambda length, count, wrong=wrong: count - min(count, wrong)
            )
            made.append(Outcome(make_spec("parity", "regular-gpt", settings, seed=seed), run.result))
        return made

    right, wrong = runs(0, 2), runs(100, 3)
    cells = [Cell("Parity", name, tuple(run.spec for run in made)) for name, made in (("a", right), ("b", wrong))]
    experiment = Experiment(
        "Title", "About.", cells, PLAN, scoring=Scoring(compared=[("a", "b")]), headline="{decided} of {compared}"
    )
    assert headline(experiment, [*right, *wrong]) == "0 of 1", "seeds differ by as much in both columns"
    wrong[0] = wrong[0]._replace(result=runs(99, 3)[0].result)
    assert headline(experiment, [*right, *wrong]) == "1 of 1"


def test_spans_are_combined_by_their_ends() -> None:
    assert combined(["2,396-2,557", "3,249"]) == "2,396 to 3,249"
    assert combined(["5.08e-02", "5.09e-02"]) == "5.08e-02 to 5.09e-02"
    assert combined(["1 of 2", "7"][:1]) == "1 of 2"
    assert combined([]) == "-"
