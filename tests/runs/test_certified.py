"""Certificates and the folders they are about."""

from pathlib import Path

import pytest
import torch
from command import exit_code
from fewer_strings import LENGTHS, NUM_ALONE
from last_symbol import LastSymbol
from slow_nets import slow_net

from lengthwise.certification.builder import net_digest, weights_digest
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.confirm import confirm
from lengthwise.certification.parts import Counterexample
from lengthwise.constructions import construct
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models import make_model
from lengthwise.runs.certified import check_is_of
from lengthwise.runs.compiled import load_compiled, save_compiled
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.validation import dump_named

pytestmark = pytest.mark.usefixtures("fewer_strings")


def verdict(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = exit_code("certify", *arguments)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """A compiled machine and its certificate; the same with one weight a bit off; a machine of another task."""
    parity = construct("rnn", make_task("parity"))
    save_compiled(parity, tmp_path / "parity")
    with torch.no_grad():
        next(parity.model.parameters()).view(-1)[0] += 1e-6
    save_compiled(parity, tmp_path / "moved")
    save_compiled(construct("rnn", make_task("even-pairs")), tmp_path / "pairs")
    return [str(tmp_path / name) for name in ("parity", "moved", "pairs")]


def test_a_certificate_is_checked_against_the_weights_it_is_about(folders: list[str], capsys) -> None:
    parity, moved, pairs = folders
    code, text = verdict(capsys, parity, "--min-level", "extracted")
    assert code == 0, text
    check = ("--check", f"{parity}/certificate.json")
    code, text = verdict(capsys, parity, *check)
    assert code == 0
    assert f"verified: the certificate is about the model and the task in {parity}" in text
    for other in (moved, pairs):
        code, text = verdict(capsys, other, *check)
        assert code == 1
        assert text == (
            f"lengthwise: {other}: expected the model and the task that the certificate is about, got a difference in "
            f"weights; certify {other} again\n"
        )


def test_a_certificate_of_an_interrupted_run_names_its_step(tmp_path: Path, capsys) -> None:
    settings = {"model": {"d_model": 8}, "train": {"steps": 9, "batch_size": 4, "min_length": 1, "max_length": 8}}
    spec = make_spec("parity", "gru", settings)
    with pytest.raises(Interrupted):
        execute(spec, tmp_path, EvaluationPlan(dense=(9, 9), long=(), structured=()), stop_requested=lambda: True)
    _, text = verdict(capsys, str(tmp_path / spec.id))
    assert "\nweights: after step 1 of 9, before training was over\n" in text
    execute(spec, tmp_path, EvaluationPlan(dense=(9, 9), long=(), structured=()))
    _, text = verdict(capsys, str(tmp_path / spec.id))
    assert "weights: " not in text


def certificate_of(folder: Path, **changes: object) -> Certificate:
    """What the folder's own would say, but for changes; without evidence, which is not compared here."""
    loaded = load_compiled(folder)
    assert loaded.task is not None
    fields = {
        "level": "tested",
        "reason": "",
        "task": dump_named(loaded.task.name, loaded.task),
        "model": dump_named(loaded.model.name, loaded.model.config),
        "weights": weights_digest(loaded.model),
        "net": net_digest(loaded.model),
        "classes": loaded.task.classes,
        "transducer": loaded.task.transducer.minimize().to_json(),
    }
    return Certificate(**(fields | changes))


def test_every_part_of_a_certificate_is_compared_with_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "parity"
    save_compiled(construct("rnn", make_task("parity")), folder)
    own = certificate_of(folder)
    assert "about the model and the task" in check_is_of(own, folder)[0]
    constant = {"symbols": ["a", "b"], "start": 0, "table": [[0, 0]], "outputs": [0]}
    wrong = Counterexample(string=("b",), expected="1", got="0", shortest="as found")
    right = wrong.model_copy(update={"got": "1"})
    assert len(check_is_of(certificate_of(folder, level="refuted", counterexample=right), folder)) == 1
    for changes, what in (
        ({"weights": "other"}, "got a difference in weights"),
        ({"net": "other"}, "got a difference in net"),
        ({"model": own.model | {"activation": "tanh"}}, "got a difference in model"),
        ({"task": own.task | {"p": 0.3}}, "got a difference in task"),
        ({"classes": ("zero", "one")}, "got a difference in classes"),
        ({"transducer": constant}, "got a difference in transducer"),
        ({"level": "refuted", "counterexample": wrong}, "answers the counterexample with '1'"),
    ):
        with pytest.raises(ValueError, match=what):
            check_is_of(certificate_of(folder, **changes), folder)


def test_a_certificate_that_was_forged_for_another_model_is_refused() -> None:
    """Someone puts the digest of a net that errs, or one that cannot be proved, into a good certificate."""
    task = make_task("even-pairs")
    good = construct("regular-gpt", task).model
    certificate = certify(good, task)
    assert certificate.level == "proved"
    assert confirm(certificate, good, task) == [
        "the model answers all short strings correctly",
        *(f"the model answers {NUM_ALONE} strings of {length} symbols correctly" for length in LENGTHS),
        "a machine extracted again from the model is right on every nonempty string that has an answer",
        f"method 'exact' proves the model again: {certificate.evidence.describe()}",
    ]
    turned, rounded = (construct("regular-gpt", task).model for _ in range(2))
    with torch.no_grad():
        turned.readout[1].weight.neg_()
        rounded.layers[0].to_output.weight += 1e-9  # with 1e-6 it errs on long strings
    forged = certificate.model_copy(update={"weights": weights_digest(turned)})
    with pytest.raises(ValueError, match="its model answers the string 'a' wrongly; the certificate was edited"):
        confirm(forged, turned, task)
    with pytest.raises(
        ValueError, match=r"its proof could not be repeated \(float32 may round the merged states\); certify again"
    ):
        confirm(certificate.model_copy(update={"weights": weights_digest(rounded)}), rounded, task)
    late = slow_net("rnn", 40)  # wrong from 41 symbols on
    forged = certify(slow_net("rnn", None, pace=0.3), LastSymbol())
    with pytest.raises(ValueError, match="certificate: "):
        confirm(forged, late, LastSymbol())


def test_a_digest_knows_names_and_shapes() -> None:
    """The same bytes in another shape are another model."""
    task = make_task("parity")
    one = make_model("regular-gpt", task, d_model=8, num_heads=4, chunk_size=2)
    other = make_model("regular-gpt", task, d_model=8, num_heads=2, chunk_size=4)
    with torch.no_grad():
        for tensor, same in zip(other.state_dict().values(), one.state_dict().values(), strict=True):
            tensor.copy_(same.reshape(tensor.shape))
    assert weights_digest(one) != weights_digest(other)
