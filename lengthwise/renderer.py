"""The process that makes pictures. It reads formats and contents as JSON, and writes the pictures in base64.

`lengthwise.pictures` starts this process, because V8, which draws, reserves gigabytes of address space. If too
little address space is available, V8 ends the process in which it runs.
"""

import base64
import json
import sys
from typing import Any

import vl_convert


def render(kind: str, content: dict[str, Any] | str) -> bytes:
    """Return a picture of a chart, or of a drawing in SVG, in the format `kind`: svg, pdf, or png at twice the size.

    With kind `"library"`, return the JavaScript that draws charts, and ignore the content.
    """
    if kind == "library":
        return str(vl_convert.javascript_bundle()).encode()  # type: ignore[call-arg]  # optional, but not in its stub
    svg = content if isinstance(content, str) else vl_convert.vegalite_to_svg(content)
    if kind == "svg":
        return svg.encode()
    return vl_convert.svg_to_png(svg, scale=2) if kind == "png" else vl_convert.svg_to_pdf(svg)


if __name__ == "__main__":
    contents = [render(kind, chart) for kind, chart in json.load(sys.stdin)]
    json.dump([base64.b64encode(content).decode() for content in contents], sys.stdout)
