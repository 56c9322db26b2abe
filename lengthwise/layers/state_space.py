r"""State-space layers with a separate system for each channel: S4, S4D and Liquid-S4.

A channel has one number u_t at each position. This number drives the system x' = A x + B u, which has P numbers x and
the output y = C x + D u. The system is discretized with a learned step. Eigenvalues of A are conjugate pairs, so P / 2
complex numbers represent a state.

In HiPPO-LegS, A_nk is -sqrt((2n+1)(2k+1)) below the diagonal, -(n+1) on the diagonal and 0 above, and B_n is
sqrt(2n+1), for n and k from 0. A is the sum of a normal matrix and a matrix of rank one: A = V (Λ - p p*) V*, where Λ
is diagonal with real parts of -1/2.
"""

import math
from abc import abstractmethod
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.devices import in_full_precision
from lengthwise.layers.recurrent_layer import Features, RecurrentLayer, State, as_complex, packed, unpacked
from lengthwise.ops.causal_convolution import causal_convolution
from lengthwise.ops.complex_pairs import times_pairs
from lengthwise.ops.matrix_powers import powers_times
from lengthwise.validation import check_choice, check_sizes

Eigenvalues = Literal["legs", "lin", "inv"]


def check_even(argument: str, size: int) -> None:
    """Raise a ValueError, which names the argument, unless a size is an even whole number of at least 2."""
    check_sizes(**{argument: size})
    if size % 2:
        raise ValueError(
            f"{argument}: expected an even number, because eigenvalues come in conjugate pairs, got {size}; "
            f"choose {size + 1}"
        )


def legs(size: int) -> tuple[Float[Tensor, "P P"], Float[Tensor, " P"]]:
    """Return the matrices A and B of the system HiPPO-LegS, in float64.

    Source: Gu et al., "HiPPO: recurrent memory with optimal polynomial projections" (NeurIPS 2020), theorem 2.
    Differs from the source: no difference.
    """
    check_sizes(size=size)
    n = torch.arange(size, dtype=torch.float64)
    b = (2 * n + 1).sqrt()
    return -(torch.outer(b, b).tril(-1) + torch.diag(n + 1)), b


