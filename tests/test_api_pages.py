"""The API's pages are made from the package: a page for every package, an entry for every public module."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import lengthwise

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "lengthwise"


def hook() -> ModuleType:
    """docs/api_pages.py, which mkdocs runs; it is in no package."""
    spec = importlib.util.spec_from_file_location("api_pages", ROOT / "docs" / "api_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_module_has_one_entry() -> None:
    entries = [entry for page in hook().api_pages().values() for entry in re.findall("^::: (.*)$", page, re.MULTILINE)]
    modules = [path for path in PACKAGE.rglob("*.py") if not path.stem.startswith("_")]
    assert sorted(entries) == sorted(".".join(module.relative_to(ROOT).with_suffix("").parts) for module in modules), (
        "an entry a module, no module twice"
    )


def test_every_page_begins_with_what_its_package_says_of_itself() -> None:
    for path, page in hook().api_pages().items():
        heading, blank, about = page.splitlines()[:3]
        assert heading.startswith("# "), path
        assert not blank
        assert about.strip(), f"{path}: the package has no docstring"
        assert not about.startswith(":::"), f"{path}: the package has no docstring"


def test_the_first_page_has_a_line_for_every_name_of_the_top_level() -> None:
    page = hook().api_pages()["api/index.md"]
    for name in lengthwise.__all__:
        if name != "__version__":
            (line,) = re.findall(rf"^\| \[`{name}`\]\[lengthwise\.[\w.]+\] \| (.+) \|$", page, re.MULTILINE)
            assert line.strip(), f"{name} has no docstring"


def test_the_navigation_of_the_site_gets_the_pages() -> None:
    config = hook().on_config(SimpleNamespace(nav=["index.md"]))
    api = config.nav[-1]["API"]
    linked = [entry if isinstance(entry, str) else next(iter(entry.values())) for entry in api]
    assert linked == list(hook().api_pages())
