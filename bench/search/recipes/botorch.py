"""BoTorch's default recipe (0.12 and later), restated from Hvarfner et al., "Vanilla Bayesian Optimization Performs
Great in High Dimensions" (ICML 2024), Ament et al., "Unexpected Improvements to Expected Improvement" (NeurIPS
2023), and the repository pytorch/botorch.

1. A quasi-random design of twice as many trials as parameters, at least 5 and at most 22 (a fifth of a budget of
   110, as Ax chooses).
2. Standardised values. A Gaussian process with an RBF kernel without an output scale; the prior of each length scale
   is log-normal (sqrt 2 + log(d) / 2, sqrt 3), that of the noise log-normal (-4, 1). A constant mean.
3. Log EI, by optimize_acqf_mixed_alternating: starts from a continuous relaxation, then in turn a local search
   over ordered parameters (one step) and choices (any other value), and L-BFGS-B over the rest. Ordered parameters
   of more than 20 values are relaxed and rounded at the end.

What differs: a choice is one column in the kernel with one length scale (Hamming distance, in the product form
alone), where MixedSingleTaskGP adds a sum of kernels and one-hot encoding has a scale for each value. 10 starts from
256 points, not 20 from 1,024. Inactive parameters are at their defaults, and do not move. A failed trial counts as
the worst value so far, a pending one as what the model expects there. A candidate that was tried is replaced by the
next best of the search, then by a random one.
"""
import numpy as np
from scipy import linalg, optimize, special

from recipes import gauss

RAW, STARTS = 256, 10
MAX_ALTERNATIONS, MAX_MOVES, MAX_SMOOTH = 64, 4, 8
TOLERANCE = 1e-8
SQRT_HALF_PI = (np.pi / 2) ** 0.5


class Model:
    """theta: log length scale of each parameter (d), log noise. The mean follows from them."""

    def __init__(self, space, U, y, start):
        self.owner = space.feature_owner()
        # two values of a choice differ in two indicators: half a unit each makes the distance 1
        self.unit = np.where([space.columns[i].kind == "choice" for i in self.owner], 0.5 ** 0.5, 1.0)
        self.center, self.spread = y.mean(), y.std() or 1.0
        self.space, self.d = space, space.d
        self.X, self.y = space.features(U) * self.unit, (y - self.center) / self.spread
        self.prior = 2 ** 0.5 + 0.5 * np.log(space.d)
        theta = np.append(np.full(self.d, self.prior - 3), -5.0) if start is None else start
        bounds = [(np.log(2.5e-2), 12)] * self.d + [(np.log(1e-4), 2)]
        r = optimize.minimize(self.objective, theta, jac=True, method="L-BFGS-B", bounds=bounds,
                              options={"maxiter": 200})
        self.set(r.x)

    def objective(self, theta):
        """Minus the log posterior density of the length scales and the noise (densities by value, not by logarithm)."""
        S = self.X * np.exp(-theta[:-1])[self.owner]
        noise = np.exp(theta[-1])
        K = np.exp(-0.5 * gauss.distance2(S, S))
        try:
            inv, log_det = gauss.inverse(K + noise * np.eye(len(K)))
            loss, W = gauss.evidence(inv, log_det, self.y - (inv @ self.y).sum() / inv.sum())
        except linalg.LinAlgError:
            return 1e10, np.zeros_like(theta)
        by_pair = gauss.pair_gradients(W * K, S)[0]
        g = np.append(np.bincount(self.owner, by_pair, self.d), noise * np.trace(W))
        z = (theta[:-1] - self.prior) / 3
        loss += (theta[:-1] + 1.5 * z * z).sum() + theta[-1] + 0.5 * (theta[-1] + 4) ** 2
        g[:-1] += 1 + z
        g[-1] += 1 + theta[-1] + 4
        return loss, g

    def set(self, theta):
        self.theta = theta
        self.scale = np.exp(theta[:-1])[self.owner] / self.unit
        self.S = self.X / self.unit / self.scale
        n = len(self.y)
        K = np.exp(-0.5 * gauss.distance2(self.S, self.S)) + np.exp(theta[-1]) * np.eye(n)
        self.inverse = gauss.inverse(K)[0]
        self.mean = (self.inverse @ self.y).sum() / self.inverse.sum()
        self.weights = self.inverse @ (self.y - self.mean)

    def posterior(self, F):
        """Of feature rows F: standardised mean, variance, the kernel row, its product with the inverse, scaled F."""
        S = F / self.scale
        K = np.exp(-0.5 * gauss.distance2(S, self.S))
        V = K @ self.inverse
        return self.mean + K @ self.weights, np.maximum(1 - (V * K).sum(1), 1e-12), K, V, S

    def expect(self, U):
        return self.center + self.spread * self.posterior(self.space.features(U))[0]


