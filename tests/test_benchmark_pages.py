"""A page that a benchmark writes is what it would write from the page's own numbers, with all other sections kept."""

import importlib
import re
from pathlib import Path

import pytest

from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.claims.claim import Claim, Contrast, Entry, Paper, Stated
from lengthwise.studies.claims.ledger import LedgerLine

ROOT = Path(__file__).parent.parent


def test_the_page_on_routing_keeps_its_other_sections_when_it_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    depth_page, depth_cost, speed_page = map(importlib.import_module, ("depth_page", "depth_cost", "speed_page"))
    stored = depth_page.PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (\d+) \|(( [\d.]+ \|){5})$", stored, re.MULTILINE)
    assert [(int(length), int(chunk_size)) for length, chunk_size, *_ in rows] == list(depth_cost.SHAPES)
    costs = [
        depth_cost.Cost(int(length), int(chunk_size), *map(float, re.findall(r"[\d.]+", shares)))
        for length, chunk_size, shares, _ in rows
    ]
    saved = speed_page.keep_sections(depth_page.page(costs, depth_cost.D_MODEL), stored)
    before, after = (text.partition("## Provenance\n")[0] for text in (stored, saved))
    assert after == before


def test_the_plan_counts_runs_of_the_papers_size_and_shared_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two claims need the RNN's runs, one of them also the LSTM's; a claim about a row that no paper has is left."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    plan = importlib.import_module("plan_of_claims")
    monkeypatch.setattr(plan, "step_seconds", lambda spec: 3.6 if spec.model_name == "rnn" else 7.2)
    name, row = "regular-gpt/table-1", "Even Pairs"
    evidence = [
        Entry(name, row, "RNN"),
        Contrast(name, row, "RNN", "LSTM"),
        Entry(name, "No such row", "RNN"),
        Stated("not decided", "looped.md"),
        Entry(name, row, "LSTM"),
    ]
    verdicts = ["not decided", "not run", "not decided", "not decided", "reproduced"]
    claims = [Claim("1", str(index), each) for index, each in enumerate(evidence)]
    lines = [LedgerLine("1", str(index), verdict) for index, verdict in enumerate(verdicts)]
    made = plan.plan_of({"paper": (Paper("A paper", claims), lines)})
    specs = EXPERIMENTS[name]("paper").select(row, "RNN").specs
    hours = sum(spec.recipe.steps for spec in specs) / 1000
    assert [(item.claims, item.num_runs, item.hours) for item in made.items] == [
        (("1: 0",), len(specs), pytest.approx(hours)),
        (("1: 1",), 2 * len(specs), pytest.approx(3 * hours)),
    ]
    assert made.hours == pytest.approx(3 * hours)
    assert [(paper, claim) for paper, claim, _ in made.undecided] == [("A paper", "1: 2"), ("A paper", "1: 3")]
    page = plan.plan_page(made, {"date": "today"})
    assert "would decide 2 of the [open claims]" in page
    assert '--scale paper --rows "Even Pairs" --columns "RNN"' in page
