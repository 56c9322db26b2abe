"""A user's own text as a task."""

from pathlib import Path
from typing import Annotated

import torch
from jaxtyping import Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.conventions import PAD
from lengthwise.tasks.base import TASKS
from lengthwise.text.corpus import built_in_corpus, open_corpus, prepare, read_texts
from lengthwise.text.documents import DocumentSource, read_documents
from lengthwise.text.language import LanguageTask, Split, Tokens
from lengthwise.text.token_file import Header, TokenFile
from lengthwise.text.tokenizer import MAX_VOCAB, MIN_VOCAB

HELD_OUT = 0.1
"""The default fraction of characters that is held out for a split."""

Files = Annotated[tuple[Path, ...], Field(exclude=True)]
"""Paths of text files. The task does not keep these paths, but identifies the text by a hash."""


@TASKS.register("text")
class Text(LanguageTask):
    """Prediction of the next token of a given text or, without a text, of the names of numbers.

    - `files`: the paths of UTF-8 texts for training; each file is one document. `valid_files` and `test_files` are used
      for measurements. Without these files, the last fraction `held_out` of the characters is held out for testing, and
      the same fraction of the rest for validation.
    - `documents`: a data set of Hugging Face, which is used instead of `files`.
    - `vocab_size`: the largest number of tokens. With 257, the tokens are the 256 bytes and the end of a document. A
      larger vocabulary is byte-level BPE, learned from the training split (install `lengthwise[text]`). Learning ends
      early if no further pair of tokens occurs twice in the training split.

    When the task is made, the tokens of the given text are written to a folder, unless they exist there. The
    environment variable ``LENGTHWISE_CORPORA`` names this folder (by default ``corpora`` in the current folder). The
    task does not keep the names of the files. Instead, the field `corpus` is a hash of the text and the size of its
    vocabulary, and the field `tokenizer` is a hash of the tokenizer.

    Raises:
        ValueError: a file is missing, is not UTF-8, or is so short that a split has hardly any text; a data set cannot
            be read; both `files` and `documents` are given; a field does not fit the given text; a token file is
            missing, is damaged, or was made by another tokenizer; or a package is needed but not installed.

    Example:
        >>> task = Text()
        >>> task.tokenize("one").tolist(), task.detokenize(task.tokenize("one")), len(task.symbols)
        ([111, 110, 101], 'one', 257)
    """

    files: Files = ()
    valid_files: Files = ()
    test_files: Files = ()
    documents: DocumentSource | None = Field(None, exclude=True)
    held_out: float = Field(HELD_OUT, gt=0, lt=0.5)
    vocab_size: int = Field(MIN_VOCAB, ge=MIN_VOCAB, le=MAX_VOCAB)
    corpus: str = Field("", pattern="^([0-9a-f]{16})?$")
    tokenizer: str = Field("", pattern="^([0-9a-f]{16})?$")

    @model_validator(mode="after")
    def _stands_for_its_files(self) -> "Text":
        if (self.valid_files or self.test_files) and not self.files:
            raise ValueError(
                "files: expected training texts, because valid_files or test_files are given, got none; name text "
                "files for training"
            )
        if not (self.files or self.documents or self.corpus) and self.held_out != HELD_OUT:
            raise ValueError(
                f"held_out: expected no value for the built-in text, got {self.held_out:g}; name files, or remove "
                "held_out"
            )
        if self.files and self.documents:
            raise ValueError("documents: expected either files or documents, got both; leave out files or documents")
        if self.files or self.documents:
            texts = (
                read_documents(self.documents, self.held_out)
                if self.documents
                else read_texts(self.files, self.valid_files, self.test_files, held_out=self.held_out)
            )
            key = prepare(texts, self.vocab_size)
            if self.corpus and self.corpus != key:
                raise ValueError(
                    f"corpus: expected {key}, the hash of the given text, got {self.corpus}; leave out corpus, or "
                    f"give the text with hash {self.corpus}"
                )
            values = {"files": (), "valid_files": (), "test_files": (), "documents": None, "corpus": key}
            # The task is frozen, but its files are replaced by their hash before anyone sees it.
            self.__dict__.update(values)
        if self.corpus or self.vocab_size > MIN_VOCAB:
            made_by = self._opened.header.tokenizer
            if self.tokenizer and self.tokenizer != made_by:
                raise ValueError(
                    f"tokenizer: expected {made_by}, which made the tokens of corpus {self.corpus or '(built in)'}, "
                    f"got {self.tokenizer}; train again, because the model does not fit the tokens of "
                    "this corpus"
                )
            self.__dict__["tokenizer"] = made_by
        return self

    @property
    def _opened(self) -> TokenFile:
        return open_corpus(self.corpus) if self.corpus else built_in_corpus(self.vocab_size)

    @property
    def header(self) -> Header:
        """Return hashes and sizes of the text, and the names of its files."""
        return self._opened.header

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the names of the tokens, with a printable character for each byte, such as U+0120 for a space."""
        return self._opened.tokenizer.symbols

    @property
    def end(self) -> int:
        return self._opened.tokenizer.end

    def tokens(self, split: Split) -> Tokens:
        return self._opened.split(split)

    def tokenize(self, text: str) -> Int64[Tensor, " T"]:
        """Return the token ids of plain text.

        For an empty text, the result is the token that ends a document, so that a model continues with a new document.

        Raises:
            ValueError: the text came from bytes that are not UTF-8.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"text: expected UTF-8, got something else at character {error.start + 1:,}; convert the text, "
                "for example with iconv -f LATIN1 -t UTF-8"
            ) from None
        return (
            torch.from_numpy(self._opened.tokenizer.encode([text]).astype("int64"))
            if text
            else torch.tensor([self.end])
        )

    def detokenize(self, ids: Int64[Tensor, " T"]) -> str:
        return self._opened.tokenizer.decode(index for index in map(int, ids) if index != PAD)
