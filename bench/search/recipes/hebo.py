"""HEBO's recipe, restated from Cowen-Rivers et al., "HEBO: Pushing the Limits of Sample-Efficient Hyperparameter
Optimisation" (JAIR 2022), and from its repository at huawei-noah/HEBO.

1. A quasi-random design of 1 + (number of parameters) trials.
2. Values through a power transform (Box-Cox of positive values, Yeo-Johnson else), then standardised.
3. A Gaussian process: Matern 3/2 with a length scale per feature and no prior on it, plus a linear term; numbers
   warped by Kumaraswamy's distribution; log-normal priors on noise and warps, Gamma(1/2, 1) on the scale.
4. MACE: the front of the lower confidence bound, log EI and log PI, with the noise added at random at each
   evaluation, by NSGA-II with 100 points. A random member of the front that was not tried.

What differs: 50 generations, not 100. The evidence is maximised from the last maximum, and at each fifth trial from
a fresh start too, not from ten starts. NSGA-II's operators (simulated binary crossover, polynomial mutation, uniform
crossover of choices) are the textbook's, not pymoo's. The posterior is of the function, as in the repository's newer
model, not of a noisy value. Inactive parameters are at their defaults. A failed trial counts as the worst value so
far, and a pending one not at all: the recipe says nothing of either.
"""
import numpy as np
from scipy import linalg, optimize, special, stats

from recipes import gauss

POPULATION, GENERATIONS = 100, 50
FRESH = 5  # every fifth fit has a fresh start too
NOISE_PRIOR, WARP_PRIOR = (-4.63, 0.5), (0.0, 0.75 ** 0.5)  # of logarithms: mean, deviation
SQRT3 = 3 ** 0.5
HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
WARP_EDGE = 1e-6


def power_transform(y):
    """Standardised values that look more like a Gaussian's; y itself where the transform degenerates."""
    y = y / (y.std() or 1)
    for transform in ([stats.boxcox] if y.min() > 0 else []) + [stats.yeojohnson]:
        with np.errstate(all="ignore"):
            try:
                z = transform(y)[0]
            except (ValueError, FloatingPointError):
                continue
        deviation = z.std()
        if np.isfinite(z).all() and deviation > 1e-12:
            return (z - z.mean()) / deviation
    return (y - y.mean()) / (y.std() or 1)


