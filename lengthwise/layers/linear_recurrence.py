"""Layers of linear recurrences that mix all channels in one state: dense, LRU, S5, and an input-dependent diagonal."""

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from lengthwise.devices import in_full_precision
from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.recurrent_layer import Features, RecurrentLayer, State, as_complex, packed, unpacked
from lengthwise.layers.state_space import check_even, draw_log_steps, legs_pairs
from lengthwise.ops.block_recurrence import recurrence
from lengthwise.ops.complex_pairs import times_pairs
from lengthwise.validation import check_sizes


class DenseLinearLayer(RecurrentLayer):
    """x_t = A x_{t-1} + B u_t, y_t = C x_t + b, where A is initially orthogonal.

    Source: Fan et al. (2024), eq. (2), their "vanilla LRNN".
    Differs from the source: the source gives only the equation of x_t, so the initialization, C and the bias b are
        ours.
    """

    def __init__(self, *, d_model: int, d_state: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model, d_state=d_state)
        self.d_model = d_model
        self.state_size = d_state
        self.a = nn.Parameter(torch.empty(d_state, d_state))
        self.b = nn.Linear(d_model, d_state, bias=False)
        self.c = nn.Linear(d_state, d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_linears(self, generator)
        nn.init.orthogonal_(self.a, generator=generator)

    @in_full_precision
    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        """Run the recurrence step by step. All strings share A, so a step is a single product of matrices."""
        inputs = self.b(features)
        latest = state
        states = []
        for driven in inputs.unbind(1):
            latest = torch.addmm(driven, latest, self.a.T)
            states.append(latest)
        return self.c(torch.stack(states, 1)), latest


class _DiagonalLayer(RecurrentLayer):
    """x_t = a x_{t-1} + B u_t for complex a and B, y_t = s Re(C x_t) + D u_t with the constant s = `scale`."""

    scale: float

    def __init__(self, *, d_model: int, num_states: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model, num_states=num_states)
        self.d_model = d_model
        self.num_states = num_states
        self.state_size = 2 * num_states
        self.b = nn.Parameter(torch.empty(num_states, d_model, 2))
        self.c = nn.Parameter(torch.empty(d_model, num_states, 2))
        self.d = nn.Parameter(torch.empty(d_model))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the complex matrices B and C from normal distributions, and the skip weights D from N(0, 1).

        The variances of B and C are such that features keep their size.
        """
        nn.init.normal_(self.b, std=(2 * self.b.shape[1]) ** -0.5, generator=generator)
        nn.init.normal_(self.c, std=(2 * self.num_states) ** -0.5, generator=generator)
        nn.init.normal_(self.d, generator=generator)

    @abstractmethod
    def discrete(self) -> tuple[Tensor, Tensor]:
        """Return the diagonal a of x_t = a x_{t-1} + f B u_t, elementwise, and the factors f of the rows of B."""

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        if torch.compiler.is_exporting():
            return self.by_definition(features, state)
        a, factor = self.discrete()
        driven = factor * (features.to(a.dtype) @ as_complex(self.b).T)
        # Overflow is kept, so that it spoils only the answers of its own string, not of the whole batch.
        states = recurrence(a.expand_as(driven), driven, unpacked(state, self.num_states), overflow="keep")
        outputs = self.scale * (states @ as_complex(self.c).T).real + self.d * features
        return outputs, packed(states[:, -1])

    def by_definition(self, features: Features, state: State) -> tuple[Features, State]:
        """Return the results of `forward`, step by step in real arithmetic, with complex numbers as real pairs."""
        a, factor = self.discrete()
        by_step, b = torch.view_as_real(a), torch.view_as_real(factor[:, None] * as_complex(self.b))
        latest, outputs = state.unflatten(1, (self.num_states, 2)), []
        for u in features.unbind(1):
            latest = times_pairs(by_step, latest) + torch.einsum("bd,ndr->bnr", u, b)
            real, imaginary = (latest[..., part] @ self.c[..., part].T for part in (0, 1))
            outputs.append(self.scale * (real - imaginary) + self.d * u)
        return torch.stack(outputs, 1), latest.flatten(1)


class LRULayer(_DiagonalLayer):
    """A diagonal layer with a = exp(-exp(nu) + i exp(theta)) and gains as the factors of B's rows.

    Initially, 0.9 < |a| < 0.999, and the gains are sqrt(1 - |a|^2).

    Source: Orvieto et al., "Resurrecting recurrent neural networks for long sequences" (ICML 2023), section 3.
    Differs from the source: C is drawn smaller by a factor of sqrt(2), so that features keep their size.
    """

    scale = 1.0

    def __init__(self, *, d_model: int, d_state: int) -> None:
        check_sizes(d_state=d_state)
        super().__init__(d_model=d_model, num_states=d_state)
        self.nu = nn.Parameter(torch.empty(d_state))
        self.theta = nn.Parameter(torch.empty(d_state))
        self.log_gain = nn.Parameter(torch.empty(d_state))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the eigenvalues a uniformly from the ring 0.9 < |a| < 0.999."""
        super().reset_parameters(generator)
        nn.init.uniform_(self.nu, 0.9**2, 0.999**2, generator=generator)
        nn.init.uniform_(self.theta, 1e-3, 2 * math.pi, generator=generator)
        with torch.no_grad():
            # The squared radius is uniform, so that eigenvalues are uniform in the area of the ring.
            self.nu.copy_((-0.5 * self.nu.log()).log())
            self.theta.log_()
            self.log_gain.copy_(0.5 * (-torch.expm1(-2 * self.nu.exp())).log())

    def discrete(self) -> tuple[Tensor, Tensor]:
        exponent = torch.complex(-self.nu.exp(), self.theta.exp())
        return exponent.exp(), self.log_gain.exp()


class S5Layer(_DiagonalLayer):
    """A single system for all channels. Its eigenvalues are initially the eigenvalues of the normal part of HiPPO-LegS.

    The system is x' = λ x + B u with steps h. By zero-order hold, the input is constant during a step, so
    x_t = exp(λ h) x_{t-1} + (exp(λ h) - 1) / λ B u_t. The output is y_t = 2 Re(C x_t) + D u_t.

    Source: Smith et al., "Simplified state space layers for sequence modeling" (ICLR 2023), sections 3.1-3.3.
    Differs from the source: B and C are drawn in the basis of the eigenvectors. There is only one block of eigenvalues,
        and their real parts stay negative.
    """

    scale = 2.0

    def __init__(self, *, d_model: int, d_state: int) -> None:
        check_even("d_state", d_state)
        super().__init__(d_model=d_model, num_states=d_state // 2)
        self.log_decay = nn.Parameter(torch.empty(self.num_states))
        self.frequency = nn.Parameter(torch.empty(self.num_states))
        self.log_step = nn.Parameter(torch.empty(self.num_states))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Set the eigenvalues to those of the matrix HiPPO-LegS, and draw step sizes log-uniformly."""
        super().reset_parameters(generator)
        start, _, _ = legs_pairs(2 * self.num_states)
        with torch.no_grad():
            self.log_decay.copy_((-start.real).log())
            self.frequency.copy_(start.imag)
        draw_log_steps(self.log_step, generator)

    def discrete(self) -> tuple[Tensor, Tensor]:
        eigenvalues = torch.complex(-self.log_decay.exp(), self.frequency)
        exponents = eigenvalues * self.log_step.exp()
        return exponents.exp(), torch.expm1(exponents) / eigenvalues


class InputDependentLayer(RecurrentLayer):
    """x_t = tanh(f(u_t)) x_{t-1} + B u_t + b, element by element, and y_t = x_t.

    The function f is a linear map, a ReLU and another linear map.

    Source: Fan et al. (2024), eq. (3).
    Differs from the source: the source has diag(f(u_t)) with any function f. The tanh, which keeps each factor between
        -1 and 1, the layers of f, and the bias b are ours.
    """

    def __init__(self, *, d_model: int, hidden: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model, hidden=hidden)
        self.d_model = d_model
        self.state_size = d_model
        self.transition_map = nn.Sequential(nn.Linear(d_model, hidden), nn.ReLU(), nn.Linear(hidden, d_model))
        self.b = nn.Linear(d_model, d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_linears(self, generator)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        states = recurrence(torch.tanh(self.transition_map(features)), self.b(features), state, overflow="keep")
        return states, states[:, -1]
