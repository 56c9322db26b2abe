"""A page that a benchmark writes is what it would write from the page's own numbers, with all other sections kept."""

import importlib
import re
from pathlib import Path

import pytest

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
