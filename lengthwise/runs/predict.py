"""Answers of a trained run to strings given as text."""

import torch

from lengthwise.runs.folder import Run


def predict_text(run: Run, text: str) -> tuple[str, float]:
    """The run's answer to `text` and the probability it gives; a symbol outside the alphabet is a ValueError."""
    task = run.spec.task
    inputs = task.encode(text)[None]
    with torch.no_grad():
        probabilities = run.model.last(inputs)[0].softmax(-1)
    best = int(probabilities.argmax())
    return task.classes[best], float(probabilities[best])
