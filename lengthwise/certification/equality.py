"""The result of comparing two nets on all strings. This module never imports torch."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from lengthwise.certification.parts import Count, Level, Part, PositiveCount, Shortest, Tested, reaches
from lengthwise.display import counted, in_powers

NAMES = ("the first net", "the second net")
"""The default names of the two compared nets in sentences about them."""


class Difference(Part):
    """A string to which two nets give different answers when each reads it alone.

    If a logit of a net is not finite, the net's answer and margin are None. A margin is the distance between the
    largest logit and the next largest logit. `shortest` is "of all strings" if the nets agree on all shorter strings,
    and "as found" if they may differ on a shorter string.
    """

    string: tuple[str, ...]
    answers: tuple[str | None, str | None]
    margins: tuple[float | None, float | None]
    shortest: Shortest


class Equality(Part):
    """The result of `equal`: whether two nets give the same answers, and the evidence.

    `level` is the level of the claim that the nets are equal, as in certificates. It is ``refuted`` if they differ on a
    string, and ``tested`` if no difference is known and nothing is proved. At ``extracted`` and above, both nets have a
    certificate for one machine of `num_states` states, and `level` is the lower of both certificates' levels
    (`levels`). Identical nets are ``proved`` without a machine. `up_to` is the largest proved length at level
    ``bounded``.

    `decided_by` names the search or the proofs that decided the level, and `reason` states why the level is not higher.
    Unless the nets differ, all strings of up to `enumerated_length` symbols and the strings in `tested` were compared.
    `max_length` is the largest length that both nets read; None means any length.
    """

    level: Level
    up_to: Count | None = None
    counterexample: Difference | None = None
    num_states: PositiveCount | None = None
    levels: tuple[Level, Level] | None = None
    decided_by: str = ""
    reason: str = ""
    enumerated_length: Count
    max_length: Count | None = None
    tested: tuple[Tested, ...] = ()
    seconds: Annotated[float, Field(ge=0)] = 0.0

    @property
    def equal(self) -> bool | None:
        """Return True if equality is proved (for strings up to `up_to`), False if the nets differ, None if undecided.

        Level ``extracted`` is not a proof about the nets, so the result is then None.
        """
        if self.counterexample is not None:
            return False
        return True if self.reaches("bounded") else None

    def reaches(self, level: Level) -> bool:
        """Return whether the claim that the nets are equal has this level or a higher one."""
        return reaches(self.level, level)

    def __str__(self) -> str:
        """Return the result in a sentence."""
        name, sentence = next(self.lines())
        return f"{name}: {sentence}"

    def lines(self, names: tuple[str, str] = NAMES) -> Iterator[tuple[str, str]]:
        """Yield the comparison of two nets as pairs of a name and a sentence; the first pair states the result."""
        yield self._result(names)
        difference = self.counterexample
        is_shortest = difference is not None and difference.shortest == "of all strings"
        if difference is not None:
            shorter = "no shorter string differs" if is_shortest else "shorter strings may differ"
            yield "length", f"{counted(len(difference.string), 'symbol')}; {shorter}"
            yield (
                "logit margins",
                "; ".join("not finite" if one is None else f"{one:.3g}" for one in difference.margins),
            )
        if self.decided_by:
            yield "decided by", self.decided_by
        if self.levels is not None:
            yield "levels", ", ".join(f"{name} {level}" for name, level in zip(names, self.levels, strict=True))
        if self.reason:
            yield "not higher, because", self.reason
        # The search ends at a shortest difference, so only shorter strings were compared.
        short = f"all strings of up to {self.enumerated_length:,} symbols, structured strings"
        short = "all shorter strings" if is_shortest else short
        samples = [f"{counted(one.num_strings, 'string')} of {one.length:,} symbols" for one in self.tested]
        yield "compared", ", ".join([short, *samples])
        yield "cost", f"{self.seconds:.1f} CPU s"

    def _result(self, names: tuple[str, str]) -> tuple[str, str]:
        if (difference := self.counterexample) is not None:
            answers = [
                f"{name} {'has a logit that is not finite' if answer is None else f'answers {answer}'}"
                for name, answer in zip(names, difference.answers, strict=True)
            ]
            return "different", f"on {in_powers(difference.string)}, {', '.join(answers)}"
        machine = counted(self.num_states or 0, "state")
        if self.reaches("bounded"):
            strings = "every string" + ("" if self.up_to is None else f" of up to {self.up_to:,} symbols")
            how = "they are identical" if self.num_states is None else machine
            return (
                "equal",
                f"both nets, rounding errors included, are proved to give the same answer to {strings} ({how})",
            )
        if self.level == "extracted":
            return (
                "not decided",
                f"one machine of {machine} describes both nets, and both followed it on all strings tried; they may "
                "still leave it on another string",
            )
        return (
            "not decided",
            f"both nets give the same answer to every string of up to {counted(self.enumerated_length, 'symbol')}; "
            "for longer strings, no different answers are known, and nothing is proved",
        )
