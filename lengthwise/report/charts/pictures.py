"""Charts as files."""

from typing import Any

import vl_convert


def picture(chart: dict[str, Any], kind: str) -> bytes:
    """A Vega-Lite specification as an SVG, or as a PNG at twice its size."""
    if kind == "svg":
        return vl_convert.vegalite_to_svg(chart).encode()
    return vl_convert.vegalite_to_png(chart, scale=2)
