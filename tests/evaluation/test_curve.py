"""Curves as files: all points as CSV, and the chart as a picture on white paper."""

import csv
from xml.etree import ElementTree

import pytest

from lengthwise.evaluation.curve import LengthCurve, LengthPoint

POINTS = tuple(
    LengthPoint(length=length, num_strings=100, num_correct=right, baseline=0.5, balanced=length % 2 == 0)
    for length, right in ((40, 100), (41, 7), (1_000, 61))
)
CURVE = LengthCurve(protocol="independent", points=POINTS)


def test_a_saved_curve_has_all_points(tmp_path) -> None:
    CURVE.save(tmp_path / "new" / "curve.csv")
    with (tmp_path / "new" / "curve.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["length"]), int(row["num_correct"]), row["balanced"]) for row in rows] == [
        (point.length, point.num_correct, str(point.balanced)) for point in POINTS
    ]
    assert [float(row["interval_low"]) for row in rows] == [point.interval[0] for point in POINTS]


def test_a_plot_shows_the_balanced_lengths_with_its_axes_named() -> None:
    picture = ElementTree.fromstring(CURVE.plot().svg)
    texts = [element.text for element in picture.iter() if element.text]
    titles = [element.text for element in picture.iter() if element.tag.endswith("title")]
    assert {"length", "accuracy", "dashed: best constant answer"} <= {*texts}
    assert [title.split(":")[0] for title in titles] == ["length 40", "length 1,000"]


@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG\r\n"), ("pdf", b"%PDF-"), ("svg", b"<svg ")])
def test_a_plot_is_saved_on_white_paper(tmp_path, suffix: str, begin: bytes) -> None:
    path = tmp_path / "new" / f"curve.{suffix}"
    CURVE.save(path)
    content = path.read_bytes()
    assert content.startswith(begin)
    if suffix == "svg":
        paper = next(iter(ElementTree.fromstring(content)))
        assert (paper.get("width"), paper.get("height"), paper.get("fill")) == ("100%", "100%", "white")


def test_other_names_and_empty_curves_are_rejected(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"path: expected a name that ends in \.csv, \.png, \.svg, \.pdf, got 'a\.j"):
        CURVE.save(tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="points: expected at least one point"):
        LengthCurve(protocol="independent", points=()).save(tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