class Model:
    """theta: log length scales (D), log Matern variance, log linear variance, log noise, log a, log b (per number)."""

    def __init__(self, space, X, y, start):
        self.numbers = np.flatnonzero([space.columns[i].kind != "choice" for i in space.feature_owner()])
        self.X, self.y, self.D = X, y, X.shape[1]
        fresh = np.concatenate([np.log(np.clip(X.std(0), 0.02, None)), np.log([0.5, 1.0]), [NOISE_PRIOR[0]],
                                np.zeros(2 * len(self.numbers))])
        bounds = [(np.log(5e-3), np.log(1e3))] * self.D + [(-12, 5), (-16, 5), (-14, 2)] + \
            [(-2.5, 2.5)] * (2 * len(self.numbers))
        best = None
        for theta in [fresh] if start is None else [start, fresh] if len(y) % FRESH == 0 else [start]:
            r = optimize.minimize(self.objective, theta, jac=True, method="L-BFGS-B", bounds=bounds,
                                  options={"maxiter": 60})
            best = r if best is None or r.fun < best.fun else best
        self.theta = best.x
        self.prepare()

    def warped(self, X, theta):
        """Warped features, and 1 - x^a and x^a for the gradient."""
        k = len(self.numbers)
        a, b = np.exp(theta[self.D + 3:self.D + 3 + k]), np.exp(theta[self.D + 3 + k:])
        x = WARP_EDGE + (1 - 2 * WARP_EDGE) * X[:, self.numbers]
        power = x ** a
        Z = X.copy()
        Z[:, self.numbers] = 1 - (1 - power) ** b
        return Z, x, power, a, b

    def objective(self, theta):
        Z, x, power, a, b = self.warped(self.X, theta)
        scale, v, linear, noise = np.exp(theta[:self.D]), *np.exp(theta[self.D:self.D + 3])
        S = Z / scale
        r = SQRT3 * np.sqrt(gauss.distance2(S, S))
        decay = np.exp(-r)
        matern, ZZ = v * (1 + r) * decay, Z @ Z.T
        try:
            loss, W = gauss.evidence(*gauss.inverse(matern + linear * ZZ + noise * np.eye(len(Z))), self.y)
        except linalg.LinAlgError:
            return 1e10, np.zeros_like(theta)
        g = np.zeros_like(theta)
        # d matern / d(distance^2) = -1.5 v exp(-r), and d(distance^2)/d log l_d = -2 (s_id - s_jd)^2
        by_pair, by_point = gauss.pair_gradients(W * (-1.5 * v * decay), S)
        g[:self.D] = -2 * by_pair
        g[self.D:self.D + 3] = (W * matern).sum(), linear * (W * ZZ).sum(), noise * np.trace(W)
        dZ = (by_point / scale + 2 * linear * W @ Z)[:, self.numbers]
        k, rest = len(self.numbers), np.maximum(1 - power, 1e-300)
        g[self.D + 3:self.D + 3 + k] = (dZ * b * rest ** (b - 1) * power * np.log(x) * a).sum(0)
        g[self.D + 3 + k:] = (dZ * -(rest ** b) * np.log(rest) * b).sum(0)
        return self.add_priors(theta, loss, g)

    def add_priors(self, theta, loss, g):
        D = self.D
        loss += np.exp(theta[D]) - 0.5 * theta[D]
        g[D] += np.exp(theta[D]) - 0.5
        for at, (mean, deviation) in ((slice(D + 2, D + 3), NOISE_PRIOR), (slice(D + 3, None), WARP_PRIOR)):
            z = (theta[at] - mean) / deviation
            loss += 0.5 * (z * z).sum()
            g[at] += z / deviation
        return loss, g

    def prepare(self):
        D = self.D
        self.scale, (self.v, self.linear, self.noise) = np.exp(self.theta[:D]), np.exp(self.theta[D:D + 3])
        self.Z = self.warped(self.X, self.theta)[0]
        L = gauss.factor(self.cross(self.Z) + self.noise * np.eye(len(self.Z)))
        self.weights = linalg.cho_solve((L, True), self.y, check_finite=False)
        self.half = linalg.solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)

    def cross(self, Z):
        r = SQRT3 * np.sqrt(gauss.distance2(Z / self.scale, self.Z / self.scale))
        return self.v * (1 + r) * np.exp(-r) + self.linear * Z @ self.Z.T

    def predict(self, X):
        """Mean and deviation of the function."""
        Z = self.warped(X, self.theta)[0]
        K = self.cross(Z)
        variance = self.v + self.linear * (Z * Z).sum(1) - ((K @ self.half.T) ** 2).sum(1)
        return K @ self.weights, np.sqrt(np.maximum(variance, 1e-12))


def mace(model, X, best, kappa, rng):
    """n x 3, to be minimised: lower confidence bound, -log EI, -log PI, each with its own draw of the noise."""
    mean, deviation = model.predict(X)
    noise = (2 * model.noise) ** 0.5
    bound = mean + noise * rng.standard_normal(len(X)) - kappa * deviation
    z = (best - 1e-4 - mean - noise * rng.standard_normal(len(X))) / deviation
    far = np.minimum(z, -6)
    with np.errstate(all="ignore"):
        log_ei = np.where(z > -6, np.log(z * special.ndtr(z) + np.exp(-0.5 * z * z - HALF_LOG_2PI)),
                          -0.5 * far * far - HALF_LOG_2PI - np.log(far * far - 1))
    return np.stack([bound, -(np.log(deviation) + log_ei), -special.log_ndtr(z)], axis=1)


def fronts(F, enough=None):
    """The rank of each row: 0 is not dominated, 1 is dominated by rank 0 alone, … Stops when at least `enough` rows
    have a rank; the others get the next one."""
    below = np.full((len(F), len(F)), True)
    for f in F.T:
        below &= f[:, None] <= f[None]
    dominates = (below & ~below.T).astype(np.float32)
    left, rank, level = dominates.sum(0), np.full(len(F), -1), 0
    while (rank < 0).sum() > len(F) - (enough or len(F)):
        front = (left == 0) & (rank < 0)
        rank[front] = level
        left -= front.astype(np.float32) @ dominates
        level += 1
    return np.where(rank < 0, level, rank)


