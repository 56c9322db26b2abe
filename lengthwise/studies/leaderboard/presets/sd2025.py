"""The recipe of SD-SSM."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, PUBLISHED, TORCH_ADAM, Preset


@PRESETS.register("sd2025")
class SD2025(Preset):
    """SD-SSM, a `block-linear-rnn` of one block of unit columns: a million steps of Adam on final answers.

    The learning rate and the exponent p of the column norm are from the published code for parity. For other tasks, the
    code has learning rates of 2e-5 or 1e-4, and p from 1.1 to 1.4.

    Source: the code published with Terzić et al., "On the expressiveness and length generalization of selective
        state-space models on regular languages" (AAAI 2025).
    Differs from the source: each symbol has a matrix of its own; the source mixes 6 to 18 matrices that all symbols
        share. Answers are computed by a hidden layer at the last symbol, not by a linear map at a symbol that ends the
        string. With S states, matrices and inputs are drawn from N(0, 1 / S). The source draws both uniformly: matrices
        up to sqrt(3 / S), and inputs up to 1 / sqrt(V) for V symbols.
    """

    train: ClassVar = {**PUBLISHED, "steps": 1_000_000, "optimizer": {**TORCH_ADAM, "clip_norm": 1.0}}
    models: ClassVar = {
        "block-linear-rnn": {
            "block_dim": 64,
            "columns": "unit",
            "hidden": 0,
            "input_map": "linear",
            "first_state": "zero",
            "read": "last",
        }
    }
