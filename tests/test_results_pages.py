"""The pages of results name their seeds and commits. Their index and navigation are made from the pages."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def hook() -> ModuleType:
    """docs/results_pages.py, which mkdocs runs; it is in no package."""
    spec = importlib.util.spec_from_file_location("results_pages", DOCS / "results_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_index_is_up_to_date() -> None:
    module = hook()
    stored = module.INDEX.read_text(encoding="utf-8")
    assert stored == module.index(), "run `python docs/results_pages.py`, and commit docs/results/index.md"


def test_each_page_is_in_one_section_with_a_title_of_its_own() -> None:
    pages = [page for pages in hook().pages_by_section().values() for page in pages]
    assert sorted(page.stem for page in pages) == sorted(
        page.stem for page in (DOCS / "results").glob("*.md") if page.stem != "index"
    )
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in pages]
    assert len(set(titles)) == len(titles)


def test_the_navigation_has_every_page_below_the_index() -> None:
    module = hook()
    config = module.on_config(SimpleNamespace(nav=["index.md", {"Results": ["results/index.md"]}]))
    index, *sections = config.nav[1]["Results"]
    assert index == "results/index.md"
    linked = [path for section in sections for paths in section.values() for path in paths]
    pages = [page for pages in module.pages_by_section().values() for page in pages]
    assert linked == [f"results/{page.name}" for page in pages]


def test_a_page_of_no_known_family_is_among_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = hook()
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    (tmp_path / "surely-new.md").write_text("# Surely new\n\nIt works.\n\n| a |\n|---|\n| 1 |\n")
    (tmp_path / "surely-new-smoke.md").write_text("# A trial\n\nNothing.\n")
    (tmp_path / "grid-speed.md").write_text("# Two families\n\nThe last section takes it.\n\n| a |\n|---|\n| 1 |\n")
    names = {heading: [page.stem for page in pages] for heading, pages in module.pages_by_section().items()}
    assert names == {module.OTHERS: ["surely-new"], "Speed": ["grid-speed"]}
    assert module.index().endswith("\n| [Two families](grid-speed.md) | The last section takes it. |\n")


@pytest.mark.parametrize("records", sorted((DOCS / "results" / "records").iterdir()), ids=lambda file: file.name)
def test_a_page_with_records_names_the_seeds_and_commits_of_each_cell(records: Path) -> None:
    page = DOCS / "results" / records.name.replace(".jsonl.gz", ".md")
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^- seeds: \d[\d, -]*$", text, re.MULTILINE)
    assert re.search(r"^- commit: [0-9a-f]{40}", text, re.MULTILINE)
    cells = page.with_suffix(".csv")
    if cells.exists():
        assert cells.read_text(encoding="utf-8").partition("\n")[0].endswith(",seeds,commits")
    else:
        details = text.partition("<summary>All other columns</summary>")[2].partition("</details>")[0]
        for name, value in (("seeds", r"\d"), ("commits", "[0-9a-f]{8}")):
            assert f"- *{name}*: " in details
            assert re.search(rf"\| {name} \|", details) or re.search(
                rf"^The same.*{name} {value}", details, re.MULTILINE
            )
