"""Settings of models that are out of bounds or do not fit one another are named in one sentence."""

from typing import Any

import pytest

from lengthwise.models import make_model
from lengthwise.tasks import make_task


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [
        ("codebook-gpt", {"variant": "paper"}, "model.variant: expected 'merge', got 'paper'"),
        ("codebook-gpt", {"thickness": 2}, "model.thickness: expected 1, got 2"),
        (
            "codebook-gpt",
            {"lower_chunk_sizes": (3,)},
            r"lower_chunk_sizes: expected no value for a codebook-gpt, .*, got \(3,\); leave lower_chunk_sizes out, or",
        ),
        ("codebook-gpt", {"max_codes": 0}, "model.max_codes: expected a number greater than or equal to 1, got 0"),
        ("codebook-gpt", {"quantize_after": 1.0}, "model.quantize_after: expected a number less than 1, got 1.0"),
        (
            "codebook-gpt",
            {"chunk_size": 4},
            "max_codes: expected at most 23 codes for chunks of 4, got",
        ),
        ("ldru", {"operator": "grc"}, r"^model\.operator: expected 'mlp', 'gated-sum' or 'linear', got 'grc'"),
        ("ldru", {"d_model": 0}, r"^model\.d_model: expected a number greater than or equal to 1, got 0"),
        ("looped-transformer", {"loops": "all"}, "loops: expected 'fixed', 'length' or 'converged', got 'all'"),
        ("looped-transformer", {"tolerance": 0.0}, "tolerance: expected a number greater than 0, got 0.0"),
        ("looped-transformer", {"max_loops": 0}, "max_loops: expected a number greater than or equal to 1, got 0"),
        (
            "looped-transformer",
            {"time": "fraction", "variant": "control"},
            "time: expected .* 'index', .* with variant='control', .*leave time out",
        ),
        (
            "looped-transformer",
            {"time": "fraction", "loops": "converged"},
            "time: expected 'index' with loops 'converged', .*choose time 'index' or loops",
        ),
        (
            "looped-transformer",
            {"gates": "open", "variant": "code"},
            "gates: expected .* 'closed', .* with variant='code', .*leave gates out or",
        ),
        ("pd-ssm", {"num_matrices": 0}, "model.num_matrices: expected a number greater than or equal to 1, got 0"),
        ("pd-ssm", {"d_state": 0}, "model.d_state: expected a number greater than or equal to 1, got 0"),
        ("pd-ssm", {"diagonal": "real"}, "model.diagonal: expected .*'full', 'phase' or 'none', got 'real'"),
        ("pd-ssm", {"form": "rows"}, "model.form: expected .*'scatter' or 'gather', got 'rows'"),
        ("regular-gpt", {"chunk_size": 1}, "model.chunk_size: expected a number greater than or equal to 2, got 1"),
        (
            "regular-gpt",
            {"lower_chunk_sizes": [4, 1]},
            "lower_chunk_sizes.1: expected a number greater than or equal to 2, got 1",
        ),
        ("regular-gpt", {"lower_chunk_sizes": 4}, "lower_chunk_sizes: expected a valid tuple"),
        ("regular-gpt", {"lower_chunk_sizes": [2] * 17}, "lower_chunk_sizes: .* at most 16 items"),
        ("regular-gpt", {"num_heads": 5}, r"num_heads: expected a divisor of d_model=64, got 5; choose from \[1, 2, 4"),
        (
            "regular-gpt",
            {"variant": "merged"},
            "model.variant: expected 'merge', 'paper', 'code' or 'bare', got 'merged'",
        ),
        ("regular-gpt", {"hidden": 3}, "hidden: expected an even number for variant merge, whose two feed-forward"),
        ("regular-gpt", {"d_model": "wide"}, "model.d_model: expected a valid integer.*got 'wide'"),
        ("regular-gpt-lm", {"chunk_size": 1}, "model.chunk_size: expected a number greater than or equal to 2, got 1"),
        ("regular-gpt-lm", {"num_heads": 5}, r"num_heads: expected a divisor of d_model=64, got 5"),
        ("regular-gpt-lm", {"depth": "prefixes"}, "model.depth: expected 'prefix' or 'input', got 'prefixes'"),
        ("regular-gpt-lm", {"max_levels": 99}, "model.max_levels: expected a number less than or equal to 32, got 99"),
        ("linear-cde", {"block_dim": 5}, "block_dim: expected a divisor of d_model=64, got 5"),
        ("linear-cde", {"structure": "low-rank", "rank": 65}, "rank: expected at most d_model=64, got 65"),
        ("linear-cde", {"norm_penalty": -1.0}, "model.norm_penalty: expected .*0, got -1.0"),
        (
            "linear-cde",
            {"structure": "low-rank-product", "block_dim": 8},
            "block_dim: expected its default, 4, .* with structure=",
        ),
        (
            "linear-cde",
            {"structure": "dense"},
            "model.structure: expected .*'block', 'low-rank' or 'low-rank-product', got 'dense'",
        ),
        (
            "xlstm",
            {"d_model": 4},
            "num_heads: expected fewer than d_model=4 for sLSTM cells, got 4; choose fewer heads",
        ),
        ("xlstm", {"num_heads": 3}, r"num_heads: expected a divisor of d_model=64, got 3; choose from \[1, 2"),
        (
            "xlstm",
            {"cells": "m", "d_model": 7, "num_heads": 1},
            "d_model: expected an even number for mLSTM cells, got 7; choose 8",
        ),
        ("xlstm", {"cells": "sx"}, "cells: expected a letter s or m for each cell of a layer, got 'sx'; choose sm"),
        ("xlstm", {"cells": ""}, "cells: expected a letter s or m for each cell of a layer, got ''; choose sm"),
        ("delta-net", {"num_heads": 3}, "num_heads: expected a divisor of d_model=64, got 3"),
        ("delta-net", {"eigenvalues": "complex"}, "'signed' or 'positive'"),
        ("delta-net", {"num_heads": 32, "householders": 3}, "householders: expected at most 2, the dimension of a key"),
        ("delta-net", {"conv": -1}, "greater than or equal to 0"),
        ("rnn", {"activation": "gelu"}, r"model.activation: expected 'tanh' or 'relu', got 'gelu'"),
    ],
)
def test_settings_that_do_not_fit_are_one_sentence(model: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        make_model(model, make_task("parity"), **settings)
    assert "\n" not in str(caught.value)
