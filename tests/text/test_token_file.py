"""Token files: what is written is read, the header decides, and damage is named."""

import json
from pathlib import Path

import numpy as np
import pytest

from lengthwise.files import read_json, write_json
from lengthwise.text.token_file import in_memory, read_tokens, write_tokens
from lengthwise.text.tokenizer import BYTE_NAMES, Tokenizer

TOKENS = {
    "train": np.arange(200, dtype=np.uint32),
    "valid": np.arange(5, dtype=np.uint32),
    "test": np.arange(20, 27, dtype=np.uint32),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokens(tmp_path, in_memory(TOKENS, Tokenizer(), source="0" * 16, sources=("novel.txt",)))
    return tmp_path


def test_splits_are_read_as_they_were_written(folder: Path) -> None:
    file = read_tokens(folder)
    for name, tokens in TOKENS.items():
        np.testing.assert_array_equal(file.split(name), tokens)
    assert isinstance(file.tokens, np.memmap)
    assert (folder / "tokens.bin").read_bytes()[:6] == bytes([0, 0, 1, 0, 2, 0]), "little-endian, two bytes"
    header = json.loads((folder / "header.json").read_text())
    assert (header["dtype"], header["count"], header["splits"]["test"]) == ("uint16", 212, [205, 212])
    assert sorted(path.name for path in folder.iterdir()) == ["header.json", "tokenizer.json", "tokens.bin"]


@pytest.mark.parametrize(("size", "dtype"), [(1 << 16, "uint16"), ((1 << 16) + 1, "uint32")])
def test_the_vocabulary_decides_how_many_bytes_a_token_has(size: int, dtype: str, tmp_path: Path) -> None:
    """No id is ever cut to two bytes, the classic silent error."""
    tokenizer = Tokenizer((*BYTE_NAMES, *(f"t{index}" for index in range(size - 257))))
    last = {**TOKENS, "test": np.array([size - 1], dtype=np.uint32)}
    write_tokens(tmp_path, in_memory(last, tokenizer, source="0" * 16))
    file = read_tokens(tmp_path)
    assert (file.header.dtype, file.split("test").tolist()) == (dtype, [size - 1])
    with pytest.raises(ValueError, match=f"^tokens: expected ids below {size:,}"):
        in_memory({**TOKENS, "test": np.array([size], dtype=np.uint32)}, tokenizer, source="0" * 16)


def change_header(folder: Path, **changes: object) -> None:
    content = read_json(folder / "header.json", "")
    write_json(folder / "header.json", {**content, **changes})


def damage(folder: Path, what: str) -> None:
    tokens = folder / "tokens.bin"
    if what == "cut":
        tokens.write_bytes(tokens.read_bytes()[:-1])
    elif what == "missing":
        tokens.unlink()
    elif what == "flipped":
        tokens.write_bytes(bytes([tokens.read_bytes()[0] ^ 1]) + tokens.read_bytes()[1:])
    elif what == "header":
        (folder / "header.json").write_text((folder / "header.json").read_text().replace("212", "211"))
    elif what == "no header":
        (folder / "header.json").write_text("[")
    elif what == "dtype":
        change_header(folder, vocab_size=70_000)
    elif what == "splits":
        change_header(folder, splits={"train": [0, 200], "valid": [201, 205], "test": [205, 212]})
    elif what == "tokenizer":
        write_json(folder / "tokenizer.json", Tokenizer((*BYTE_NAMES, "ab"), (("a", "b"),)).to_json())
    elif what == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif what == "nonsense":
        write_json(folder / "tokenizer.json", {"names": ["a"], "merges": []})


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("cut", r"tokens\.bin: expected 424 bytes \(212 tokens of 2 bytes\), got 423; delete this corpus folder"),
        ("missing", r"tokens\.bin: expected 424 bytes \(212 tokens of 2 bytes\), got 0;"),
        ("flipped", r"tokens\.bin: damaged file \(its contents have changed\); delete this corpus folder"),
        ("header", r"header\.json: damaged file \(its contents have changed\); delete this corpus folder"),
        ("no header", r"header\.json: damaged file \(expected JSON"),
        (
            "dtype",
            r"header\.json: expected a header of this version, got another one \(dtype: expected uint32 for a",
        ),
        (
            "splits",
            r"header\.json: expected a header of this version, got another one \(splits: expected train, valid",
        ),
        (
            "tokenizer",
            r": expected tokenizer [0-9a-f]{16}, which made the tokens in this folder, got [0-9a-f]{16}; delete",
        ),
        ("no tokenizer", r"tokenizer\.json: expected a file, got none; delete this corpus folder"),
        ("nonsense", r"tokenizer\.json: expected distinct token names, with all 256 byte names"),
    ],
)
def test_damage_is_named_in_a_sentence(folder: Path, what: str, sentence: str) -> None:
    damage(folder, what)
    with pytest.raises(ValueError, match=sentence) as refused:
        read_tokens(folder)
    assert "\n" not in str(refused.value)


def test_a_folder_without_a_header_is_none(folder: Path) -> None:
    (folder / "header.json").unlink()
    with pytest.raises(FileNotFoundError):
        read_tokens(folder)
