"""Answers of a model to strings given as text, and texts that a language model writes."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.devices import device_of, moved, one_thread
from lengthwise.models.base import RecurrentModel, SequenceModel, eval_mode
from lengthwise.ops.answers import answers_of
from lengthwise.tasks.algorithmic.string_answer import QUERY, StringAnswerTask
from lengthwise.tasks.base import OracleTask, SymbolTask, Task
from lengthwise.text.language import LanguageTask


class Prediction(NamedTuple):
    """The model's answer, its probability (a product for several symbols), and the task's verdict on the answer."""

    answer: str
    probability: float
    verdict: str


def predict_text(model: SequenceModel, task: Task, text: str, *, is_learned: bool = False) -> Prediction:
    """Return the model's answer to `text`; a symbol outside the task's alphabet raises a ValueError.

    `is_learned` states that the task is a machine that was learned from examples. The verdict then compares the answer
    with that machine's answer, because the right answer is not known.

    A language model's answer is the likeliest next token. If the text of a `StringAnswerTask` contains queries, the
    answer consists of the answers to all queries. If a logit is not finite, the answer is "none: a logit is not finite"
    with probability NaN. This answer counts as wrong if the right answer is known.
    """
    if not isinstance(task, SymbolTask):
        raise ValueError(
            f"task: expected a task that reads text, got {task.name}, which reads vectors; call the model with vectors"
        )
    inputs = (task.tokenize(text) if isinstance(task, LanguageTask) else task.encode(text))[None]
    targets = task.solve(inputs)[0] if isinstance(task, OracleTask) else None
    last = positions = torch.tensor([inputs.shape[1] - 1])
    if isinstance(task, StringAnswerTask) and (inputs == QUERY).any():
        positions = (inputs[0] == QUERY).nonzero()[:, 0]
    with eval_mode(model):
        on_device = moved(inputs, device_of(model))
        logits = model.last(on_device) if torch.equal(positions, last) else model(on_device)[0].cpu()[positions]
    answers = answers_of(logits.float().cpu())
    # If a logit is infinite or NaN, no class is the answer, although argmax would return a class.
    if (answers < 0).any():
        return Prediction("none: a logit is not finite", math.nan, "" if targets is None else "wrong")
    likely = logits.float().cpu().softmax(-1).gather(1, answers[:, None])
    verdict = "" if targets is None else _verdict(task, answers, targets[positions], is_learned)
    # The product is in float64, because a product of some hundred probabilities leaves the range of float32.
    return Prediction(_text(task, answers), float(likely.double().prod()), verdict)


def _verdict(task: SymbolTask, answers: Int64[Tensor, " N"], targets: Int64[Tensor, " N"], is_learned: bool) -> str:
    # Positions without a target have no right answer, so they are left out of the verdict.
    known = targets != IGNORE
    if not known.any():
        return "the task has no answer here"
    right, wrong = ("its machine agrees", "its machine answers") if is_learned else ("right", "wrong, it is")
    verdict = right if torch.equal(answers[known], targets[known]) else f"{wrong} {_text(task, targets)}"
    return verdict if known.all() else f"{verdict}; the task has no answer to {int((~known).sum())} of these queries"


def _text(task: SymbolTask, answers: Int64[Tensor, " N"]) -> str:
    return " ".join("-" if answer == IGNORE else task.classes[answer] for answer in answers.tolist())


MAX_SAMPLED = 100_000
"""The largest number of tokens of a generated text; a larger request is taken for a typing error."""


@one_thread()
def sample_text(
    model: SequenceModel,
    task: Task,
    prompt: str = "",
    *,
    num_tokens: int,
    temperature: float = 1.0,
    generator: torch.Generator,
) -> str:
    """Return a text that a language model writes after a prompt, without the prompt; at most `num_tokens` tokens.

    Tokens are drawn one by one from ``softmax(logits / temperature)``; with temperature 0, the likeliest token is
    taken. If the model draws the token that ends a document, the text ends early. With an empty prompt, the model first
    reads the token that ends a document. A recurrent model keeps its state, while other models read the whole text
    again for each token.

    Raises:
        ValueError: the task is not a language task, a number is out of bounds, or a logit is not finite.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> task = make_task("text")
        >>> draws = torch.Generator().manual_seed(0)
        >>> len(sample_text(make_model("gru", task), task, "one", num_tokens=5, generator=draws).encode()) > 0
        True
    """
    if not isinstance(task, LanguageTask):
        raise ValueError(
            f"task: expected a language task, got {task.name}, which has answers and no text to continue; `lengthwise "
            "predict RUN STRING` prints an answer"
        )
    if not 1 <= num_tokens <= MAX_SAMPLED:
        raise ValueError(f"num_tokens: expected 1 to {MAX_SAMPLED:,}, got {num_tokens:,}; give a number in this range")
    if not 0 <= temperature < math.inf:
        raise ValueError(
            f"temperature: expected a number of at least 0, got {temperature:g}; give 0 for the likeliest token, or "
            "1 for the model's probabilities"
        )
    read = task.tokenize(prompt)
    drawn: list[int] = []
    with eval_mode(model):
        answers = _Answers(model, read)
        for _ in range(num_tokens):
            if drawn:
                answers.read(drawn[-1])
            token = _draw(answers.logits, temperature, generator)
            if token == task.end:
                break
            drawn.append(token)
    return task.detokenize(torch.tensor(drawn, dtype=torch.int64))


class _Answers:
    """The logits of the next token after all tokens that the model has read."""

    def __init__(self, model: SequenceModel, tokens: Int64[Tensor, " T"]) -> None:
        self._model, self._device = model, device_of(model)
        tokens = moved(tokens, self._device)
        self._tokens = tokens[None]
        if isinstance(model, RecurrentModel):
            self._state = model.initial_state(1)
            for token in tokens:
                self.logits, self._state = model.step(token[None], self._state)
        else:
            self.logits = model.last(self._tokens)

    def read(self, token: int) -> None:
        """Let the model read another token, and update `logits`."""
        next_token = torch.tensor([token], device=self._device)
        if isinstance(self._model, RecurrentModel):
            self.logits, self._state = self._model.step(next_token, self._state)
        else:
            self._tokens = torch.cat([self._tokens, next_token[None]], 1)
            self.logits = self._model.last(self._tokens)


def _draw(logits: Float[Tensor, "1 Y"], temperature: float, generator: torch.Generator) -> int:
    exact = logits[0].double().cpu()
    if not exact.isfinite().all():
        raise ValueError(
            "text: expected finite logits, got NaN or infinity, because the model's states overflow; sample fewer "
            "tokens"
        )
    if temperature == 0:
        return int(exact.argmax())
    below = exact - exact.max()  # otherwise a small temperature could make the quotients overflow
    return int((below / temperature).softmax(0).multinomial(1, generator=generator))
