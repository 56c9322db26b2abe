"""A layer of the recurrence x_t = P_t D_t x_{t-1} + B u_t, where every column of P_t has a single 1."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.devices import in_full_precision
from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.recurrent_layer import Features, Rows, State, Table, TabledLayer
from lengthwise.ops.sparse_recurrence import Form, sparse_recurrence
from lengthwise.validation import check_choice, check_kind, check_sizes

Diagonal = Literal["full", "phase", "none"]


@in_full_precision
def _unit_complex(numbers: Float[Tensor, "*M N"]) -> Float[Tensor, "*M N 2"]:
    """Return exp(2 pi i sigmoid(x)) as its real part and its imaginary part."""
    angle = 2 * torch.pi * torch.sigmoid(numbers)
    return torch.stack([angle.cos(), angle.sin()], -1)


class PDSSMLayer(TabledLayer):
    """x_t = P(u_t) D(u_t) x_{t-1} + B u_t from x_0 = e_1, y_t = W x_t + b + d * u_t; the state is N complex numbers.

    Let M(u) = sum_k softmax(S u)_k M_k for K matrices M_k. In each column, P(u) has its 1 at the largest entry of M(u).
    The gradient of P(u) is the gradient of the column's softmax. D(u) = sigmoid(f(u)) exp(2 pi i sigmoid(g(u))), where
    f and g have N hidden units (GELU).

    - `diagonal`: `"full"` is D as above. With `"phase"`, all entries of D have absolute value 1. With `"none"`, D is
      the identity, and all numbers are real.
    - `driven`: whether the term B u_t is present.
    - `form`: `"scatter"` is P D as above. `"gather"` is D P, where every row of P has a single 1.

    If the layer is real, not driven and of form `"scatter"`, every state is exactly a one-hot vector. The layer is then
    a finite machine of N states.

    Source: Terzić et al., "Structured sparse transition matrices to enable state tracking in state-space models"
        (NeurIPS 2025), and its code for x_0, the initialization, and `"gather"`.
    Differs from the source: f and g have N hidden units, which give the paper's number of parameters. In the code, they
        have 2 N hidden units. Dropout is absent. The settings `"phase"` and `"none"`, and a layer that is not driven,
        are ours.
    """

    def __init__(
        self, *, d_model: int, d_state: int, num_matrices: int, diagonal: Diagonal, driven: bool, form: Form
    ) -> None:
        super().__init__()
        check_sizes(d_model=d_model, d_state=d_state, num_matrices=num_matrices)
        check_choice("diagonal", diagonal, get_args(Diagonal))
        check_choice("form", form, get_args(Form))
        check_kind("driven", driven, bool, "True or False")
        self.d_model = d_model
        self.num_states, self.parts = d_state, 1 if diagonal == "none" else 2
        self.state_size = self.parts * d_state
        self.form: Form = form
        self.mixture_map = nn.Linear(d_model, num_matrices, bias=False)
        self.dictionary = nn.Parameter(torch.empty(num_matrices, d_state, d_state))
        self.size_map, self.phase_map = (
            nn.Sequential(nn.Linear(d_model, d_state), nn.GELU(), nn.Linear(d_state, d_state)) if there else None
            for there in (diagonal == "full", diagonal != "none")
        )
        self.b = nn.Linear(d_model, self.state_size, bias=False) if driven else None
        self.w = nn.Linear(self.state_size, d_model)
        self.d = nn.Parameter(torch.empty(d_model))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the matrices M_k from N(0, 1 / N) for N states, and most other maps as torch does.

        The input matrix B is drawn from N(0, 1 / (2 N)), and the skip weights d from N(0, 1 / D) for width D.
        """
        draw_linears(self, generator)
        nn.init.normal_(self.dictionary, std=self.num_states**-0.5, generator=generator)
        nn.init.normal_(self.d, std=len(self.d) ** -0.5, generator=generator)
        if self.b is not None:
            nn.init.normal_(self.b.weight, std=(2 * self.num_states) ** -0.5, generator=generator)

    def initial_state(self, like: Float[Tensor, "B D"]) -> Float[Tensor, "B Z"]:
        first = like.new_zeros(len(like), self.state_size)
        first[:, 0] = 1.0
        return first

    def mixtures(self, features: Float[Tensor, "R D"]) -> Float[Tensor, "R K"]:
        mixed: Tensor = self.mixture_map(features).softmax(-1)
        return mixed

    def factors(self, features: Float[Tensor, "R D"]) -> Float[Tensor, "R N F"] | None:
        """Return the diagonal D(u) of the transition for each feature vector u, or None if D is the identity."""
        if self.phase_map is None:
            return None
        unit = _unit_complex(self.phase_map(features))
        return unit if self.size_map is None else torch.sigmoid(self.size_map(features))[..., None] * unit

    def through_rows(self, table: Table, rows: Rows, state: State) -> tuple[Features, State]:
        shape = (self.num_states, self.parts)
        # Overflow is kept, so that it spoils only the answers of its own string, not of the whole batch.
        states = sparse_recurrence(
            self.mixtures(table),
            self.dictionary,
            self.factors(table),
            None if self.b is None else self.b(table).unflatten(-1, shape),
            rows,
            state.unflatten(1, shape),
            form=self.form,
            overflow="keep",
        ).flatten(2)
        outputs = self.w(states) + nn.functional.embedding(rows, self.d * table)
        return outputs, states[:, -1]
