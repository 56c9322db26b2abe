"""The published equations of position encodings, pair by pair of positions: nothing here is the package's.

Modules of encodings are read for their parameters alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from position_forms import HEAD_WIDTH, HEADS, LAYERS, WIDTH
from torch import Tensor

WINDOW = 7

Encoding = Any
Score = Callable[[Encoding, Tensor, Tensor, int, int], Tensor]
"""What softmax takes for a query and a key: encoding, q_i and k_j [B, H, E], i, j -> [B, H]. Of several layers' the
numbers of the last one."""


def plain(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    return (query * key).sum(-1) / math.sqrt(HEAD_WIDTH)


def rotary(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    """RoFormer, section 3.2: rotations by i theta and j theta are one by their difference."""
    total = torch.zeros(query.shape[:2], dtype=query.dtype)
    for pair in range(HEAD_WIDTH // 2):
        angle = (i - j) * 10_000 ** (-2 * pair / HEAD_WIDTH)
        (q1, q2), (k1, k2) = (x[..., 2 * pair : 2 * pair + 2].unbind(-1) for x in (query, key))
        total = total + math.cos(angle) * (q1 * k1 + q2 * k2) + math.sin(angle) * (q1 * k2 - q2 * k1)
    return total / math.sqrt(HEAD_WIDTH)


def alibi(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    """The slopes of two heads begin at 2^{-8/2} and are its powers."""
    return plain(encoding, query, key, i, j) - (i - j) * torch.tensor([1 / 16, 1 / 256], dtype=query.dtype)


def local(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    """The seven positions i - 6 ... i."""
    score = plain(encoding, query, key, i, j)
    return score if j > i - WINDOW else torch.full_like(score, -math.inf)


def t5_bucket(n: int) -> int:
    """Mesh TensorFlow's `_relative_position_bucket`, causal, with whole numbers instead of logarithms."""
    if n < 16:
        return n
    bucket = 0  # the largest b up to 15 with (n / 16) >= 8^(b / 16), that is n^16 >= 16^16 8^b
    while bucket < 15 and n**16 >= 16**16 * 8 ** (bucket + 1):
        bucket += 1
    return 16 + bucket


def t5(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    return plain(encoding, query, key, i, j) + encoding.table[:, t5_bucket(i - j)]


def kerple_log(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    return plain(encoding, query, key, i, j) - encoding.p * (1 + encoding.a * abs(i - j)).log()


def kerple_power(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    score = plain(encoding, query, key, i, j)
    return score if i == j else score - encoding.a * abs(i - j) ** encoding.p


def fire(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    layer = encoding.layers[LAYERS - 1]
    threshold = (512 * layer.limit).abs()
    scale = threshold if i < float(threshold.detach()) else i
    ratio = (1 + (layer.c * (i - j)).abs()).log() / ((1 + (layer.c * scale).abs()).log() + 1e-6)
    hidden = (layer.net[0].weight[:, 0] * ratio + layer.net[0].bias).clamp(min=0)
    return plain(encoding, query, key, i, j) + layer.net[2].weight @ hidden + layer.net[2].bias


def xl(encoding: Encoding, query: Tensor, key: Tensor, i: int, j: int) -> Tensor:
    """Dai et al., section 3.3: four terms, with R the sines, then the cosines of the distance."""
    angles = [(i - j) / 10_000 ** (2 * m / WIDTH) for m in range(WIDTH // 2)]
    sinusoid = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=query.dtype)
    relative = (encoding.maps[LAYERS - 1].weight @ sinusoid).view(HEADS, HEAD_WIDTH)
    terms = (query * key).sum(-1), (query * relative).sum(-1), (encoding.u * key).sum(-1), encoding.v * relative
    return (terms[0] + terms[1] + terms[2] + terms[3].sum(-1)) / math.sqrt(HEAD_WIDTH)


SCORES: dict[str, Score] = {
    "none": plain,
    "sinusoidal": plain,
    "learned": plain,
    "randomized": plain,
    "rotary": rotary,
    "alibi": alibi,
    "local": local,
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
    for i in rows:
        scores = [SCORES[name](encoding, query[:, :, i], key[:, :, j], i, j) for j in range(i + 1)]
        exponentials = torch.stack(scores, -1).exp()
        weights = exponentials / exponentials.sum(-1, keepdim=True)
        results.append((weights[..., None] * value[:, :, : i + 1]).sum(2))
    return torch.stack(results, 2)
