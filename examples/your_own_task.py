"""Register a task of your own: is the number of 1 equal to 2 modulo 3? The registration holds for this script.

python examples/your_own_task.py --steps 2000
"""

import argparse
from typing import ClassVar

import numpy as np
import torch

from lengthwise import TASKS, Recipe, length_curve, make_model, make_task, train
from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.tasks import Batch, RegularTask


@TASKS.register("two-mod-three")
class TwoModThree(RegularTask):
    """The task whose answer is yes if the number of 1 so far is 2 modulo 3."""

    # Symbols are independent, so a prefix is distributed as a string of its length.
    prefix_exchangeable: ClassVar[bool] = True

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("0", "1")

    @property
    def classes(self) -> tuple[str, ...]:
        return ("no", "yes")

    @property
    def transducer(self) -> Transducer:
        machine = Semiautomaton(np.array([[0, 1], [1, 2], [2, 0]]), self.symbols)
        return Transducer(machine, start=0, outputs=np.array([0, 0, 1]))

    def is_balanced_length(self, length: int) -> bool:
        return length >= 2  # from length 2 on, both answers can occur

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        inputs = torch.randint(2, (batch_size, length), generator=generator)
        return Batch(inputs, self.solve(inputs))

    def solve(self, inputs: torch.Tensor) -> torch.Tensor:
        return (inputs.cumsum(1) % 3 == 2).long()

    def baseline(self, length: int) -> float:
        machine = self.transducer.semiautomaton.transition_matrix(np.array([0.5, 0.5]))
        yes = float(np.linalg.matrix_power(machine, length)[0, 2])
        return max(yes, 1 - yes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()

    task = make_task("two-mod-three")
    strings = task.sample(1000, 50, torch.Generator()).inputs
    assert torch.equal(task.solve(strings), torch.from_numpy(task.transducer.run(strings.numpy())))

    model = make_model("regular-gpt", task)
    train(model, task, Recipe(steps=options.steps), seed=0)
    for point in length_curve(model, task, [40, 1000, 10_000], num_strings=128).points:
        print(f"length {point.length}: {point.accuracy:.3f} right, {point.baseline:.3f} by a constant answer")


if __name__ == "__main__":
    main()
