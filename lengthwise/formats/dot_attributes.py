"""Attributes in DOT that only affect the drawing. Unknown attributes are rejected: they may belong to the machine."""

import re

_USED = {
    "graph": frozenset({"label", "peripheries", "style"}),
    "node": frozenset({"label", "peripheries", "style", "shape"}),
    "edge": frozenset({"label", "dir", "style", "weight"}),
}
"""Attributes of nodes and edges that this package reads or checks, and attributes of the title and frame of a graph."""

DRAWING = frozenset(
    re.findall(
        r"\w+",
        """
    _background _draw_ _hdraw_ _hldraw_ _ldraw_ _tdraw_ _tldraw_ area arrowhead arrowsize arrowtail bb beautify bgcolor
    center charset class clusterrank color colorscheme comment compound concentrate constraint damping decorate
    defaultdist dim dimen diredgeconstraints distortion dpi edgehref edgetarget edgetooltip edgeurl epsilon esep
    fillcolor fixedsize fontcolor fontname fontnames fontpath fontsize forcelabels gradientangle group head_lp headclip
    headhref headport headtarget headtooltip headurl height href id inputscale k key label_scheme labelangle
    labeldistance labelfloat labelfontcolor labelfontname labelfontsize labelhref labeljust labelloc labeltarget
    labeltooltip labelurl landscape layer layerlistsep layers layerselect layersep layout len levels levelsgap lhead
    lheight linelength lp ltail lwidth margin maxiter mclimit mindist minlen mode model newrank nodesep nojustify
    normalize notranslate nslimit nslimit1 oneblock ordering orientation outputorder overlap overlap_scaling
    overlap_shrink pack packmode pad page pagedir pencolor penwidth pin pos quadtree quantum radius rank rankdir ranksep
    ratio rects regular remincross repulsiveforce resolution rotate rotation samehead sametail samplepoints scale
    searchsize sep showboxes sides size skew smoothing sortv splines stylesheet tail_lp tailclip tailhref tailport
    tailtarget tailtooltip tailurl target tbbalance tooltip truecolor url vertices viewport voro_margin width
    xdotversion xlp z
        """,
    )
)
"""Attributes of Graphviz that only affect the drawing.

The set leaves out attributes that add text to the drawing (xlabel, headlabel, taillabel, image). It also leaves out
names that could mean something else in a machine (start, root).
"""


def check_attribute(kind: str, key: str, value: str, line: int) -> None:
    """Check that an attribute of a graph, a node or an edge is known.

    Raises:
        ValueError: the attribute is unknown; an edge does not point forward; or an edge's weight, which only affects
            drawings, is not a whole number.

    Example:
        >>> check_attribute("edge", "weight", "2", 1)
    """
    if key in DRAWING:
        return
    if kind == "edge" and key == "dir" and value != "forward":
        raise ValueError(
            f"line {line}: expected edges that point forward, got dir={value[:20]}; draw a forward edge for each "
            "direction"
        )
    if kind == "edge" and key == "weight" and not re.fullmatch(r"[0-9]+(\.0*)?", value):
        raise ValueError(
            f"line {line}: expected a whole number as the weight of an edge in drawings, got {value[:20]!r}; remove "
            "this weight"
        )
    if key not in _USED[kind]:
        raise ValueError(
            f"line {line}: expected attributes that only affect drawings, got {key[:40]!r}, which may belong to the "
            "machine; use labels and shapes instead, or remove this attribute"
        )
