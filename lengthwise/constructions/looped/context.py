"""Step 2 of `looped_approximation`: maps a token to its contextual ID, which encodes the token and its sequence."""

from math import log2
from typing import NamedTuple

from lengthwise.constructions.looped.forms import CLOCK, Attention, Form, Unit, assemble
from lengthwise.constructions.looped.network import LoopedNetwork
from lengthwise.constructions.looped.quantizer import check_grid
from lengthwise.validation import check_kind, whole_number

WAITING, GATHERED, NUMBER = (Form.coordinate(name) for name in ("waiting", "gathered", "number"))

ATTENTION = Attention(query=CLOCK, key=WAITING, value=WAITING - GATHERED, writes="gathered")
"""Attention of every token to the token with the largest value of coordinate `waiting`. Coordinate `gathered` then
contains this value instead of the previously gathered value."""


MAX_ID_BITS = 10_000
"""The largest size of a contextual ID, in bits. The size is limited because every loop computes with IDs."""


class Grid(NamedTuple):
    """A grid on sequences of T = `num_tokens` tokens.

    Each of a token's d = `token_dim` coordinates is in one of n = `num_bins` intervals, so there are n^d token IDs.
    """

    num_bins: int
    num_tokens: int
    token_dim: int

    @property
    def base(self) -> int:
        """Return n^d, the number of token IDs, for n intervals in each of d coordinates."""
        return int(self.num_bins**self.token_dim)

    def token(self, digits: list[Form]) -> Form:
        """Return a token's ID: the number with the indices of the token's intervals as digits in base `num_bins`.

        Source: Xu and Sato (2024), eq. (7).
        """
        return sum((self.num_bins ** (self.token_dim - 1 - i) * digit for i, digit in enumerate(digits)), Form({}))

    def checked(self) -> "Grid":
        """Return the grid; raise a ValueError if it is too large, or has no sequence of T different tokens."""
        check_grid(self.num_bins, self.token_dim)
        check_kind("num_tokens", self.num_tokens, int, "a whole number")
        bits = self.token_dim * (self.num_tokens + 1) * log2(self.num_bins)
        if bits > MAX_ID_BITS:
            raise ValueError(
                f"num_tokens: expected contextual IDs of at most {MAX_ID_BITS:,} bits, got {bits:,.0f} bits = "
                "(num_tokens + 1) * token_dim * log2(num_bins); lower num_bins, num_tokens or token_dim"
            )
        whole_number("num_tokens", self.num_tokens, 1, self.base)  # there are `base` different tokens
        return self


def contextual_mapping(num_bins: int, num_tokens: int, token_dim: int = 1) -> LoopedNetwork:
    """Return a network that maps each token in a sequence of T different tokens to its contextual ID, in T loops.

    A token is given as d interval indices. The token's ID z is the number with these digits in base n = num_bins. Let
    z_(1) > ... > z_(T) be the sorted IDs of all tokens. The contextual ID is the number with the digits z, z_(1), ...,
    z_(T) in base n^d:

        z n^(dT) + sum_i z_(i) n^(d (T - i))

    Every token computes its contextual ID, beginning with the digit z. At first, all tokens wait to be appended. By
    attention, each loop finds the waiting token with the largest ID. The loop appends this ID as a digit to the number
    of every token (Horner's scheme). Then the found token no longer waits. Once no token waits, nothing changes. The
    network has state dimension 4 and width 3.

    Raises:
        ValueError: a number of intervals, tokens or dimensions is out of bounds, there are fewer than T different
            tokens, or the IDs have more than 10,000 bits.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> evaluate_exactly(contextual_mapping(num_bins=10, num_tokens=3), [[[2], [7], [4]]]).flatten().tolist()
        [2742, 7742, 4742]

    Source: Xu and Sato (2024), Lemma A.5: T loops, a single head.
    Differs from the source: each token's own ID is the first digit, so no copy of it is needed.
    """
    grid = Grid(num_bins, num_tokens, token_dim).checked()
    inputs = [f"k{i}" for i in range(token_dim)]
    token = grid.token([Form.coordinate(name) for name in inputs])
    starts = {"waiting": token, "gathered": Form({}), "number": token}
    return assemble(
        inputs=inputs,
        starts=starts,
        units=selection_units(grid, factor=1),
        outputs=[NUMBER],
        num_loops=num_tokens,
        attention=ATTENTION,
    )


def extended_contextual_mapping(num_bins: int, num_tokens: int, token_dim: int = 1) -> LoopedNetwork:
    """Return the mapping of `contextual_mapping`, with n unused IDs before every carry of the last digit in base n.

    Here n is `num_bins`. An ID c of `contextual_mapping` becomes 2c - (c mod n). To this end, all digits are doubled.
    From the ID that the last loop appends, this ID's last digit in base n is subtracted. The network has state
    dimension 5 and width 4.

    Raises:
        ValueError: a number of intervals, tokens or dimensions is out of bounds, there are fewer than T different
            tokens, or the IDs have more than 10,000 bits.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> network = extended_contextual_mapping(num_bins=10, num_tokens=3)
        >>> evaluate_exactly(network, [[[2], [7], [4]]]).flatten().tolist()
        [5482, 15482, 9482]

    Source: Xu and Sato (2024), Corollary A.6: a single head.
    Differs from the source: the source adds the digit of the token's own ID only in the next step of its proof.
    """
    grid = Grid(num_bins, num_tokens, token_dim).checked()
    inputs = [f"k{i}" for i in range(token_dim)]
    digits = [Form.coordinate(name) for name in inputs]
    twice = 2 * grid.token(digits)
    # The reduction unit acts one loop before the last. A single token has only one loop, so its digit is subtracted at
    # the start.
    first_is_last = digits[-1] if num_tokens == 1 else Form({})
    starts = {"waiting": twice - first_is_last, "gathered": Form({}), "number": twice, "last": digits[-1]}
    units = [*selection_units(grid, factor=2), reduction_unit(grid, Form.coordinate("last"), CLOCK - (num_tokens - 1))]
    return assemble(
        inputs=inputs, starts=starts, units=units, outputs=[NUMBER], num_loops=num_tokens, attention=ATTENTION
    )


def selection_units(grid: Grid, factor: int) -> list[Unit]:
    """Return units that append `gathered` to `number` as a digit, and that stop the gathered token from waiting.

    While a token waits, its coordinate `waiting` is `factor` times its ID. Afterwards, `waiting` is -1. Attention
    writes the largest `waiting` of all tokens to `gathered`. If `gathered` is -1, the units change nothing. Coordinate
    `number` may be -1 at first. Until other units write the first digit of `number`, these units do not change it.
    """
    largest = factor * grid.base
    beyond = (grid.base - 1) * largest * grid.base**grid.num_tokens
    return [
        Unit(WAITING + 1 - largest * (GATHERED - WAITING), {"waiting": -1}),
        Unit((grid.base - 1) * NUMBER + beyond * GATHERED, {"number": 1}),
        Unit(GATHERED, {"number": 1 - beyond}),
    ]


def reduction_unit(grid: Grid, last_digit: Form, since: Form) -> Unit:
    """Return a unit that subtracts `last_digit` (0 to `num_bins` - 1) from `waiting` in the loop in which `since` is 0.

    Earlier loops subtract nothing. Later loops subtract more, so `waiting` stays negative, and no token is gathered
    again.
    """
    return Unit(last_digit + grid.num_bins * since, {"waiting": -1})
