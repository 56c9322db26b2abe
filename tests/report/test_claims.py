"""The ledger of claims: its page is what the records say, and every claim has a verdict that follows from numbers."""

import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from command import exit_code

from lengthwise.cli.reporting import REPRODUCE, WRITE_CLAIMS
from lengthwise.experiment import EXPERIMENTS
from lengthwise.report.tables.printed import printed_range
from lengthwise.runs.records import read_records, write_records
from lengthwise.studies.claims.claim import (
    CLAIMS,
    RULES,
    Claim,
    Contrast,
    Effect,
    Entry,
    Paper,
    Parameters,
    Phrase,
    Rows,
    Stated,
    TableNumber,
    Verdict,
)
from lengthwise.studies.claims.decide import contrast_verdict, effect_verdict, entry_verdict
from lengthwise.studies.claims.ledger import Ledger, LedgerLine, ledger_lines
from lengthwise.studies.claims.numbers import number_in, phrase_in
from lengthwise.studies.claims.page import claims_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SMALLER, COLUMNS = {"regular-gpt/medium": "regular-gpt/table-1"}, {"regular-gpt/medium": "C=2"}
"""Of an experiment whose nets are as wide as the paper's: the one with the whole table, and its column there."""

TREES = "depth 2, 5 dimensions, 26 points"


@cache
def evaluated() -> dict[str, tuple[Paper, list[LedgerLine]]]:
    return ledger_lines(DOCS, REPRODUCE, CLAIMS)


def test_the_page_is_what_the_records_of_the_checkout_say() -> None:
    page = claims_page(evaluated(), WRITE_CLAIMS)
    assert (DOCS / "claims.md").read_text(encoding="utf-8") == page, f"out of date; run `{WRITE_CLAIMS}`"


def test_every_claim_has_a_verdict_and_what_was_run_a_number_or_test_page_and_command() -> None:
    assert set(RULES) == set(get_args(Verdict))
    for paper, lines in evaluated().values():
        for claim, line in zip(paper.claims, lines, strict=True):
            assert line.verdict in RULES, line
            if line.verdict == "not run":
                assert line.ours.startswith(("not run yet", "takes a GPU", "nothing to run")), line
                assert line.command or not line.ours.startswith("not run yet"), line
                continue
            assert (DOCS / line.page).is_file(), line
            assert line.command, line
            assert line.ours or (isinstance(claim.evidence, Stated) and claim.evidence.test), line


def verdicts(paper: str, section: str, ending: str = "") -> Counter[str]:
    """Of the claims of a section, or of those whose text ends in a way."""
    _, lines = evaluated()[paper]
    return Counter(line.verdict for line in lines if line.section == section and line.claim.endswith(ending))


def first_lines(stem: str) -> str:
    return (DOCS / "results" / f"{stem}.md").read_text(encoding="utf-8").split("\n\n")[1]


def test_what_a_page_says_first_of_a_table_is_what_its_claims_say() -> None:
    table_1 = EXPERIMENTS["regular-gpt/table-1"]("small")
    for column in ("C=2", "C=3"):
        printed = [cell.row for cell in table_1.select(columns=column).cells if cell.published]
        of_column = Counter(
            line_of(
                Entry(
                    "regular-gpt/table-1",
                    row,
                    column,
                    ("best run", "mean"),
                    fails=(row, column) == ("Modular Arithmetic", "C=3"),
                )
            ).verdict
            for row in printed
        )
        stated = rf"on {of_column['reproduced']} of {of_column.total()} (languages )?with (chunk size )?{column}"
        assert re.search(stated, first_lines("regular-gpt-table-1"))
    rows = ("Even Pairs", "Parity", "Cycle Navigation")
    of_rows = [line_of(Entry("regular-gpt/medium", row, "30,000 steps", ("best run", "mean"))).verdict for row in rows]
    assert f"on {of_rows.count('reproduced')} of {len(rows)} tasks other than" in first_lines("regular-gpt-medium")
    others = verdicts("chi2023", "Table 2", "RegularGPT.") + verdicts("chi2023", "Table 2", "RNN.")
    assert f"in {others['reproduced']} of {others.total()} cases" in first_lines("regular-gpt-table-2")
    transformer = verdicts("chi2023", "Table 2") - others
    assert set(transformer) == {"not decided"}, "as the page says"
    assert ", 0 are statistically significant after" in first_lines("looped-table-1")
    assert set(verdicts("xu2024", "5.1")) == {"not decided"}


