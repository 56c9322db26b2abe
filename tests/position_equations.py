"""The published equations of position encodings, pair by pair of positions: nothing here is the package's.

Modules of encodings are read for their parameters alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

HEADS, HEAD_WIDTH, WIDTH, LAYERS = 2, 4, 8, 2

Encoding = Any
Score = Callable[[Encoding, Tensor, Tensor, int, int, int], Tensor]
"""What softmax takes for a query and a key of one head: encoding, q_i, k_j [B, E], head, i, j -> [B]."""


def dot(query: Tensor, key: Tensor) -> Tensor:
    return (query * key).sum(-1) / math.sqrt(HEAD_WIDTH)


def plain(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    return dot(query, key)


def rotary(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    """RoFormer, equation 15: blocks of sines and cosines of m theta; here their product, of the difference."""
    total = 0.0
    for pair in range(HEAD_WIDTH // 2):
        angle = (i - j) * 10_000 ** (-2 * pair / HEAD_WIDTH)
        (q1, q2), (k1, k2) = (x[:, 2 * pair : 2 * pair + 2].unbind(-1) for x in (query, key))
        total = total + math.cos(angle) * (q1 * k1 + q2 * k2) + math.sin(angle) * (q1 * k2 - q2 * k1)
    return total / math.sqrt(HEAD_WIDTH)


def alibi(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    return dot(query, key) - (i - j) * (1 / 16, 1 / 256)[head]


def t5_bucket(n: int) -> int:
    """Mesh TensorFlow's `_relative_position_bucket`, causal, in numbers of any size instead of floats."""
    if n < 16:
        return n
    bucket = 0  # the largest b with (n / 16) >= 8^(b / 16), that is n^16 >= 16^16 8^b
    while bucket < 15 and n**16 >= 16**16 * 8 ** (bucket + 1):
        bucket += 1
    return 16 + bucket


def t5(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    return dot(query, key) + encoding.table[head, t5_bucket(i - j)]


def kerple_log(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    return dot(query, key) - encoding.p[head] * (1 + encoding.a[head] * abs(i - j)).log()


def kerple_power(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    return dot(query, key) - encoding.a[head] * abs(i - j) ** encoding.p[head] if i > j else dot(query, key)


def fire(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    layer = encoding.layers[LAYERS - 1]
    threshold = (512 * layer.limit).abs()
    scale = threshold if i < float(threshold.detach()) else torch.tensor(float(i)).double()
    numerator, denominator = ((1 + (layer.c * x).abs()).log() for x in (i - j, scale))
    hidden = (layer.net[0].weight[:, 0] * (numerator / (denominator + 1e-6)) + layer.net[0].bias).clamp(min=0)
    return dot(query, key) + hidden @ layer.net[2].weight[head] + layer.net[2].bias[head]


def xl(encoding: Encoding, query: Tensor, key: Tensor, head: int, i: int, j: int) -> Tensor:
    """Dai et al., section 3.3: four terms, with R the sines, then the cosines of the distance."""
    angles = [(i - j) / 10_000 ** (2 * m / WIDTH) for m in range(WIDTH // 2)]
    sinusoid = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64)
    rows = slice(head * HEAD_WIDTH, (head + 1) * HEAD_WIDTH)
    relative = encoding.maps[LAYERS - 1].weight[rows] @ sinusoid
    terms = query * key, query * relative, encoding.u[head] * key, encoding.v[head] * relative
    return sum(term.sum(-1) for term in torch.broadcast_tensors(*terms)) / math.sqrt(HEAD_WIDTH)


SCORES: dict[str, Score] = {
    "none": plain,
    "sinusoidal": plain,
    "learned": plain,
    "randomized": plain,
    "rotary": rotary,
    "alibi": alibi,
    "t5": t5,
    "kerple-log": kerple_log,
    "kerple-power": kerple_power,
    "fire": fire,
    "xl": xl,
}


def attended(name: str, encoding: Encoding, inputs: Sequence[Tensor], rows: Sequence[int]) -> Tensor:
    """Attention of these positions, [B, H, rows, E]: every score alone, and softmax by its definition."""
    query, key, value = inputs
    results = []
    for head in range(HEADS):
        for i in rows:
            scores = [SCORES[name](encoding, query[:, head, i], key[:, head, j], head, i, j) for j in range(i + 1)]
            weights = (torch.stack(scores, -1) - torch.stack(scores, -1).amax(-1, keepdim=True).detach()).exp()
            weights = weights / weights.sum(-1, keepdim=True)
            results.append((weights[..., None] * value[:, head, : i + 1]).sum(1))
    return torch.stack(results, 1).unflatten(1, (HEADS, len(rows)))
