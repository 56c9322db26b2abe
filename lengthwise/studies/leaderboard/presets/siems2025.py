"""The recipe of DeltaProduct for word problems of groups."""

from types import MappingProxyType

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("siems2025")
class Siems2025(Preset):
    """DeltaProduct of four Householder matrices per symbol: 4,834 steps of AdamW on all prefixes of 128 symbols.

    In the source these steps are a hundred passes over 99,000 strings, in batches of 2,048. The rate falls from 1e-3
    along half a cosine.

    Source: Siems, Carstensen, Zela, Hutter, Pontil and Grazzi, "DeltaProduct: improving state-tracking in linear RNNs
        via Householder products" (2025), the published code for word problems.
    Differs from the source: every step has new strings. Weights are float32; the source has bfloat16, in which
        strengths hardly come near 2. Training does not end at an accuracy of 99 %. The rate 1e-3 is from the source's
        instructions; its code has 1e-4. Initial weights are ours. The source draws them with a standard deviation of
        0.02, also in maps back to the residual stream.
    """

    train = MappingProxyType(
        {
            **UNAUGMENTED,
            "steps": 4_834,
            "batch_size": 2_048,
            "min_length": 128,
            "max_length": 128,
            "lengths": "legal",
            "length_sampling": "uniform",
            "supervision": "prefix",
            "optimizer": {
                "name": "adamw",
                "learning_rate": 1e-3,
                "betas": (0.9, 0.999),
                "weight_decay": 1e-6,
                "schedule": "cosine",
                "warmup_steps": 0,
                "clip_norm": 1e9,
                "clip_ratio": 0.0,
            },
            "ema_decay": 0.0,
            "checkpoint_every": 500,
        }
    )
    models = MappingProxyType({"delta-net": {"d_model": 128, "num_layers": 1, "householders": 4, "mlp": 512}})
