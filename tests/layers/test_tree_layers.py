"""The layers of RegularGPT beyond what its forms agree on: the paper's is GPT-2's."""

import pytest
import torch
from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2Block

from lengthwise.layers.tree_layers import PreNormLayer
from lengthwise.ops.tree_attention import merge_windows

WIDTH, HEADS = 8, 2


def a_layer(chunk_size: int) -> PreNormLayer:
    """With all parameters drawn, also those that start at 0 or 1."""
    layer = PreNormLayer(d_model=WIDTH, num_heads=HEADS, chunk_size=chunk_size).double()
    generator = torch.Generator().manual_seed(chunk_size)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return layer


def as_gpt2(layer: PreNormLayer) -> GPT2Block:
    """The block of the library transformers with the layer's weights; its matrices are the other way round."""
    config = GPT2Config(n_embd=WIDTH, n_head=HEADS, attn_implementation="eager")
    block = GPT2Block(config, layer_idx=0).double().eval()
    (feed_forward,) = layer.feed_forwards
    projections = [layer.to_query, layer.to_key_value]
    block.load_state_dict(
        {
            "ln_1.weight": layer.norm_1.weight,
            "ln_1.bias": layer.norm_1.bias,
            "ln_2.weight": layer.norm_2.weight,
            "ln_2.bias": layer.norm_2.bias,
            "attn.c_attn.weight": torch.cat([linear.weight for linear in projections]).T,
            "attn.c_attn.bias": torch.cat([linear.bias for linear in projections]),
            "attn.c_proj.weight": layer.to_output.weight.T,
            "attn.c_proj.bias": layer.to_output.bias,
            "mlp.c_fc.weight": feed_forward.widen.weight.T,
            "mlp.c_fc.bias": feed_forward.widen.bias,
            "mlp.c_proj.weight": feed_forward.narrow.weight.T,
            "mlp.c_proj.bias": feed_forward.narrow.bias,
        }
    )
    return block


@pytest.mark.parametrize("chunk_size", [2, 3, 7])
def test_the_layer_of_the_paper_is_gpt2s_with_a_bias_for_each_position_in_the_window(chunk_size: int) -> None:
    layer = a_layer(chunk_size)
    windows = torch.randn(5, chunk_size, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits = layer.bias.flip(1)[None, :, None].expand(1, HEADS, chunk_size, chunk_size)
    block = as_gpt2(layer)
    with torch.no_grad():
        attended = block(windows, attention_mask=logits.contiguous())
        newest = (attended[0] if isinstance(attended, tuple) else attended)[:, -1]
        torch.testing.assert_close(merge_windows(layer, windows), newest, rtol=1e-10, atol=1e-10)