@pytest.mark.parametrize(
    ("paper", "experiment", "scale"),
    [
        ("chi2023", "regular-gpt/table-1", "small"),
        ("chi2023", "regular-gpt/table-2", "small"),
        ("fan2024", "linear-rnn/table-2", "small"),
        ("xu2024", "looped/table-1", "paper"),
        ("xu2024", "looped/table-2", "paper"),
    ],
)
def test_every_printed_entry_of_a_table_is_a_claim(paper: str, experiment: str, scale: str) -> None:
    printed = {(c.row, c.column) for c in EXPERIMENTS[experiment](scale).cells if c.published}
    entries = {
        (claim.evidence.row, COLUMNS.get(claim.evidence.experiment, claim.evidence.column))
        for claim in CLAIMS[paper]().claims
        if isinstance(claim.evidence, Entry) and claim.evidence.scale == scale
        if experiment in (claim.evidence.experiment, SMALLER.get(claim.evidence.experiment))
    }
    by_name = {claim.claim.removesuffix(".").removesuffix(": no more than printed") for claim in CLAIMS[paper]().claims}
    assert {f"{row}, {column}" for row, column in printed - entries} <= by_name
    assert printed


def test_a_mean_is_compared_with_the_digits_that_the_paper_prints() -> None:
    assert printed_range("100.0 / 89.3") == pytest.approx((0.8925, 1.0))
    assert printed_range("52.3 / 50.1") == pytest.approx((0.5005, 0.5235))
    assert printed_range("100") == pytest.approx((0.995, 1.0))
    assert printed_range("0.27") == pytest.approx((0.265, 0.275))
    assert printed_range("1.70e-03") == pytest.approx((0.001695, 0.001705))
    limits = printed_range("100.0 / 100.0")
    assert entry_verdict(0.9996, limits, smaller=True) == "reproduced"
    assert entry_verdict(0.9994, limits, smaller=True) == "not decided"
    assert entry_verdict(0.9994, limits, smaller=False) == "contradicted"


@pytest.mark.parametrize(
    ("ours", "fit", "smaller", "verdict"),
    [
        (0.5, None, False, "reproduced"),
        (0.5, None, True, "not decided"),  # a small net that fails shows nothing
        (0.5, 0.98, True, "not decided"),
        (0.5, 0.995, True, "reproduced"),
        (0.6, 0.995, True, "not decided"),
        (0.6, None, False, "contradicted"),
    ],
)
def test_a_failure_counts_only_beyond_a_length_that_was_learned(
    ours: float, fit: float | None, smaller: bool, verdict: str
) -> None:
    limits = printed_range("52.3 / 50.1")
    assert entry_verdict(ours, limits, smaller=smaller, fails=True, fit=fit) == verdict


def test_differences_count_after_correction_and_in_the_sign_of_the_paper() -> None:
    assert effect_verdict(0.2, 0.04, sign=1, smaller=True) == "reproduced"
    assert effect_verdict(0.2, 0.06, sign=1, smaller=True) == "not decided"
    assert effect_verdict(-0.2, 0.04, sign=1, smaller=True) == "not decided"
    assert effect_verdict(-0.2, 0.04, sign=1, smaller=False) == "contradicted"
    assert effect_verdict(-0.2, 0.04, sign=-1, smaller=False) == "reproduced"
    assert effect_verdict(0.2, float("nan"), sign=1, smaller=False) == "not decided"


