"""Tokens in a file: ``tokens.bin``, little-endian, and a header that describes this file.

The header is written last, so a folder without a header is unfinished. The header contains the type of the numbers, so
no reader has to guess it.
"""

from collections.abc import Mapping
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from lengthwise.files import read_json, write_by_rename, write_json
from lengthwise.text.language import Split, Tokens
from lengthwise.text.tokenizer import Tokenizer
from lengthwise.validation import FrozenRecord, validated

SPLITS: tuple[Split, ...] = ("train", "valid", "test")
"""The splits in their order in the file."""

MAX_TOKENS_OF_UINT16 = 1 << 16

WAY_OUT = "delete this corpus folder, and repeat the training command with the text's files"


class Header(FrozenRecord):
    """A description of a token file's content.

    `dtype` follows from the vocabulary: two bytes per token for up to 65,536 different tokens, otherwise four. `splits`
    contains the first index of each split, and the index after its last token. `source` is a hash of the texts, and
    `content` is a hash of the tokens. `sources` are the names of the text's files, without their folders, or the name
    of its data set.
    """

    format: Literal[1] = 1
    dtype: Literal["uint16", "uint32"]
    count: int = Field(ge=1)
    vocab_size: int = Field(ge=1)
    tokenizer: str
    source: str
    content: str
    sources: tuple[str, ...]
    splits: dict[Split, tuple[int, int]]

    @model_validator(mode="after")
    def _is_consistent(self) -> "Header":
        if self.vocab_size > MAX_TOKENS_OF_UINT16 and self.dtype == "uint16":
            raise ValueError(
                f"dtype: expected uint32 for a vocabulary of {self.vocab_size:,} tokens, got uint16, which can number "
                f"only {MAX_TOKENS_OF_UINT16:,} tokens"
            )
        bounds = [self.splits.get(name, (-1, -1)) for name in SPLITS]
        edges = [bounds[0][0], *(stop for _, stop in bounds)]
        in_order = all(before <= after for before, after in pairwise(edges))
        if not in_order or any(a[1] != b[0] for a, b in pairwise(bounds)) or (edges[0], edges[-1]) != (0, self.count):
            raise ValueError(f"splits: expected {', '.join(SPLITS)} one after another, got {self.splits}")
        return self


class TokenFile(NamedTuple):
    """The content of a folder of tokens, read and checked: the header, the tokenizer, and the tokens of all splits."""

    header: Header
    tokenizer: Tokenizer
    tokens: Tokens

    def split(self, name: Split) -> Tokens:
        """Return the tokens of a split, without a copy."""
        start, stop = self.header.splits[name]
        return self.tokens[start:stop]


def in_memory(
    tokens: Mapping[Split, Tokens], tokenizer: Tokenizer, *, source: str, sources: tuple[str, ...] = ()
) -> TokenFile:
    """Return a `TokenFile` of the given tokens and tokenizer; `write_tokens` writes this object to a folder.

    Raises:
        ValueError: a token is outside the tokenizer's vocabulary.
    """
    vocab_size = len(tokenizer.symbols)
    bounds = {}
    stop = 0
    for name in SPLITS:
        bounds[name] = (stop, stop + len(tokens[name]))
        stop += len(tokens[name])
        if len(tokens[name]) and int(tokens[name].max()) >= vocab_size:
            raise ValueError(
                f"tokens: expected ids below {vocab_size:,}, the size of the vocabulary, got "
                f"{int(tokens[name].max()):,}; encode the text with the given tokenizer"
            )
    dtype: Literal["uint16", "uint32"] = "uint16" if vocab_size <= MAX_TOKENS_OF_UINT16 else "uint32"
    joined: Tokens = np.concatenate([tokens[name] for name in SPLITS]).astype(np.dtype(dtype).newbyteorder("<"))
    header = Header(
        dtype=dtype,
        count=stop,
        vocab_size=vocab_size,
        tokenizer=tokenizer.digest,
        source=source,
        content=_hash(joined),
        sources=sources,
        splits=bounds,
    )
    return TokenFile(header, tokenizer, joined)


def write_tokens(folder: Path, made: TokenFile) -> None:
    """Write a folder that `read_tokens` reads; each file appears whole or not at all, and the header appears last."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "tokenizer.json", made.tokenizer.to_json())
    write_by_rename(folder / "tokens.bin", made.tokens.tobytes())
    write_json(folder / "header.json", made.header.model_dump(mode="json"))


def read_tokens(folder: Path) -> TokenFile:
    """Map the tokens in a folder into memory, and check all files in the folder.

    Raises:
        FileNotFoundError: the folder has no header.
        ValueError: a file is missing or damaged, or the tokens were made by another tokenizer.
    """
    content = read_json(folder / "header.json", WAY_OUT)
    try:
        header = validated(Header, content)
    except ValueError as error:
        problem = str(error).splitlines()[0]
        raise ValueError(
            f"{folder / 'header.json'}: expected a header of this version, got another one ({problem}); {WAY_OUT}"
        ) from None
    try:
        tokenizer = Tokenizer.from_json(read_json(folder / "tokenizer.json", WAY_OUT))
    except FileNotFoundError:
        raise ValueError(f"{folder / 'tokenizer.json'}: expected a file, got none; {WAY_OUT}") from None
    except ValueError as error:
        raise ValueError(f"{folder / 'tokenizer.json'}: {error}; {WAY_OUT}") from None
    if tokenizer.digest != header.tokenizer or len(tokenizer.symbols) != header.vocab_size:
        raise ValueError(
            f"{folder}: expected tokenizer {header.tokenizer}, which made the tokens in this folder, got "
            f"{tokenizer.digest}; {WAY_OUT}"
        )
    return TokenFile(header, tokenizer, _mapped(folder / "tokens.bin", header))


def _mapped(file: Path, header: Header) -> Tokens:
    dtype: np.dtype[Any] = np.dtype(header.dtype).newbyteorder("<")
    size = file.stat().st_size if file.exists() else 0
    if size != header.count * dtype.itemsize:
        raise ValueError(
            f"{file}: expected {header.count * dtype.itemsize:,} bytes ({header.count:,} tokens of {dtype.itemsize} "
            f"bytes), got {size:,}; {WAY_OUT}"
        )
    tokens: Tokens = np.memmap(file, dtype=dtype, mode="r")
    if _hash(tokens) != header.content:
        raise ValueError(f"{file}: damaged file (its contents have changed); {WAY_OUT}")
    return tokens


def _hash(content: Any) -> str:
    return blake2b(content, digest_size=8).hexdigest()
