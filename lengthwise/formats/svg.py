"""Pictures of small machines."""

from lengthwise.automata.drawing import machine_svg
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS, Drawing
from lengthwise.pictures import SUFFIXES


@FORMATS.register("svg")
class SVG(Drawing):
    """A picture of up to 40 states, drawn by `machine_svg`; it can be written, but not read.

    Files whose names end in .png or .pdf contain the same picture, converted in another process.
    """

    suffixes = SUFFIXES

    @staticmethod
    def write(machine: LabeledMachine, *, with_sinks: bool = False) -> str:
        """Return a picture of the machine as SVG: circles for states, and arcs for transitions."""
        return machine_svg(machine.machine, machine.classes, with_sinks=with_sinks)