def legs_pairs(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return Λ, p and V* B of HiPPO-LegS, where A = V (Λ - p p*) V*, with one entry for each conjugate pair.

    From each pair, the entry whose eigenvalue has a positive imaginary part is returned. For an even `size` P, all
    results are complex, of shape [P / 2].

    Source: Gu et al. (ICLR 2022), appendix C.1: p = V* r with r_n = sqrt(n + 1/2), because A + r r^T is the sum of
        -1/2 times the identity and a skew-symmetric matrix.
    Differs from the source: no difference.
    """
    check_even("size", size)
    a, b = legs(size)
    p = (torch.arange(size, dtype=torch.float64) + 0.5).sqrt()
    skew = a + torch.outer(p, p) + 0.5 * torch.eye(size, dtype=torch.float64)
    # A skew-symmetric matrix times -i is Hermitian, so `eigh` finds frequencies that are exactly real.
    frequencies, vectors = torch.linalg.eigh(-1j * skew)
    chosen = vectors[:, size // 2 :].mH
    start = torch.complex(torch.full_like(frequencies, -0.5), frequencies)[size // 2 :]
    return start, chosen @ (p + 0j), chosen @ (b + 0j)


def eigenvalues(name: Eigenvalues, size: int) -> Tensor:
    """Return the P / 2 initial eigenvalues of a diagonal system.

    Source: Gu et al., "On the parameterization and initialization of diagonal state space models" (NeurIPS 2022): the
    normal part of LegS (S4D-LegS), -1/2 + i pi n (S4D-Lin), -1/2 + i P/pi (P/(2n+1) - 1) (S4D-Inv), for n from 0.
    Differs from the source: no difference.
    """
    check_choice("name", name, get_args(Eigenvalues))
    check_even("size", size)
    if name == "legs":
        return legs_pairs(size)[0]
    n = torch.arange(size // 2, dtype=torch.float64)
    frequencies = math.pi * n if name == "lin" else size / math.pi * (size / (2 * n + 1) - 1)
    return torch.complex(torch.full_like(n, -0.5), frequencies)


def draw_log_steps(log_steps: Tensor, generator: torch.Generator) -> None:
    """Draw logarithms of step sizes uniformly, for step sizes from 0.001 to 0.1, as the published codes do."""
    nn.init.uniform_(log_steps, math.log(1e-3), math.log(1e-1), generator=generator)


class _Channels(RecurrentLayer):
    """The parameters of the systems of all channels: a and b of eigenvalues -exp(a) + i b, steps, C and D."""

    def __init__(self, *, d_model: int, d_state: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        check_even("d_state", d_state)
        self.d_model, self.d_state = d_model, d_state
        self.state_size = d_model * d_state
        self.log_decay = nn.Parameter(torch.empty(d_model, d_state // 2))
        self.frequency = nn.Parameter(torch.empty(d_model, d_state // 2))
        self.log_step = nn.Parameter(torch.empty(d_model))
        self.c = nn.Parameter(torch.empty(d_model, d_state // 2, 2))
        self.d = nn.Parameter(torch.empty(d_model))

    @abstractmethod
    def starting_eigenvalues(self) -> Tensor:
        """Return the initial eigenvalues, [P / 2], with which every channel begins."""

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Set the eigenvalues to their initial values, and draw step sizes log-uniformly.

        Complex output weights C and real skip weights D are normal with variance 1.
        """
        start = self.starting_eigenvalues()
        with torch.no_grad():
            self.log_decay.copy_((-start.real).log().expand_as(self.log_decay))
            self.frequency.copy_(start.imag.expand_as(self.frequency))
        draw_log_steps(self.log_step, generator)
        nn.init.normal_(self.c, std=0.5**0.5, generator=generator)
        nn.init.normal_(self.d, generator=generator)

    def continuous(self) -> Tensor:
        """Return the eigenvalues of the continuous systems, [D, P / 2], whose real parts are negative."""
        return torch.complex(-self.log_decay.exp(), self.frequency)

    def held(self, times: Tensor) -> tuple[Tensor, Tensor]:
        """Return exp(λ h t), [D, P / 2, times], and (exp(λ h) - 1) / λ for eigenvalues λ, step sizes h, `times` t."""
        exponents = self.continuous() * self.log_step.exp()[:, None]
        # For small steps, expm1 keeps digits that exp(.) - 1 would lose.
        return torch.exp(exponents[..., None] * times), torch.expm1(exponents) / self.continuous()


class S4DLayer(_Channels):
    """A system x' = A x + B u with a diagonal A, discretized with inputs that are constant during a step.

    All entries of B are 1, because C can scale the numbers of a state.

    With eigenvalues λ and a step h, x_t = exp(λ h) x_{t-1} + (exp(λ h) - 1) / λ u_t, and y_t = 2 Re(C x_t) + D u_t.

    Source: Gu et al. (NeurIPS 2022), section 3.
    Differs from the source: no difference.
    """

    def __init__(self, *, d_model: int, d_state: int, start: Eigenvalues) -> None:
        check_choice("start", start, get_args(Eigenvalues))
        super().__init__(d_model=d_model, d_state=d_state)
        self.start = start

    def starting_eigenvalues(self) -> Tensor:
        return eigenvalues(self.start, self.d_state)

    @in_full_precision
    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        """Return the convolution of u with K_t = 2 Re(C A^t B), plus D u and the response to the previous state.

        A and B belong to the discrete system.
        """
        if torch.compiler.is_exporting():
            return self.by_definition(features, state)
        length, c = features.shape[1], as_complex(self.c)
        powers, b = self.held(torch.arange(length + 1, device=features.device))
        before = unpacked(state, self.d_model, self.d_state // 2)
        kernels = 2 * torch.einsum("dn,dnt->dt", c * b, powers[..., :-1]).real
        carried = 2 * torch.einsum("bdn,dnt->btd", c * before, powers[..., 1:]).real
        outputs = causal_convolution(features, kernels) + carried + self.d * features
        driven = torch.einsum("dnt,btd->bdn", powers[..., :-1].flip(-1), features.to(powers.dtype))
        return outputs, packed(powers[..., -1] * before + b * driven)

    def by_definition(self, features: Features, state: State) -> tuple[Features, State]:
        """Return the results of `forward`, step by step in real arithmetic, with complex numbers as real pairs."""
        powers, factor = self.held(torch.ones(1, dtype=torch.int64, device=features.device))
        by_step, b = torch.view_as_real(powers[..., 0]), torch.view_as_real(factor)
        c = self.c * self.c.new_tensor([2.0, -2.0])
        latest, outputs = state.unflatten(1, (self.d_model, -1, 2)), []
        for u in features.unbind(1):
            latest = times_pairs(by_step, latest) + b * u[..., None, None]
            outputs.append((c * latest).sum((2, 3)) + self.d * u)
        return torch.stack(outputs, 1), latest.flatten(1)


class S4Layer(_Channels):
    r"""A system with A = Λ - p p*, which starts as HiPPO-LegS and is discretized by the bilinear rule.

    On the real and imaginary parts of P / 2 numbers, A is a real matrix: decaying rotations minus 2 q q^T with
    q = (Re p, Im p). The kernel is computed from the powers of this matrix. Each product doubles the number of powers.

    Source: Gu et al. (ICLR 2022), sections 2.2, 2.3 and 3.2.
    Differs from the source: A is Λ - p p* instead of Λ - p q*, with real parts that stay negative, as in follow-up
        papers. The kernel is computed from powers of P x P matrices, which is shorter code but costs more than the
        source's generating function.
    """

    def __init__(self, *, d_model: int, d_state: int) -> None:
        super().__init__(d_model=d_model, d_state=d_state)
        self.p = nn.Parameter(torch.empty(d_model, d_state // 2, 2))
        self.b = nn.Parameter(torch.empty(d_model, d_state // 2, 2))

    def starting_eigenvalues(self) -> Tensor:
        return eigenvalues("legs", self.d_state)

    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        _, p, b = legs_pairs(self.d_state)
        with torch.no_grad():
            self.p.copy_(torch.view_as_real(p).expand_as(self.p))
            self.b.copy_(torch.view_as_real(b).expand_as(self.b))

    def discrete(self) -> tuple[Float[Tensor, "D P P"], Float[Tensor, "D P"], Float[Tensor, "D P"]]:
        """Return A, B and C of the discrete system, for the real and imaginary parts of the states."""
        decay, turn = -self.log_decay.exp().diag_embed(), self.frequency.diag_embed()
        q = self.p.mT.flatten(1)
        a = torch.cat([torch.cat([decay, -turn], 2), torch.cat([turn, decay], 2)], 1) - 2 * q[:, :, None] * q[:, None]
        half_step = 0.5 * self.log_step.exp()[:, None, None]
        one = torch.eye(self.d_state, dtype=a.dtype, device=a.device)
        b = 2 * half_step * self.b.mT.flatten(1)[..., None]
        # A single factorization of I - h A / 2 is used for both A and B.
        solved = torch.linalg.solve(one - half_step * a, torch.cat([one + half_step * a, b], 2))
        c = 2 * torch.cat([self.c[..., 0], -self.c[..., 1]], 1)
        return solved[..., :-1], solved[..., -1], c

    @in_full_precision
    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        """Return the convolution of u with K_t = C A^t B, plus D u and the response to the previous state.

        A, B and C are the results of `discrete`.
        """
        length = features.shape[1]
        a, b, c = self.discrete()
        before = state.unflatten(1, (self.d_model, self.d_state))
        after_input = powers_times(a, b, length)
        readouts = powers_times(a.mT, (a.mT @ c[..., None]).squeeze(-1), length)
        kernels = torch.einsum("dn,dnt->dt", c, after_input)
        carried = torch.einsum("bdn,dnt->btd", before, readouts)
        outputs = causal_convolution(features, kernels) + carried + self.d * features
        driven = torch.einsum("dnt,btd->bdn", after_input.flip(-1), features)
        moved = torch.einsum("dmn,bdn->bdm", torch.linalg.matrix_power(a, length), before)
        return outputs, (moved + driven).flatten(1)


class LiquidS4Layer(S4Layer):
    """x_t = A x_{t-1} + (B u_t) * x_{t-1} + B u_t, so the transition A + diag(B u_t) depends on the input.

    Source: Hasani et al., "Liquid structural state-space models" (ICLR 2023), as in Fan et al. (2024), eq. (4).
    Differs from the source: this is the recurrence itself, step by step. The published code adds a few correlations of
        inputs to S4's convolution. The elementwise product of B u_t and x_{t-1} multiplies real parts and imaginary
        parts separately.
    """

    @in_full_precision
    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        a, b, c = self.discrete()
        latest = state.unflatten(1, (self.d_model, self.d_state)).transpose(0, 1)
        # This runs step by step: the transition depends on the input, so a fixed kernel does not exist.
        computed = []
        for u in features.permute(1, 2, 0):
            driven = u[..., None] * b[:, None]
            latest = torch.baddbmm(torch.addcmul(driven, driven, latest), latest, a.mT)
            computed.append(latest)
        states = torch.stack(computed, 2)
        outputs = torch.einsum("dn,dbtn->btd", c, states) + self.d * features
        return outputs, latest.transpose(0, 1).flatten(1)
