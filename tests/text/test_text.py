"""Texts as tasks: files stand for a hash, splits and windows are those of the text, and bad texts are named."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.tasks import make_task
from lengthwise.text.corpus import FOLDER, number_name, number_names, split_documents
from lengthwise.training.batches import training_lengths
from lengthwise.training.recipe import Recipe

NOVEL = "It was the best of times, it was the worst of times,\nit was the age of wisdom, caf\u00e9s and doubt.\n" * 8


@pytest.fixture(autouse=True)
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "corpora"))


@pytest.fixture
def novel(tmp_path: Path) -> Path:
    path = tmp_path / "novel.txt"
    path.write_text(NOVEL, encoding="utf-8")
    return path


@pytest.mark.parametrize("vocab_size", [257, 280])
def test_splits_are_the_text_in_order_with_an_end_after_each_document(novel: Path, vocab_size: int) -> None:
    task = make_task("text", files=[novel], held_out=0.2, vocab_size=vocab_size)
    splits = [task.tokens(name) for name in ("train", "valid", "test")]
    assert all(tokens[-1] == task.end for tokens in splits)
    texts = [task.detokenize(torch.from_numpy(tokens[:-1].astype(np.int64))) for tokens in splits]
    assert "".join(texts) == NOVEL
    assert len(texts[2]) == round(0.2 * len(NOVEL))
    assert len(texts[1]) == round(0.2 * (len(NOVEL) - len(texts[2])))


def test_files_of_their_own_for_each_split(novel: Path, tmp_path: Path) -> None:
    others = [tmp_path / name for name in ("second.txt", "valid.txt", "test.txt")]
    for index, path in enumerate(others):
        path.write_text(f"another text, number {index}\n" * 2)
    second, valid, test = others
    task = make_task("text", files=[novel, second], valid_files=[valid], test_files=[test])
    documents = bytes(task.tokens("train").clip(max=255).astype(np.uint8)).split(b"\xff")
    assert documents == [NOVEL.encode(), second.read_bytes(), b""], "of UTF-8, no byte is 255: these are the ends"
    assert bytes(task.tokens("test")[:-1].astype(np.uint8)) == test.read_bytes()


def test_a_task_knows_its_text_by_a_hash_and_is_found_by_it(
    novel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec("text", "gru", {"task": {"files": [str(novel)], "vocab_size": 280}})
    fields = spec.to_json()["task"]
    assert set(fields) == {"name", "held_out", "vocab_size", "corpus", "tokenizer"}
    assert str(tmp_path) not in str(spec.to_json())
    moved = novel.rename(tmp_path / "moved.txt")
    assert spec_from_json(spec.to_json()) == spec
    again = make_spec("text", "gru", {"task": {"files": [str(moved)], "vocab_size": 280}})
    assert again.id == spec.id
    moved.write_text(NOVEL.replace("best", "last"), encoding="utf-8")
    changed = {"files": [moved], "vocab_size": 280}
    assert make_task("text", **changed).corpus != spec.task.corpus
    with pytest.raises(ValueError, match=r"^task\.corpus: expected [0-9a-f]{16}, the hash of the given text, got"):
        make_task("text", **changed, corpus=spec.task.corpus)
    with pytest.raises(ValueError, match=r"^task\.tokenizer: expected [0-9a-f]{16}, which made the tokens of corpus"):
        make_task("text", vocab_size=280, corpus=spec.task.corpus, tokenizer="0" * 16)
    assert make_spec("text", "gru", {"task": {"files": [str(moved)], "vocab_size": 290}}).id != spec.id
    monkeypatch.setenv(FOLDER, str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere" / spec.task.corpus).mkdir(parents=True)
    (tmp_path / "elsewhere" / spec.task.corpus / "header.json").write_text("{}")
    with pytest.raises(ValueError, match=r"^task\.corpus: .*header\.json: damaged file .*; delete this corpus folder"):
        make_task("text", corpus=spec.task.corpus)
    monkeypatch.setenv(FOLDER, str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"^task\.corpus: expected the tokens of corpus [0-9a-f]{16} in .*, got none"):
        make_task("text", corpus=spec.task.corpus)


@given(st.integers(1, 40), st.integers(0, 1_000))
def test_windows_are_pieces_of_the_training_split(length: int, seed: int) -> None:
    task = make_task("text")
    inputs, targets = task.sample(3, length, torch.Generator().manual_seed(seed))
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    train = bytes(task.tokens("train").clip(max=255).astype(np.uint8))
    for row in torch.cat([inputs[:, :1], targets], 1):
        assert bytes(row.clamp(max=255).tolist()) in train


def test_the_last_window_is_drawn_and_none_beyond(novel: Path) -> None:
    task = make_task("text", files=[novel])
    count = len(task.tokens("train"))
    assert (task.is_legal_length(count - 1), task.is_legal_length(count)) == (True, False)
    inputs, targets = task.sample(50, count - 2, torch.Generator().manual_seed(0))
    assert {int(first) for first in inputs[:, 0]} == {ord("I"), ord("t")}, "both windows of that length"
    assert set(targets[:, -1].tolist()) == {int(task.tokens("train")[-2]), task.end}
    with pytest.raises(ValueError, match=f"^length: text has no strings of length {count}; legal lengths near it"):
        task.sample(1, count, torch.Generator())


@given(st.lists(st.text(min_size=1), min_size=1), st.floats(0.05, 0.45))
def test_documents_are_split_without_loss(documents: list[str], held_out: float) -> None:
    parts = split_documents(documents, held_out, ("test", "valid"))
    assert "".join(map("".join, (parts["train"], parts["valid"], parts["test"]))) == "".join(documents)
    size = sum(map(len, documents))
    assert len("".join(parts["test"])) == round(held_out * size)


@pytest.mark.parametrize(
    ("content", "fields", "sentence"),
    [
        (b"", {}, r"task\.files: expected at least 16 bytes of text in each split, got 0 for train"),
        (b"short", {}, r"task\.files: expected at least 16 bytes of text in each split, got"),
        (
            b"caf\xe9 " * 90,
            {},
            r"task\.files: expected .* to be UTF-8, got another encoding at byte 4; convert the file",
        ),
        (None, {}, r"task\.files: expected a text file, got .*novel\.txt, which does not exist; name another"),
        (b"x" * 999, {"vocab_size": 200}, r"task\.vocab_size: expected a number greater than or equal to 257, got 200"),
        (b"x" * 999, {"corpus": "../x"}, r"task\.corpus: expected .*pattern"),
        (b"x" * 999, {"documents": {"name": "a/b"}}, r"task\.documents: expected either files or documents, got both"),
    ],
)
def test_bad_texts_are_named_in_a_sentence(content: bytes | None, fields: dict, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "novel.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{sentence}") as refused:
        make_task("text", files=[path], **fields)
    assert "\n" not in str(refused.value)


def test_a_prompt_that_is_no_utf_8_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^text: expected UTF-8, got something else at character 4; convert the text"):
        make_task("text").tokenize(b"caf\xe9".decode(errors="surrogateescape"))


def test_windows_longer_than_the_text_are_refused(novel: Path) -> None:
    task = make_task("text", files=[novel])
    size = len(task.tokens("train"))
    recipe = Recipe(min_length=5_000, max_length=5_000, lengths="legal")
    with pytest.raises(
        ValueError, match=f"^train.max_length: .* training split has {size:,} tokens, so choose shorter lengths"
    ):
        training_lengths(task, recipe)


def test_texts_for_testing_alone_are_refused(novel: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^task\.files: expected training texts, because valid_files or test_files are given"
    ):
        make_task("text", test_files=[novel])


def streams(rows: list[dict[str, str]] | Exception) -> SimpleNamespace:
    def load_dataset(name: str, config: str | None, *, split: str, streaming: bool) -> list[dict[str, str]]:
        assert (name, config, split, streaming) == ("owner/name", None, "train", True)
        if isinstance(rows, Exception):
            raise rows
        return rows

    return SimpleNamespace(load_dataset=load_dataset)


def test_documents_are_streamed_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", streams([{"text": f"document {i} " * 9} for i in range(40)]))
    task = make_task("text", documents={"name": "owner/name", "max_documents": 20})
    everything = np.concatenate([task.tokens(name) for name in ("train", "valid", "test")])
    assert bytes(everything[everything < 256].astype(np.uint8)).count(b"document 19 ") == 9
    assert b"document 20" not in bytes(everything[everything < 256].astype(np.uint8))
    assert 20 <= (everything == task.end).sum() <= 22, "a document may be cut where a split begins"
    assert task.documents is None


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (None, r"expected the package `datasets`, .* install lengthwise\[datasets\], or give text files instead"),
        (
            streams(ConnectionError("offline\nand more")),
            r"owner/name cannot be streamed \(offline\); give text files instead",
        ),
        (streams([{"words": "x"}]), r"column: expected a column of owner/name, got 'text'"),
        (
            streams([{"text": " "}]),
            r"expected some text in column text of owner/name, got none; give text files instead",
        ),
    ],
)
def test_documents_that_cannot_be_had_are_named(
    module: SimpleNamespace | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", module)
    with pytest.raises(ValueError, match=rf"^task\.documents.*{sentence}"):
        make_task("text", documents={"name": "owner/name"})


def test_nothing_is_held_out_of_the_built_in_text_by_request() -> None:
    with pytest.raises(ValueError, match=r"task\.held_out: expected no value for the built-in text, got 0\.4; name"):
        make_task("text", held_out=0.4)
    assert make_task("text", held_out=0.1) == make_task("text")


def test_the_built_in_text_names_each_number_once() -> None:
    names = number_names().splitlines()
    assert len(set(names)) == 1_000
    assert number_name(421) == names[1]
