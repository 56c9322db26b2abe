"""Public implementations of recurrences that run on a CPU, for `other_recurrences.py`; all of them are optional.

pip install mambapy xlstm torch-slices transformers
"""

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Public(NamedTuple):
    """A layer of a package from the Python package index, and the title of our model with the same recurrence.

    `others`: the titles of our models that the package contains with other settings.
    """

    ours: str
    package: str
    module: str
    make: Callable[[int], nn.Module]
    others: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the name of the package with its version."""
        return f"{self.package} {version(self.package)}"

    @property
    def is_installed(self) -> bool:
        """Return whether the package can be imported."""
        return find_spec(self.module) is not None


def _mamba(width: int) -> nn.Module:
    from mambapy.mamba import MambaBlock, MambaConfig

    return MambaBlock(MambaConfig(d_model=width, n_layers=1))


def _mlstm(width: int) -> nn.Module:
    from xlstm import mLSTMLayer, mLSTMLayerConfig

    return mLSTMLayer(mLSTMLayerConfig(embedding_dim=width, context_length=500, num_heads=4))


def _slstm(width: int) -> nn.Module:
    from xlstm import sLSTMLayer, sLSTMLayerConfig

    numbers = dict.fromkeys(("dtype", "dtype_b", "dtype_r", "dtype_w", "dtype_g", "dtype_s", "dtype_a"), "float32")
    config = sLSTMLayerConfig(
        embedding_dim=width,
        num_heads=4,
        backend="vanilla",
        conv1d_kernel_size=0,
        enable_automatic_mixed_precision=False,
        **numbers,
    )
    return sLSTMLayer(config)


def _linear_cde(width: int) -> nn.Module:
    from slices import SLiCE

    return SLiCE(width, block_size=4)


class _GatedDeltaNet(nn.Module):
    """The chunked gated delta rule of Qwen3-Next in torch, with four heads and the same linear maps as in our model."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.maps = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.gates = nn.Linear(width, 8)

    def forward(self, features: Tensor) -> Tensor:
        from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule

        vectors = torch.nn.functional.silu(self.maps(features)).unflatten(-1, (3, 4, -1))
        strengths, decays = self.gates(features).chunk(2, -1)
        read, _ = torch_chunk_gated_delta_rule(
            *vectors.unbind(2),
            g=-torch.nn.functional.softplus(decays),
            beta=torch.sigmoid(strengths),
            use_qk_l2norm_in_kernel=True,
        )
        outputs: Tensor = self.output(read.flatten(2))
        return outputs


PUBLIC = (
    Public("Mamba, convolution", "mambapy", "mambapy", _mamba, ("Mamba",)),
    Public("mLSTM, convolution", "xlstm", "xlstm", _mlstm, ("mLSTM",)),
    Public("sLSTM", "xlstm", "xlstm", _slstm),
    Public("linear CDE, blocks of 4", "torch-slices", "slices", _linear_cde),
    Public("Gated DeltaNet", "transformers", "transformers", _GatedDeltaNet, ("DeltaNet",)),
)


class Stack(nn.Module):
    """A layer between an embedding and a read-out."""

    def __init__(self, embedding: nn.Module, layer: nn.Module, readout: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.layer = layer
        self.readout = readout

    def forward(self, inputs: Tensor) -> Tensor:
        answers: Tensor = self.readout(self.layer(self.embedding(inputs)))
        return answers
