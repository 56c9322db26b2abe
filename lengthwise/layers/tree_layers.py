"""The transformer layers of RegularGPT, with separate methods before and after attention (`TreeLayer`)."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.ops.merge import EPSILON, merge
from lengthwise.ops.tree import Merge
from lengthwise.validation import check_divisor, check_sizes


class FeedForward(nn.Module):
    """W_2 f(W_1 x), where both maps have biases, and each call passes the function f."""

    def __init__(self, d_model: int, hidden: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model, hidden=hidden)
        self.widen = nn.Linear(d_model, hidden)
        self.narrow = nn.Linear(hidden, d_model)

    def forward(self, states: Float[Tensor, "*N D"], f: Callable[[Tensor], Tensor]) -> Float[Tensor, "*N D"]:
        narrowed: Tensor = self.narrow(f(self.widen(states)))
        return narrowed


class TreeAttentionLayer(nn.Module):
    """The common parts of RegularGPT's layers: projections into heads, and a bias r[h, j] for the j-th newest state.

    The `num_feed_forwards` feed-forward blocks have `hidden` units in total, by default 4 D.
    """

    attention_bias: ClassVar[bool]
    num_feed_forwards: ClassVar[int] = 1

    def __init__(self, *, d_model: int, num_heads: int, chunk_size: int, hidden: int | None = None) -> None:
        super().__init__()
        check_divisor("num_heads", num_heads, d_model)
        check_sizes(chunk_size=chunk_size)
        hidden = 4 * d_model if hidden is None else hidden
        check_sizes(hidden=hidden)
        if hidden < self.num_feed_forwards:
            raise ValueError(
                f"hidden: expected at least {self.num_feed_forwards} units, got {hidden}; give one for each block"
            )
        self.num_heads = num_heads
        self.to_query = nn.Linear(d_model, d_model, bias=self.attention_bias)
        self.to_key_value = nn.Linear(d_model, 2 * d_model, bias=self.attention_bias)
        self.to_output = nn.Linear(d_model, d_model, bias=self.attention_bias)
        hidden //= self.num_feed_forwards
        self.feed_forwards = nn.ModuleList(FeedForward(d_model, hidden) for _ in range(self.num_feed_forwards))
        self.bias = nn.Parameter(torch.zeros(num_heads, chunk_size))

    @property
    def linears(self) -> list[nn.Linear]:
        """Return all linear maps of the layer: its projections and its feed-forward maps."""
        return [module for module in self.modules() if isinstance(module, nn.Linear)]

    def reset_shared_parameters(self) -> None:
        """Set the parameters that start equal in all kinds of layers: gains of norms to 1, all biases to 0."""
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
        for linear in self.linears:
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        nn.init.zeros_(self.bias)

    def window_bias(self) -> Float[Tensor, "H C"]:
        return self.bias

    def query(self, normed: Float[Tensor, "*N D"]) -> Float[Tensor, "*N H E"]:
        return torch.unflatten(self.to_query(normed), -1, (self.num_heads, -1))

    def key_value(self, normed: Float[Tensor, "*N D"]) -> tuple[Float[Tensor, "*N H E"], Float[Tensor, "*N H E"]]:
        key, value = self.to_key_value(normed).chunk(2, -1)
        return key.unflatten(-1, (self.num_heads, -1)), value.unflatten(-1, (self.num_heads, -1))


class MergeLayer(TreeAttentionLayer):
    """A merge of a window into one state of fixed scale, without a residual around the attention.

    n1(y) = tanh(g y);  o = W_o attention(n1(y_0), ..., n1(y_{C-1}));  u = o + F_1(n2(o));  out = norm(u + F_2(n3(u))).
    F_i(x) = W_i' GELU(W_i x + b_i) + b_i' has half of the hidden units. n2 and n3 are LayerNorms, `norm` is a LayerNorm
    without parameters, and g is a learned gain for each number of the state.

    - With a residual, the newest state would pass through unmixed. Without the last norm, the size of states would
      change from level to level.
    - The tanh saturates. So large numbers keep their information in any number of merges, and small changes are
      forgotten. A linear map would also pass on information that labels do not depend on, such as the number of
      symbols. On longer strings, this information would leave the range that training has seen.
    - A single hidden layer would have to compute products of two states from sums over both. Two consecutive layers of
      half the size are as fast and make fewer mistakes.
    - r[h, j] starts at 8 for j = h mod C, so every head mostly reads one part of the window. With r = 0, the layer
      would begin as a function of the sum over the window, which ignores order. Learning r would be slow, because r
      changes by about one learning rate at each step.

    Source: ours.
    Differs from Chi et al. (2023): their layer is GPT-2's (`PreNormLayer`).
    """

    attention_bias, num_feed_forwards = False, 2

    def __init__(self, *, d_model: int, num_heads: int, chunk_size: int, hidden: int | None = None) -> None:
        super().__init__(d_model=d_model, num_heads=num_heads, chunk_size=chunk_size, hidden=hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in self.feed_forwards)
        self.gain = nn.Parameter(torch.empty(d_model))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw linear weights from N(0, 0.08^2), and set the gains g in tanh(g y) to 2.

        The attention bias r becomes 8 at the part that a head mostly reads. Gains of norms become 1, and all other
        parameters become 0.
        """
        self.reset_shared_parameters()
        nn.init.constant_(self.gain, 2.0)
        with torch.no_grad():
            for head in range(self.num_heads):
                self.bias[head, head % self.bias.shape[1]] = 8.0
        for linear in self.linears:
            nn.init.normal_(linear.weight, std=0.08, generator=generator)

    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return tanh(g y) for states y and gains g; queries, keys and values are projected from the result."""
        return torch.tanh(self.gain * states)

    def fused(self) -> Merge | None:
        """Return the layer's merge as one operation (`lengthwise.ops.merge`), or None if the layer runs in parts.

        The layer runs in parts if gradients are disabled, in evaluation mode and in transforms of `torch.func`. It also
        runs in parts if one of its modules was replaced or has a hook, which the operation would ignore.
        """
        if not (self.training and torch.is_grad_enabled()) or torch._C._are_functorch_transforms_active():
            return None
        if not self._is_usual():
            return None
        weights = [self.gain, self.to_query.weight, self.to_key_value.weight, self.to_output.weight, self.bias]
        for norm, block in zip(self.norms, self.feed_forwards, strict=True):
            weights += [*norm.parameters(), *block.parameters()]
        return partial(merge, weights)

    def _is_usual(self) -> bool:
        """Return whether all modules have their original types and parameters, and no hooks."""
        parts = list(self.modules())
        return (
            {type(part) for part in parts} == {MergeLayer, FeedForward, nn.ModuleList, nn.LayerNorm, nn.Linear}
            and not any(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks for part in parts)
            and all(part.eps == EPSILON for part in parts if isinstance(part, nn.LayerNorm))
            and len(list(self.parameters())) == 5 + 6 * len(self.norms)
        )

    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        merged: Tensor = self.to_output(attended)
        for norm, feed_forward in zip(self.norms, self.feed_forwards, strict=True):
            merged = merged + feed_forward(norm(merged), F.gelu)
        return F.layer_norm(merged, merged.shape[-1:])


class TwoNormLayer(TreeAttentionLayer):
    """The common parts of `PreNormLayer` and `PostNormLayer`: two LayerNorms with gains and biases."""

    def __init__(self, *, d_model: int, num_heads: int, chunk_size: int, hidden: int | None = None) -> None:
        super().__init__(d_model=d_model, num_heads=num_heads, chunk_size=chunk_size, hidden=hidden)
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)


class PreNormLayer(TwoNormLayer):
    """GPT-2's layer: x + attention(n1(x)), then x + W_2 GELU(W_1 n2(x)), with two LayerNorms n1 and n2.

    Source: Chi et al. (2023), section 3 ("all the other details of GPT2").
    Differs from the source: dropout is absent, and projections into the residual are not divided by a function of the
        depth, because the depth varies with the length.
    """

    attention_bias = True

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights from N(0, 0.02^2), as GPT-2 does; set gains of norms to 1, and all biases to 0."""
        self.reset_shared_parameters()
        for linear in self.linears:
            nn.init.normal_(linear.weight, std=0.02, generator=generator)

    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return the normalized states, from which queries, keys and values are projected."""
        normed: Tensor = self.norm_1(states)
        return normed

    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        mixed: Tensor = newest + self.to_output(attended)
        merged: Tensor = mixed + self.feed_forwards[0](self.norm_2(mixed), partial(F.gelu, approximate="tanh"))
        return merged


class PostNormLayer(TwoNormLayer):
    """A post-norm layer: z = n1(x + attention(x)), then n2(z + W_2 ReLU(W_1 z)), with two LayerNorms n1 and n2.

    The projections of the attention have no biases, and the feed-forward maps have biases.

    Source: the code published with Chi et al. (2023).
    Differs from the source: no difference is known.
    """

    attention_bias = False

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights from N(0, 1 / n) truncated at 2 / sqrt(n), for maps of n inputs.

        Attention biases r are drawn from N(0, 0.02^2), and all other biases become 0.
        """
        self.reset_shared_parameters()
        for linear in self.linears:
            std = linear.in_features**-0.5
            nn.init.trunc_normal_(linear.weight, std=std, a=-2 * std, b=2 * std, generator=generator)
        nn.init.normal_(self.bias, std=0.02, generator=generator)

    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return the states unchanged, because this layer normalizes its residual sums instead."""
        return states

    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        mixed = self.norm_1(newest + self.to_output(attended))
        merged: Tensor = self.norm_2(mixed + self.feed_forwards[0](mixed, F.relu))
        return merged


class BareLayer(TreeAttentionLayer):
    """Attention, then W_2 ReLU(W_1 x), with biases in all maps, but without norms or residuals.

    Constructions with weights in closed form need this layer, because it computes exactly on states of zeros and ones.
    Its states have no fixed scale, so it is not meant for training.

    Source: the network of Lemma 1 of Chi et al. (2023) after the attention of its section 7.2.
    Differs from the source: attention has biases, which a construction sets to 0.
    """

    attention_bias = True

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights from N(0, 1 / n) for maps of n inputs; set all biases to 0."""
        self.reset_shared_parameters()
        for linear in self.linears:
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5, generator=generator)

    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return the states unchanged, because this layer has no norms."""
        return states

    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return the feed-forward block's result for the attended values, without a residual of the newest state."""
        merged: Tensor = self.feed_forwards[0](self.to_output(attended), F.relu)
        return merged
