"""Imports point downwards only, and light things stay light."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "lengthwise"

FLOORS = [
    {"cli", "__main__"},
    {"studies"},
    {"report", "playground", "export"},
    {"experiment", "learning"},
    {"runs"},
    {"constructions", "certification", "analysis"},
    {"training", "presets"},
    {"extraction", "evaluation"},
    {"text"},
    {"models", "tasks"},
    {"layers"},
    {"ops", "formats"},
    {"automata", "printing", "pictures"},
    {
        "registry",
        "version",
        "conventions",
        "validation",
        "randomness",
        "devices",
        "files",
        "peak_memory",
        "display",
        "renderer",
    },
]
"""From the top down. A package imports from lower floors and from itself; packages on one floor are strangers."""

GROUND = {
    "cli",
    "__main__",
    "registry",
    "conventions",
    "validation",
    "randomness",
}  # single files, which may know one another
LEVEL = {package: level for level, packages in enumerate(FLOORS) for package in packages}


def imported_packages(text: str, file: Path = PACKAGE) -> set[str]:
    """The rooms of all that a file with this text imports, for annotations, too."""
    names = imported_names(ast.parse(text))
    packages = {name.split(".")[1] for name in names if name.startswith("lengthwise.")}
    unknown = packages - LEVEL.keys()
    assert not unknown, f"{file}: import {min(unknown)} from its own module; `from lengthwise import` is for users"
    return packages


def imported_names(tree: ast.Module) -> set[str]:
    """The modules that are imported, with the names that are imported from them behind a dot."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_imports_point_down() -> None:
    upward = []
    for file in sorted(PACKAGE.rglob("*.py")):
        package = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if package == "__init__":
            continue
        upward += [
            f"{file.relative_to(PACKAGE)} imports {other}"
            for other in imported_packages(file.read_text(encoding="utf-8"), file) - {package}
            if LEVEL[other] <= LEVEL[package] and not {package, other} <= GROUND
        ]
    assert not upward


def test_names_of_the_top_level_are_imported_from_their_own_module() -> None:
    with pytest.raises(AssertionError, match="import length_curve from its own module"):
        imported_packages("from lengthwise import length_curve")
    assert imported_packages("from lengthwise.evaluation.length_curve import length_curve") == {"evaluation"}


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions count, too; those for annotations alone do not."""
    files = {module_name(file): file for file in PACKAGE.rglob("*.py")}
    graph = {name: imported_modules(file) & (files.keys() - {name}) for name, file in files.items()}
    TopologicalSorter(graph).prepare()  # which raises a CycleError with the modules of a circle


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(file: Path) -> set[str]:
    """What a file imports when it runs."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    return imported_names(tree)


def test_a_paper_can_be_deleted_with_its_folder() -> None:
    """No other file imports the study of a paper; studies without claims of a paper may be shared."""
    papers = [file.parent.name for file in PACKAGE.glob("studies/*/claims.toml")]
    assert papers
    for file in PACKAGE.rglob("*.py"):
        names = imported_names(ast.parse(file.read_text(encoding="utf-8")))
        studies = {name.split(".")[2] for name in names if name.startswith("lengthwise.studies.")}
        assert studies.intersection(papers) <= {*file.parts}, file


def test_every_package_has_a_floor() -> None:
    packages = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert packages - {"__init__"} <= set(LEVEL)


def loaded_by(*modules: str) -> set[str]:
    """The top-level packages that a fresh process has loaded after it imported `modules`."""
    code = f"import sys, {', '.join(modules)}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def modules_below(folder: Path) -> list[str]:
    files = sorted(folder.rglob("[a-z]*.py"))
    return [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files]


def test_automata_and_certificates_never_import_torch() -> None:
    """A certificate is read and verified by people without torch."""
    certificates = ["lengthwise.certification.certificate", "lengthwise.certification.verify"]
    assert "torch" not in loaded_by(
        *modules_below(PACKAGE / "automata"), *modules_below(PACKAGE / "formats"), *certificates
    )


def test_packages_import_without_torch() -> None:
    """Only modules that need it load it: a torch-free module may stand in any package."""
    packages = [f"lengthwise.{file.parent.name}" for file in PACKAGE.glob("*/__init__.py")]
    assert "torch" not in loaded_by("lengthwise", *packages)


def test_the_command_line_starts_without_torch_and_charts() -> None:
    assert not {"torch", "altair", "pydantic"} & loaded_by("lengthwise", "lengthwise.cli.app")
