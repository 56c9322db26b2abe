"""Merges that float32 computes without error, such as the merges of compiled trees."""

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none, foreign_extraction
from lengthwise.certification.methods.exact.evidence import ExactEvidence
from lengthwise.certification.methods.merges import merges_of
from lengthwise.certification.methods.one_hot_states.prover import NEVER_SEEN
from lengthwise.certification.methods.steps import margin
from lengthwise.certification.methods.usual_parts import check_usual, unlike_settings
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.layers.tree_layers import BareLayer, FeedForward
from lengthwise.models.base import TreeModel
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.intervals import LARGEST, Intervals, binary_digits, is_size_exact
from lengthwise.validation import narrow, type_in_words

MAX_NUMBERS = 1 << 20
"""The largest number of hidden activations in a chunk of merges, which take 8 MB and fit in a processor's cache."""


class ExactMap:
    """A map W x + b of the columns x of a matrix, which float32 computes without error; W is stored as a sparse matrix.

    All products and biases are multiples of one power of two, and so are their partial sums, in any order. The sums
    stay below 2^22 times this power (`is_size_exact`). So float32 and float64 represent all digits of these sums.

    Raises:
        Unproved: float32 could round a result, because of the weights, the biases, or the columns of a later call.

    Example:
        >>> half = ExactMap(torch.tensor([[0.5, 1.0]]), None)
        >>> half(torch.tensor([[3.0], [4.0]]).double()).tolist()
        [[5.5]]
    """

    def __init__(self, weight: Float[Tensor, "E D"], bias: Float[Tensor, " E"] | None) -> None:
        self.weight = weight.double().to_sparse()
        self.bias = torch.zeros(len(weight), dtype=torch.float64) if bias is None else bias.double()
        self.sizes = weight.double().abs()
        # A product has at most as many binary digits after the point as both factors together. Let n be the digits of
        # the weights, plus the digits of the biases, plus the digits of the columns. Then products and biases are
        # multiples of 2^-n, and so are their partial sums.
        self.digits = _digits_of(weight.double()) + _digits_of(self.bias)

    def __call__(self, columns: Float64[Tensor, "D M"]) -> Float64[Tensor, "E M"]:
        size = self.sizes @ columns.abs().amax(1) + self.bias.abs()  # an upper bound for all columns at once
        if not is_size_exact(size, self.digits + _digits_of(columns)):
            raise Unproved("float32 may round the merged states")
        image: Tensor = torch.addmm(self.bias[:, None].expand(-1, columns.shape[1]), self.weight, columns)
        return image


def _digits_of(numbers: Tensor) -> int:
    if (digits := binary_digits(numbers)) is None:
        raise Unproved("float32 may round the merged states")
    return digits


