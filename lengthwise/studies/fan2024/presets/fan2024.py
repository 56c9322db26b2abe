"""The recipe of Fan et al. (2024)."""

from typing import ClassVar

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, PUBLISHED, TORCH_ADAM, Preset


@PRESETS.register("fan2024")
class Fan2024(Preset):
    """Linear RNNs as in the code of Fan et al. (2024): 40,000 steps of Adam at a constant learning rate.

    The answers to all prefixes are supervised. The learning rate is the code's rate for sum(5). For equal-ends and
    arithmetic, the code has the rate 2e-4. For arithmetic, the code also has a weight decay of 1e-4 and three layers.

    Source: Fan et al., "Advancing regular language reasoning in linear recurrent neural networks" (NAACL 2024), code.
    Differs from the source: the source's baselines come from other code, with settings that the source does not give.
        Here all models have this one recipe. The baselines also have residual connections and gates, which a
        `block-linear-rnn` of one layer does not have.
    """

    train: ClassVar = {**PUBLISHED, **EVERY_PREFIX, "steps": 40_000, "optimizer": TORCH_ADAM}
    models: ClassVar = {"block-linear-rnn": {"columns": "rescaled", "read": "last"}}
