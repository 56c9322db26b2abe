"""The files next to a page: its charts and every measured point."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from lengthwise.files import write_by_rename
from lengthwise.pictures import Chart, pictures


def write_with_neighbors(
    page: Path, charts: Mapping[str, Chart], csv: str, make_page: Callable[[Sequence[str]], str]
) -> list[Path]:
    """Write a page, its charts and a CSV file; return their paths.

    The keys of `charts`, such as "-loss.png", follow the page's stem in the names of the files. If charts cannot be
    drawn, they are left out. `make_page` returns the page from the names of the other files.
    """
    drawn = pictures([(ending[-3:], chart) for ending, chart in charts.items()])
    neighbors = dict(zip(charts, drawn, strict=True)) if drawn else {}
    neighbors[".csv"] = csv.encode()
    contents = {page: make_page([page.stem + ending for ending in neighbors]).encode()}
    contents |= {page.with_name(page.stem + ending): content for ending, content in neighbors.items()}
    page.parent.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_by_rename(path, content)
    return list(contents)


def links(neighbors: Sequence[str], *endings: str) -> str:
    """Return HTML links to the files next to a page; only file names with one of these endings are linked."""
    names = [name for name in neighbors if name.endswith(endings)]
    linked = ", ".join(f"<a href='{quote(name)}'>{name.rpartition('.')[2].upper()}</a>" for name in names)
    return f"Next to this page: {linked}." if linked else ""