class LogEi:
    def __init__(self, model, best):
        self.model, self.best = model, (best - model.center) / model.spread

    def of_features(self, F, gradient=False):
        """log EI of each row, and its derivative by F."""
        mean, variance, K, V, S = self.model.posterior(F)
        deviation = np.sqrt(variance)
        z = (self.best - mean) / deviation
        mills = SQRT_HALF_PI * special.erfcx(-np.minimum(z, 30) / 2 ** 0.5)  # Phi / phi
        far = z < -100
        inner = np.where(far, z ** -2.0, 1 + z * mills)
        value = -0.5 * z * z - 0.5 * np.log(2 * np.pi) + np.log(inner) + np.log(deviation)
        value = np.where(z > 30, np.log(np.maximum(z, 1)) + np.log(deviation), value)
        if not gradient:
            return value
        slope = np.where(z > 30, 1 / np.maximum(z, 1), np.where(far, -z, mills / inner))  # d log h / dz
        # dk_i / ds = -k_i (s - s_i)
        A, B = K * self.model.weights, K * V
        mean_by = A @ self.model.S - S * A.sum(1, keepdims=True)
        variance_by = -2 * (B @ self.model.S - S * B.sum(1, keepdims=True))
        dev_by = variance_by / (2 * deviation[:, None])
        by = slope[:, None] * (-mean_by - z[:, None] * dev_by) / deviation[:, None] + dev_by / deviation[:, None]
        return value, by / self.model.scale

    def __call__(self, U):
        return self.of_features(self.model.space.features(U))


def climb(acquisition, F, free, iterations):
    """L-BFGS-B on the sum over all rows at once, as gen_candidates_scipy. free: bool like F; features in [0, 1].
    No row ends lower than it began."""
    before = acquisition.of_features(F)
    if not free.any() or not len(F):
        return F, before

    def objective(x):
        G = F.copy()
        G[free] = x
        value, by = acquisition.of_features(G, gradient=True)
        return -value.sum(), -by[free]

    r = optimize.minimize(objective, F[free], jac=True, method="L-BFGS-B", bounds=[(0, 1)] * int(free.sum()),
                          options={"maxiter": iterations})
    G = F.copy()
    G[free] = np.clip(r.x, 0, 1)
    after = acquisition.of_features(G)
    better = after > before
    return np.where(better[:, None], G, F), np.where(better, after, before)