def test_ranges_that_are_disjoint_count_above_chance() -> None:
    high, low = [0.8, 0.9, 0.85, 0.82], [0.5, 0.7, 0.6, 0.65]
    assert contrast_verdict(high, low, chance=0.2, smaller=True) == "reproduced"
    assert contrast_verdict([0.6, *high], low, chance=0.2, smaller=True) == "not decided"
    assert contrast_verdict([0.19, 0.194] * 2, [0.17, 0.18] * 2, chance=0.2, smaller=True) == "not decided"
    assert contrast_verdict(low, high, chance=0.2, smaller=True) == "not decided"
    assert contrast_verdict(low, high, chance=0.2, smaller=False) == "contradicted"
    assert contrast_verdict(high[:3], low, chance=0.2, smaller=True) == "not decided"


PAGE = """# Speed

One run: 12 of 30 nets.

## Above

| form | T=40, ms | T=500, ms |
|---|---|---|
| scan | 318.4 (21) | 7 |
| loop | 2.0 % | 8 |

## Below

| form | T=40, ms |
| --- | --- |
| scan | 5 |
"""


def test_numbers_are_found_in_the_tables_and_sentences_of_pages() -> None:
    assert number_in(PAGE, TableNumber("p.md", "T=40, ms", ("scan",), "Above")) == "318.4"
    assert number_in(PAGE, TableNumber("p.md", "T=40, ms", ("scan",), "Below")) == "5"
    assert number_in(PAGE, TableNumber("p.md", "T=40, ms", ("loop",))) == "2.0 %"
    assert phrase_in(PAGE, Phrase("p.md", r"(\d+ of \d+) nets")) == "12 of 30"
    for column, line in (("T=40, ms", ("scan",)), ("T=41, ms", ("loop",)), ("T=40, ms", ("none",))):
        with pytest.raises(ValueError, match=r"^p\.md: expected one cell in a column"):
            number_in(PAGE, TableNumber("p.md", column, line))
    with pytest.raises(ValueError, match=r"^p\.md: expected one number that matches the pattern"):
        phrase_in(PAGE, Phrase("p.md", r"(\d+) seeds"))


@cache
def checkout() -> Ledger:
    """It reads the records of an experiment once."""
    return Ledger(DOCS, REPRODUCE)


