"""Tokenizers lose nothing, and the same text gives the same one."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lengthwise.text.tokenizer import END, Tokenizer, pieces_of, train_tokenizer

TEXT = "the cat sat on the mat; the dog sat on the log.\n" * 20
BPE = train_tokenizer([TEXT], 300)


@given(st.text(max_size=40))
@example("")
@example("\N{SYMBOL FOR END OF TRANSMISSION} caf\u00e9 \N{SNOWMAN}\r\n\t\x00")
def test_any_text_comes_back(text: str) -> None:
    for tokenizer in (Tokenizer(), BPE):
        ids = tokenizer.encode([text]).tolist()
        assert tokenizer.decode(ids) == text
        assert all(index < tokenizer.end for index in ids), "no text holds the end of a document"


def test_bytes_are_their_own_ids_and_merges_make_texts_shorter() -> None:
    assert Tokenizer().encode(["caf\u00e9", "!"]).tolist() == [*"caf\u00e9!".encode()]
    assert len(BPE.encode([TEXT])) < len(TEXT) / 3
    assert BPE.symbols[BPE.encode([" the"])[0]] == "\u0120the"
    assert BPE.symbols[-1] == END
    assert len(BPE.symbols) == len(set(BPE.symbols)) <= 300


def test_the_same_text_gives_the_same_tokenizer_and_another_one_another() -> None:
    assert train_tokenizer([TEXT], 300).digest == BPE.digest == Tokenizer.from_json(BPE.to_json()).digest
    digests = {train_tokenizer([TEXT], 265).digest, train_tokenizer([TEXT[::-1]], 300).digest, Tokenizer().digest}
    assert len(digests | {BPE.digest}) == 4


@given(st.text(alphabet="ab\n", min_size=1), st.integers(1, 70_000))
def test_pieces_of_a_text_are_the_text(text: str, times: int) -> None:
    long = (text * (1 + times // len(text)))[:200_000]
    pieces = pieces_of(long)
    assert "".join(pieces) == long
    assert all(0 < len(piece) <= 1 << 16 for piece in pieces)


@pytest.mark.parametrize("size", [256, 1 << 21])
def test_a_vocabulary_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(
        ValueError, match=r"^vocab_size: expected 257 \(the bytes and an end token\) to 1,048,576 tokens, got"
    ):
        train_tokenizer([TEXT], size)


def test_bytes_need_no_other_package_and_merges_name_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert train_tokenizer([TEXT], 257) == Tokenizer()
    with pytest.raises(
        ValueError, match=r"^vocab_size: expected 257 \(.*\) without the package .* install lengthwise\[text\]"
    ):
        train_tokenizer([TEXT], 300)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"names": 3, "merges": []},
        {"names": ["a", "b"], "merges": []},
        {**Tokenizer().to_json(), "merges": [["a", "b"]]},
        {**Tokenizer().to_json(), "merges": [["a"]]},
    ],
)
def test_what_is_no_tokenizer_is_refused(content: dict) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        Tokenizer.from_json(content)
