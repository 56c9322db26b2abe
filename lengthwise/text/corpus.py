"""Corpora: documents in three splits (training, validation, test), and the folder that contains their tokens."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from numbers import Real
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lengthwise.files import UnreadableFile, read_file
from lengthwise.text.language import Split
from lengthwise.text.token_file import SPLITS, TokenFile, in_memory, read_tokens, write_tokens
from lengthwise.text.tokenizer import train_tokenizer
from lengthwise.validation import check_kind, path_of, whole_number

FOLDER = "LENGTHWISE_CORPORA"
"""The environment variable with the folder of corpora; the default is `corpora` in the current folder."""

MIN_TOKENS = 16
"""The smallest number of bytes of text in each split; a shorter text is taken for a mistake."""


class Texts(NamedTuple):
    """The texts of a corpus: the documents of each split, and the names of the documents' sources."""

    documents: Mapping[Split, tuple[str, ...]]
    sources: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return a hash of all documents."""
        digest = blake2b(digest_size=8)
        for name in SPLITS:
            for document in self.documents[name]:
                content = document.encode()
                digest.update(f"{name} {len(content)} ".encode())
                digest.update(content)
        return digest.hexdigest()


def read_texts(
    files: Sequence[Path], valid_files: Sequence[Path] = (), test_files: Sequence[Path] = (), *, held_out: float
) -> Texts:
    """Read UTF-8 files as texts; each file is one document.

    Without `test_files`, the last fraction `held_out` of the characters in `files` is the test split. Without
    `valid_files`, the last fraction `held_out` of the rest is the validation split.

    Raises:
        ValueError: no file is named, a file is missing or not UTF-8, or `held_out` is not in [0, 1).
    """
    if not files:
        raise ValueError(f"files: expected at least one file, got {files!r}; name text files for training")
    given = {"train": files, "valid": valid_files, "test": test_files}
    read = {name: [_read(file, name) for file in given[name]] for name in given}
    documents = split_documents(read["train"], held_out, tuple(name for name in ("test", "valid") if not given[name]))
    documents |= {name: tuple(read[name]) for name in ("valid", "test") if given[name]}
    return Texts(documents, tuple(Path(file).name for name in SPLITS for file in given[name]))


def split_documents(documents: Sequence[str], held_out: float, splits: Sequence[str]) -> dict[Split, tuple[str, ...]]:
    """Return the documents of each split in `splits`, and of the training split.

    In the order of `splits`, each split gets the last fraction `held_out` of the characters that are still left. The
    training split gets the rest.

    Example:
        >>> split_documents(["abcdefgh", "ij"], 0.4, ["test"])
        {'train': ('abcdef',), 'test': ('gh', 'ij')}
    """
    check_kind("held_out", held_out, Real, "a fraction of the characters")
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out: expected a fraction from 0 to below 1, got {held_out}; give for example 0.1")
    parts: dict[Split, tuple[str, ...]] = {}
    left = list(documents)
    for name in splits:
        taken: list[str] = []
        number = round(held_out * sum(map(len, left)))
        while number > 0:
            last = left.pop()
            taken.insert(0, last[-number:])
            if len(last) > number:
                left.append(last[:-number])
            number -= len(taken[0])
        parts[name] = tuple(taken)  # type: ignore[index]  # the names are those of splits
    return {"train": tuple(left), **parts}


def _read(file: Path, split: str) -> str:
    field = "files" if split == "train" else f"{split}_files"
    try:
        return read_file(path_of(field, file)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{field}: expected {file} to be UTF-8, got another encoding at byte {error.start + 1:,}; convert "
            "the file, for example with iconv -t UTF-8"
        ) from None
    except FileNotFoundError:
        raise ValueError(
            f"{field}: expected a text file, got {file}, which does not exist; name another file"
        ) from None
    except UnreadableFile as error:
        raise ValueError(f"{field}: {error}") from None


def corpora_folder() -> Path:
    """Return the folder of all corpora, in which each corpus has a folder of its own."""
    return Path(os.environ.get(FOLDER) or "corpora")


def prepare(texts: Texts, vocab_size: int) -> str:
    """Write the tokens of a corpus below `corpora_folder`, unless they exist there, and return the corpus's key.

    The key is a hash of the texts and of `vocab_size`.

    Raises:
        ValueError: a split has fewer than `MIN_TOKENS` bytes of text; `vocab_size` is out of bounds; or the package
            `tokenizers` is needed but not installed.
        OSError: the folder cannot be written.
    """
    key = blake2b(f"{texts.digest} {vocab_size}".encode(), digest_size=8).hexdigest()
    folder = corpora_folder() / key
    # The header is written last, so a corpus with a header is complete.
    if not (folder / "header.json").exists():
        write_tokens(folder, tokens_of(texts, vocab_size))
    return key


def tokens_of(texts: Texts, vocab_size: int) -> TokenFile:
    """Return a tokenizer trained on the training split, and the tokens of all splits.

    An end token follows each document.

    Raises:
        ValueError: a split has fewer than `MIN_TOKENS` bytes of text; `vocab_size` is out of bounds; or the package
            `tokenizers` is needed but not installed.
    """
    for name in SPLITS:
        if (size := sum(len(text.encode()) for text in texts.documents[name])) < MIN_TOKENS:
            raise ValueError(
                f"files: expected at least {MIN_TOKENS} bytes of text in each split, got {size} for {name}; give a "
                "longer text"
            )
    tokenizer = train_tokenizer(texts.documents["train"], vocab_size)
    end = np.array([tokenizer.end], dtype=np.uint32)
    tokens = {
        name: np.concatenate([part for text in texts.documents[name] for part in (tokenizer.encode([text]), end)])
        for name in SPLITS
    }
    return in_memory(tokens, tokenizer, source=texts.digest, sources=texts.sources)


def open_corpus(key: str) -> TokenFile:
    """Open the corpus with this key, which `prepare` returned.

    Raises:
        ValueError: the corpus does not exist, or is damaged.
    """
    try:
        # The folder is part of the cache's key, because the environment variable may change.
        return _open(corpora_folder().resolve(), key)
    except FileNotFoundError:
        raise ValueError(
            f"corpus: expected the tokens of corpus {key} in {corpora_folder().resolve()}, got none; repeat the "
            f"training command with the text's files to write the tokens again, or set {FOLDER} to the folder that "
            f"contains {key}"
        ) from None
    except ValueError as error:
        raise ValueError(f"corpus: {error}") from None


@lru_cache(maxsize=8)
def _open(folder: Path, key: str) -> TokenFile:
    return read_tokens(folder / key)


@lru_cache(maxsize=8)
def built_in_corpus(vocab_size: int) -> TokenFile:
    """Return a corpus that needs no file, for first trials and tests: the names of numbers, one per line."""
    texts = Texts(split_documents([number_names()], 0.1, ("test", "valid")), ("the names of numbers",))
    return tokens_of(texts, vocab_size)


def number_names(count: int = 1_000) -> str:
    """Return the names of `count` numbers below 1,000, each once, in an order that looks random.

    Example:
        >>> number_names(3)
        'zero\\nfour hundred twenty-one\\neight hundred forty-two\\n'
    """
    count = whole_number("count", count, 0, 1_000)
    return "".join(f"{number_name(421 * index % 1_000)}\n" for index in range(count))


_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def number_name(number: int) -> str:
    """Return a number below 1,000 in English words.

    Example:
        >>> number_name(342), number_name(700), number_name(16)
        ('three hundred forty-two', 'seven hundred', 'sixteen')
    """
    number = whole_number("number", number, 0, 999)
    hundreds, rest = divmod(number, 100)
    words = [f"{_UNITS[hundreds]} hundred"] if hundreds else []
    if rest >= 20:
        words.append(_TENS[rest // 10 - 2] + (f"-{_UNITS[rest % 10]}" if rest % 10 else ""))
    elif rest or not hundreds:
        words.append(_UNITS[rest])
    return " ".join(words)
