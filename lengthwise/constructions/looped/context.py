"""Step 2: the tokens of a sequence, largest first, as the digits of one number."""

from typing import NamedTuple

from lengthwise.constructions.looped.forms import CLOCK, Attention, Form, Unit, assembled
from lengthwise.constructions.looped.network import LoopedNetwork
from lengthwise.constructions.looped.quantizer import check_grid

WAITING, GATHERED, NUMBER = (Form.of(name) for name in ("waiting", "gathered", "number"))

ATTENTION = Attention(query=CLOCK, key=WAITING, value=WAITING - GATHERED, writes="gathered")
"""Every token finds the largest that waits; what it had gathered before is subtracted, as it is the same everywhere."""


class Grid(NamedTuple):
    """Sequences of T tokens of d coordinates, each one of n intervals: n^d token IDs, which are numbers in base n."""

    num_bins: int
    num_tokens: int
    token_dim: int

    @property
    def base(self) -> int:
        """n^d, the number of token IDs."""
        return int(self.num_bins**self.token_dim)

    def token(self, digits: list[Form]) -> Form:
        """The token ID of d interval numbers, the last of which counts least: eq. (7)."""
        return sum((self.num_bins ** (self.token_dim - 1 - i) * digit for i, digit in enumerate(digits)), Form({}))

    def checked(self) -> "Grid":
        """Itself, or a ValueError if there are no sequences of different tokens."""
        check_grid(self.num_bins, self.token_dim)
        if not 1 <= self.num_tokens <= self.base:
            raise ValueError(
                f"num_tokens: expected 1 to {self.base}, as many as there are different tokens, got {self.num_tokens}; "
                "take more intervals or fewer tokens"
            )
        return self


def contextual_mapping(num_bins: int, num_tokens: int, token_dim: int = 1) -> LoopedNetwork:
    """The contextual token ID of every token of a sequence of T different ones, in T loops.

    Tokens come as d interval numbers each, with token IDs z in base n = num_bins. With z_(1) > ... > z_(T) the sorted
    IDs, the ID in context is the number with the digits z, z_(1), ..., z_(T) in base n^d:

        z n^(dT) + sum_i z_(i) n^(d (T - i))

    Every loop finds the largest token that waits, by attention, appends it to the number (Horner), and sets it to -1,
    where it waits no longer. When none waits, nothing happens any more.

    Raises:
        ValueError: there are not as many different tokens.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> evaluate_exactly(contextual_mapping(num_bins=10, num_tokens=3), [[[2], [7], [4]]]).flatten().tolist()
        [2742, 7742, 4742]

    Source: Xu and Sato (2024), Lemma A.5: T loops, one head of size 1, width 3.
    Differs from the source: each token's own ID is the first digit, so that no copy of it has to be kept; state 4.
    """
    grid = Grid(num_bins, num_tokens, token_dim).checked()
    inputs = [f"k{i}" for i in range(token_dim)]
    token = grid.token([Form.of(name) for name in inputs])
    starts = {"waiting": token, "gathered": Form({}), "number": token}
    return assembled(
        inputs=inputs,
        starts=starts,
        units=selecting(grid, factor=1),
        outputs=[NUMBER],
        num_loops=num_tokens,
        attention=ATTENTION,
    )


def extended_contextual_mapping(num_bins: int, num_tokens: int, token_dim: int = 1) -> LoopedNetwork:
    """The same with unused IDs before every carry: the last of all digits in base n counts to n in steps of 2n.

    An ID c of `contextual_mapping` becomes 2c - (c mod n). That is the number of twice the digits, and in the last loop
    the last token brings 1 less for each unit of its last digit.

    Raises:
        ValueError: there are not as many different tokens.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> network = extended_contextual_mapping(num_bins=10, num_tokens=3)
        >>> evaluate_exactly(network, [[[2], [7], [4]]]).flatten().tolist()
        [5482, 15482, 9482]

    Source: Xu and Sato (2024), Corollary A.6: one head of size 1, width 5.
    Differs from the source: state 5 and width 4.
    """
    grid = Grid(num_bins, num_tokens, token_dim).checked()
    inputs = [f"k{i}" for i in range(token_dim)]
    digits = [Form.of(name) for name in inputs]
    twice = 2 * grid.token(digits)
    first_is_last = digits[-1] if num_tokens == 1 else Form({})
    starts = {"waiting": twice - first_is_last, "gathered": Form({}), "number": twice, "last": digits[-1]}
    units = [*selecting(grid, factor=2), lessening(grid, Form.of("last"), CLOCK - (num_tokens - 1))]
    return assembled(
        inputs=inputs, starts=starts, units=units, outputs=[NUMBER], num_loops=num_tokens, attention=ATTENTION
    )


def selecting(grid: Grid, factor: int) -> list[Unit]:
    """Append what is gathered to the number unless it is negative, and take the token that it is off the list.

    Tokens wait as `factor` times their ID. The number may begin with -1, for "not yet", and is then left alone.
    """
    largest = factor * grid.base
    beyond = (grid.base - 1) * largest * grid.base**grid.num_tokens
    return [
        Unit(WAITING + 1 - largest * (GATHERED - WAITING), {"waiting": -1}),
        Unit((grid.base - 1) * NUMBER + beyond * GATHERED, {"number": 1}),
        Unit(GATHERED, {"number": 1 - beyond}),
    ]


def lessening(grid: Grid, last_digit: Form, since: Form) -> Unit:
    """Take `last_digit` (0 to n - 1) from what waits in the loop where `since` is 0, and nothing before.

    Later it takes more and more, so that nothing waits again.
    """
    return Unit(last_digit + grid.num_bins * since, {"waiting": -1})
