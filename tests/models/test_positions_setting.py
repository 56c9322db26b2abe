"""The setting `positions` of transformers: what old settings mean, and sentences about those that do not fit."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from lengthwise.layers.positions.base import POSITIONS, PositionEncoding
from lengthwise.models.base import make_model
from lengthwise.runs.records import read_records
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.tasks import make_task
from lengthwise.training.loop import train

RECORDS = Path(__file__).parents[2] / "docs" / "results" / "records"


@pytest.mark.parametrize("page", ["looped-table-1", "looped-table-2"])
def test_records_from_before_there_were_other_encodings_keep_their_ids(page: str) -> None:
    """All of these have learned tables."""
    result = read_records(RECORDS / f"{page}.jsonl.gz")[0]
    assert "positions" not in result.spec["model"]
    spec = spec_from_json(result.spec)
    assert spec.id == result.run_id
    assert spec.model_config.positions == "learned"


def test_sinusoids_have_the_id_that_they_always_had() -> None:
    """A setting that says nothing new is left out of the specification, of which the id is a hash."""
    spec = make_spec("parity", "transformer", {"model": {"positions": "sinusoidal"}})
    assert spec.to_json()["model"] == {
        "name": "transformer",
        "d_model": 64,
        "num_heads": 4,
        "learned_positions": 0,
        "initialization": "torch",
        "num_layers": 2,
    }
    assert spec_from_json(spec.to_json()) == spec


@pytest.mark.parametrize("setting", ["learned_positions", "position_range"])
def test_the_size_of_an_encoding_of_ones_own_is_the_setting_that_it_names(setting: str, monkeypatch) -> None:
    class OwnEncoding(PositionEncoding):
        size_setting = setting

    monkeypatch.setitem(POSITIONS._members, "own", OwnEncoding)
    net = make_model("transformer", make_task("parity"), positions="own", **{setting: 77})
    assert net.read_in.positions.sizes.max_positions == 77
    other = {"learned_positions": "position_range", "position_range": "learned_positions"}[setting]
    with pytest.raises(ValueError, match=f"^model.{other}: expected its default, .* with positions='own'"):
        make_model("transformer", make_task("parity"), positions="own", **{other: 77})


@pytest.mark.parametrize("model", ["transformer", "looped-transformer"])
@pytest.mark.parametrize("ranged", ["randomized", "local"])
@pytest.mark.parametrize("changes", [{"learned_positions": 9}, {"positions": "rotary"}, {"position_range": 50}])
def test_every_choice_has_its_own_id(model: str, changes: dict[str, Any], ranged: str) -> None:
    positions = {"positions": ranged} if "position_range" in changes else {}
    ids = {make_spec("parity", model, {"model": chosen}).id for chosen in ({}, positions, {**positions, **changes})}
    assert len(ids) == (3 if positions else 2)


def test_a_table_is_the_same_with_and_without_its_name() -> None:
    named = make_spec("parity", "transformer", {"model": {"positions": "learned", "learned_positions": 9}})
    assert named == make_spec("parity", "transformer", {"model": {"learned_positions": 9}})


@pytest.mark.parametrize("model", ["transformer", "looped-transformer"])
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"positions": "rotery"},
            "model.positions: expected one of alibi, fire, kerple-log, kerple-power, learned, local, none, "
            "randomized, rotary, sinusoidal, t5, xl, got 'rotery'; did you mean 'rotary'?",
        ),
        ({"positions": 3}, "model.positions: expected a valid string, got 3"),
        (
            {"positions": "learned"},
            "model.learned_positions: expected at least 1 with positions 'learned', got 0",
        ),
        (
            {"positions": "t5", "learned_positions": 40},
            "model.learned_positions: expected its default, 0, because it has no effect with positions='t5', got 40; "
            "leave learned_positions out or choose positions='learned'",
        ),
        (
            {"positions": "alibi", "position_range": 40},
            "model.position_range: expected its default, 2048, because it has no effect with positions='alibi', got "
            "40; leave position_range out or choose positions='local' or 'randomized'",
        ),
        ({"position_range": 0}, "model.position_range: expected a number greater than or equal to 1, got 0"),
        (
            {"positions": "rotary", "d_model": 12},
            "num_heads: expected heads of an even number of units for rotary positions, got d_model=12 in 4 heads",
        ),
    ],
)
def test_settings_that_do_not_fit_are_one_sentence(model: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}") as caught:
        make_model(model, make_task("parity"), **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", ["transformer", "looped-transformer"])
def test_training_draws_randomized_positions_from_the_seed_and_evaluation_draws_none(model: str) -> None:
    """Other draws, other gradients: nets that differ in their seed's positions alone would be equal without them."""
    settings = {"model": {"positions": "randomized", "position_range": 64, "d_model": 16}, "train": {"steps": 3}}
    nets, inputs = [], torch.randint(2, (4, 30), generator=torch.Generator().manual_seed(0))
    for positions in ("randomized", "randomized", "sinusoidal"):
        chosen = settings["model"] | {"positions": positions}
        if positions == "sinusoidal":
            del chosen["position_range"]
        spec = make_spec("parity", model, {**settings, "model": chosen})
        net = spec.make_model()
        before = net(inputs)
        train(net, spec.task, spec.recipe, seed=0)
        nets.append(net)
        assert net.generator is None
        assert torch.equal(net(inputs), net(inputs))
    one, same, fixed = (torch.cat([parameter.flatten() for parameter in net.parameters()]) for net in nets)
    assert torch.equal(one, same)
    assert not torch.allclose(one, fixed)
    assert torch.equal(before, spec.make_model()(inputs))
    drawn = nets[0].drawing(torch.Generator().manual_seed(0))
    assert not torch.allclose(drawn(inputs), nets[0](inputs))
    assert all(one is other for one, other in zip(drawn.parameters(), nets[0].parameters(), strict=True))
    with pytest.raises(ValueError, match=r"length: expected at most 64, because this model draws from 64 positions"):
        nets[0](torch.zeros(1, 65, dtype=torch.int64))
