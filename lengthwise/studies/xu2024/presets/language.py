"""The recipe of Xu and Sato (2024) for natural language."""

from types import MappingProxyType

from lengthwise.presets.base import PRESETS, Preset
from lengthwise.studies.chi2023.presets.language import Chi2023Language

_AS_GPT2 = {"learned_positions": 1024, "initialization": "gpt2", "read_in": "plain", "readout": "tied"}


@PRESETS.register("xu2024-language")
class Xu2024Language(Preset):
    """Looped transformers of width 2,048 and a transformer of 12 layers as in Table 3 of Xu and Sato (2024).

    Windows of 1,024 tokens; `num_loops` is 1, 3 or 6, at evaluation any number (`LoopedTransformer.with_loops`), with
    timestep encoding (`variant` `"timestep-language"`) or without (`"code-language"`). A step is meant for a GPU.

    Source: Xu and Sato (2024), Appendix C.4, and their code.
    Differs from the source: a batch of 24 windows, 20 of which its code adds up to a step; maps and the last norm
        have biases; and as `chi2023-language` differs from nanoGPT.
    """

    source = "Xu and Sato (2024), Appendix C.4, and the published code"
    train = MappingProxyType(
        {
            **Chi2023Language.train,
            "steps": 600_000,
            "batch_size": 24,
            "min_length": 1024,
            "max_length": 1024,
        }
    )
    models = MappingProxyType(
        {
            "looped-transformer": {
                **_AS_GPT2,
                "d_model": 2048,
                "num_heads": 16,
                "num_loops": 3,
                "variant": "timestep-language",
            },
            "transformer": {**_AS_GPT2, "d_model": 768, "num_heads": 12, "num_layers": 12},
        }
    )
