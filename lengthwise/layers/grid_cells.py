"""Cells of a grid recurrence: they update the messages from above and from the left, and map messages to answers."""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, Shaped
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.ops.grid import Cell
from lengthwise.ops.integer_answers import check_sharpness
from lengthwise.validation import check_sizes

Counts = Int64[Tensor, "B T"]
"""The number of grid rows, or of grid columns, that each prefix of a string has."""


class GridCell(nn.Module, ABC):
    """A cell of a grid, with the messages at the borders and the numbers whose sum is the answer."""

    per_row: nn.Parameter

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again."""

    @abstractmethod
    def borders(self) -> tuple[Tensor, Tensor]:
        """Return the messages [*M] above the first row and left of the first column."""

    @abstractmethod
    def rule(self) -> Cell:
        """Return the cell as a function: it maps two incoming messages and two letters to two outgoing messages."""

    @abstractmethod
    def numbers(self, messages: Shaped[Tensor, "B m *M"], rows: Counts, columns: Counts) -> Float[Tensor, "B T"]:
        """Return the answers for prefixes with the given numbers of rows and columns.

        An answer is the sum of `per_row` for each row and one number for each column. The number of a column is
        computed from the message that leaves the last row downwards in this column.
        """


class CategoricalCell(GridCell):
    """A cell whose messages are distributions over K classes. At temperature 0, messages are classes.

    Each pair of letters a and b has a distribution over R relations. Each triple of a class from above, a class from
    the left and a relation has two distributions over classes, one downwards and one to the right. The cell mixes them:

        down = sum_{p,q,r} above_p left_q relation_r(a, b) table[p, q, r, 0],  and table[.., 1] to the right.

    All distributions are softmaxes of logits divided by `temperature`. At temperature 0, the largest logit has
    probability 1. The answer adds a number for each class (`per_class`) and a number for each row (`per_row`). The
    fraction `rounding` tells how far these numbers are moved towards the nearest integers. The gradient ignores this
    move. At temperature 0 and rounding 1, the cell looks classes up and adds integers. The sums are exact up to 2^63,
    and answers are these sums, rounded to the number format of the parameters.

    Source: ours. In contrast to the annealed table of `BlockLinearRNN` with columns `"stochastic"`, an entry depends on
        two messages and a relation, not on one state and a symbol.
    """

    def __init__(self, *, num_letters: int, num_messages: int, num_relations: int) -> None:
        super().__init__()
        _check_letters(num_letters)
        check_sizes(num_messages=num_messages, num_relations=num_relations)
        self.relations = nn.Parameter(torch.empty(num_letters, num_letters, num_relations))
        self.table = nn.Parameter(torch.empty(num_messages, num_messages, num_relations, 2, num_messages))
        self.top = nn.Parameter(torch.empty(num_messages))
        self.left = nn.Parameter(torch.empty(num_messages))
        self.per_class = nn.Parameter(torch.empty(num_messages))
        self.per_row = nn.Parameter(torch.empty(()))
        self.temperature: Tensor
        self.rounding: Tensor
        self.register_buffer("temperature", torch.ones(()))
        self.register_buffer("rounding", torch.zeros(()))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw logits from N(0, 1) and `per_class` from N(0, 1/4); `per_row` becomes 0."""
        for logits in (self.relations, self.table, self.top, self.left):
            nn.init.normal_(logits, generator=generator)
        nn.init.normal_(self.per_class, std=0.5, generator=generator)
        nn.init.zeros_(self.per_row)

    @property
    def is_rule(self) -> bool:
        """Return whether messages are classes, and the numbers whose sum is an answer are integers."""
        return not float(self.temperature) and float(self.rounding) == 1

    def classes(self) -> tuple[Int64[Tensor, "K K V V 2"], Int64[Tensor, ""], Int64[Tensor, ""]]:
        """Return the most likely classes of the messages that a cell sends, and of the messages at the borders."""
        relations = self.relations.argmax(-1)
        return self.table.argmax(-1)[:, :, relations], self.top.argmax(-1), self.left.argmax(-1)

    def borders(self) -> tuple[Tensor, Tensor]:
        if self.is_rule:
            return self.classes()[1:]
        return self._distribution(self.top), self._distribution(self.left)

    def rule(self) -> Cell:
        if self.is_rule:
            table = self.classes()[0]

            def look_up(above: Tensor, left: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
                down, right = table[above, left, a, b].unbind(-1)
                return down, right

            return look_up
        relations, table = self._distribution(self.relations), self._distribution(self.table)
        num_messages = len(self.top)
        flat = table.flatten(0, 2).flatten(1)

        def mix(above: Tensor, left: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            both = (above[:, :, None] * left[:, None, :]).flatten(1)
            joint = (both[:, :, None] * relations[a, b][:, None, :]).flatten(1)
            down, right = (joint @ flat).split(num_messages, -1)
            return down, right

        return mix

    def integers(self) -> tuple[Int64[Tensor, " K"], Int64[Tensor, ""]]:
        """Return `per_class` and `per_row`, the numbers whose sum is an answer, rounded to the nearest integers."""
        return self.per_class.detach().round().long(), self.per_row.detach().round().long()

    def numbers(self, messages: Shaped[Tensor, "B m *M"], rows: Counts, columns: Counts) -> Float[Tensor, "B T"]:
        if not self.is_rule:
            sums = _sums(messages @ _rounded(self.per_class, self.rounding), columns)
            return rows * _rounded(self.per_row, self.rounding) + sums
        per_class, per_row = self.integers()
        # Integers are added, because float32 cannot represent every integer above 2^24.
        exact = rows * per_row + _sums(per_class[messages], columns)
        return exact.to(self.per_row.dtype) + 0 * self.per_row  # a gradient of 0 lets training continue

    def _distribution(self, logits: Float[Tensor, "*N K"]) -> Float[Tensor, "*N K"]:
        if not float(self.temperature):
            return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits)
        return F.softmax(logits / self.temperature, -1)


class FreeCell(GridCell):
    """A cell whose messages are vectors of D numbers, computed by a hidden layer.

        down, right = LN(W gelu(U [above, left] + u(a, b)))

    The maps U and W are learned, and so is a vector u(a, b) for each pair of letters. Each of the two messages is
    normalized by itself. The number that a message adds to the answer is a linear function of the message.

    Source: Graves et al. (ICANN 2007) with the messages of Kalchbrenner et al. (ICLR 2016).
    Differs from the source: a hidden layer and norms instead of the gates of an LSTM.
    """

    def __init__(self, *, num_letters: int, d_model: int, hidden: int) -> None:
        super().__init__()
        _check_letters(num_letters)
        check_sizes(d_model=d_model, hidden=hidden)
        self.letters = nn.Parameter(torch.empty(num_letters, num_letters, hidden))
        self.widen = nn.Linear(2 * d_model, hidden)
        self.narrow = nn.Linear(hidden, 2 * d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2))
        self.top = nn.Parameter(torch.empty(d_model))
        self.left = nn.Parameter(torch.empty(d_model))
        self.read = nn.Linear(d_model, 1)
        self.per_row = nn.Parameter(torch.empty(()))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw letters and borders from N(0, 1), and maps of n inputs uniformly within 1 / sqrt(n) of 0."""
        for parameter in (self.letters, self.top, self.left):
            nn.init.normal_(parameter, generator=generator)
        draw_linears(self, generator)
        for norm in self.norms:
            norm.reset_parameters()  # type: ignore[operator]  # ModuleList forgets the type of its modules
        nn.init.zeros_(self.per_row)

    def borders(self) -> tuple[Tensor, Tensor]:
        return self.top, self.left

    def rule(self) -> Cell:
        def step(above: Tensor, left: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            hidden = F.gelu(self.widen(torch.cat([above, left], -1)) + self.letters[a, b])
            down, right = self.narrow(hidden).chunk(2, -1)
            return self.norms[0](down), self.norms[1](right)

        return step

    def numbers(self, messages: Shaped[Tensor, "B m *M"], rows: Counts, columns: Counts) -> Float[Tensor, "B T"]:
        return rows * self.per_row + _sums(self.read(messages)[..., 0], columns)


def _check_letters(num_letters: int) -> None:
    if num_letters != 0:  # a grid may have no letters
        check_sizes(num_letters=num_letters)


def _rounded(values: Tensor, share: Tensor) -> Tensor:
    """Return values moved the given fraction of the way to the nearest integers, with the original values' gradient."""
    return values + share * (values.round() - values).detach()


def _sums(numbers: Shaped[Tensor, "B m"], counts: Int64[Tensor, "B T"]) -> Shaped[Tensor, "B T"]:
    """Return the sums of the first `counts` numbers of each row."""
    return F.pad(numbers.cumsum(1), (1, 0)).gather(1, counts)


class NumberReadout(nn.Module):
    """A read-out from a number y: integer k = 0, ..., Y - 1 has logit -`sharpness` (k - y)^2, so the nearest k wins."""

    def __init__(self, num_classes: int, *, sharpness: float) -> None:
        super().__init__()
        check_sizes(num_classes=num_classes)
        check_sharpness(sharpness)
        self.num_classes = num_classes
        self.sharpness = sharpness

    def forward(self, numbers: Float[Tensor, "*N 1"]) -> Float[Tensor, "*N Y"]:
        classes = torch.arange(self.num_classes, dtype=numbers.dtype, device=numbers.device)
        return -self.sharpness * (classes - numbers).square()
