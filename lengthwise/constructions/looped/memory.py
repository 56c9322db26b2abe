"""Step 3 of `timed_approximation`: exact memory of arbitrary values, with a factor for every loop."""

from lengthwise.constructions.looped.bits import Targets, table_of
from lengthwise.constructions.looped.forms import CLOCK, Form, assemble, impulse
from lengthwise.constructions.looped.network import LoopedNetwork


def timed_memory(targets: Targets) -> LoopedNetwork:
    """Return a network that remembers any y_0 ... y_{K-1}: input k gives exactly y_k in K loops, with factors eta_t.

    For input k, an impulse is 1 in loop k + 1 and otherwise 0. The factor eta_{k+1} = y_k scales the impulse, so loop t
    adds eta_t * [k = t - 1] to the output. Unlike in `stepwise_memory`, successive values may be arbitrarily far apart.
    In return, there are K d factors, one for each loop and each of the d dimensions of a value. The number of weights
    of the block does not depend on K: the block has state dimension d + 2 and width 3.

    Raises:
        ValueError: the number of values is 0 or above 2^18, or their dimensions differ or are 0.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> network = timed_memory([[0, 7], [1000, -1], [-3, 0]])
        >>> evaluate_exactly(network, [[[0], [1], [2]]])[0].tolist()
        [[0, 7], [1000, -1], [-3, 0]]

    Source: Xu and Sato (2024), Theorem 4.2 and Appendix B.
    Differs from the source: the block is smaller than state dimension 4 d and width 6 d (docs/looped.md cites these
        sizes), because all outputs share the impulse. Factors may be 0, so no offset is needed.
    """
    values = table_of(targets)
    names = [f"y{i}" for i in range(values.shape[1])]
    return assemble(
        inputs=["k"],
        starts={"k": Form.coordinate("k")} | {name: Form({}) for name in names},
        units=impulse(CLOCK - 1 - Form.coordinate("k"), dict.fromkeys(names, 1)),
        outputs=[Form.coordinate(name) for name in names],
        num_loops=len(values),
        scales=dict(zip(names, values.T, strict=True)),
    )
