"""The correctness checks of benchmarks on tiny inputs, and pages that are written again from their own numbers."""

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from lengthwise import make_model, make_task
from lengthwise.ops.block_recurrence import recurrence_by_definition
from lengthwise.ops.tree_attention import prefix_states_by_definition
from lengthwise.studies.languages import LANGUAGES
from lengthwise.tasks.base import PAD

ROOT = Path(__file__).parent.parent

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import a script of benchmarks/, which is not a package."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_the_scan_of_doubling_groups_is_the_recurrence(length: int, load: Load) -> None:
    given = drawn(2, length, 3, 2, 2), drawn(2, length, 3, 2), drawn(2, 3, 2)
    states = load("doubling_scan").doubling_scan(*given), recurrence_by_definition(*given)
    torch.testing.assert_close(*states)
    torch.testing.assert_close(*(torch.autograd.grad(each.square().sum(), given) for each in states))


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_the_dense_mask_gives_the_last_state_of_the_tree(length: int, load: Load) -> None:
    model = make_model("regular-gpt", make_task("parity"), d_model=8, num_heads=2).double()
    ids = torch.randint(PAD, 2, (3, length), generator=torch.Generator().manual_seed(0)) - PAD
    states = load("dense_mask").dense_mask_states(ids, model.tree), prefix_states_by_definition(ids, model.tree)[:, -1]
    torch.testing.assert_close(*states)
    parameters = list(model.tree.layers[0].parameters())
    torch.testing.assert_close(*(torch.autograd.grad(each.square().sum(), parameters) for each in states))


def test_memorized_words_have_the_smallest_dimension(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load("memorize_time")
    monkeypatch.setattr(sys, "argv", ["memorize_time.py", "--period", "4"])
    script.main()
    assert re.search(r"^2 binary words of period 4: .*; smallest dimensions: 2: 2$", capsys.readouterr().out)
    monkeypatch.setattr(script, "memorize", lambda text: SimpleNamespace(lower=1, upper=2))
    with pytest.raises(AssertionError, match="0001"):
        script.main()


def test_a_peer_is_timed_only_if_the_results_are_equal(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peers, works = load("peers"), load("peer_works")
    monkeypatch.setattr(peers.gc, "collect", lambda: 0)  # it takes most of a second here, and four are made
    counting = next(work for work in works.WORKS if work.distribution == "python")
    measured = peers.measure(counting, 3, 1)
    assert (measured.title, measured.size) == (counting.title, 3)
    assert min(measured.ours, measured.theirs) > 0
    assert counting.title in capsys.readouterr().out

    def wrong(size: int) -> object:
        pair = counting.make(size)
        return pair._replace(theirs=lambda: counting.make(size + 1).theirs())

    with pytest.raises(AssertionError, match=f"{counting.title}, size 3: the results differ"):
        peers.measure(counting._replace(make=wrong), 3, 1)


def test_the_page_of_peers_is_written_again_from_the_dated_numbers(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = load("peers")
    record = json.loads(max((ROOT / "benchmarks" / "results").glob("peers-*.json")).read_text(encoding="utf-8"))
    measurements = [peers.Measurement(**measurement) for measurement in record["measurements"]]
    versions = dict(re.findall(r" of (\S+) (\S+)$", "\n".join(m.peer for m in measurements), re.MULTILINE))
    monkeypatch.setattr(peers, "version", versions.__getitem__)
    stored = (ROOT / "docs" / "results" / "peers.md").read_text(encoding="utf-8")
    assert peers.page(measurements, record["environment"]) == stored


def test_each_public_recurrence_is_compared_with_a_model(load: Load) -> None:
    public, others = load("public_recurrences"), load("other_recurrences")
    titles = {way.title for way in others.WAYS}
    for each in public.PUBLIC:
        assert {each.ours, *each.others} <= titles
        assert each.package in public.__doc__
    first = public.PUBLIC[0]
    assert not first._replace(module="no_such_module").is_installed
    assert first._replace(module="torch").is_installed
    embedding, readout = nn.Embedding(5, 4), nn.Linear(4, 3)
    inputs = torch.tensor([[0, 4, 2]])
    assert torch.equal(public.Stack(embedding, nn.Tanh(), readout)(inputs), readout(embedding(inputs).tanh()))


@pytest.mark.slow  # importing the packages takes seconds
def test_installed_public_recurrences_answer_each_position(load: Load) -> None:
    for public in load("public_recurrences").PUBLIC:
        if public.is_installed:
            assert public.make(16)(torch.randn(2, 5, 16)).shape == (2, 5, 16)


def test_the_page_of_shallow_features_is_written_again_from_its_scores(load: Load) -> None:
    script = load("shallow_features")
    path = ROOT / "docs" / "results" / "shallow-features.md"
    stored, _, where = path.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ").partition("## Provenance\n")
    assert where
    score = r"^\| ([^|]+) \| ([^|]+) \| (chi2023|near-miss) \| ([\d.]+) % \|$"
    line = r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \| [^|]+ % \| ([^|]+) \|"
    best = {
        (row, sampling, feature)
        for row, *features in re.findall(line, stored, re.MULTILINE)
        for sampling, feature in zip(script.SAMPLINGS, features, strict=True)
    }
    # Printed scores are rounded down, so another feature may have the same printed score as the best feature.
    scores = [
        script.Score(row, sampling, feature, min(1.0, float(share) / 100 + 1e-9 * ((row, sampling, feature) in best)))
        for row, feature, sampling, share in re.findall(score, stored, re.MULTILINE)
    ]
    assert script.page(scores).replace("\N{NO-BREAK SPACE}", " ").partition("## Provenance\n")[0] == stored


def test_the_number_of_runs_answers_tomita_1(load: Load) -> None:
    """Strings of only one symbol have one run, and all strings of the near misses have more."""
    tomita_1 = next(language for language in LANGUAGES if language.row == "Tomita 1")
    scores = load("shallow_features").feature_scores(tomita_1, "near-miss", [12])
    accuracies = {score.feature: score.accuracy for score in scores}
    assert accuracies["majority class"] == 0.5
    assert accuracies["number of runs"] > 0.99
