"""Accuracy on labeled strings, such as the test set of a competition."""

import numpy as np
import torch

from lengthwise.automata.labeled import common_numbers
from lengthwise.devices import one_thread
from lengthwise.evaluation.length_curve import LengthCurve, final_answers, graded_point
from lengthwise.models.base import SequenceModel, check_is_model, eval_mode
from lengthwise.tasks.base import SymbolTask, check_is_task
from lengthwise.tasks.given.examples import Examples
from lengthwise.validation import check_kind


@one_thread()
def labeled_curve(model: SequenceModel, task: SymbolTask, examples: Examples) -> LengthCurve:
    """Return the accuracy on labeled strings at each of their lengths, as a `LengthCurve` of protocol ``labeled``.

    Symbols and answers are matched by name. Names for accept and names for reject also match by meaning, for example
    "yes" and "in" for accept. The model is graded by the labels, even if they differ from the task's own answers. The
    baseline is the fraction of strings that have the most frequent label of their length.

    Raises:
        ValueError: a symbol is outside the task's alphabet, or a label is not one of the task's answers.

    Example:
        >>> from lengthwise import construct, make_task
        >>> from lengthwise.tasks.given.reading import read_examples
        >>> net = construct("rnn", make_task("regex", pattern="(a|b)*abb"))
        >>> examples = read_examples([("abb", "yes"), ("ab", "no"), ("bb", "yes")])
        >>> [(point.length, point.num_correct) for point in labeled_curve(net.model, net.task, examples).points]
        [(2, 1), (3, 1)]
    """
    check_is_model(model)
    check_is_task(task)
    check_kind("examples", examples, Examples, "Examples, as read_examples makes them")
    symbols = torch.tensor(_numbers(task, examples))
    try:
        ours, theirs = common_numbers(task.classes, examples.classes)
    except ValueError:  # no label is an answer; the message below names the first row
        ours, theirs = [], list(range(len(examples.classes)))
    if unknown := [index for index, number in enumerate(theirs) if number not in ours]:
        at = int(np.flatnonzero(np.isin(examples.targets, unknown))[0])
        raise ValueError(
            f"examples: row {examples.row_of(at):,}: expected labels that are answers of {task.name} "
            f"({', '.join(task.classes)}), got {examples.classes[examples.targets[at]]!r}; rename this label"
        )
    classes = torch.tensor([ours.index(number) for number in theirs])
    points = []
    with eval_mode(model):
        for length in sorted(set(examples.lengths.tolist())):
            ids, targets = (torch.from_numpy(each) for each in examples.of_length(length))
            answers, labels = final_answers(model, symbols[ids]), classes[targets[:, -1]]
            counts = torch.bincount(labels, minlength=len(task.classes))
            baseline, balanced = int(counts.max()) / len(labels), bool((counts > 0).all())
            point = graded_point(task, length, answers, labels, baseline=baseline, balanced=balanced, family="labeled")
            points.append(point)
    return LengthCurve(protocol="labeled", points=tuple(points))


def _numbers(task: SymbolTask, examples: Examples) -> list[int]:
    """Return the ids that the task gives to the symbols in examples."""
    if unknown := [index for index, symbol in enumerate(examples.symbols) if symbol not in task.symbols]:
        at = int(np.flatnonzero(np.isin(examples.ids, unknown))[0])
        raise ValueError(
            f"examples: row {examples.row_of(at):,}: expected strings over the symbols of {task.name}, got "
            f"the symbol {examples.symbols[examples.ids[at]]!r}; leave the row out, or, if symbols are words, give the "
            "separator between them"
        )
    return [task.symbols.index(symbol) for symbol in examples.symbols]
