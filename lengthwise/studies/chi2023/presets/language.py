"""The recipe of Chi et al. (2023) for natural language."""

from typing import Any, ClassVar

from lengthwise.presets.base import PRESETS, Preset
from lengthwise.presets.language import AS_GPT2, nanogpt_training

_SIZES: dict[str, Any] = {"d_model": 768, "num_heads": 12}


@PRESETS.register("chi2023-language")
class Chi2023Language(Preset):
    """RegularGPT and its baselines as in Table 3 of Chi et al. (2023): windows of 512 tokens, 50,000 steps.

    The default is chunk size 128 and thickness K=12 (layers for each level). The other columns of the table set
    `chunk_size` (32, 64, 128, 256) and `thickness` (6, 12), and for the baselines `positions` (`kerple-log`, `t5`,
    `alibi`). With GPT-2's vocabulary, a net with K=6 has 81 million parameters, and a net with K=12 has 123 million.
    The size is meant for a GPU.

    Source: Chi et al. (2023), Table 5. Betas, decay, warm-up and clipping are not in the paper, and come from nanoGPT.
    Differs from the source: weight decay applies to all parameters, including gains and biases. The learning rate
        follows a cosine to 0 that begins at the first step. In nanoGPT, the learning rate falls to a tenth, and begins
        to fall after the warm-up.
    """

    train = nanogpt_training(
        steps=50_000,
        batch_size=32,
        window=512,
        learning_rate=6e-4,
        warmup_steps=2_000,
        precision="bfloat16",
        checkpoint_every=1_000,
    )
    models: ClassVar = {
        "regular-gpt-lm": {**_SIZES, "chunk_size": 128, "thickness": 12, "depth": "input"},
        "transformer": {**_SIZES, **AS_GPT2, "num_layers": 12, "positions": "kerple-log"},
    }
