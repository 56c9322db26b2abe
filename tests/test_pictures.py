"""Pictures are drawn in a process of their own, whose end is one sentence."""

import json
import subprocess
import sys

import pytest

from lengthwise.pictures import chart_library, pictures

BARS = {"data": {"values": [{"x": 1}]}, "mark": "bar", "encoding": {"x": {"field": "x", "type": "quantitative"}}}

UNDER_A_LIMIT = """
import json, resource, sys
from pathlib import Path
from lengthwise.cli.app import main

resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
main(json.loads(sys.argv[1]))
"""


@pytest.fixture
def one_renderer() -> None:
    """Each picture is drawn by a process of its own, as users have it."""


def test_charts_become_svg_png_and_a_library_for_pages() -> None:
    svg, png = pictures([("svg", BARS), ("png", BARS)]) or [b"", b""]
    assert svg.startswith(b"<svg")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert "vegaEmbed" in (chart_library() or "")


def test_an_invalid_chart_is_an_error_with_its_reason() -> None:
    with pytest.raises(RuntimeError, match="vega"):
        pictures([("svg", {**BARS, "mark": 7})])


def test_without_address_space_a_command_goes_on_without_its_picture(tmp_path) -> None:
    pytest.importorskip("resource", reason="limits on address space are a matter of Unix")
    arguments = json.dumps(["memorize", "aab", "--out", str(tmp_path / "orbit.png")])
    done = subprocess.run([sys.executable, "-c", UNDER_A_LIMIT, arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "dimension: 2" in done.stdout
    assert "wrote" not in done.stdout
    assert done.stderr.startswith("lengthwise: picture: the chart library crashed with SIG")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
