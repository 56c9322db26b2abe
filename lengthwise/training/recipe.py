"""The recipe: everything about training that is not the task, the model or the seed."""

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, model_validator

from lengthwise.devices import Precision
from lengthwise.validation import Description

MAX_STEPS = 1_000_000_000
MAX_LENGTH = 10_000
"""The longest training string, in symbols; all lengths up to it are enumerated."""

MAX_EXAMPLES = 1_000_000
"""The largest number of fixed training strings at each length; all of them are kept in memory."""

SHARE_OF_LATEST = 0.05
"""The default weight of the latest step in a running loss."""

Share = Annotated[float, Field(ge=0, lt=1)]


PRIOR = 4e-4
"""The default weight of a distribution's previous probabilities, relative to new counts.

In a batch of 2,560 answers, this weight counts as much as about one answer. A distribution that no string of the batch
needs still has small counts, from unlikely paths. The weight exceeds such counts, so the distribution keeps what
earlier batches showed. With a smaller weight, alphabets of 60 symbols are not learned, because a batch of 2,560 answers
shows less than half of the transitions of 60 states.
"""


class OptimizerRecipe(Description):
    """The optimizer, its learning rate over the steps, and the norm at which gradients are clipped.

    `"muon"` moves a model's `hidden_matrices` by Muon at `matrix_learning_rate`, and everything else by AdamW at
    `learning_rate`. Muon is an optimizer with momentum whose updates have about equal singular values. Both rates stay
    constant (`"constant"`) or fall to 0. They fall along half a cosine over all steps (`"cosine"`), or linearly over
    the steps after the warm-up (`"linear"`). During the first `warmup_steps`, both rates are also multiplied by a
    factor that rises linearly to 1.

    Gradients are clipped at a norm of `clip_norm`, and also at `clip_ratio` (0: off) times the running mean of earlier
    norms. Without this ratio, one gradient that is a hundred times as large as all other gradients would dominate the
    momentum of the next hundred steps. The mean begins with `clip_norm`, so a large `clip_norm` leaves the first few
    hundred steps unclipped. `clip_ratio` never clips norms below 0.01.

    `"baum-welch"` maximizes the likelihood of all answers of a hidden Markov model (`lengthwise.training.baum_welch`).
    A step with a `relaxation` above 1 moves further than the plain step of Baum-Welch. Each probability is at least
    `floor` divided by the number of probabilities in its distribution. The previous probabilities of a distribution
    have the weight `prior`, relative to new counts, which are fractions of the answers of a batch. With
    `prior_by_size`, the weight is smaller for parameters of fewer than 1 / `prior` distributions, in proportion to the
    number of distributions.

    A setting that has no effect on the named optimizer must keep its default (`used_with`).
    """

    used_with = MappingProxyType(
        {
            **dict.fromkeys(
                ("learning_rate", "betas", "weight_decay", "schedule", "warmup_steps", "clip_norm", "clip_ratio"),
                ("name", ("muon", "adamw", "adam")),
            ),
            "matrix_learning_rate": ("name", ("muon",)),
            **dict.fromkeys(("relaxation", "floor", "prior", "prior_by_size"), ("name", ("baum-welch",))),
        }
    )
    name: Literal["muon", "adamw", "adam", "baum-welch"] = "muon"
    learning_rate: float = Field(1e-3, gt=0)
    matrix_learning_rate: float = Field(0.01, gt=0)
    betas: tuple[Share, Share] = (0.9, 0.98)
    weight_decay: float = Field(0.01, ge=0)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup_steps: int = Field(200, ge=0, le=MAX_STEPS)
    clip_norm: float = Field(1.0, gt=0)
    clip_ratio: float = Field(2.0, ge=0)
    relaxation: float = Field(2.0, ge=1, lt=10, exclude_if=lambda relaxation: relaxation == 2)
    floor: float = Field(1e-5, gt=0, lt=1, exclude_if=lambda floor: floor == 1e-5)
    prior: float = Field(PRIOR, gt=0, exclude_if=lambda prior: prior == PRIOR)
    prior_by_size: bool = Field(default=False, exclude_if=lambda by_size: not by_size)

    @property
    def counts_outcomes(self) -> bool:
        """Whether the optimizer is Baum-Welch, whose steps use expected counts and need no learning rate."""
        return self.name == "baum-welch"

    @property
    def needs_whole_matrices(self) -> bool:
        """Whether a step needs all entries of a parameter. If so, processes cannot each store a part of it."""
        return self.name in ("muon", "baum-welch")


