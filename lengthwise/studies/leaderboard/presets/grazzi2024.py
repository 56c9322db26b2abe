"""The recipe of the paper on negative eigenvalues."""

from typing import ClassVar

from lengthwise.presets.base import COSINE_ADAMW, PRESETS, PUBLISHED, Preset


@PRESETS.register("grazzi2024")
class Grazzi2024(Preset):
    """DeltaNet and Mamba, eigenvalues in [-1, 1]: 100,000 steps of AdamW, final answers of strings of 3 to 40 symbols.

    The learning rate rises to 1e-3 over the first tenth of the steps and falls along half a cosine. For modular
    arithmetic the paper has three layers.

    Source: Grazzi, Siems, Zela, Franke, Hutter and Pontil, "Unlocking state-tracking in linear RNNs through negative
        eigenvalues" (ICLR 2025), appendix E.1.
    Differs from the source: the source chooses among 1e-2, 1e-3, 5e-4 and 1e-4 by the median of three seeds, and its
        code has shorter runs of smaller batches. Gradients are clipped for all tasks; the paper's text describes
        training with and without clipping. The learning rate falls to 0, not to 1e-6. It begins to fall at the first
        step, so its largest value is 0.98e-3. All numbers are float32. `mlp` has 512 units; the paper does not give
        this number. Initial weights are ours. The source draws them with a standard deviation of 0.02, and of 0.02 /
        sqrt(2 * layers) in maps back to the residual stream.
    """

    train: ClassVar = {
        **PUBLISHED,
        "steps": 100_000,
        "batch_size": 1_024,
        "min_length": 3,
        "optimizer": {
            **COSINE_ADAMW,
            "learning_rate": 1e-3,
            "weight_decay": 0.1,
            "warmup_steps": 10_000,
            "clip_norm": 1.0,
        },
    }
    models: ClassVar = {
        "delta-net": {"d_model": 128, "num_layers": 2, "conv": 4, "mlp": 512},
        "mamba": {"d_model": 128, "num_layers": 2, "conv": 4, "eigenvalues": "signed"},
    }
