"""Our preset for recurrent models."""

from typing import ClassVar

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, Preset


@PRESETS.register("recurrent")
class Recurrent(Preset):
    """AdamW on all prefixes of strings of 39 or 40 symbols, for any model that reads symbols.

    Decays of `mamba` are signed, because nets with positive decays forget and do not learn parity.

    Source: ours; prefixes are supervised as in the code of Fan et al. (2024).
    """

    train: ClassVar = {**EVERY_PREFIX, "steps": 2_000, "optimizer": {"name": "adamw", "weight_decay": 0.0}}
    models: ClassVar = {"mamba": {"eigenvalues": "signed"}}