class AugmentationRecipe(Description):
    """Changes to strings and states during training.

    `padding`: probability that a batch gets identity padding, which is pads that must not change the answer. Each
    string of T symbols then gets 0 to `pads_per_symbol` * T pads at random positions and, in front, the pads that fill
    its first chunk.
    `leading_padding`: probability that a batch also gets a run of pads in front. The number of these pads is
    log-uniform, at least 1 and below `leading_pads`.
    `state_noise`, `late_state_noise`: standard deviation of the Gaussian noise on hidden states in the first and in
    the second half of training. A model may keep its lowest states free of noise. RegularGPT does so for the states
    that it stores in tables: levels 1 and 2 for two symbols and chunks of size 2.
    """

    padding: float = Field(0.5, ge=0, le=1)
    pads_per_symbol: float = Field(3.0, gt=0, le=100)
    leading_padding: float = Field(0.25, ge=0, le=1)
    leading_pads: int = Field(4096, ge=1, le=1_000_000)
    state_noise: float = Field(0.1, ge=0)
    late_state_noise: float = Field(0.3, ge=0)


class RiseRecipe(Description):
    """A curriculum of lengths: the length begins at `min_length`, and rises by `by` symbols once in `every` steps.

    The length rises up to `max_length`. All strings have the current length, except that `lengths="mostly-balanced"`
    occasionally draws shorter lengths at which some class cannot occur.
    """

    by: int = Field(5, ge=1, le=MAX_LENGTH)
    every: int = Field(5_000, ge=1, le=MAX_STEPS)


