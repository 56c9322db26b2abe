"""The pictures of the architecture are those that the code makes."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import architecture_picture  # noqa: E402
from test_layering import LEVEL  # noqa: E402


def test_pictures_are_up_to_date() -> None:
    for name, text in architecture_picture.pictures().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"run python docs/architecture_picture.py for {name}"


def test_floors_of_the_picture_agree_with_the_layering() -> None:
    for package in architecture_picture.packages():
        for other in architecture_picture.imports(package):
            assert LEVEL[other] > LEVEL[package]
            assert architecture_picture.floor(other) < architecture_picture.floor(package)


def test_a_step_without_a_function_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = architecture_picture.Step("train", "training.loop:trained", "")
    monkeypatch.setattr(architecture_picture, "FLOW", (missing,))
    with pytest.raises(ValueError, match=r"loop\.py defines no trained"):
        architecture_picture.flow_picture()
