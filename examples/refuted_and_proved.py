"""Compare two nets that are right on random strings of 10,000 symbols: a short string refutes one, the other is proved.

python examples/refuted_and_proved.py --out docs/refuted-and-proved.svg
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from lengthwise import certify, length_curve, make_spec, train
from lengthwise.models import SequenceModel
from lengthwise.runs.spec import RunSpec

LENGTHS = (10, 20, 40, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
FAMILIES = {
    "random": "random strings",
    "few-runs": "strings of few runs",
    "sparse": "few symbols differ from the others",
}


def specifications(steps: int | None) -> list[RunSpec]:
    """Return the specifications of the two runs in the README; with `steps`, both runs are too short to learn."""
    slow = {"steps": 150, "optimizer": {"learning_rate": 0.01}}
    small = {"d_model": 16, "block_dim": 16}
    few = {} if steps is None else {"steps": steps}
    return [
        make_spec("parity", "lstm", {"train": slow | few}, seed=3),
        make_spec(
            "parity", "block-linear-rnn", {"model": small, "train": {"steps": 300} | few}, preset="machine", seed=3
        ),
    ]


def scores(spec: RunSpec, model: SequenceModel, lengths: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield the accuracy by length, for random strings and two families of structured strings."""
    for protocol in ("independent", "structured"):
        for point in length_curve(model, spec.task, lengths, num_strings=128, protocol=protocol).points:
            if point.family in FAMILIES:
                yield {"length": point.length, "accuracy": point.accuracy, "strings": FAMILIES[point.family]}


def chart(values: list[dict[str, Any]], title: str, trained_to: int) -> alt.LayerChart:
    """Return a chart of accuracy against length, with a line for each family of strings."""
    x = alt.X("length:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", values=[10, 100, 1_000, 10_000]))
    y = alt.Y("accuracy:Q", scale=alt.Scale(domain=[0.45, 1.02]), axis=alt.Axis(format="%", values=[0.5, 0.75, 1]))
    names = list(FAMILIES.values())
    color = alt.Color("strings:N", title=None, sort=names, legend=alt.Legend(orient="bottom", columns=3, labelLimit=0))
    # With different widths, lines that coincide stay visible.
    width = alt.StrokeWidth("strings:N", sort=names, scale=alt.Scale(range=[7, 3, 1.5]), legend=None)
    lines = (
        alt.Chart(alt.InlineData(values=values)).mark_line(point=True).encode(x=x, y=y, color=color, strokeWidth=width)
    )
    limit = alt.Chart(alt.InlineData(values=[{"length": trained_to, "text": f"trained up to {trained_to}"}])).encode(
        x=x
    )
    text = limit.mark_text(align="left", dx=4, color="#666").encode(y=alt.value(170), text="text:N")
    layers = [limit.mark_rule(color="#8a8a8a"), text, lines]
    return alt.LayerChart(layer=layers, title=title, width=300, height=180)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, help="train both nets for this number of steps")
    parser.add_argument("--longest", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("refuted-and-proved.svg"))
    options = parser.parse_args()

    panels = []
    for spec in specifications(options.steps):
        model = spec.make_model()
        train(model, spec.task, spec.recipe, seed=spec.seed)
        certificate = certify(model, spec.task)
        print(f"{spec.model_name}: {certificate.level}. {certificate.claim}")
        if certificate.counterexample is not None:
            string = "".join(certificate.counterexample.string)
            print(f"  wrong on a string of {len(string)} symbols: {string}")
        lengths = tuple(length for length in LENGTHS if length <= options.longest)
        title = f"{spec.model_name}: {certificate.level}"
        panels.append(chart(list(scores(spec, model, lengths)), title, spec.recipe.max_length))

    both = alt.HConcatChart(hconcat=panels, config=alt.Config(background="white"))
    options.out.write_text(vl_convert.vegalite_to_svg(both.to_dict()), encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
