"""The recipe of Chi et al. (2023)."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, PUBLISHED, TORCH_ADAM, Preset


@PRESETS.register("chi2023")
class Chi2023(Preset):
    """RegularGPT and its baselines as in Chi et al. (2023): Adam at a constant learning rate, no pads, no noise.

    The learning rate is the second of the paper's three rates. Gradients are clipped at norm 1, as in the published
    code.

    Source: Chi et al. (2023), Table 4, and the published code.
    Differs from the source: the transformer is causal, with norms before its layers and after the last, GELU and
        biases. The published transformer is bidirectional, with norms behind its layers, ReLU and no biases. The `rnn`
        learns its first state. Strings have up to 40 symbols; in Table 4 they have 40 or 50.
    """

    train: ClassVar = {
        **PUBLISHED,
        "steps": 100_000,
        "batch_size": 128,
        "optimizer": {**TORCH_ADAM, "learning_rate": 3e-4, "clip_norm": 1.0},
    }
    models: ClassVar = {
        "regular-gpt": {"d_model": 256, "num_heads": 8, "variant": "code"},
        "transformer": {"d_model": 256, "num_heads": 8, "num_layers": 5, "positions": "xl"},
        "rnn": {"d_model": 256},
        "lstm": {"d_model": 256},
        "gru": {"d_model": 256},
    }
