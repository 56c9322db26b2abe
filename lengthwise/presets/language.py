"""The preset of small language models."""

from typing import Any

from lengthwise.presets.base import COSINE_ADAMW, PRESETS, UNIFORM, Preset, Settings

AS_GPT2: Settings = {"initialization": "gpt2", "read_in": "plain", "readout": "tied"}
"""Settings that give a transformer the initialization, embedding and read-out of GPT-2."""


def nanogpt_training(
    *, steps: int, batch_size: int, window: int, learning_rate: float, warmup_steps: int, **others: Any
) -> Settings:
    """Return a `train` section with nanoGPT's optimizer, on windows of one length in which every token is predicted.

    `others` are further settings of the section.
    """
    optimizer = {
        **COSINE_ADAMW,
        "learning_rate": learning_rate,
        "betas": (0.9, 0.95),
        "weight_decay": 0.1,
        "warmup_steps": warmup_steps,
        "clip_norm": 1.0,
    }
    return {
        **UNIFORM,
        "steps": steps,
        "batch_size": batch_size,
        "min_length": window,
        "max_length": window,
        "supervision": "prefix",
        "optimizer": optimizer,
        "ema_decay": 0.0,
        **others,
    }


@PRESETS.register("language")
class Language(Preset):
    """Language models of a few million parameters: AdamW on windows of 128 tokens, in which every token is predicted.

    Source: nanoGPT's optimizer, with which the language models of Chi et al. (2023) are trained: betas 0.9 and 0.95,
        decay 0.1, gradients clipped at 1, a linear warm-up, and a cosine schedule. We chose the sizes, the number of
        steps and the learning rate.
    Differs from the source: the cosine covers all steps, including the warm-up, and falls to 0.
    """

    train = nanogpt_training(steps=2_000, batch_size=32, window=128, learning_rate=1e-3, warmup_steps=100)