def crowding(F, rank):
    """How far apart the neighbours of each row are, in its own front; infinite at a front's ends."""
    out = np.zeros(len(F))
    for f in F.T:
        order = np.lexsort((f, rank))
        r, v = rank[order], f[order]
        inner = (r[1:-1] == r[:-2]) & (r[1:-1] == r[2:])
        gap = np.full(len(F), np.inf)
        gap[1:-1] = np.where(inner, (v[2:] - v[:-2]) / ((v[-1] - v[0]) or 1), np.inf)
        out[order] += gap
    return out


class Nsga2:
    """NSGA-II on a space of sweeps: every point is canonical."""

    def __init__(self, space, evaluate, rng):
        self.space, self.evaluate, self.rng = space, evaluate, rng
        self.is_choice = np.array([c.kind == "choice" for c in space.columns])
        self.sizes = np.array([max(1, c.n) for c in space.columns])

    def children(self, P, key):
        """As many children as parents: binary tournaments, crossover, mutation."""
        n, d = P.shape
        rng = self.rng
        a, b = rng.integers(n, size=(2, 2, n))
        mothers, fathers = (P[np.where(key[i] < key[j], i, j)] for i, j in (a, b))
        u = rng.random((n, d))  # simulated binary crossover, eta 15, half the parameters
        beta = np.where(u < 0.5, 2 * u, 1 / (2 * (1 - u))) ** (1 / 16)
        crossed = 0.5 * ((1 + beta) * mothers + (1 - beta) * fathers)
        C = np.where((rng.random((n, d)) < 0.5) & (rng.random((n, 1)) < 0.9), crossed, mothers)
        C = np.where(self.is_choice, np.where(rng.random((n, d)) < 0.5, mothers, fathers), C)
        u = rng.random((n, d))  # polynomial mutation, eta 20, one parameter of each child
        delta = np.where(u < 0.5, (2 * u) ** (1 / 21) - 1, 1 - (2 * (1 - u)) ** (1 / 21))
        mutated = np.where(self.is_choice, np.floor(rng.random((n, d)) * self.sizes), C + delta)
        return self.space.canonical(np.where(rng.random((n, d)) < 1 / d, mutated, C))

    def front(self, P):
        """The points of the last generation that no other dominates."""
        F = self.evaluate(P)
        key = np.arange(len(P))
        for _ in range(GENERATIONS):
            A = np.concatenate([P, self.children(P, key)])
            A, first = np.unique(A, axis=0, return_index=True)
            known = first < len(P)
            G = np.empty((len(A), F.shape[1]))
            G[known] = F[first[known]]
            if not known.all():
                G[~known] = self.evaluate(A[~known])
            rank = fronts(G, POPULATION)
            keep = np.lexsort((-crowding(G, rank), rank))[:POPULATION]
            P, F, key = A[keep], G[keep], np.arange(len(keep))
        return P[fronts(F) == 0]


class Hebo:
    def __init__(self, space, seed):
        self.space, self.rng = space, np.random.default_rng(seed)
        self.design = space.spread(gauss.sobol(space.d, space.d + 1, self.rng))
        self.theta = None

    def ask(self, U, y, pending):
        """The next canonical point. U, y: finished trials (n x d, n), lower is better; pending: m x d, unused."""
        asked = len(U) + len(pending)
        if asked < len(self.design):
            return self.design[asked]
        if len(U) < 2:
            return self.fill(U)
        z = power_transform(y)
        model = Model(self.space, self.space.features(U), z, self.theta)
        self.theta, d = model.theta, self.space.d
        best = U[np.argmin(y)]
        kappa = np.sqrt((2 + d / 2) * np.log(len(U)) + np.log(np.pi ** 2 / 0.01))
        tau = model.predict(self.space.features(best[None]))[0][0]
        search = Nsga2(self.space, lambda P: mace(model, self.space.features(P), tau, kappa, self.rng), self.rng)
        start = self.space.spread(gauss.sobol(d, POPULATION - 1, self.rng))
        found = search.front(np.concatenate([best[None], start]))
        tried = {u.tobytes() for u in np.concatenate([U, pending])}
        found = [u for u in found if u.tobytes() not in tried]
        return found[self.rng.integers(len(found))] if found else self.fill(U)

    def fill(self, U):
        tried = {u.tobytes() for u in U}
        points = self.space.spread(gauss.sobol(self.space.d, 64, self.rng))
        return next((u for u in points if u.tobytes() not in tried), points[0])
