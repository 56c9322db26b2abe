"""The state of an attack: its counts, the shortest wrong string, and the strings that are closest to being wrong."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.attacks.grading import GradedPrefixes, Weakest, grade_logits, margins_of, weakest
from lengthwise.certification.counterexample import String, grade, max_enumerated_length, shrunk_error
from lengthwise.conventions import IGNORE
from lengthwise.devices import denormals_kept
from lengthwise.evaluation.continuations import continued_logits, num_symbols_read
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask

MAX_SYMBOLS_PER_BATCH = 20_000
"""The largest number of symbols between two checks of the budget, unless one string is longer.

A model reads this number of symbols in about 0.3 s.
"""

MAX_CONFIRMED = 16
"""The largest number of wrongly answered strings of one batch that the model reads again one by one.

Strings with tails (`Batch`) are counted apart from strings without tails.
"""

MAX_PAIRS_OF_SHRINKING = 1 << 24
"""The largest number of pairs of positions that a model may process to shorten a string.

A small transformer needs about a second for them.
"""

NUM_WEAKEST = 64
"""The number of strings with the smallest margins that are kept for hill climbing."""

NUM_WEAKEST_PER_BATCH = 4
"""The number of strings of one batch that may be kept, so that one family does not fill the list.

Strings with tails (`Batch`) are counted apart from strings without tails.
"""


class Batch(NamedTuple):
    """Strings of one length, and words (tails) that may follow their prefixes.

    All prefixes are graded. If there are tails, each prefix followed by each tail is also graded. Shorter strings are
    padded to this length with arbitrary symbols. In that case, `lengths` contains the lengths of all strings before
    padding, and the batch has no tails.
    """

    strings: Int64[Tensor, "B T"]
    tails: Int64[Tensor, "W S"] | None = None
    lengths: Int64[Tensor, " B"] | None = None


class WrongString(NamedTuple):
    """A string that the model answers wrongly outside a batch, with the name of its family and its logit margin."""

    string: String
    family: str
    margin: float


class Budget(NamedTuple):
    """The largest cost of an attack, in CPU seconds or in symbols; None means no limit.

    The result of an attack with a limit in symbols alone does not depend on the speed of the computer.
    """

    seconds: float | None = None
    symbols: int | None = None


class Board:
    """The state of an attack on a model.

    `shortest` is the shortest wrongly answered string so far; all strings that are tried later must be shorter.
    `first_form` is the same string before it was shortened. The functions that generate strings use `machine`,
    `max_length`, `enumerated_length` and `seed`. Hill climbing also uses `weakest` and `latest`. `weakest` contains
    correctly answered strings with the smallest logit margins. `latest` contains the smallest logit margin among the
    prefixes of each string of the previous batch.
    """

    def __init__(
        self, model: SequenceModel, task: MachineTask, machine: Transducer, budget: Budget, max_length: int, seed: int
    ) -> None:
        self.model = model
        self.task = task
        self.machine = machine
        self.budget = budget
        self.max_length = min(max_length, model.max_length or max_length)
        self.enumerated_length = min(max_enumerated_length(model, task), self.max_length)
        self.seed = seed
        self.family = ""
        self.started = time.process_time()
        self.num_answers = 0
        self.num_symbols = 0
        self.shortest: WrongString | None = None
        self.first_form: WrongString | None = None
        self.weakest: dict[tuple[int, ...], float] = {}
        self.latest = Weakest(torch.empty(0), torch.empty(0, dtype=torch.int64))

    @property
    def seconds(self) -> float:
        """Return the CPU seconds since the attack began."""
        return time.process_time() - self.started

    def fraction_used(self) -> float:
        """Return the fraction of the budget that is used, which may be above 1."""
        limits = ((self.seconds, self.budget.seconds), (self.num_symbols, self.budget.symbols))
        return max((used / limit if limit else 1.0 for used, limit in limits if limit is not None), default=0.0)

    def length_before(self, tail_length: int) -> int:
        """Return the length to which strings are cut: `max_length` plus the length of tails (`Batch`).

        Tails can then follow every prefix of up to `max_length` symbols. If the model reads only shorter strings, the
        result is its largest length, and the longest prefixes get no tails.
        """
        longest = self.max_length + tail_length
        return min(longest, self.model.max_length or longest)

    def batches(self, strings: Int64[Tensor, "B T"], tails: Int64[Tensor, "W S"] | None = None) -> Iterator[Batch]:
        """Yield the strings in batches; each batch also contains all tails (`Batch`).

        A batch has one string, or at most `MAX_SYMBOLS_PER_BATCH` symbols. The count includes the symbols of tails.
        """
        size = max(1, MAX_SYMBOLS_PER_BATCH // self._num_symbols_read(Batch(strings[:1], tails)))
        for part in strings.split(size):
            yield Batch(part, tails)

    @torch.no_grad()
    def grade(self, batch: Batch) -> None:
        """Grade the model's answers to all prefixes of a batch's strings, alone and followed by each tail.

        The field `shortest` keeps the shortest wrongly answered string.
        """
        strings, tails, filled = batch
        tail_length = 0 if tails is None else tails.shape[1]
        # If a wrong string was confirmed after the batch was made, the ends of longer strings no longer matter.
        strings = strings[:, : self.length_before(tail_length)]
        states = torch.from_numpy(self.machine.semiautomaton.run(strings.numpy(), self.machine.start))
        lengths = torch.arange(1, strings.shape[1] + 1).expand_as(strings)
        if filled is not None:
            states = torch.where(lengths <= filled[:, None], states, -1)
        prefixes = grade_logits(self.model(strings), self._expected(states, lengths), lengths)
        self.num_symbols += self._num_symbols_read(Batch(strings, tails))
        self.latest = self._keep(prefixes, lambda row, index: strings[row, : index + 1])
        if tails is not None and tail_length < strings.shape[1]:
            self._grade_tails(strings, tails, states)

    def _grade_tails(
        self, strings: Int64[Tensor, "B T"], tails: Int64[Tensor, "W S"], states: Int64[Tensor, "B T"]
    ) -> None:
        num_tails, tail_length = tails.shape
        num_prefixes = strings.shape[1] - tail_length
        table = torch.from_numpy(self.machine.semiautomaton.table.copy())
        after, by_symbol = states[:, :num_prefixes, None].expand(-1, -1, num_tails), []
        for symbols in tails.unbind(1):
            after = table[after, symbols]
            by_symbol.append(after)
        lengths = torch.arange(1, num_prefixes + 1)[:, None, None] + torch.arange(1, tail_length + 1)
        lengths = lengths.expand(len(strings), -1, num_tails, -1)
        expected = self._expected(torch.stack(by_symbol, -1), lengths)
        logits = continued_logits(self.model, strings, tails)

        def string_at(row: int, index: int) -> String:
            which, symbol = divmod(index, tail_length)
            prefix, tail = divmod(which, num_tails)
            return torch.cat([strings[row, : prefix + 1], tails[tail, : symbol + 1]])

        self._keep(grade_logits(logits.flatten(1, 3), expected.flatten(1), lengths.flatten(1)), string_at)

    def _expected(self, states: Int64[Tensor, "*N"], lengths: Int64[Tensor, "*N"]) -> Int64[Tensor, "*N"]:
        """Return the machine's answer in each state; `IGNORE` for state -1 and for strings above `max_length`."""
        outputs = torch.from_numpy(self.machine.outputs.copy())
        return outputs[states].masked_fill((states < 0) | (lengths > self.max_length), IGNORE)

    def _num_symbols_read(self, batch: Batch) -> int:
        size, length = batch.strings.shape
        if batch.tails is None or batch.tails.shape[1] >= length:
            return size * length
        num_tails, tail_length = batch.tails.shape
        return size * length + num_symbols_read(self.model, (size, length), (num_tails, tail_length))

    def _keep(self, answers: GradedPrefixes, string_at: Callable[[int, int], String]) -> Weakest:
        """Keep the shortest string that is also wrong outside a batch, and the strings with the smallest margins.

        Return the smallest margin of each row.
        """
        self.num_answers += answers.num_answers
        rows, indices = torch.nonzero(answers.wrong, as_tuple=True)
        order = answers.lengths[rows, indices].argsort(stable=True)
        # The model reads the shortest wrong strings again, one by one, and some longer wrong strings at even intervals.
        # Rounding may make the answers to the shortest strings wrong only in a batch.
        order = order[_shortest_and_spread(len(order))]
        for row, index in torch.stack([rows, indices], 1)[order].tolist():
            string = string_at(row, index)
            if (margin := self._margin_alone(string)) is not None:
                self._replace(WrongString(string, self.family, margin))
                break
        # All short strings are tried anyway, so hill climbing uses only longer strings.
        smallest = weakest(answers, self.enumerated_length + 1)
        # Wrong strings were handled above. Hill climbing begins with strings whose right answers have small margins.
        for row in smallest.margins.argsort()[:NUM_WEAKEST_PER_BATCH].tolist():
            margin = float(smallest.margins[row])
            if 0 < margin < torch.inf:
                self.weakest[tuple(string_at(row, int(smallest.indices[row])).tolist())] = margin
        kept = [item for item in self.weakest.items() if len(item[0]) <= self.max_length]
        self.weakest = dict(sorted(kept, key=lambda item: item[1])[:NUM_WEAKEST])
        return smallest

    def _margin_alone(self, string: String) -> float | None:
        """Return the logit margin of a string that the model reads alone; None if the answer is right."""
        with denormals_kept():
            if not bool(grade(self.model, self.task, string[None]).wrong):
                return None
            logits = self.model.last(string[None])
        return float(margins_of(logits, self.task.solve(string[None])[:, -1]))

    def _replace(self, wrong: WrongString) -> None:
        shrunk = shrunk_error(self.model, self.task, wrong.string, max_pairs=MAX_PAIRS_OF_SHRINKING)
        margin = self._margin_alone(shrunk)
        # Rounding may differ inside and outside a batch. If the model answers the shortened string correctly outside a
        # batch, the longer string is kept.
        self.shortest = wrong if margin is None else WrongString(shrunk, wrong.family, margin)
        self.first_form = wrong
        self.max_length = len(self.shortest.string) - 1


def _shortest_and_spread(count: int) -> list[int]:
    """Return up to `MAX_CONFIRMED` increasing indices below `count`: the first indices, and evenly spaced indices."""
    half = MAX_CONFIRMED // 2
    return sorted({*range(min(half, count)), *range(0, count, -(-count // half) or 1)})
