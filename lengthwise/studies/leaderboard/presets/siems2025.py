"""The recipe of DeltaProduct for word problems of groups."""

from typing import ClassVar

from lengthwise.presets.base import COSINE_ADAMW, PRESETS, PUBLISHED, Preset


@PRESETS.register("siems2025")
class Siems2025(Preset):
    """DeltaProduct of four Householder matrices per symbol: 4,834 steps of AdamW on all prefixes of 128 symbols.

    In the source these steps are a hundred passes over 99,000 strings, in batches of 2,048. The learning rate falls
    from 1e-3 along half a cosine.

    Source: Siems, Carstensen, Zela, Hutter, Pontil and Grazzi, "DeltaProduct: improving state-tracking in linear RNNs
        via Householder products" (2025), the published code for word problems.
    Differs from the source: every step has new strings. Weights are float32. The source has bfloat16, in which the
        strengths b of the Householder matrices I - b k k^T, for unit vectors k, hardly come near 2. Training does not
        end at an accuracy of 99 %. The learning rate 1e-3 is from the source's instructions; its code has 1e-4. Initial
        weights are ours. The source draws them with a standard deviation of 0.02, also in maps back to the residual
        stream.
    """

    train: ClassVar = {
        **PUBLISHED,
        "steps": 4_834,
        "batch_size": 2_048,
        "min_length": 128,
        "max_length": 128,
        "supervision": "prefix",
        "optimizer": {**COSINE_ADAMW, "learning_rate": 1e-3, "weight_decay": 1e-6},
        "checkpoint_every": 500,
    }
    models: ClassVar = {"delta-net": {"d_model": 128, "num_layers": 1, "householders": 4, "mlp": 512}}
