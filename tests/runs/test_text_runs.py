"""Runs on a text: from files to perplexities, resumed to the same bits, and texts that a net writes."""

from pathlib import Path

import pytest
import torch
from command import exit_code

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models import SequenceModel, make_model
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import load_run
from lengthwise.runs.predict import predict_text, sample_text
from lengthwise.runs.spec import make_spec
from lengthwise.runs.tracking.replay import measured
from lengthwise.tasks import make_task
from lengthwise.text.corpus import FOLDER

TRAIN = {"steps": 6, "batch_size": 2, "min_length": 8, "max_length": 8, "checkpoint_every": 2}
SMALL = {"model": {"d_model": 8}, "train": TRAIN}
PLAN = EvaluationPlan(chunk_lengths=(4, 16), num_chunks=3)


@pytest.fixture(autouse=True)
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "corpora"))


def test_an_interrupted_run_goes_on_to_the_same_weights_and_perplexities(tmp_path: Path) -> None:
    novel = tmp_path / "novel.txt"
    novel.write_text("to be or not to be that is the question\n" * 20)
    spec = make_spec("text", "gru", {"task": {"files": [str(novel)], "vocab_size": 270}, **SMALL})
    whole = execute(spec, tmp_path / "whole", PLAN)
    novel.unlink()  # the corpus is found by its hash
    stops = iter([False, False, True])
    with pytest.raises(Interrupted):
        execute(spec, tmp_path / "parts", PLAN, stop_requested=lambda: next(stops))
    parts = execute(load_run(tmp_path / "parts" / spec.id).spec, tmp_path / "parts", PLAN)
    assert whole.perplexity is not None
    assert parts.perplexity == whole.perplexity
    assert [point.length for point in whole.perplexity.points] == [4, 16]
    runs = [load_run(tmp_path / name / spec.id) for name in ("whole", "parts")]
    assert runs[0].metrics == runs[1].metrics
    assert all(torch.equal(*pair) for pair in zip(*(run.model.parameters() for run in runs), strict=True))
    assert runs[0].result == whole
    assert not whole.probes


class Favors(SequenceModel):
    """After a token, the next one by number is far more likely than all others, of which none is impossible."""

    def __init__(self, num_tokens: int) -> None:
        super().__init__()
        self.readout = torch.nn.Identity()
        self.num_tokens, self.reads = num_tokens, []

    def reset_parameters(self, generator: torch.Generator) -> None: ...

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 9.0 * torch.nn.functional.one_hot((inputs + 1) % self.num_tokens, self.num_tokens)

    def last_state(self, inputs: torch.Tensor) -> torch.Tensor:
        self.reads.append(inputs.tolist())
        return self(inputs)[:, -1]


