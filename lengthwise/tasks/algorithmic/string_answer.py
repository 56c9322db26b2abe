"""Problems whose answer is a string, queried symbol by symbol."""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.base import Batch
from lengthwise.tasks.base_rates import CountedTask, Problems

QUERY, DONE = 0, 1
"""The ids of ``?``, which queries the next symbol of the answer, and of ``.``, which queries nothing."""

NUM_CONTROLS = 2
"""The number of ids that precede the ids of letters."""

NUM_SHARES = 64
"""The number of equal parts into which a shallow baseline divides the positions of an answer."""


class StringAnswerTask(CountedTask):
    """A string, then its answer, queried symbol by symbol: ``abb???`` queries three symbols of the answer.

    The target at the k-th ``?`` is the k-th symbol of the answer; nothing else is supervised. A sample queries the
    first k of the M symbols in its answer, with k uniform in 1 ... M. After the queries, ``.`` fills the sample up:
    queries and ``.`` together are as many as the symbols of the longest possible answer. Accuracy counts only the last
    queried symbol, whose position in the answer is uniform. A net that makes no error on many strings therefore gets
    hardly any symbol wrong. If training supervises all prefixes, all M symbols are queried.

    `length` is the number of letters, before the first ``?``.

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), section 4 and appendix A.
    Differs from the source: there the score is the mean over all symbols of all strings, so long answers count more if
        lengths differ. The source's transformers are bidirectional: they see a whole string and its queries before they
        answer.
    """

    @property
    @abstractmethod
    def letters(self) -> tuple[str, ...]:
        """Return the letters of strings, each a single character."""

    @abstractmethod
    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw strings of letters 0, 1, ...; every string has an answer."""

    @abstractmethod
    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the classes of each string's answer, then `IGNORE`; only `IGNORE` for a malformed string.

        The result is as wide as the longest answer to any string of this length.
        """

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return ``?``, ``.`` and the letters."""
        return ("?", ".", *self.letters)

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw strings; for each string, also draw how many symbols of its answer are queried."""
        strings = self.draw_strings(batch_size, length, generator)
        answers = self.answer(strings)
        shares = torch.rand(batch_size, generator=generator, dtype=torch.float64)
        num_queried = 1 + (shares * (answers != IGNORE).sum(1)).to(torch.int64)
        return _queried(strings, answers, torch.arange(answers.shape[1]) < num_queried[:, None])

    def sample_all_answers(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw strings and query all symbols of their answers."""
        strings = self.draw_strings(batch_size, length, generator)
        answers = self.answer(strings)
        return _queried(strings, answers, answers != IGNORE)

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the answer's symbols at the ``?`` that directly follow a row's letters.

        Rows with the same number of letters are answered together.
        """
        targets = torch.full_like(inputs, IGNORE)
        num_letters = _leading(inputs >= NUM_CONTROLS)
        for length in num_letters.unique().tolist():
            if not 0 < length < inputs.shape[1]:
                continue
            rows = (num_letters == length).nonzero()[:, 0]
            answers = self.answer(inputs[rows, :length] - NUM_CONTROLS)[:, : inputs.shape[1] - length]
            num_queried = _leading(inputs[rows, length:] == QUERY)
            is_queried = torch.arange(answers.shape[1]) < num_queried[:, None]
            targets[rows, length : length + answers.shape[1]] = torch.where(is_queried, answers, IGNORE)
        return targets

    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw samples, and return them with the answer to each sample's last query."""
        batch = self.sample(count, length, generator)
        return batch.inputs, batch.targets.gather(1, batch.last_supervised[:, None])[:, 0]

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return the position of the queried symbol in the answer, as a number and as a share of the longest answer."""
        queries = (inputs == QUERY).sum(1)
        longest = queries + (inputs == DONE).sum(1)
        return {"position in the answer": queries, "share of the answer": queries * NUM_SHARES // (longest + 1)}


class UniformStringTask(StringAnswerTask):
    """A task on strings of independent, uniform letters, in whose answers all letters are equally frequent."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the answers, which are the letters of strings."""
        return self.letters

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw strings of independent, uniform letters."""
        return torch.randint(len(self.letters), (count, length), generator=generator)

    def baseline(self, length: int) -> float:
        """Return 1 / (number of letters): the last query may ask for any symbol, and letters are uniform."""
        return 1 / len(self.letters)


def _queried(strings: Int64[Tensor, "N n"], answers: Int64[Tensor, "N M"], is_queried: Bool[Tensor, "N M"]) -> Batch:
    inputs = torch.cat([strings + NUM_CONTROLS, torch.where(is_queried, QUERY, DONE)], 1)
    targets = torch.cat([torch.full_like(strings, IGNORE), torch.where(is_queried, answers, IGNORE)], 1)
    return Batch(inputs, targets)


def _leading(is_so: Bool[Tensor, "B T"]) -> Int64[Tensor, " B"]:
    """Return the number of positions before the first False in each row."""
    return is_so.to(torch.int64).cumprod(1).sum(1)
