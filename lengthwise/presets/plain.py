"""The preset `fast` without pads and noise."""

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("plain")
class Plain(Preset):
    """Preset `fast` without pads and noise, for models with hidden weight matrices, which its optimizer Muon needs.

    Source: ours.
    """

    train = UNAUGMENTED
