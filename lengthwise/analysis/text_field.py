"""The tokens on which the prediction of a text's next token depends, by gradients."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.analysis.embedded import looking_up
from lengthwise.analysis.receptive_field import Answer, cumulative_field, gradient_norms
from lengthwise.devices import one_thread
from lengthwise.evaluation.perplexity import chunk_ends, gather_chunks
from lengthwise.layers.read_in import SymbolReadIn
from lengthwise.models.base import SequenceModel, check_is_model, eval_mode
from lengthwise.models.causal_transformer import CausalTransformer
from lengthwise.models.regular_gpt_lm import RegularGPTLM
from lengthwise.text.language import LanguageTask, check_is_text
from lengthwise.validation import check_kind, check_sizes


class TextField(NamedTuple):
    """For each position in chunks of `length` tokens, the fraction of the gradient at this and all later positions.

    The gradient belongs to the prediction of the chunk's last token (`cumulative_field`).
    """

    length: int
    cumulative: Float[Tensor, "B T"]


@one_thread()
def text_fields(
    model: SequenceModel, task: LanguageTask, lengths: Sequence[int], *, num_chunks: int = 64
) -> list[TextField]:
    """Return the `cumulative_field` of chunks of each length; all chunks end at the same tokens of the test split.

    In a chunk of T tokens, the first T - 1 are read and the last one is predicted. `gradient_norms` gives the gradient
    of the log-odds of the last token.

    Raises:
        ValueError: the model is neither a RegularGPTLM nor a transformer that reads symbols. The task is not a
            language task, or the text is too short for a length.

    Source: Chi et al. (2023), section 7.4 and Figure 4b.
    Differs from the source: all lengths and models predict the same tokens; the log-odds of a token replace its loss.
    """
    check_is_model(model)
    check_is_text(task, "for such a task, `lengthwise analyze` shows the receptive field")
    tokens = task.tokens("test")
    check_kind("lengths", lengths, Collection, "a list of lengths")
    if not lengths:
        raise ValueError("lengths: expected at least one length, got none; give a list such as [128]")
    for length in lengths:
        check_sizes(lengths=length)
    ends = chunk_ends(len(tokens), max(lengths), num_chunks, seed=0)
    answer, table = embedded_answer(model), _embedding(model).weight.detach()
    fields = []
    with eval_mode(model), torch.enable_grad():
        for length in sorted(set(lengths)):
            chunks = gather_chunks(tokens, ends, length)
            norms = gradient_norms(answer, table[chunks[:, :-1]], chunks[:, -1])
            fields.append(TextField(length, cumulative_field(norms)))
    return fields


def embedded_answer(model: SequenceModel) -> Answer:
    """Return a function from the embeddings of a string's symbols to the model's logits after the last symbol.

    The embeddings are from the model's table of embeddings, and do not contain positions.
    """
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
        f"model: expected a regular-gpt-lm or a transformer that reads symbols, got {model.name}; for a regular-gpt, "
        "`lengthwise analyze` shows the receptive field"
    )
