"""The variant of preset `fast` without pads and noise."""

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("plain")
class Plain(Preset):
    """Variant of preset `fast` without pads and noise, for models with hidden weight matrices, which Muon needs.

    Source: ours.
    """

    train = UNAUGMENTED
