"""Preset fast for models that accept neither pads nor noise."""

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("plain")
class Plain(Preset):
    """Preset `fast` without pads and noise. Its optimizer is Muon, so that a model has to name hidden matrices.

    Source: ours.
    """

    source = "ours"
    train = UNAUGMENTED