class TaskRiseRecipe(Description):
    """A curriculum of the task: the field named `field` begins at `start`, and rises by `by` once in `every` steps.

    The field rises up to `stop`. Measurements always use the task of the run, whose field is not changed.
    """

    field: str
    start: int
    stop: int
    by: int = Field(1, ge=1)
    every: int = Field(5_000, ge=1, le=MAX_STEPS)

    @model_validator(mode="after")
    def _rises(self) -> "TaskRiseRecipe":
        if self.stop < self.start:
            raise ValueError(f"stop: expected at least start={self.start}, got {self.stop}; raise stop or lower start")
        return self

    def value_at(self, step: int) -> int:
        """Return the value that the task's field has at a training step.

        Example:
            >>> rise = TaskRiseRecipe(field="active_dims", start=5, stop=20, every=100)
            >>> [rise.value_at(step) for step in (0, 99, 100, 5_000)]
            [5, 5, 6, 20]
        """
        return min(self.stop, self.start + self.by * (step // self.every))


class ContractionRecipe(Description):
    """A penalty on the growth of intervals, so that errors of a recurrent state shrink from step to step.

    Once the fraction `after` of training is done, `weight` times the mean of max(0, g - `max_growth`) is added to the
    loss. Here g is the growth of one coordinate: if a state is known up to `radius`, this coordinate of the next state
    is known up to g times `radius`.
    """

    weight: float = Field(0.5, gt=0)
    radius: float = Field(0.1, gt=0)
    max_growth: float = Field(0.7, ge=0)
    after: float = Field(0.3, ge=0, lt=1)


class StatesRecipe(Description):
    """Supervision by states: every tree node learns its piece's map on the states of the task's machine.

    The piece of a tree node is the part of the string below the node. Its map takes each state of the machine to the
    state after reading the piece. `weight` is the weight of this supervision's loss, next to the answers' loss. In
    addition to the batch, a step reads `batch_size` pieces of equal length, which is log-uniform up to `max_length`.
    In a fraction `uniform` of the steps, pieces are uniform symbols; otherwise they are parts of strings of the task.
    In addition, the model merges states of random nodes, and so learns from longer pieces without reading them. Each of
    `rounds` rounds makes `combined` new states from the states of the round before (`training.state_supervision`).
    """

    weight: float = Field(1.0, gt=0)
    batch_size: int = Field(64, ge=1, le=1_000_000)
    max_length: int = Field(40, ge=1, le=MAX_LENGTH)
    uniform: float = Field(0.3, ge=0, le=1)
    rounds: int = Field(3, ge=0, le=100)
    combined: int = Field(512, ge=1, le=1_000_000)


class PaceRecipe(Description):
    """Training that depends on its loss: a net learns until the loss is low, and the rest of the schedule follows.

    The schedule up to the fraction `contract_after` is for learning. This part is stretched over all steps except the
    last `contract_steps`. The running loss is the sum of the loss of the answers and the loss of supervision by states
    (`StatesRecipe`), each with its weight. When the running loss is below `solved_loss` (at all lengths, if lengths
    grow), training runs through the rest of the schedule in `contract_steps` steps. In this part, temperatures fall and
    noise grows.

    If the loss stays higher, training ends without this part. Training ends after the stretched steps, or when the loss
    has not fallen by a tenth in `patience` steps. In the running loss, the latest step has the weight `latest`.

    With a constant rate and without noise, the schedule changes nothing: training continues until the loss is low, and
    then for `contract_steps` more steps.

    Training has succeeded if the loss of the final weights (`training.final_loss`) is then below `final_loss` (None:
    below `solved_loss`).
    """

    solved_loss: float = Field(0.01, gt=0)
    final_loss: float | None = Field(None, gt=0, exclude_if=lambda final_loss: final_loss is None)
    contract_steps: int = Field(300, ge=1, le=MAX_STEPS)
    contract_after: float = Field(0.4, ge=0, lt=1)
    patience: int = Field(300, ge=1, le=MAX_STEPS)
    latest: float = Field(SHARE_OF_LATEST, gt=0, le=1, exclude_if=lambda latest: latest == SHARE_OF_LATEST)


class Recipe(Description):
    """A description of training: steps, batches, lengths, supervision, optimizer, augmentation, averaging.

    All strings of a batch have one length, which is drawn from [min_length, max_length]. Regression tasks minimize the
    mean squared error, and all other tasks the cross-entropy.

    - `lengths="balanced"`: only lengths at which every class of the task occurs.
    - `lengths="legal"`: all lengths of the task.
    - `lengths="mostly-balanced"`: balanced lengths, and occasionally lengths at which some class cannot occur. For
      example, a net cannot learn that strings of odd length are outside D_n without seeing such a string. Lengths below
      the shortest balanced length are drawn in the second half of training only. A net that learns from the start that
      all single symbols belong to one class confuses the symbols later.
    - `length_sampling="uniform"`, `"log-uniform"`: equal probabilities, or probabilities in proportion to 1/length.
    - `length_sampling="short-first"`: probabilities in proportion to length^e, where e rises from -1 at the first step
      to 1 at the last step. A net learns the structure from short strings, and keeps it on long strings.
    - `length_sampling="growing"`: starts with the shortest length and adds the next one whenever the running loss at
      the longest length so far is below 0.3. This longest length is drawn three times as often as each shorter length.
      This sampling is for tasks whose long strings can be learned only after short strings.
    - `rise`: lengths follow a fixed curriculum (`RiseRecipe`), and `length_sampling` must keep its default.
    - `task_rise`: an integer field of the task follows a fixed curriculum (`TaskRiseRecipe`).
    - `num_examples`: training draws its batches uniformly from a fixed set of this many strings at each length. The
      set depends on the seed. Without `num_examples`, each step draws new strings.
    - `supervision="last"`, `"prefix"`: the loss covers the last supervised position of a string, or all supervised
      positions.
    - `late_consistency`: the weight of a loss that is added in the second half of training. It compares a suffix x of
      each string in half of the batch with x', which is x with pads (`AugmentationRecipe.pads_per_symbol`) that must
      not change the answer. The suffixes of a step have one random length. If h(x) is the model's state after x, the
      loss is the mean of (h(x) - h(x'))^2. This loss needs no labels. If it began at the first step, it could make all
      states equal, and nothing would be learned.
    - `states`: tree models learn how each part of a string changes the states of the task's machine (`StatesRecipe`).
    - `contraction`: a penalty makes errors of a recurrent state shrink from step to step (`ContractionRecipe`). The
      model must compute bounds on its next states (`BoundsSteps`).
    - `pace`: training ends early if its loss shows that it has succeeded or failed (`PaceRecipe`).
    - `ema_decay`: if positive, the final weights are the exponential moving average of the weights.
    - `precision`: the number type of matrix products, in training and when the run is measured. Weights, sums and the
      optimizer are float32 in any case. Certificates are about float32 nets, so runs that are certified cannot use
      `"bfloat16"`.
    """

    used_with = MappingProxyType({"length_sampling": ("rise", (None,))})
    steps: int = Field(6_000, ge=1, le=MAX_STEPS)
    batch_size: int = Field(128, ge=1, le=1_000_000)
    min_length: int = Field(1, ge=1, le=MAX_LENGTH)
    max_length: int = Field(40, ge=1, le=MAX_LENGTH)
    lengths: Literal["mostly-balanced", "balanced", "legal"] = "mostly-balanced"
    length_sampling: Literal["short-first", "log-uniform", "uniform", "growing"] = "short-first"
    rise: RiseRecipe | None = Field(None, exclude_if=lambda rise: rise is None)
    task_rise: TaskRiseRecipe | None = Field(None, exclude_if=lambda rise: rise is None)
    num_examples: int | None = Field(None, ge=1, le=MAX_EXAMPLES, exclude_if=lambda count: count is None)
    supervision: Literal["last", "prefix"] = "last"
    late_consistency: float = Field(1.0, ge=0)
    optimizer: OptimizerRecipe = OptimizerRecipe()
    augmentation: AugmentationRecipe = AugmentationRecipe()
    states: StatesRecipe | None = Field(None, exclude_if=lambda states: states is None)
    contraction: ContractionRecipe | None = Field(None, exclude_if=lambda contraction: contraction is None)
    pace: PaceRecipe | None = Field(None, exclude_if=lambda pace: pace is None)
    ema_decay: float = Field(0.99, ge=0, lt=1)
    precision: Precision = Field("float32", exclude_if=lambda precision: precision == "float32")
    checkpoint_every: int = Field(500, ge=1, le=MAX_STEPS)

    @model_validator(mode="after")
    def _lengths_in_order(self) -> "Recipe":
        if self.min_length > self.max_length:
            raise ValueError(
                f"min_length: expected at most max_length={self.max_length}, got {self.min_length}; lower min_length "
                "or raise max_length"
            )
        if self.pace and self.pace.contract_steps >= self.steps:
            raise ValueError(
                f"pace.contract_steps: expected fewer than steps={self.steps}, got {self.pace.contract_steps}; lower "
                "contract_steps or raise steps"
            )
        if self.num_examples is not None and self.states:
            raise ValueError(
                f"num_examples: expected no value if states are supervised, got {self.num_examples}; leave out "
                "num_examples or states"
            )
        return self

    def scheduled(self, step: int, solved_at: int | None = None) -> int:
        """Return the position in the schedule after `step` steps.

        The task was solved after `solved_at` steps (None: not yet).

        Example:
            >>> recipe = Recipe(steps=1_000, pace=PaceRecipe(contract_steps=200, contract_after=0.5))
            >>> recipe.scheduled(400), recipe.scheduled(400, 400), recipe.scheduled(500, 400)
            (250, 500, 750)
        """
        if self.pace is None:
            return step
        begin = round(self.pace.contract_after * self.steps)
        if solved_at is None:
            return begin * step // (self.steps - self.pace.contract_steps)
        return begin + (self.steps - begin) * (step - solved_at) // self.pace.contract_steps

    def is_over(self, step: int, solved_at: int | None = None, best_at: int = 0) -> bool:
        """Return whether training ends after `step` steps.

        The task was solved after `solved_at` steps (None: not yet). The loss last fell by a tenth after
        `best_at` steps.
        """
        if self.pace is None:
            return step >= self.steps
        if solved_at is None:
            return step >= min(self.steps - self.pace.contract_steps, best_at + self.pace.patience)
        return step >= solved_at + self.pace.contract_steps

    def rate_factor_at(self, step: int) -> float:
        """Return the factor by which learning rates are multiplied at step 0, 1, ..., steps - 1."""
        rising = min(1.0, (step + 1) / max(1, self.optimizer.warmup_steps))
        if self.optimizer.schedule == "constant":
            return rising
        if self.optimizer.schedule == "linear":
            return min(rising, (self.steps - step) / max(1, self.steps - self.optimizer.warmup_steps))
        return rising * 0.5 * (1 + math.cos(math.pi * step / self.steps))

    def length_odds_at(self, step: int, lengths: Sequence[int], num_reached: int = 1) -> list[float]:
        """Return the odds with which each of `lengths` is drawn at a training step.

        If lengths grow during training, the first `num_reached` lengths have been reached.
        """
        if self.rise is not None:
            current = max((length for length in lengths if length <= self.risen_at(step)), default=lengths[0])
            return [float(length == current) for length in lengths]
        if self.length_sampling == "growing":
            return [1.0] * (num_reached - 1) + [3.0] + [0.0] * (len(lengths) - num_reached)
        exponents = {"uniform": 0.0, "log-uniform": 1.0, "short-first": 1.0 - 2.0 * step / self.steps}
        exponent = exponents[self.length_sampling]
        return [length**-exponent for length in lengths]

    def risen_at(self, step: int) -> int:
        """Return the longest length that the curriculum has reached at a step; `max_length` without a curriculum."""
        return self.max_length if self.rise is None else self.min_length + self.rise.by * (step // self.rise.every)

    def state_noise_at(self, step: int) -> float:
        """Return the standard deviation of the state noise at a step."""
        early, late = self.augmentation.state_noise, self.augmentation.late_state_noise
        return late if self.is_late(step) else early

    def consistency_at(self, step: int) -> float:
        """Return the weight of the consistency loss (`late_consistency`) at a step."""
        return self.late_consistency if self.is_late(step) else 0.0

    def contraction_at(self, step: int) -> ContractionRecipe | None:
        """Return `contraction` if its penalty (`ContractionRecipe`) is part of the loss at this step, else None."""
        contraction = self.contraction
        return contraction if contraction and step >= contraction.after * self.steps else None

    def is_late(self, step: int) -> bool:
        """Return whether a step is in the second half of training."""
        return 2 * step >= self.steps
