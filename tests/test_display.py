"""What notebooks show: curves, machines, certificates and runs as self-contained HTML or SVG."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import synthetic_run

from lengthwise.automata.dfa import DFA
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.display import in_powers
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.report.tables.table import Table
from lengthwise.runs.folder import Run, RunFolder
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import make_spec

FLIP = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "<b>"))


def parsed(html: str | None) -> ElementTree.Element:
    """The elements of what is shown: it is well-formed, loads nothing, and has no colors of its own for text."""
    assert html is not None
    tree = ElementTree.fromstring(html)
    for element in tree.iter():
        assert element.tag.rpartition("}")[2] not in ("script", "style", "link", "img", "image")
        assert not {"src", "href", "onclick"} & set(element.keys())
    assert "url(http" not in html
    return tree


def text_of(tree: ElementTree.Element) -> str:
    return " ".join(" ".join(tree.itertext()).split())


def curve(*accuracies: tuple[int, int], family: str = "random", protocol: str = "independent") -> LengthCurve:
    points = [
        LengthPoint(length=length, num_strings=100, num_correct=right, baseline=0.5, family=family)
        for length, right in accuracies
    ]
    return LengthCurve(protocol=protocol, points=tuple(points))


def dots(tree: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(e.get("cx")), float(e.get("cy"))) for e in tree.iter() if e.tag.endswith("circle")]


def test_a_length_curve_is_a_chart() -> None:
    tree = parsed(curve((41, 100), (1_000, 75), (100_000, 50))._repr_html_())
    (first, second, third) = dots(tree)
    assert first[0] < second[0] < third[0]
    assert first[1] < second[1] < third[1], "higher accuracies are higher up"
    assert second[1] - first[1] == pytest.approx(third[1] - second[1], abs=0.2), "75 % is halfway from 100 % to 50 %"
    assert "lowest 50.00 % at length 100,000" in text_of(tree)
    polylines = [element for element in tree.iter() if element.tag.endswith("polyline")]
    assert len(polylines) == 2, "accuracies, and the best constant answer"
    structured = parsed(curve((20, 100), (20, 50), family="sparse", protocol="structured")._repr_html_())
    assert len([element for element in structured.iter() if element.tag.endswith("polyline")]) == 1
    assert len(dots(parsed(curve((41, 99))._repr_html_()))) == 1
    assert "no points" in text_of(parsed(curve()._repr_html_()))


def test_charts_and_cards_take_the_color_of_the_page() -> None:
    html = curve((41, 100), (50, 90))._repr_html_()
    assert "currentColor" in html
    assert not re.search(r"(?<![\w-])color:", html)
    assert not re.search(r"background:(?!none)", html)


def test_machines_are_drawings_with_their_answers() -> None:
    transducer = Transducer(FLIP, 0, np.array([0, 1]))
    assert "&lt;b&gt;" in transducer._repr_svg_()
    for machine, answers in (
        (transducer, ("0", "1")),
        (LabeledMachine(transducer, ("even & all", "odd")), ("even & all", "odd")),
        (DFA(FLIP, 0, np.array([False, True])), ("reject", "accept")),
    ):
        text = text_of(parsed(machine._repr_svg_()))
        assert all(answer in text for answer in answers)
    loop = Semiautomaton(np.arange(50)[:, None], ("a",))
    large = Transducer(loop, 0, np.zeros(50, dtype=int))
    assert large._repr_svg_() is None
    assert LabeledMachine(large, ("x",))._repr_svg_() is None


def test_a_table_of_a_report_is_a_table() -> None:
    tree = parsed(Table(("model", "<n>"), (("rnn", "1 & 2"),), (("chance", "50 %"),))._repr_html_())
    assert [element.text for element in tree.iter() if element.tag in ("th", "td")] == ["model", "<n>", "rnn", "1 & 2"]
    assert text_of(tree).endswith("The same in every row: chance 50 %.")


def certificate(**changes) -> Certificate:
    machine = Transducer(FLIP, 0, np.array([0, 1])).to_json()
    fields = {
        "level": "proved",
        "reason": "",
        "task": {"name": "parity"},
        "model": {"name": "<rnn>"},
        "weights": "0" * 16,
        "classes": ("even", "odd"),
        "transducer": machine,
        "machine": machine,
        "seconds": 1.25,
    }
    return Certificate.model_validate({**fields, **changes})


def test_a_certificate_is_a_card() -> None:
    tree = parsed(certificate()._repr_html_())
    text = text_of(tree)
    assert text.startswith("proved. The model itself, rounding errors included")
    assert "<rnn>" in text
    assert "2 classes; the task's machine has 2" in text
    assert len(dots(tree)) == 2, "the machine is drawn"
    string = ("a",) * 61 + ("<b>",) * 30
    counterexample = {"string": string, "expected": "even", "got": "odd", "shortest": "as found"}
    refuted = text_of(parsed(certificate(level="refuted", machine=None, counterexample=counterexample)._repr_html_()))
    assert "a a a" in refuted
    assert "... (91 symbols)" in refuted
    assert "right answer" in refuted
    counts = [{"length": 40, "num_strings": 99, "num_graded": 99, "num_correct": 99}]
    counts += [{"length": 500, "num_strings": 32, "num_graded": 32, "num_correct": 31}]
    counts += [{"length": 501, "num_strings": 9, "num_graded": 0, "num_correct": 0}]
    bounded = text_of(parsed(certificate(tested=counts)._repr_html_()))
    assert "99 of 99 at 40 (at least 96.26 %), 31 of 32 at 500, 0 of 0 at 501" in bounded
    tested = certificate(level="tested", machine=None, reason="no machine of <= 9 classes")
    assert "no machine of <= 9 classes" in text_of(parsed(tested._repr_html_()))


def test_a_result_and_a_run_are_cards(tmp_path: Path) -> None:
    result = synthetic_run().result
    assert isinstance(result, RunResult)
    result = result.model_copy(update={"certificate": certificate()})
    tree = parsed(result._repr_html_())
    text = text_of(tree)
    assert text.startswith("parity, regular-gpt, seed 0")
    assert "length 100,000" in text
    assert "proved. The model itself" in text
    assert len(dots(tree)) == 22, "20 dense lengths and two long ones"
    folder, spec = RunFolder(tmp_path / result.run_id), make_spec("parity", "regular-gpt", {})
    folder.create(spec)
    run = Run(folder, spec, spec.make_model(), 7)
    assert "after step 7 of" in text_of(parsed(run._repr_html_()))
    folder.write_result(result)
    assert text_of(parsed(run._repr_html_())) == text


def from_powers(text: str) -> str:
    """The string that a text with powers of single characters means."""
    parts = [part.partition("^") for part in text.split()]
    return "".join(word.strip("()") * int(count or 1) for word, _, count in parts)


@given(st.lists(st.tuples(st.text("abc", min_size=1, max_size=5), st.integers(1, 40)), max_size=6))
def test_powers_are_the_string_in_short(parts: list[tuple[str, int]]) -> None:
    string = "".join(word * count for word, count in parts)
    assert from_powers(in_powers(string)) == string
    assert len(in_powers("ab" * 1_000)) == len("(ab)^1000")