class Search:
    """optimize_acqf_mixed_alternating over points of a space."""

    def __init__(self, space, acquisition, rng):
        self.space, self.acquisition, self.rng = space, acquisition, rng
        self.owner = space.feature_owner()

    def boltzmann(self, items, values, n):
        """n of the items, by exp(standardised value); the best is always among them."""
        if len(items) <= n:
            return items
        z = np.exp((values - values.max()) / (values.std() or 1))
        chosen = self.rng.choice(len(items), n, replace=False, p=(z + 1e-300) / (z + 1e-300).sum())
        if values.argmax() not in chosen:
            chosen[-1] = values.argmax()
        return items[chosen]

    def to_points(self, F):
        """Each choice by its largest indicator."""
        columns = [np.flatnonzero(self.owner == i) for i in range(self.space.d)]
        return np.stack([F[:, at].argmax(1) if len(at) > 1 else F[:, at[0]] for at in columns], axis=1).astype(float)

    def starts(self):
        space = self.space
        U = space.spread(gauss.sobol(space.d, RAW, self.rng))
        F = space.features(self.boltzmann(U, self.acquisition(U), STARTS))
        U = self.to_points(climb(self.acquisition, F, np.full(F.shape, True), 100)[0])
        return self.settle(U)

    def settle(self, U):
        """Stepped parameters and choices at values that exist, inactive ones at defaults; relaxed ones stay."""
        V = self.space.canonical(U)
        if self.space.smooth:
            on = self.space.active(V)[:, self.space.smooth]
            V[:, self.space.smooth] = np.where(on, U[:, self.space.smooth], V[:, self.space.smooth])
        return V

    def neighbours(self, u):
        """All points that differ from u by a step of an ordered parameter or by the value of a choice."""
        out = []
        for j in self.space.stepped:
            levels = self.space.columns[j].levels()
            at = np.abs(levels - u[j]).argmin()
            out += [(j, levels[k]) for k in (at - 1, at + 1) if 0 <= k < len(levels)]
        for j in self.space.choices:
            out += [(j, k) for k in range(self.space.columns[j].n) if k != u[j]]
        N = np.repeat(u[None], len(out), axis=0)
        for row, (j, value) in zip(N, out):
            row[j] = value
        on = self.space.active(np.concatenate([u[None], N])) if self.space.conditional and out else None
        if on is not None:  # a step of an inactive parameter is none
            N = N[[on[0, j] for j, _ in out]]
        return self.settle(N) if len(N) else N

    def discrete_step(self, U, values):
        done = np.zeros(len(U), bool)
        for _ in range(MAX_MOVES):
            sets = [self.neighbours(u) if not stop else u[None][:0] for u, stop in zip(U, done)]
            sizes = [len(s) for s in sets]
            if not sum(sizes):
                break
            found = np.split(self.acquisition(np.concatenate(sets)), np.cumsum(sizes)[:-1])
            for i, (points, v) in enumerate(zip(sets, found)):
                gain = v.max() - values[i] if len(v) else 0
                if gain > 0:
                    U[i], values[i] = points[v.argmax()], v.max()
                done[i] |= gain <= TOLERANCE
        return U, values

    def continuous_step(self, U, values):
        if not self.space.smooth:
            return U, values
        free = np.zeros((len(U), len(self.owner)), bool)
        for j in self.space.smooth:
            free[:, self.owner == j] = self.space.active(U)[:, j:j + 1]
        F, values = climb(self.acquisition, self.space.features(U), free, MAX_SMOOTH)
        return self.to_points(F), values

    def run(self):
        """Points, best first."""
        U = self.starts()
        values, left = self.acquisition(U), np.arange(len(U))
        if not self.space.stepped and not self.space.choices:
            F, values = climb(self.acquisition, self.space.features(U), np.full(U.shape, True), 200)
            U, left = self.to_points(F), left[:0]
        for _ in range(MAX_ALTERNATIONS):
            if not len(left):
                break
            before = values[left].copy()
            U[left], values[left] = self.discrete_step(U[left], values[left])
            U[left], values[left] = self.continuous_step(U[left], values[left])
            left = left[values[left] - before >= TOLERANCE]
        return self.space.canonical(U[np.argsort(-values)])


class Botorch:
    def __init__(self, space, seed):
        self.space, self.rng = space, np.random.default_rng(seed)
        self.design = space.spread(gauss.sobol(space.d, min(22, max(5, 2 * space.d)), self.rng))
        self.theta = None

    def ask(self, U, y, pending):
        """The next canonical point. U, y: finished trials (n x d, n), lower is better; pending: m x d."""
        asked = len(U) + len(pending)
        if asked < len(self.design):
            return self.design[asked]
        tried = {u.tobytes() for u in np.concatenate([U, pending])}
        fresh = self.space.spread(gauss.sobol(self.space.d, 64, self.rng))
        found = fresh[:0]
        if len(U) >= 2:
            model = Model(self.space, U, y, None)
            if len(pending):
                theta = model.theta
                model.X = np.concatenate([model.X, self.space.features(pending) * model.unit])
                model.y = np.append(model.y, (model.expect(pending) - model.center) / model.spread)
                model.set(theta)
            found = Search(self.space, LogEi(model, y.min()), self.rng).run()
        return next((u for u in np.concatenate([found, fresh]) if u.tobytes() not in tried), fresh[0])
