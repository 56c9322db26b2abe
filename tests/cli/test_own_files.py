"""What is said of files of one's own: where they fail, that they have changed, and what they should hold instead."""

import json
from pathlib import Path

import pytest
import torch
from command import exit_code
from torch import nn

import lengthwise
from lengthwise import registry
from lengthwise.certification.certify import certify
from lengthwise.cli.messages import line_in_extension
from lengthwise.constructions import construct
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models import make_model
from lengthwise.models.base import MODELS, ModelConfig, RecurrentModel, SequenceModel
from lengthwise.runs import provenance, records
from lengthwise.runs.compiled import save_compiled
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.progress import Progress
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.tasks.consistency import check_task_consistent
from lengthwise.tasks.regular.parity import Parity
from lengthwise.training.loop import TrainingState

PLAN = EvaluationPlan(dense_strings=2).limit_lengths(41)


def error_of(capsys, *arguments: str) -> str:
    assert exit_code(*arguments) == 2
    return capsys.readouterr().err


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as an extension that was loaded."""
    file = tmp_path / "mine.py"
    file.write_text("def inner():\n    return [][1]\n\n\ndef outer(call):\n    return call()\n")
    monkeypatch.setattr(registry, "_loaded", {file})
    return file


def test_an_error_has_the_innermost_line_of_the_users_file(own_file: Path) -> None:
    names: dict[str, object] = {}
    exec(compile(own_file.read_text(), own_file, "exec"), names)
    inner, outer = names["inner"], names["outer"]
    for call, line, name in ((inner, 2, "inner"), (lambda: outer(lambda: int("x")), 6, "outer")):
        with pytest.raises((IndexError, ValueError)) as caught:
            call()
        assert line_in_extension(caught.value) == f"{own_file}, line {line}, in {name}: "
    assert line_in_extension(ValueError("of nobody")) == ""


def test_a_file_that_has_changed_since_a_run_began_is_named(
    own_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, told = make_spec("parity", "rnn", {"train": {"steps": 2, "batch_size": 4}}), list[Progress]()
    execute(spec, tmp_path / "runs", PLAN)
    assert "extension mine.py" in json.loads((tmp_path / "runs" / spec.id / "run.json").read_text())["versions"]
    execute(spec, tmp_path / "runs", PLAN, told.append)
    assert [progress.phase for progress in told] == ["done"]
    own_file.write_text("changed = True\n")
    execute(spec, tmp_path / "runs", PLAN, told.append)
    (change,) = (progress.note for progress in told if progress.is_decision)
    assert change == "mine.py has changed since this run began; to train the run again, give another runs folder"
    assert RunFolder(tmp_path / "nothing").changes_of_extensions() == []
    load_run(tmp_path / "runs" / spec.id)
    monkeypatch.setattr(provenance, "file_of", lambda member: str(own_file))
    with pytest.warns(UserWarning, match=r"mine\.py has changed since this net began to train; its answers may diff"):
        load_run(tmp_path / "runs" / spec.id)


def test_a_file_that_is_corrected_before_training_begins_has_not_changed_since(own_file: Path, tmp_path: Path) -> None:
    spec = make_spec("parity", "rnn", {"train": {"steps": 2, "batch_size": 4}})
    RunFolder(tmp_path / spec.id).create(spec, plan=PLAN)  # and then the first step was refused
    own_file.write_text("corrected = True\n")
    told = list[Progress]()
    execute(spec, tmp_path, PLAN, told.append)
    execute(spec, tmp_path, PLAN, told.append)
    assert not [progress.note for progress in told if progress.is_decision]
    assert provenance.changed_extensions(json.loads((tmp_path / spec.id / "run.json").read_text())["versions"]) == []


def test_files_of_one_name_are_told_apart(own_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other" / own_file.name
    other.parent.mkdir()
    other.write_text("other = True\n")
    monkeypatch.setattr(registry, "_loaded", {own_file, other})
    begun = provenance.versions()
    assert {"extension mine.py", "extension mine.py (2)"} <= begun.keys()
    for alone in (own_file, other):
        monkeypatch.setattr(registry, "_loaded", {alone})
        assert provenance.changed_extensions(begun) == []
    other.write_text("changed = True\n")
    assert provenance.changed_extensions(begun) == ["mine.py"]


def test_recorded_results_stand_only_for_the_code_that_gave_them(
    own_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the file of the model holds, whatever it is called; a result that names no file is another's, too."""
    spec = make_spec("parity", "rnn", {"train": {"steps": 2, "batch_size": 4}})
    result = execute(spec, tmp_path / "runs", PLAN)
    renamed = own_file.rename(tmp_path / "renamed.py")
    monkeypatch.setattr(registry, "_loaded", {renamed})
    monkeypatch.setattr(provenance, "file_of", lambda member: str(renamed))
    assert records.restore([result], tmp_path / "same").num_taken == 1
    renamed.write_text("changed = True\n")
    assert records.restore([result], tmp_path / "changed").num_taken == 0
    of_nobody = result.model_copy(update={"versions": {"lengthwise": "0"}})
    assert records.restore([of_nobody], tmp_path / "nobody").num_taken == 0


