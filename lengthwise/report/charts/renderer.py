"""One picture, or the chart library, in its own process: a chart as JSON on standard input, bytes on standard output.

V8, which draws, reserves gigabytes of address space and ends its process where it does not get them.
Used by `lengthwise.report.charts.pictures`.
"""

import json
import sys

import vl_convert


def render(kind: str, text: str) -> bytes:
    """An SVG, a PNG at twice the size of the chart, or (kind `"library"`) the JavaScript that draws charts on pages."""
    if kind == "library":
        return str(vl_convert.javascript_bundle()).encode()  # type: ignore[call-arg]  # optional, but not in its stub
    chart = json.loads(text)
    if kind == "svg":
        return vl_convert.vegalite_to_svg(chart).encode()
    return vl_convert.vegalite_to_png(chart, scale=2)


if __name__ == "__main__":
    sys.stdout.buffer.write(render(sys.argv[1], sys.stdin.read()))
