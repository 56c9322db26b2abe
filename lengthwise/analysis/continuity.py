r"""Lower bounds on three moduli of continuity of a function on sequences.

A modulus bounds how much outputs change if inputs change by at most t. Let f map [0, 1]^(T x d), or another product of
intervals, to R^(T x Y). With p-norms of outputs, the moduli of f are:

    w(t)            = sup ||f(X) - f(X')||_p        over all inputs X, X' with ||X - X'||_2 <= t
    w_contextual(t) = sup ||f(X)_n - f(X')_n||_p    over these X, X' and all n, if X_n = X'_n (only other tokens change)
    w_token(t)      = sup ||f(X)_n - f(X')_n||_p    over these X, X' and all n, if X_m = X'_m for all m != n

A search finds pairs of inputs. Each pair gives a lower bound on a modulus.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.func import functional_call

from lengthwise.analysis.embedded import looking_up
from lengthwise.evaluation.interval import check_numbers
from lengthwise.registry import check_known
from lengthwise.validation import check_function, check_kind, check_sizes

SequenceFunction = Callable[[Float[Tensor, "B T d"]], Float[Tensor, "B T Y"]]
"""A function on sequences of T tokens, each a vector of d numbers."""

Kind = Literal["sequence", "contextual", "token"]
"""The modulus that is searched: w, w_contextual or w_token."""

_NO_WEIGHTS: Mapping[str, Tensor] = MappingProxyType({})

LAST_STEP = 0.01
"""The fraction of the first step's length to which the steps of the gradient ascent shrink."""


class Domain(NamedTuple):
    """The box of inputs that is searched: each number of an input is between the corresponding bounds."""

    low: Float[Tensor, "T d"]
    high: Float[Tensor, "T d"]


class ModulusPoint(NamedTuple):
    """A pair of inputs at most `distance` apart, whose outputs differ by `value` in the p-norm.

    Outputs are compared at the token with index `token`, or at all tokens together if `token` is None.
    """

    distance: float
    value: float
    pair: Float[Tensor, "2 T d"]
    token: int | None


class _Pairs(NamedTuple):
    """Pairs of inputs, with the token whose output is compared, and the difference of their outputs."""

    first: Float[Tensor, "S T d"]
    second: Float[Tensor, "S T d"]
    tokens: Int64[Tensor, " S"]
    values: Float[Tensor, " S"]

    def best(self, count: int) -> "_Pairs":
        rows = self.values.argsort(descending=True)[:count]
        return _Pairs(*(tensor[rows] for tensor in self))


def unit_domain(num_tokens: int, token_dim: int) -> Domain:
    """Return the domain of sequences of T tokens in [0, 1]^d, in float64."""
    check_sizes(num_tokens=num_tokens, token_dim=token_dim)
    return Domain(*(torch.full((num_tokens, token_dim), bound, dtype=torch.float64) for bound in (0.0, 1.0)))


def continuity_modulus(
    function: SequenceFunction,
    kind: Kind,
    distances: Sequence[float],
    domain: Domain,
    generator: torch.Generator,
    *,
    num_starts: int = 64,
    num_steps: int = 60,
    p: float = 2.0,
) -> list[ModulusPoint]:
    """Return, for distances in ascending order, the largest difference of outputs found: a lower bound on the modulus.

    The distances are searched from the largest to the smallest. Gradient ascent improves two kinds of starting pairs:
    random pairs, and the best pieces of the pairs that were found at larger distances. The pieces of a pair divide the
    line between its inputs into k equal parts. If the function has no gradient, pairs stay as they are. Because of the
    pieces, the estimates share two properties with the modulus on a convex domain. Let w(t) be the estimate at distance
    t. The estimate does not fall as t grows, and w(k t) <= k w(t) for every whole number k if t and k t are among the
    distances.

    Raises:
        ValueError: the kind is unknown, or is `contextual` for a single token, which has no context. `distances` is
            empty, or a distance is not positive and finite. The domain is empty, `num_starts` is 0, or p is below 1.
            Outputs are not finite, or not of shape [B, T, Y].

    Example:
        >>> def mean(x):
        ...     return x.mean(1, keepdim=True).expand_as(x)
        >>> generator = torch.Generator().manual_seed(0)
        >>> points = continuity_modulus(mean, "token", [0.1, 0.2], unit_domain(2, 1), generator)
        >>> [round(point.value, 3) for point in points]
        [0.05, 0.1]

    Source: Xu and Sato (2024), Definitions 3.4 to 3.6.
    Differs from the source: the source defines moduli on [0, 1]^(d x N), and does not estimate them.
    """
    check_function("function", function)
    _check(kind, distances, domain, num_starts, p)
    check_kind("generator", generator, torch.Generator, "a torch.Generator")
    search = _Search(function, kind, domain, p)
    best_pairs: dict[float, _Pairs] = {}
    for distance in sorted(set(distances), reverse=True):
        # Without the 1e-12, a quotient of 2 that rounds to a little more would give 3 pieces.
        pieces = [search.pieces(pairs, math.ceil(far / distance - 1e-12)) for far, pairs in best_pairs.items()]
        starts = search.random_pairs(num_starts, distance, generator)
        if pieces:
            all_pieces = _Pairs(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))
            starts = _Pairs(*(torch.cat(parts) for parts in zip(starts, all_pieces.best(num_starts), strict=True)))
        best_pairs[distance] = search.climb(starts, distance, num_steps).best(num_starts)
    points: list[ModulusPoint] = []
    for distance in sorted(best_pairs):
        first, second, tokens, values = (tensor[0] for tensor in best_pairs[distance])
        token = None if kind == "sequence" else int(tokens)
        point = ModulusPoint(distance, float(values), torch.stack([first, second]), token)
        # A pair at a smaller distance is also a pair at this distance.
        if points and points[-1].value > point.value:
            point = points[-1]._replace(distance=distance)
        points.append(point)
    return points


