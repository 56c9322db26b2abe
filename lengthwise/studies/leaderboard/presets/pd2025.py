"""The recipe of the papers on PD-SSM and on structured linear CDEs."""

from typing import ClassVar

from lengthwise.presets.base import COSINE_ADAMW, PRESETS, PUBLISHED, Preset


@PRESETS.register("pd2025")
class PD2025(Preset):
    """PD-SSM and BD-SLiCE as published: 100,000 steps of AdamW on the final answers to strings of 3 to 40 symbols.

    In the source, the learning rate rises to 2e-3 over the first tenth of the steps. Then it falls along half a cosine.

    Source: Terzić et al., "Structured sparse transition matrices to enable state tracking in state-space models"
        (NeurIPS 2025) and the published code. The recipe is from Walker et al., "Structured linear CDEs" (2025).
    Differs from the source: the learning rate falls to 0, not to 1e-5. The cosine factor acts from the first step, also
        during the warm-up, so the largest learning rate is 1.95e-3. Weight decay also applies to embeddings. Dropout is
        off. The final weights are used, not the best checkpoint. The source stops training at a validation accuracy of
        99.95 %, but this preset runs all steps.
    """

    train: ClassVar = {
        **PUBLISHED,
        "steps": 100_000,
        "batch_size": 256,
        "min_length": 3,
        "optimizer": {**COSINE_ADAMW, "learning_rate": 2e-3, "weight_decay": 0.01, "warmup_steps": 10_000},
    }
    models: ClassVar = {
        "pd-ssm": {"d_model": 128, "d_state": 128, "num_layers": 2, "form": "gather"},
        "linear-cde": {"d_model": 128, "num_layers": 2},
    }
