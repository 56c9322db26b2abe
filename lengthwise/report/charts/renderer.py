"""Pictures, or the chart library, made in a separate process: kinds and charts as JSON in, base64 out.

V8, which draws, reserves gigabytes of address space and ends its process if it does not get them.
Used by `lengthwise.report.charts.pictures`.
"""

import base64
import json
import sys
from typing import Any

import vl_convert


def render(kind: str, chart: dict[str, Any]) -> bytes:
    """Return an SVG, a PNG at twice the size, or (kind `"library"`) the JavaScript that draws charts on pages."""
    if kind == "library":
        return str(vl_convert.javascript_bundle()).encode()  # type: ignore[call-arg]  # optional, but not in its stub
    if kind == "svg":
        return vl_convert.vegalite_to_svg(chart).encode()
    return vl_convert.vegalite_to_png(chart, scale=2)


if __name__ == "__main__":
    contents = [render(kind, chart) for kind, chart in json.load(sys.stdin)]
    json.dump([base64.b64encode(content).decode() for content in contents], sys.stdout)