class ExactMerges:
    """The float32 merges of windows of given states, oldest first, for layers that merge without error.

    If all keys are 0, the score of head h for position j is the bias r[h, j]. If one position leads by so much that all
    other exponentials round to 0, its weight is 1 and the other weights are 0. Then the head copies the value at this
    position. The rest of the layer consists of exact maps (`ExactMap`) and ReLU.

    Raises:
        Unproved: a key is not 0, no position of a head leads by enough, a query could overflow, or float32 could round
            a sum, possibly in a later call.
    """

    def __init__(self, layer: BareLayer, points: Float64[Tensor, "K D"]) -> None:
        keys, values = (part.double() for part in layer.to_key_value.weight.chunk(2))
        if layer.to_key_value.bias is not None:
            key_bias, value_bias = (part.double() for part in layer.to_key_value.bias.chunk(2))
        else:
            key_bias = value_bias = torch.zeros(len(keys), dtype=torch.float64)
        # Scores are q.k / sqrt(d) + r. If all keys are 0, q.k is 0 for every finite query, without rounding. So a score
        # is the parameter r.
        ahead = layer.bias.double().topk(2, 1)
        leads = bool((ahead.values[:, 0] - ahead.values[:, 1] > NEVER_SEEN[layer.bias.dtype]).all())
        queries = Intervals.around(points).linear(layer.to_query.weight, layer.to_query.bias)
        is_finite = bool((queries.size < LARGEST).all())  # a key of 0 times an infinite query would be NaN
        if bool(keys.any()) or bool(key_bias.any()) or not (leads and is_finite):
            raise Unproved(
                "a head's scores may depend on the states, or two of its scores may be close, so float32 may round the "
                "merged states"
            )
        self.values = ExactMap(values, value_bias)(points.T).split(values.shape[0] // layer.num_heads)
        self.positions = (-1 - ahead.indices[:, 0]).tolist()  # scores are newest first
        (feed_forward,) = (narrow(part, FeedForward) for part in layer.feed_forwards)
        self.to_output = ExactMap(layer.to_output.weight, layer.to_output.bias)
        self.widen = ExactMap(feed_forward.widen.weight, feed_forward.widen.bias)
        self.narrow = ExactMap(feed_forward.narrow.weight, feed_forward.narrow.bias)

    def __call__(self, windows: Int64[Tensor, "M C"]) -> Float64[Tensor, "D M"]:
        """Return the merged states as columns; windows contain indices of points."""
        heads = [value[:, windows[:, index]] for value, index in zip(self.values, self.positions, strict=True)]
        # A head's weights are exactly 1 and 0, so its sum is a copy. Each map rejects sums that float32 could round,
        # and ReLU rounds nothing.
        return self.narrow(self.widen(self.to_output(torch.cat(heads))).relu_())


@PROVERS.register("exact")
class ExactProver(Prover):
    """A proof that enumerates all merges of a RegularGPT of variant bare (`ExactMerges`)."""

    reader = "bare"

    @classmethod
    def applies_to(cls, model: TreeModel) -> bool:
        return type(model.tree.layers[0]) is BareLayer

    @torch.no_grad()
    def prove(self, model: TreeModel, extraction: Extraction) -> ExactEvidence:
        layer, readout = model.tree.layers[0], getattr(model, "readout", None)
        # Types are compared exactly, because a subclass may compute another formula.
        if type(model) is not RegularGPT or type(layer) is not BareLayer or len(model.tree.layers) > 1:
            names = f"{type(model).__name__} with {' and '.join(map(type_in_words, model.tree.layers))}"
            raise ValueError(
                f"model: expected a RegularGPT with a single BareLayer, got a {names}; train a RegularGPT with "
                "variant='bare' and thickness=1"
            )
        kinds = {BareLayer, FeedForward, nn.ModuleList, nn.Sequential, nn.Identity, nn.Linear, nn.Embedding}
        check_usual(model, kinds)
        if not isinstance(readout, nn.Sequential) or [type(part) for part in readout] != [nn.Identity, nn.Linear]:
            raise unlike_settings("expected model.readout to be one linear map, got other layers")
        machine = narrow(extraction.fine, TreeMachine)
        points = extraction.prototypes.double()
        leaves = model.tree.leaves
        if not torch.equal(extraction.prototypes[: len(leaves)], leaves):
            raise foreign_extraction(
                "expected this model's leaf vectors as the extraction's first prototypes, got other prototypes"
            )
        windows, targets = merges_of(machine)
        self._check_merges(layer, points, windows, targets)
        outputs = torch.tensor(machine.outputs)
        answered = outputs != IGNORE
        # States are exact, but float32 rounds logits: `margin` subtracts this rounding.
        lead = margin(narrow(readout[1], nn.Linear), Intervals.around(points[answered]), outputs[answered])
        if not lead > 0:  # a lead that is NaN also ends here
            raise Unproved("the logits of some state are too close to each other")
        self.sets = {"points": points}
        return ExactEvidence(num_prototypes=len(points), num_merges=len(windows), logit_margin=finite_or_none(lead))

    def _check_merges(
        self, layer: BareLayer, points: Tensor, windows: Int64[Tensor, "M C"], targets: Int64[Tensor, " M"]
    ) -> None:
        merges, columns = ExactMerges(layer, points), points.T.contiguous()
        size = max(1, MAX_NUMBERS // len(merges.widen.bias))
        for chunk, classes in zip(windows.split(size), targets.split(size), strict=True):
            # The merges are exact, so they must equal the prototypes bit for bit, without any tolerance.
            if not torch.equal(merges(chunk), columns[:, classes]):
                raise Unproved("a merge gives a state that is not the prototype of its class")