def on_embeddings(model: nn.Module) -> tuple[SequenceFunction, Callable[[int], Domain]]:
    """Return a model's logits as a function of the embeddings of symbols, and the function's domain for T positions.

    Raises:
        ValueError: the model does not have exactly one embedding, or does not look up each position's symbol in it.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> function, domain = on_embeddings(make_model("s4d", make_task("parity")))
        >>> generator = torch.Generator()
        >>> points = continuity_modulus(function, "token", [0.1], domain(3), generator, num_starts=2, num_steps=2)
        >>> points[0].value > 0
        True
    """
    check_kind("model", model, nn.Module, "a torch module")
    named = [name for name, module in model.named_modules() if isinstance(module, nn.Embedding)]
    if len(named) != 1:
        raise ValueError(
            f"model: expected a model with a single embedding, got {len(named)} embeddings; write the function from "
            "embeddings to outputs yourself"
        )
    embedding = model.get_submodule(named[0])
    assert isinstance(embedding, nn.Embedding)

    def function(
        embedded: Float[Tensor, "B T d"], weights: Mapping[str, Tensor] = _NO_WEIGHTS
    ) -> Float[Tensor, "B T Y"]:
        tokens = torch.zeros(embedded.shape[:2], dtype=torch.int64, device=embedded.device)
        with looking_up(embedding, embedded):
            logits: Tensor = functional_call(model, dict(weights), (tokens,), tie_weights=False)
        return logits

    def domain(num_tokens: int) -> Domain:
        table = embedding.weight.detach()
        low, high = table.amin(0), table.amax(0)
        return Domain(low.expand(num_tokens, -1), high.expand(num_tokens, -1))

    # The function must not read the table of embeddings. If it does, a table of NaN makes the logits NaN.
    poisoned = {f"{named[0]}.weight": torch.full_like(embedding.weight, torch.nan)}
    try:
        reads_elsewhere = not bool(function(domain(2).low[None], poisoned).isfinite().all())
    except ValueError:
        reads_elsewhere = True
    if reads_elsewhere:
        raise ValueError(
            f"model: expected a model that reads its embedding only to embed symbols, got {type(model).__name__}; "
            "write the function from embeddings to outputs yourself"
        )
    return function, domain


