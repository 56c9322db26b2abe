"""Lossless tokenizers: single bytes, or byte-level byte-pair encoding (BPE) learned from a text."""

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from lengthwise.text.language import Tokens
from lengthwise.validation import check_kind, texts_of

NUM_BYTES = 256

END = "\N{SYMBOL FOR END OF TRANSMISSION}"
"""The name of the token that ends a document. No other token has this name, because no byte's name contains this
character."""

MIN_VOCAB, MAX_VOCAB = NUM_BYTES + 1, 1 << 20
"""The sizes of the smallest vocabulary (all bytes and the end token) and of the largest vocabulary. A larger size is
taken for a mistake."""

MAX_CHARACTERS_PER_PIECE = 1 << 16
"""The largest piece of text, in characters, that is encoded at a time. This bound limits the memory of encoding."""


def _byte_names() -> tuple[str, ...]:
    """Return a printable character for each byte, as in GPT-2.

    A byte's character has the byte's own code if that character is printable, and otherwise a code from U+0100 on.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(NUM_BYTES) if byte not in printable]
    return tuple(chr(byte if byte in printable else NUM_BYTES + others.index(byte)) for byte in range(NUM_BYTES))


BYTE_NAMES = _byte_names()
"""The name of each byte. The name of any other token consists of the names of its bytes, one after another.

Source: Radford et al., "Language models are unsupervised multitask learners" (2019), and its code.
"""


class Tokenizer(NamedTuple):
    """A byte-level tokenizer: the names of its tokens by id, and its merges in order (none if tokens are bytes).

    The token that ends a document is not in `names`; it has the next id.

    Example:
        >>> plain = Tokenizer()
        >>> plain.encode(["Hi"]).tolist(), plain.decode([72, 105]), plain.end
        ([72, 105], 'Hi', 256)
    """

    names: tuple[str, ...] = BYTE_NAMES
    merges: tuple[tuple[str, str], ...] = ()

    @property
    def end(self) -> int:
        """Return the id of the token that ends a document, the last id."""
        return len(self.names)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the names of all tokens."""
        return (*self.names, END)

    @property
    def digest(self) -> str:
        """Return a hash of everything that affects the tokens of a text."""
        return blake2b(json.dumps(self.to_json(), sort_keys=True).encode(), digest_size=8).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return two plain lists: the tokens' names (`names`), and the pairs that are merged (`merges`)."""
        return {"names": list(self.names), "merges": [list(pair) for pair in self.merges]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Tokenizer":
        """Return the tokenizer from the output of `to_json`; raise a ValueError for anything else."""
        try:
            names = tuple(map(str, content["names"]))
            merges = tuple((str(a), str(b)) for a, b in content["merges"])
        except (KeyError, TypeError, ValueError):
            raise ValueError("expected names and merges of tokens, got something else") from None
        known = set(names)
        if len(known) < len(names) or not set(BYTE_NAMES) <= known or END in known:
            raise ValueError(
                f"expected distinct token names, with all 256 byte names and without {END!r}, got other names"
            )
        if any(a not in known or b not in known or a + b not in known for a, b in merges):
            raise ValueError("expected merges whose two tokens and result are in the vocabulary, got other merges")
        return cls(names, merges)

    def encode(self, texts: Iterable[str]) -> Tokens:
        """Return the token ids of all texts in one array, which contains no end tokens.

        Raises:
            ValueError: `tokenizers` is not installed, and this tokenizer has merges.
        """
        if not self.merges:
            # Without merges, bytes are their own ids.
            encoded = [np.frombuffer(text.encode(), dtype=np.uint8) for text in texts]
        else:
            made = _library().Tokenizer(
                _library().models.BPE(
                    vocab={name: index for index, name in enumerate(self.names)}, merges=[*self.merges]
                )
            )
            made.pre_tokenizer = _byte_level()
            pieces = [piece for text in texts for piece in pieces_of(text)]
            encoded = [np.array(encoding.ids, dtype=np.uint32) for encoding in made.encode_batch_fast(pieces)]
        ids: Tokens = np.concatenate([np.zeros(0, np.uint32), *encoded]).astype(np.uint32)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of tokens; an end token becomes an empty line, and invalid UTF-8 a replacement character."""
        values = {name: byte for byte, name in enumerate(BYTE_NAMES)}
        symbols = self.symbols
        parts = [b"\n\n" if i == self.end else bytes(values[character] for character in symbols[i]) for i in ids]
        return b"".join(parts).decode(errors="replace")


def pieces_of(text: str) -> list[str]:
    """Split a text into pieces of bounded size, which end at the end of a line if possible.

    Example:
        >>> text = ("a" * 40_000 + "\\n") * 3
        >>> [len(piece) for piece in pieces_of(text)], "".join(pieces_of(text)) == text
        ([40001, 40001, 40001], True)
    """
    pieces, start = [], 0
    while start < len(text):
        stop = start + MAX_CHARACTERS_PER_PIECE
        if stop < len(text):
            line = text.rfind("\n", start, stop) + 1
            stop = line if line > start else stop
        pieces.append(text[start:stop])
        start = stop
    return pieces


def train_tokenizer(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Return a tokenizer of at most `vocab_size` tokens, including the end token.

    With 257, the tokens are the 256 bytes and the end token. A larger vocabulary is BPE, learned from the texts. The
    same texts give the same tokenizer. If the texts are too short for `vocab_size` tokens, the tokenizer has fewer.

    Raises:
        ValueError: `vocab_size` is out of bounds, or the package `tokenizers` is needed but not installed.

    Source: Sennrich et al., "Neural machine translation of rare words with subword units" (2016); on bytes, Radford et
        al. (2019).
    Differs from the source: no difference; the merges are learned and applied by the package `tokenizers`.
    """
    check_kind("vocab_size", vocab_size, Integral, "a whole number of tokens")
    texts = texts_of("texts", texts)
    if not MIN_VOCAB <= vocab_size <= MAX_VOCAB:
        raise ValueError(
            f"vocab_size: expected {MIN_VOCAB} (the bytes and an end token) to {MAX_VOCAB:,} tokens, got "
            f"{vocab_size:,}; choose a size in this range"
        )
    if vocab_size == MIN_VOCAB:
        return Tokenizer()
    library = _library()
    made = library.Tokenizer(library.models.BPE())
    made.pre_tokenizer = _byte_level()
    trainer = library.trainers.BpeTrainer(
        # One id is left for the end of a document.
        vocab_size=vocab_size - 1,
        initial_alphabet=sorted(BYTE_NAMES),
        show_progress=False,
        min_frequency=2,
    )
    made.train_from_iterator((piece for text in texts for piece in pieces_of(text)), trainer)
    content = json.loads(made.to_str())["model"]
    names = sorted(content["vocab"], key=content["vocab"].__getitem__)
    return Tokenizer(tuple(names), tuple((a, b) for a, b in content["merges"]))


def _byte_level() -> Any:
    return _library().pre_tokenizers.ByteLevel(add_prefix_space=False)


def _library() -> Any:
    """Import the package `tokenizers`, which only tokenizers with merges need."""
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        raise ValueError(
            "vocab_size: expected 257 (the bytes and an end token) without the package `tokenizers`, got more tokens; "
            "install lengthwise[text]"
        ) from None
    return tokenizers
