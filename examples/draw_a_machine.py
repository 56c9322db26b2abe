"""Train a net on a regular expression, read the finite machine off the net, and draw the machine.

python examples/draw_a_machine.py --pattern "(a|b)*abb" --out docs/machine.svg
"""

import argparse
from pathlib import Path

from lengthwise import certify, make_spec, train
from lengthwise.automata import Transducer
from lengthwise.automata.drawing import machine_svg
from lengthwise.certification.equivalence import machine_from_json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pattern", default="(a|b)*abb")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("machine.svg"))
    options = parser.parse_args()

    settings = {
        "task": {"pattern": options.pattern},
        "model": {"d_model": 16, "block_dim": 16},
        "train": {"steps": options.steps},
    }
    spec = make_spec("regex", "block-linear-rnn", settings, preset="machine")
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=spec.seed)
    certificate = certify(model, spec.task)
    print(f"{certificate.level}. {certificate.claim}")
    if certificate.machine is None:
        print("no machine was read off this net; train it for more steps")
        return
    machine = machine_from_json(certificate.machine)
    assert isinstance(machine, Transducer)  # a recurrent model has a transducer; a RegularGPT would have a tree machine
    options.out.write_text(machine_svg(machine.minimize(), certificate.classes), encoding="utf-8")
    print(f"wrote {options.out}: {machine.num_states} states")


if __name__ == "__main__":
    main()
