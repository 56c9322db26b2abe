"""The preset of looped transformers with one loop for each symbol."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("looped-lengths")
class LoopedLengths(Preset):
    """Looped transformers that run one loop for each symbol, trained on strings of at most 12 symbols.

    There are no position encodings, and every loop gets the input again. Lengths grow from 1, each after the previous
    length is learned. Every prefix is supervised after as many loops as it has symbols. The gates of loops begin open.
    With gates that begin closed, nets learn parity of only about four symbols in the same number of steps.

    Source: Fan et al., "Looped transformers for length generalization" (ICLR 2025): loops, positions, injection and
        growing lengths. Sizes, rates, steps and the supervision of prefixes are ours.
    """

    train: ClassVar = {
        **UNAUGMENTED,
        "steps": 900,
        "batch_size": 64,
        "max_length": 12,
        "lengths": "legal",
        "length_sampling": "growing",
        "supervision": "prefix",
        "optimizer": {"learning_rate": 0.003, "matrix_learning_rate": 0.02},
    }
    models: ClassVar = {
        "looped-transformer": {
            "d_model": 32,
            "positions": "none",
            "num_loops": 1,
            "loops": "length",
            "gates": "open",
            "injection": "input",
        }
    }
