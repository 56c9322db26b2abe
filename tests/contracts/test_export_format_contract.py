"""Promises of every registered export, whatever its name: it writes what it says it writes, or leaves nothing."""

import re
from pathlib import Path

import pytest

from lengthwise.export.base import EXPORTS, Options, export

MACHINE = "regex:(a|b)*abb"


@pytest.fixture(params=list(EXPORTS))
def name(request) -> str:
    return request.param


def test_it_writes_a_machine_unless_it_contains_weights(name: str, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    if EXPORTS[name].has_weights:
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            export(MACHINE, name, out)
        assert not list(tmp_path.iterdir())
        return
    try:
        topics = export(MACHINE, name, out)
    except ValueError as problem:  # the way out is in the sentence
        suffix = re.search(r"expected a file that ends in (\.\w+)", str(problem))
        assert suffix is not None
        out = out.with_suffix(suffix[1])
        topics = export(MACHINE, name, out)
    assert topics
    assert all(topic and text for topic, text in topics)
    assert list(tmp_path.iterdir()) == [out]
    assert out.is_dir() == EXPORTS[name].is_folder


def test_a_source_that_does_not_exist_is_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, OSError), match=r"^[^\n]+$"):
        export(str(tmp_path / "none" / "run.json"), name, tmp_path / "exported")
    assert not list(tmp_path.iterdir())


def test_options_of_other_formats_are_refused_by_their_names(name: str, tmp_path: Path) -> None:
    """No format takes all three."""
    with pytest.raises(ValueError, match=r"^(form|max_length|answer): [^\n]+; (leave out this option|give no length)$"):
        export(MACHINE, name, tmp_path / "exported", Options(form="step", max_length=9, answer="in"))
    assert not list(tmp_path.iterdir())
