"""Write the pages of the API from the package; mkdocs runs this file as a hook whenever it builds the site.

The first page lists the names of the top level and its modules; every package below has a page with its own.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import lengthwise

PACKAGE = Path(lengthwise.__file__).parent

FIRST_PAGE = """# API

{about}

| name | what it is |
|---|---|
{names}

Tensors are written with their shapes: `Float[Tensor, "B T D"]` has B strings, T symbols and D numbers each
([Notation](../notation.md)). Errors are one sentence: argument, expected, got, way out. A docstring names its source
and where it differs from it.

{modules}
"""


def api_pages() -> dict[str, str]:
    """Markdown of every page by its path below docs/: the first page, then the packages in alphabetical order."""
    names = "\n".join(_rows_of_the_top_level())
    first = FIRST_PAGE.format(about=lengthwise.__doc__, names=names, modules=_entries(PACKAGE))
    folders = sorted(init.parent for init in PACKAGE.glob("*/**/__init__.py"))
    return {"api/index.md": first} | {f"api/{_dotted(folder)}.md": _page(folder) for folder in folders}


def on_config(config: Any) -> Any:
    """Put the pages at the end of the navigation."""
    first, *others = api_pages()
    titled = [{path.removeprefix("api/").removesuffix(".md"): path} for path in others]
    config.nav.append({"API": [first, *titled]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the files of the site."""
    from mkdocs.structure.files import File  # of the extra `docs`: tests do without

    for path, text in api_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def _rows_of_the_top_level() -> list[str]:
    """A row for each name, linked to the module that defines it."""
    rows = []
    for name, home in lengthwise._HOME.items():
        member = getattr(import_module(home), name)
        # A registry has the docstring of its class, which does not name its members.
        line = (member.__doc__ or "").partition("\n")[0] if callable(member) else f"Names: `{'`, `'.join(member)}`."
        rows.append(f"| [`{name}`][{home}.{name}] | {line} |")
    return rows


def _page(folder: Path) -> str:
    about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return f"# {_dotted(folder)}\n\n{about}\n\n{_entries(folder)}\n"


def _entries(folder: Path) -> str:
    """Return the directives with which mkdocstrings shows the public modules of a folder."""
    modules = [path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")]
    return "\n\n".join(f"::: lengthwise.{_dotted(module)}" for module in modules)


def _dotted(path: Path) -> str:
    """`certification.methods` of lengthwise/certification/methods, `runs.spec` of lengthwise/runs/spec.py."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
