"""How far back the next token of a text depends on the tokens before it, by gradients."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.analysis.embedded import looking_up
from lengthwise.analysis.receptive_field import Answer, cumulative_field, gradient_norms
from lengthwise.evaluation.perplexity import chunk_ends, chunks_up_to
from lengthwise.layers.read_in import SymbolReadIn
from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.models.causal_transformer import CausalTransformer
from lengthwise.models.regular_gpt_lm import RegularGPTLM
from lengthwise.text.language import LanguageTask
from lengthwise.threads import one_thread


class TextField(NamedTuple):
    """The shares of the gradient from each position on, of chunks of `length` tokens, whose last one is predicted."""

    length: int
    cumulative: Float[Tensor, "B T"]


@one_thread()
def text_fields(
    model: SequenceModel, task: LanguageTask, lengths: Sequence[int], *, num_chunks: int = 64, seed: int = 0
) -> list[TextField]:
    """Cumulative fields of chunks of each length that end at the same tokens of the test split.

    A chunk of T tokens has T - 1 that are read and one that is predicted; the gradient is that of the log-odds of the
    latter (`gradient_norms`).

    Raises:
        ValueError: a model that does not look its symbols up in one table, or a length that the text does not have.

    Source: Chi et al. (2023), section 7.4 and Figure 4b.
    Differs from the source: all lengths and models predict the same tokens; the log-odds of a token stand for its loss.
    """
    tokens = task.tokens("test")
    ends = chunk_ends(len(tokens), max(lengths), num_chunks, seed=seed)
    answer, table = embedded_answer(model), _embedding(model).weight.detach()
    fields = []
    with eval_mode(model), torch.enable_grad():
        for length in sorted(set(lengths)):
            chunks = chunks_up_to(tokens, ends, length)
            norms = gradient_norms(answer, table[chunks[:, :-1]], chunks[:, -1])
            fields.append(TextField(length, cumulative_field(norms)))
    return fields


def embedded_answer(model: SequenceModel) -> Answer:
    """The model's answer as a function of what it looks up for each symbol: before positions, norms and layers."""
    embedding = _embedding(model)

    def answer(embedded: Float[Tensor, "B T D"]) -> Float[Tensor, "B Y"]:
        any_symbols = torch.zeros(embedded.shape[:2], dtype=torch.long)
        with looking_up(embedding, embedded):
            return model.last(any_symbols)

    return answer


def _embedding(model: SequenceModel) -> nn.Embedding:
    if isinstance(model, RegularGPTLM):
        return model.embedding
    if isinstance(model, CausalTransformer) and isinstance(model.read_in, SymbolReadIn):
        return model.read_in.embedding
    raise ValueError(
        f"model: expected a regular-gpt-lm or a transformer that reads symbols, got {model.name}; of a regular-gpt, "
        "`lengthwise analyze` shows the receptive field"
    )
