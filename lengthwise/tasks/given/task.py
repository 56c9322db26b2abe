"""Tasks that consist of a user's own labeled strings."""

from abc import abstractmethod
from collections import Counter
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import torch
from pydantic import Field, model_validator

from lengthwise.tasks.base import TASKS, Batch, SymbolTask
from lengthwise.tasks.given.examples import Examples, Row, Supervision, examples_from
from lengthwise.tasks.given.reading import read_examples


class ExamplesTask(SymbolTask):
    """Labeled strings from a user; the answers to other strings are unknown.

    A batch is drawn uniformly from the examples of its length, in training and in measurements. A length curve
    therefore measures a net on its training strings. To measure a net on other strings, hold some strings out and use
    `labeled_curve`.
    """

    @property
    @abstractmethod
    def examples(self) -> Examples:
        """Return the examples from which batches are drawn."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the symbols that occur in the examples, in the order of their names."""
        return self.examples.symbols

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the labels that occur in the examples, in the order of their names."""
        return self.examples.classes

    def is_legal_length(self, length: int) -> bool:
        """Return whether there is an example of this length."""
        return length in _by_length(self.examples)

    def is_balanced_length(self, length: int) -> bool:
        """Return whether every class is the answer to an example of this length."""
        return self.is_legal_length(length) and len(self._answers(length)) == len(self.classes)

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw examples of this length uniformly."""
        inputs, targets = _by_length(self.examples)[length]
        rows = torch.randint(len(inputs), (batch_size,), generator=generator)
        return Batch(inputs[rows], targets[rows])

    def baseline(self, length: int) -> float:
        """Return the share of the most frequent answer among the examples of this length."""
        answers = self._answers(length)
        return max(answers.values()) / answers.total()

    def _answers(self, length: int) -> Counter[int]:
        return Counter(_by_length(self.examples)[length].targets[:, -1].tolist())


@lru_cache(maxsize=16)
def _by_length(examples: Examples) -> dict[int, Batch]:
    lengths = np.unique(examples.lengths).tolist()
    return {length: Batch(*map(torch.from_numpy, examples.of_length(length))) for length in lengths}


@TASKS.register("examples")
class GivenExamples(ExamplesTask):
    """Labeled strings from a file or folder (`read_examples`), from which batches are drawn.

    `split` is the separator of symbols; without it, symbols are characters. `digest` is computed from the examples in
    the file, so tasks with different examples differ. Without a file, the examples are the strings of up to 8 symbols a
    and b, labeled by whether they have an odd number of b.

    Raises:
        ValueError: the file cannot be read as examples, or its examples do not have the given `digest`.

    Example:
        >>> task = GivenExamples()
        >>> len(task.examples), task.classes
        (510, ('even', 'odd'))
    """

    file: Path | None = None
    split: str = ""
    string: str | None = None
    label: str | None = None
    supervision: Supervision = "last"
    digest: str = Field("", pattern="^([0-9a-f]{16})?$", exclude_if=lambda digest: not digest)

    @model_validator(mode="after")
    def _has_the_examples_of_its_digest(self) -> "GivenExamples":
        try:
            digest = "" if self.file is None else self._read_file(self.file).digest
        except ValueError as problem:
            raise ValueError(f"file: {problem}") from None
        self._check_digest(digest)
        self.__dict__["digest"] = digest
        return self

    @property
    def examples(self) -> Examples:
        """Return the examples in the file, or the default examples if no file is given."""
        if self.file is None:
            return _parity()
        examples = self._read_file(self.file)
        self._check_digest(examples.digest)
        return examples

    def _read_file(self, file: Path) -> Examples:
        try:
            # The time of the last change is part of the cache's key, so that a changed file is read again. A folder
            # keeps its time when a file in it is written again, so the times of its files also count.
            changed = max(part.stat().st_mtime_ns for part in (file, *file.glob("*")))
        except OSError:  # the reader below reports what is wrong with the file
            changed = 0
        return _read(file, changed, self.split, self.string, self.label, self.supervision)

    def _check_digest(self, digest: str) -> None:
        if self.digest not in ("", digest):
            raise ValueError(
                f"file: expected the examples with digest {self.digest}, got digest {digest!r} of file "
                f"{self.file}; give the file with the expected examples, or leave out digest"
            )


@lru_cache(maxsize=16)
def _read(
    file: Path, changed: int, split: str, string: str | None, label: str | None, supervision: Supervision
) -> Examples:
    return read_examples(file, separator=split, string=string, label=label, supervision=supervision)


@lru_cache(maxsize=1)
def _parity() -> Examples:
    strings = ["".join(symbols) for length in range(1, 9) for symbols in product("ab", repeat=length)]
    return examples_from((Row(s, [("even", "odd")[s.count("b") % 2]], 0) for s in strings), "last")
