"""Train RegularGPT on a regular language at lengths up to 40, then measure it at much longer strings.

python examples/train_and_measure.py --steps 4000
"""

import argparse

from lengthwise import Recipe, length_curve, make_model, make_task, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--longest", type=int, default=10_000)
    options = parser.parse_args()

    task = make_task("tomita", index=4)  # strings without three 0 in a row
    model = make_model("regular-gpt", task)
    records = train(model, task, Recipe(steps=options.steps), seed=0)
    print(f"loss {records[0].loss:.3f} at first, {records[-1].loss:.6f} at the end")

    for protocol in ("independent", "structured"):
        curve = length_curve(model, task, [40, 200, options.longest], num_strings=64, protocol=protocol)
        for point in curve.points:
            print(f"{protocol}, {point.family}, length {point.length}: {point.num_correct}/{point.num_strings} right")


if __name__ == "__main__":
    main()