def line_of(evidence: object, docs: Path = DOCS, *, smaller: bool = True) -> LedgerLine:
    sizes = {evidence.experiment: "half"} if smaller and hasattr(evidence, "experiment") else {}
    ledger = checkout() if docs == DOCS else Ledger(docs, REPRODUCE)
    (line,) = ledger.lines(Paper("Title", [Claim("1", "A claim.", evidence)], sizes))
    return line


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of pages with the records of one small experiment."""
    records = tmp_path / "results" / "records"
    records.mkdir(parents=True)
    shutil.copy(DOCS / "results" / "records" / "looped-table-2.jsonl.gz", records)
    shutil.copy(DOCS / "results" / "looped-table-2.md", tmp_path / "results")
    return tmp_path


def test_a_number_changes_with_the_records_and_is_not_run_without_them(docs: Path) -> None:
    entry = Entry("looped/table-2", TREES, "plain loop, R=5", ("error",))
    effect = Effect("looped/table-2", TREES, "timestep, R=5", "plain loop, R=5", "timestep, R=5")
    path = docs / "results" / "records" / "looped-table-2.jsonl.gz"
    results = read_records(path)
    before = line_of(entry, docs)
    page = (docs / "results" / "looped-table-2.md").read_text(encoding="utf-8")
    row = re.search(r"\| plain loop, R=5 \| (\S+) \|", page)
    assert row is not None
    assert (before.ours, before.verdict, before.published) == (row[1], "not decided", "1.43e-02")
    assert line_of(entry, docs, smaller=False).verdict == "contradicted"
    assert re.match(r"[+-]\d\.\d\de-\d\d in error \(", line_of(effect, docs).ours)

    def scaled(result, factor: float):
        points = tuple(p.model_copy(update={"error": factor * p.error}) for p in result.errors.points)
        return result.model_copy(update={"errors": result.errors.model_copy(update={"points": points})})

    write_records(path, [scaled(result, 0.1) for result in results])
    after = line_of(entry, docs)
    assert float(after.ours) == pytest.approx(0.1 * float(before.ours), rel=0.01)
    assert after.verdict == "reproduced"
    write_records(path, [])
    for evidence in (entry, effect):
        assert (line_of(evidence, docs).verdict, line_of(evidence, docs).ours) == ("not run", "not run yet")


def test_columns_are_compared_over_rows_and_runs(docs: Path) -> None:
    shutil.copy(DOCS / "results" / "records" / "linear-rnn-sensitivity.jsonl.gz", docs / "results" / "records")
    (docs / "results" / "linear-rnn-sensitivity.md").write_text("")
    rows = line_of(Rows("linear-rnn/sensitivity", "columns of eq. (6)", "code"), docs)
    assert re.fullmatch(r"\+\d+\.\d\d points over 6 rows \(-?\S+ to \S+\)", rows.ours)
    contrast = line_of(Contrast("linear-rnn/sensitivity", "S=8, p=1.2", "columns of eq. (6)", "code"), docs)
    page = (DOCS / "results" / "linear-rnn-sensitivity.md").read_text(encoding="utf-8")
    paper, code = (
        re.search(rf"\| S=8, p=1.2 \| {re.escape(column)} \| ([^|]+) \|", page)[1]
        for column in ("columns of eq. (6)", "code")
    )
    assert contrast.ours == f"{paper} against {code}".replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (
            Entry("looped/table-2", "depth 3", "timestep, R=5", ("error",)),
            "rows: expected names of rows, got 'depth 3'",
        ),
        (Entry("looped/table-2", TREES, "timestep, R=5", ("mean",)), "looped/table-2: no column 'mean'"),
        (Entry("looped/table-30", "", ""), "unknown experiment 'looped/table-30'"),
        (
            Entry("looped/table-2", TREES, "control, R=5", ("error",)),
            "'control, R=5': the paper prints no score here",
        ),
        (
            Effect("looped/table-2", TREES, "timestep, R=5", "timestep, R=9", ""),
            "looped/table-2: expected a row and two columns",
        ),
        (Stated("reproduced", "no-page.md", "tests/none.py"), "no-page.md: expected a page below"),
        (
            Stated("reproduced", "looped.md", numbers=(TableNumber("looped.md", "loops", ("none",)),)),
            "looped.md: expected one cell in a column 'loops'",
        ),
    ],
)
def test_evidence_that_does_not_exist_is_one_sentence(evidence: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        line_of(evidence)


def test_parameters_are_those_of_the_paper_s_scale() -> None:
    evidence = Stated("reproduced", "looped.md", numbers=(Parameters("regular-gpt/table-1", "Parity", "C=2"),))
    model = EXPERIMENTS["regular-gpt/table-1"]("paper").select("Parity", "C=2").cells[0].specs[0].make_model()
    assert line_of(evidence).ours.replace(",", "") == str(sum(p.numel() for p in model.parameters()))


def test_the_command_prints_one_paper_and_writes_all(docs: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    assert exit_code("claims", "--paper", "memorization", "--docs", str(DOCS)) == 0
    printed = capsys.readouterr().out
    assert "memorization: " in printed
    assert " contradicted, " in printed
    assert "chi2023" not in printed
    monkeypatch.setattr("lengthwise.studies.claims.ledger.ledger_lines", lambda docs, reproduce, papers: evaluated())
    assert exit_code("claims", "--docs", str(DOCS), "--write", str(docs / "claims.md")) == 0
    assert (docs / "claims.md").read_text() == (DOCS / "claims.md").read_text()


def test_own_results_below_the_current_folder_do_not_stop_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    # `reproduce` makes this folder for the page of one experiment.
    (tmp_path / "docs/results/records").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert exit_code("claims", "--paper", "memorization") == 0
    assert "memorization: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--docs", "/nowhere"], "--docs: expected the folder docs of a checkout"),
        (["--paper", "chi"], "unknown paper 'chi'; did you mean 'chi2023'?"),
        (["--paper", "chi2023", "--write", "x.md"], "--write: expected no --paper"),
    ],
)
def test_wrong_requests_are_one_sentence(words: list[str], sentence: str, capsys) -> None:
    assert exit_code("claims", *words) == 2
    assert sentence in capsys.readouterr().err