def test_a_half_trained_net_goes_on_only_with_the_code_that_it_began_with(
    own_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another model or task would make neither the one net nor the other of it; another file makes no difference."""
    spec = make_spec("parity", "rnn", {"train": {"steps": 20, "batch_size": 4}})
    with pytest.raises(Interrupted):
        execute(spec, tmp_path / "runs", PLAN, stop_requested=iter([False] * 9 + [True] * 99).__next__)
    own_file.write_text("changed = True\n")
    monkeypatch.setattr(provenance, "file_of", lambda member: str(own_file))
    with pytest.raises(
        ValueError, match=r"mine\.py has changed since this run began, so the run would continue with another"
    ):
        execute(spec, tmp_path / "runs", PLAN)
    monkeypatch.undo()
    assert execute(spec, tmp_path / "runs", PLAN).training.step == 20


class Net(RecurrentModel):
    """Counts b, or does not; answers every prefix, or the last one alone."""

    def __init__(self, *, answers_all: bool = True) -> None:
        super().__init__()
        self.readout, self.answers_all = nn.Linear(2, 2), answers_all

    def reset_parameters(self, generator: torch.Generator) -> None: ...

    def initial_state(self, batch_size: int) -> torch.Tensor:
        return torch.tensor([1.0, 0.0]).expand(batch_size, -1)

    def step(self, token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.where(token[:, None] == 1, state.flip(1), state)
        return self.readout(state), state

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        logits = super().forward(inputs)
        return logits if self.answers_all else logits[:, -1]


@pytest.mark.usefixtures("fewer_strings")
def test_a_class_of_ones_own_needs_no_name_to_be_certified() -> None:
    net = Net()
    with torch.no_grad():
        net.readout.weight.copy_(torch.eye(2))
        net.readout.bias.zero_()
    assert (net.name, SequenceModel.__subclasses__()[0].name) == ("Net", SequenceModel.__subclasses__()[0].__name__)
    assert lengthwise.certify(net, make_task("parity")).level in ("extracted", "proved")


def test_a_class_of_ones_own_that_answers_the_last_prefix_alone_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"Net\.forward: expected logits of shape \[3, 6, 2\] .*, got \[3, 2\]; return"
    ):
        TrainingState(Net(answers_all=False), make_spec("parity", "rnn", {}).recipe, make_task("parity"))
    assert make_model("rnn", make_task("parity")).name == "rnn"


def test_names_of_the_package_complete() -> None:
    assert set(lengthwise.__all__) == set(dir(lengthwise))
    assert "certify" in dir(lengthwise)


def test_other_files_than_those_that_are_needed_have_their_way_out(tmp_path: Path, capsys) -> None:
    save_compiled(construct("rnn", make_task("parity")), tmp_path / "net")
    weights = next((tmp_path / "net").glob("*.safetensors"))
    assert "for example, the lines `weights = " in error_of(capsys, "predict", str(weights), "ab")
    (tmp_path / "rows.json").write_text("[]")
    learned = ("learn", str(tmp_path / "rows.json"), "--out", str(tmp_path / "out"))
    assert "write one object on each line of a .jsonl" in error_of(capsys, *learned)
    assert "write `lengthwise train parity rnn`" in error_of(capsys, "train", "rnn", "parity")


def test_a_string_that_is_refused_does_not_end_the_answers(tmp_path: Path, capsys) -> None:
    save_compiled(construct("rnn", make_task("parity")), tmp_path)
    assert exit_code("predict", str(tmp_path), "ab", "axb", "abb") == 2
    out, err = capsys.readouterr()
    assert [line.partition("\t")[0] for line in out.splitlines()] == ["ab", "abb"]
    assert "string 2: text: 'x' at position 2" in err


class Own(SequenceModel):
    """A running mean of embeddings; each class below does one thing wrongly."""

    Config = ModelConfig

    def __init__(
        self, config: ModelConfig, *, vocab_size: int, num_classes: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.config, self.embedding, self.readout = config, nn.Embedding(vocab_size, 4), nn.Linear(4, num_classes)
        self.reset_parameters(generator or torch.Generator())

    def reset_parameters(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=generator)

    def states(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.embedding(inputs).cumsum(1) / torch.arange(1, inputs.shape[1] + 1)[:, None]

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.readout(self.states(inputs))

    def last_state(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.states(inputs)[:, -1]


class LooksAhead(Own):
    def states(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.embedding(inputs).cumsum(1) / inputs.shape[1]


class LooksAround(Own):
    def states(self, inputs: torch.Tensor) -> torch.Tensor:
        states = super().states(inputs)
        return states - states.mean(0)


class HoldsMore(Own):
    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        self.more = torch.rand(4)

    def states(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().states(inputs) + self.more


class DrawsElsewhere(Own):
    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(torch.default_generator)


class HasNoEnd(Own):
    def last_state(self, inputs: torch.Tensor) -> torch.Tensor: ...

    last_state.__isabstractmethod__ = True


class TakesLess(Own):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, vocab_size=2, num_classes=2)


def begin_with(model: str) -> None:
    spec = make_spec("parity", model, {"train": {"steps": 2, "batch_size": 4}})
    TrainingState(spec.make_model(), spec.recipe, spec.task)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (LooksAhead, "LooksAhead.forward: expected an answer that depends only on the prefix, not on what"),
        (LooksAround, "LooksAround.forward: expected an answer that depends only on the prefix, .* on other strings"),
        (
            HoldsMore,
            "HoldsMore: expected the same answers each time the model is made with the same weights, .*register_buffer",
        ),
        (
            DrawsElsewhere,
            "DrawsElsewhere: expected the same weights each time the model is made from one seed, .*`generator`",
        ),
        (HasNoEnd, "HasNoEnd: expected the methods last_state, got a class without them; define them in the class"),
        (TakesLess, "TakesLess.__init__: expected the parameter config, then vocab_size, num_classes and"),
    ],
)
def test_a_model_that_is_no_one_function_is_refused(kind: type[Own], sentence: str) -> None:
    def try_it() -> None:
        MODELS.register("own")(kind)
        begin_with("own")

    try:
        with pytest.raises(ValueError, match=sentence):
            try_it()
    finally:
        MODELS._members.pop("own", None)


def test_one_that_is_passes() -> None:
    MODELS.register("own")(Own)
    try:
        begin_with("own")
    finally:
        del MODELS._members["own"]


def changed(name: str, does: object) -> type[Parity]:
    """Parity with another method of this name, in a class of the name."""
    return type(name, (Parity,), {"__module__": __name__, name.lower(): does})


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            changed("Symbols", property(lambda self: ())),
            "Symbols.symbols: expected one or more different names, got no",
        ),
        (
            changed("Classes", property(lambda self: ("a", "a"))),
            "Classes.classes: expected one or more different names, got one",
        ),
        (
            changed("Is_legal_length", lambda self, n: n > 10_000),
            "is_legal_length: expected True for some length of up to 10,000",
        ),
        (changed("Sample", lambda self, *n: 1), "Sample.sample: expected a Batch of inputs and targets, got int"),
        (
            changed("Solve", lambda self, ids: ids + 1),
            r"sample, targets: expected numbers from 0 to 1, or -100 .*, got 2",
        ),
        (
            changed("Solve", lambda self, ids: ids[:, -1]),
            r"targets: expected whole numbers .*shape \[4, 1\], got .*\[4\]",
        ),
        (changed("Solve", lambda self, ids: ids.float()), "targets: expected whole numbers .*got torch.float32"),
        (
            changed("Solve", lambda self, ids: 1 - Parity.solve(self, ids)),
            "transducer: expected the answer of solve, '1', after 'a', got '0'",
        ),
        (
            changed("Baseline", lambda self, length: 0.99),
            r"Baseline.baseline: expected about 0\.\d\d at length 1 \(the most frequent answer's share of 1,024",
        ),
        (
            changed("Symbols", property(lambda self: ("a", "a b"))),
            "Symbols.symbols: expected characters, or words without spaces, got 'a b'; its text would be read as",
        ),
    ],
)
def test_a_task_that_contradicts_itself_is_refused(kind: type[Parity], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_task_consistent(kind())
    with pytest.raises(ValueError, match=sentence):
        certify(make_model("rnn", make_task("parity")), kind())
    check_task_consistent(changed("Solve", Parity.solve)())
    check_task_consistent(changed("Is_legal_length", lambda self, n: n > 99)())