def test_a_text_is_written_token_by_token_after_its_prompt() -> None:
    task = make_task("text")
    draws = torch.Generator().manual_seed(0)
    model = Favors(257)
    assert sample_text(model, task, "xa", num_tokens=3, temperature=0.0, generator=draws) == "bcd"
    assert model.reads[:2] == [[[*b"xa"]], [[*b"xab"]]]
    texts = [
        sample_text(model, task, "a", num_tokens=40, temperature=2.0, generator=torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    ]
    assert texts[0] == texts[1] != texts[2]
    cold = sample_text(model, task, "a", num_tokens=20, temperature=0.5, generator=draws)
    for temperature in (1e-40, 5e-324):
        assert sample_text(model, task, "xa", num_tokens=3, temperature=temperature, generator=draws) == "bcd"
    assert cold == "bcdefghijklmnopqrstu"
    assert sample_text(Favors(257), task, "\x7f", num_tokens=400, temperature=0.0, generator=draws).endswith("\ufffd")


def test_a_text_may_be_as_long_as_the_model_has_positions() -> None:
    """The last token is drawn, and not read."""
    task, draws = make_task("text"), torch.Generator().manual_seed(0)
    model = make_model("transformer", task, d_model=8, learned_positions=4)
    assert sample_text(model, task, "a", num_tokens=4, generator=draws)
    with pytest.raises(ValueError, match="expected at most 4 positions"):
        sample_text(model, task, "a", num_tokens=9, generator=draws)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_where_states_overflow_nothing_is_written(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Favors, "last_state", lambda model, inputs: torch.nan * model(inputs)[:, -1])
    with pytest.raises(
        ValueError, match=r"^text: expected finite logits, got NaN or infinity, because the model's states overflow"
    ):
        sample_text(
            Favors(257), make_task("text"), "a", num_tokens=2, temperature=temperature, generator=torch.Generator()
        )


def test_a_recurrent_net_writes_what_it_would_after_all_text_so_far() -> None:
    task = make_task("text")
    model = make_model("gru", task, d_model=8)
    sampled = sample_text(model, task, "one", num_tokens=6, temperature=0.0, generator=torch.Generator())
    tokens = task.tokenize("one").tolist()
    with torch.no_grad():
        for _ in range(6):
            tokens.append(int(model.last(torch.tensor([tokens]))[0].argmax()))
    assert sampled == task.detokenize(torch.tensor(tokens[3:]))
    assert predict_text(model, task, "one").answer == task.symbols[tokens[3]]


@pytest.mark.parametrize(
    ("task", "fields", "sentence"),
    [
        (
            "parity",
            {},
            "task: expected a language task, got parity, which has answers and no text to continue; `length",
        ),
        ("text", {"num_tokens": 0}, "num_tokens: expected 1 to 100,000, got 0"),
        ("text", {"temperature": -1.0}, "temperature: expected a number of at least 0, got -1; give 0 for the"),
    ],
)
def test_texts_that_cannot_be_written_are_refused(task: str, fields: dict, sentence: str) -> None:
    made = make_task(task)
    request = {"num_tokens": 3, **fields}
    with pytest.raises(ValueError, match=f"^{sentence}"):
        sample_text(make_model("gru", made, d_model=8), made, generator=torch.Generator(), **request)


def test_commands_from_a_file_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER)
    Path("novel.txt").write_text("the cat sat on the mat\n" * 60)
    sets = [word for key in TRAIN for word in ("--set", f"train.{key}={TRAIN[key]}")]
    arguments = ["text", "gru", "--text", "novel.txt", "--set", "model.d_model=8", "--longest", "64", *sets]
    assert exit_code("train", *arguments) == 0
    assert "perplexity of last tokens" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpora", "novel.txt", "runs"]
    (run,) = map(str, Path("runs").iterdir())
    assert exit_code("evaluate", run, "--lengths", "4,64", "--strings", "5", "--out", "points.csv") == 0
    assert "5 chunks of the test split" in capsys.readouterr().out
    assert len(Path("points.csv").read_text().splitlines()) == 11
    assert exit_code("predict", run, "--sample", "5", "--prompt", "the ") == 0
    assert capsys.readouterr().out.endswith("\n")
    assert exit_code("export", run, "--to", "hub-folder", "--out", "hub") == 0
    assert "| tokens in a chunk | perplexity of the last token |" in Path("hub/README.md").read_text()
    assert "Not measured" not in Path("hub/README.md").read_text()
    result = load_run(run).result
    assert result is not None
    assert result.perplexity is not None
    sent = [(point.length, point.perplexity) for point in result.perplexity.points]
    assert measured(result).by_length["by_length/perplexity"] == sent
    for words, sentence in (
        (["predict", run], "predict: expected either strings to answer or --sample, got neither"),
        (["predict", run, "--sample", "1000000"], "--sample: expected 1 to 100,000"),
        (["evaluate", run, "--lengths", "999"], "--lengths: expected lengths from 2 to "),
        (["evaluate", run, "--split", "x"], "--split: expected one of train, valid, test, got 'x'"),
        (["evaluate", run, "--protocol", "structured"], "--protocol: not allowed for a language model"),
        (["compare", run, run], "results: expected runs with accuracies, got text-gru-seed0-"),
        (["compare", run, run, "--text", "novel.txt"], "--text: not allowed with folders of runs"),
        (["certify", run], "task: expected a task with a finite reference machine, got text"),
        (["analyze", run], "model: expected a regular-gpt and a regular task"),
        (["report", run], "got a run of a language model; this page has no chart of perplexities"),
        (
            ["train", "text", "gru", "--text", "none.txt"],
            "--text: expected a text file, got none.txt, which does not exist",
        ),
        (["train", "text", "gru", "--until", "proved"], "until: expected a task with a reference machine, got text"),
    ):
        assert exit_code(*words) == 2
        assert sentence in capsys.readouterr().err