class _Search(NamedTuple):
    """A search for pairs of inputs whose outputs differ most."""

    function: SequenceFunction
    kind: Kind
    domain: Domain
    p: float

    def random_pairs(self, count: int, distance: float, generator: torch.Generator) -> _Pairs:
        """Draw pairs of inputs: the first is uniform in the domain, the second in a random direction from the first."""
        low, high = self.domain
        num_tokens = len(low)
        first = low + (high - low) * torch.rand(count, *low.shape, generator=generator, dtype=low.dtype)
        offset = torch.randn(count, *low.shape, generator=generator, dtype=low.dtype)
        tokens = torch.randint(num_tokens, (count,), generator=generator)
        offset = _with_length(offset * self._may_differ(tokens)[..., None], distance, stretch=True)
        second = (first + offset).clamp(low, high)
        return self._valued(first, second, tokens)

    def pieces(self, pairs: _Pairs, count: int) -> _Pairs:
        """Divide the line between each pair's inputs into `count` parts; return the part where outputs change most."""
        share = torch.linspace(0, 1, count + 1, dtype=pairs.first.dtype)[:, None, None, None]
        chain = pairs.first + share * (pairs.second - pairs.first)
        with torch.no_grad():
            outputs = self._outputs(chain.flatten(0, 1)).unflatten(0, chain.shape[:2])
            values = torch.stack([self._norms(a, b, pairs.tokens) for a, b in pairwise(outputs)])
        best, rows = values.argmax(0), torch.arange(len(pairs.tokens))
        return _Pairs(chain[best, rows], chain[best + 1, rows], pairs.tokens, values[best, rows])

    def climb(self, starts: _Pairs, distance: float, num_steps: int) -> _Pairs:
        """Move each pair's two inputs by gradient ascent on the difference of their outputs, with decreasing steps.

        Return each pair as it was when its outputs differed most.
        """
        (low, high), best = self.domain, starts
        current, may_differ = starts, self._may_differ(starts.tokens)[..., None]
        reach = float((high - low).norm())
        for step in range(num_steps):
            size = 0.5 * LAST_STEP ** (step / num_steps)
            gradients = self._gradients(current)
            if gradients is None:
                break
            along, across = (_with_length(gradient, size, stretch=True) for gradient in gradients)
            first = (current.first + reach / 4 * along).clamp(low, high)
            offset = current.second - current.first + distance * across * may_differ
            second = (first + _with_length(offset, distance)).clamp(low, high)
            current = self._valued(first, second, starts.tokens)
            better = current.values > best.values
            best = _Pairs(*(torch.where(_as(better, old), new, old) for new, old in zip(current, best, strict=True)))
        return best

    def _gradients(self, pairs: _Pairs) -> tuple[Tensor, Tensor] | None:
        """Return the gradients of the outputs' difference with respect to the first input and to the pair's offset.

        If the function has no gradient, return None.
        """
        first = pairs.first.detach().requires_grad_()
        offset = (pairs.second - pairs.first).detach().requires_grad_()
        values = self._differences(first, first + offset, pairs.tokens)
        if not values.requires_grad:
            return None
        along, across = torch.autograd.grad(values.sum(), (first, offset), materialize_grads=True)
        return along.nan_to_num(), across.nan_to_num()

    def _valued(self, first: Tensor, second: Tensor, tokens: Tensor) -> _Pairs:
        with torch.no_grad():
            return _Pairs(first, second, tokens, self._differences(first, second, tokens))

    def _differences(self, first: Tensor, second: Tensor, tokens: Tensor) -> Tensor:
        one, other = self._outputs(torch.cat([first, second])).chunk(2)
        return self._norms(one, other, tokens)

    def _norms(self, one: Tensor, other: Tensor, tokens: Tensor) -> Tensor:
        change = one - other
        if self.kind != "sequence":
            change = change[torch.arange(len(tokens)), tokens][:, None]
        norms: Tensor = change.flatten(1).norm(p=self.p, dim=1)
        return norms

    def _outputs(self, inputs: Tensor) -> Tensor:
        outputs = self.function(inputs)
        if outputs.ndim != 3 or outputs.shape[:2] != inputs.shape[:2]:
            raise ValueError(
                f"function: expected outputs of shape [{len(inputs)}, {inputs.shape[1]}, D] with any D, got "
                f"{list(outputs.shape)}; return one vector for each token"
            )
        if not bool(outputs.isfinite().all()):
            raise ValueError(
                "function: expected finite outputs on the whole domain, got NaN or infinity; choose a smaller domain"
            )
        return outputs

    def _may_differ(self, tokens: Tensor) -> Bool[Tensor, "S T"]:
        own = torch.arange(len(self.domain.low)) == tokens[:, None]
        return {"sequence": torch.ones_like(own), "contextual": ~own, "token": own}[self.kind]


def _with_length(vectors: Tensor, length: float, *, stretch: bool = False) -> Tensor:
    """Scale vectors to a norm of at most `length`, or with `stretch` to exactly `length`; zero vectors stay zero."""
    norms = vectors.flatten(1).norm(dim=1).clamp(min=torch.finfo(vectors.dtype).tiny)
    factors = length / norms
    return vectors * _as(factors if stretch else factors.clamp(max=1.0), vectors)


def _as(rows: Tensor, like: Tensor) -> Tensor:
    return rows.reshape(-1, *[1] * (like.ndim - 1))


def _check(kind: str, distances: Sequence[float], domain: Domain, num_starts: int, p: float) -> None:
    check_known("kind", kind, get_args(Kind))
    check_numbers("distances", distances)
    if not distances or not all(0 < distance < math.inf for distance in distances):
        raise ValueError(
            f"distances: expected at least one distance, all positive and finite, got {list(distances)}; give numbers "
            "such as 0.1"
        )
    check_kind("domain", domain, tuple, "a Domain")
    low, high = domain
    if (
        low.shape != high.shape
        or low.ndim != 2
        or not low.numel()
        or not bool((low < high).any() and (low <= high).all())
    ):
        raise ValueError(
            "domain: expected bounds of shape [T, d] with low <= high, and low < high in some entry, got other "
            f"bounds (shapes {list(low.shape)} and {list(high.shape)}); use for example "
            "unit_domain(num_tokens, token_dim)"
        )
    check_sizes(num_starts=num_starts)
    if not p >= 1:
        raise ValueError(f"p: expected at least 1, got {p}; choose a larger p, so that the p-norm is a norm")
    if kind == "contextual" and len(low) < 2:
        raise ValueError(
            "domain: expected at least 2 tokens for kind='contextual', got 1; choose a domain of more tokens, or "
            "kind='sequence'"
        )
