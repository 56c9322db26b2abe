"""10,000 made-up requests (most by `make test-slow`): run or refused with a clear line for every problem."""

import string
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from lengthwise.cli.app import main
from lengthwise.evaluation.plan import parse_lengths
from lengthwise.models import MODELS, make_model
from lengthwise.presets import PRESETS
from lengthwise.registry import UnknownName
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.spec import make_spec, parse_assignments, read_settings
from lengthwise.tasks import TASKS, OracleTask, SymbolTask, make_task

MAX_LINE_LENGTH = 1_000

pytestmark = pytest.mark.unchecked


def check_sentence(error: Exception) -> None:
    lines = str(error).splitlines()
    assert lines, "an error says something"
    assert all(line.strip() and len(line) < MAX_LINE_LENGTH for line in lines), lines


def completed_or_rejected(work) -> None:
    try:
        work()
    except (ValueError, UnknownName) as error:
        check_sentence(error)


KEYS = [
    *("steps", "batch_size", "max_length", "min_length", "lengths", "length_sampling", "supervision", "ema_decay"),
    *("optimizer", "augmentation", "name", "betas", "learning_rate", "padding", "d_model", "num_heads", "chunk_size"),
    *("thickness", "variant", "p", "depth", "index", "modulus", "size", "sampling", "seed", "preset", "task", "train"),
    *("pattern", "alphabet", "transitions", "accepting", "start", "group", "generators", "file"),
]
keys = st.sampled_from(KEYS) | st.text(max_size=6)


def mappings(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(keys, inner, max_size=4)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 100),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["adam", "muon", "cosine", "uniform", "last", "prefix", "merge", "code", "chi2023"]),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | mappings(inner), max_leaves=6)


sections = st.dictionaries(st.sampled_from(["task", "model", "train"]) | keys, values | mappings(values), max_size=3)
names = st.one_of(st.sampled_from([*TASKS, *MODELS, *PRESETS]), st.text(max_size=12))
many = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
MANY = pytest.mark.parametrize("count", [400, pytest.param(1_500, marks=pytest.mark.slow)])


@pytest.mark.parametrize(
    ("part", "count"), [(0, 100), *(pytest.param(part, 1_000, marks=pytest.mark.slow) for part in range(4))]
)
def test_configurations(part: int, count: int) -> None:
    @seed(part)
    @settings(many, max_examples=count)
    @given(st.sampled_from(list(TASKS)), sections, st.sampled_from(list(PRESETS)), st.integers(-2, 10))
    def is_completed_or_rejected(task: str, changes: dict[str, Any], preset: str, seed: int) -> None:
        completed_or_rejected(lambda: make_spec(task, "regular-gpt", changes, preset=preset, seed=seed))

    is_completed_or_rejected()


@MANY
def test_names(count: int) -> None:
    @settings(many, max_examples=count)
    @given(names, names, names)
    def are_completed_or_rejected(task: str, model: str, preset: str) -> None:
        completed_or_rejected(lambda: make_spec(task, model, {}, preset=preset))
        completed_or_rejected(lambda: make_task(task))
        completed_or_rejected(lambda: make_model(model, make_task("parity"), d_model=8, num_heads=2))

    are_completed_or_rejected()


@MANY
def test_assignments(count: int) -> None:
    @settings(many, max_examples=count)
    @given(st.lists(st.text(max_size=20) | st.builds("{}.{}={}".format, keys, keys, st.text(max_size=6)), max_size=3))
    def are_completed_or_rejected(words: list[str]) -> None:
        completed_or_rejected(lambda: make_spec("parity", "regular-gpt", parse_assignments(words)))

    are_completed_or_rejected()


toml_pieces = st.sampled_from(
    [
        "[train]\n",
        "[model]\n",
        "[task]\n",
        "steps = 5\n",
        "steps = 5",
        "p = nan\n",
        "= 3\n",
        '"',
        "\x00",
        "[[train]]\n",
        "train.steps = 1\n",
        "d_model = 1_6\n",
        "x = 1979-05-27\n",
        "steps = -0x1\n",
        "[train.optimizer]\nname = 'adam'\n",
    ]
)


@MANY
def test_toml_files(count: int, tmp_path: Path) -> None:
    @settings(many, max_examples=count)
    @given(
        content=st.lists(toml_pieces, max_size=6).map(lambda parts: "".join(parts).encode()) | st.binary(max_size=60)
    )
    def is_completed_or_rejected(content: bytes) -> None:
        path = tmp_path / "run.toml"
        path.write_bytes(content)
        completed_or_rejected(lambda: make_spec("parity", "regular-gpt", read_settings(path)))

    is_completed_or_rejected()


@MANY
def test_strings(count: int) -> None:
    @settings(many, max_examples=count)
    @given(
        st.sampled_from([name for name, task in TASKS.items() if issubclass(task, SymbolTask)]),
        st.text(max_size=12) | st.text("()ab01<>+-*234 |", max_size=12),
    )
    def is_completed_or_rejected(name: str, text: str) -> None:
        task = make_task(name)
        answer = task.solve if isinstance(task, OracleTask) else torch.Tensor.tolist
        completed_or_rejected(lambda: answer(task.encode(text)[None]))

    is_completed_or_rejected()


@settings(many, max_examples=300)
@given(st.text(string.digits + "-, x", max_size=12) | st.text(max_size=6))
def test_lengths(text: str) -> None:
    completed_or_rejected(lambda: parse_lengths(text.replace("000", "0")))


files = st.dictionaries(
    st.sampled_from(
        ["run.json", "state.json", "metrics.jsonl", "probes.jsonl", "result.json", "checkpoint.safetensors"]
    ),
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"", b"{}", b"[]", b"null", b'{"spec": {}}', b'{"step": 1}\n', b"\xff", b'{"digest": "0"}']),
    ),
)


@settings(many, max_examples=30)
@given(contents=files)
def test_run_folders(contents: dict[str, bytes], tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("run")
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    run = RunFolder(folder)
    for read in (run.read_spec, run.read_status, run.read_result, run.metrics.read, run.probes.read):
        completed_or_rejected(read)
    for words in (["predict", str(folder), "ab"], ["report", str(folder)], ["resume", str(folder)]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
