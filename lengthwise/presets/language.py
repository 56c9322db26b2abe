"""The preset of small language models."""

from types import MappingProxyType

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("language")
class Language(Preset):
    """Language models of a few million parameters: AdamW on windows of 128 tokens, in which every token is predicted.

    Source: nanoGPT's optimizer, with which the language models of Chi et al. (2023) are trained: betas 0.9 and 0.95,
        decay 0.1, gradients clipped at 1, a linear warm-up, and a cosine. Sizes, steps and rate are ours.
    Differs from the source: the cosine covers all steps, including the warm-up, and falls to 0.
    """

    source = "nanoGPT's optimizer, as in Chi et al. (2023), section 6; sizes ours"
    train = MappingProxyType(
        {
            **UNAUGMENTED,
            "steps": 2_000,
            "batch_size": 32,
            "min_length": 128,
            "max_length": 128,
            "lengths": "legal",
            "length_sampling": "uniform",
            "supervision": "prefix",
            "optimizer": {
                "name": "adamw",
                "learning_rate": 1e-3,
                "betas": (0.9, 0.95),
                "weight_decay": 0.1,
                "schedule": "cosine",
                "warmup_steps": 100,
                "clip_norm": 1.0,
                "clip_ratio": 0.0,
            },
            "ema_decay": 0.0,
        }
    )
