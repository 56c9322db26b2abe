"""Pictures of small machines."""

from lengthwise.automata.drawing import machine_svg
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS, Format


@FORMATS.register("svg")
class SVG(Format):
    """A picture by `machine_svg`, of up to 40 states, which can be written, but not read."""

    suffixes = (".svg",)

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return circles for states and arcs for transitions."""
        return machine_svg(machine.machine, machine.classes)
