"""Answers of a model to strings given as text."""

from typing import NamedTuple

from lengthwise.conventions import IGNORE
from lengthwise.devices import device_of, moved
from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.tasks.base import OracleTask, SymbolTask, Task


class Prediction(NamedTuple):
    """The model's answer, the probability it gives it, and what the task says of it."""

    answer: str
    probability: float
    verdict: str


def predict_text(model: SequenceModel, task: Task, text: str) -> Prediction:
    """The model's answer to `text`; a symbol outside the task's alphabet is a ValueError."""
    if not isinstance(task, SymbolTask):
        raise ValueError(f"task: {task.name} reads vectors, and no text; call the model with some")
    inputs = task.encode(text)[None]
    with eval_mode(model):
        probabilities = model.last(moved(inputs, device_of(model)))[0].float().softmax(-1).cpu()
    best = int(probabilities.argmax())
    verdict = ""
    if isinstance(task, OracleTask):
        target = int(task.solve(inputs)[0, -1])
        if target == IGNORE:
            verdict = "the task has no answer here"
        else:
            verdict = "right" if target == best else f"wrong, it is {task.classes[target]}"
    return Prediction(task.classes[best], float(probabilities[best]), verdict)
