"""The seven regular languages of FLaRe."""

from typing import ClassVar

from lengthwise.automata import DFA
from lengthwise.automata.flare import Problem, flare
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.recognition import RecognitionTask


@TASKS.register("flare")
class FlareLanguage(RecognitionTask):
    """Recognition of a regular language of FLaRe, over FLaRe's symbols.

    `problem` is ``even-pairs``, ``repeat-01``, ``parity``, ``first``, ``dyck-2-3``, ``cycle-navigation`` or
    ``modular-arithmetic-simple`` (defined in `lengthwise.automata.flare`). The last two languages contain a string if
    it ends in the answer to the symbols before this answer.

    Raises:
        ValueError: the problem is unknown.

    Example:
        >>> task = FlareLanguage(problem="dyck-2-3")
        >>> task.solve(task.encode("(0 (1 )1 )0 )0")[None]).tolist()
        [[0, 0, 0, 1, 0]]

    Source: Butoi et al., "Training Neural Networks as Recognizers of Formal Languages" (arXiv 2411.07107).
    Differs from the source: strings are drawn as for every recognition task, at a given length. FLaRe's own splits,
        with its edits, are drawn by `lengthwise.tasks.given.flare_sampler`. Every prefix is supervised.
    """

    named_by: ClassVar[tuple[str, ...]] = ("problem",)
    problem: Problem = "dyck-2-3"

    @property
    def language(self) -> DFA:
        """Return the smallest automaton of the language."""
        return flare(self.problem)
