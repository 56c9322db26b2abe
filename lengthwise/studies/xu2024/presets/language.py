"""The recipe of Xu and Sato (2024) for natural language."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, Preset
from lengthwise.presets.language import AS_GPT2, nanogpt_training

_LEARNED = {**AS_GPT2, "learned_positions": 1024}


@PRESETS.register("xu2024-language")
class Xu2024Language(Preset):
    """Looped transformers of width 2,048 and a transformer of 12 layers as in Table 3 of Xu and Sato (2024).

    Windows have 1,024 tokens. `num_loops` is 1, 3 or 6; at evaluation it can be any number
    (`LoopedTransformer.with_loops`). The `variant` is `"timestep-language"` with timestep encoding, and
    `"code-language"` without it. The size is meant for a GPU.

    Source: Xu and Sato (2024), Appendix C.4, and their code.
    Differs from the source: a step is one batch of 24 windows; the source's code adds up 20 such batches. Linear maps
        and the last norm have biases. Weight decay applies to all parameters, including gains and biases. The learning
        rate follows a cosine to 0 that begins at the first step. In nanoGPT, the learning rate falls to a tenth, and
        begins to fall after the warm-up.
    """

    train = nanogpt_training(
        steps=600_000,
        batch_size=24,
        window=1024,
        learning_rate=6e-4,
        warmup_steps=2_000,
        precision="bfloat16",
        checkpoint_every=1_000,
    )
    models: ClassVar = {
        "looped-transformer": {
            **_LEARNED,
            "d_model": 2048,
            "num_heads": 16,
            "num_loops": 3,
            "variant": "timestep-language",
        },
        "transformer": {**_LEARNED, "d_model": 768, "num_heads": 12, "num_layers": 12},
    }
