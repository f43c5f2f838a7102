"""The algebra that Gaussian processes share: evidence and its gradient, posterior, random points.

The evidence's gradient costs O(n^3 + n^2 D): with W = dL/dK, the sum over pairs of W_ij g_ij (x_id - x_jd)^2
is 2 (sum_i m_i x_id^2 - x_d' M x_d), where M = W g and m its row sums.
"""
import numpy as np
from scipy import linalg
from scipy.stats import qmc


def factor(K):
    """Lower Cholesky factor, with as little jitter as it takes. LinAlgError: not even 1e-2 is enough."""
    for jitter in (0, 1e-8, 1e-6, 1e-4, 1e-2):
        try:
            return linalg.cholesky(K + jitter * np.eye(len(K)), lower=True, check_finite=False)
        except linalg.LinAlgError:
            pass
    raise linalg.LinAlgError("not positive definite")


def inverse(K):
    """K^-1 and log |K|."""
    L = factor(K)
    inv = linalg.lapack.dpotri(L, lower=1)[0]
    return np.tril(inv) + np.tril(inv, -1).T, 2 * np.log(np.diag(L)).sum()


def evidence(inv, log_det, y):
    """-log p(y) without its constant, and W = its derivative by K, from K's inverse and determinant."""
    a = inv @ y
    return 0.5 * (y @ a + log_det), 0.5 * (inv - np.outer(a, a))


def distance2(A, B):
    """Squared Euclidean distances of rows."""
    d2 = (A * A).sum(1)[:, None] + (B * B).sum(1)[None] - 2 * A @ B.T
    return np.maximum(d2, 0)


def pair_gradients(M, X):
    """For symmetric M: the sum over pairs of M_ij (x_id - x_jd)^2 for each d, and of 4 M_ij (x_id - x_jd) for each
    i and d, which is that sum's derivative by x_id."""
    m, MX = M.sum(1), M @ X
    return 2 * ((m[:, None] * X * X).sum(0) - (X * MX).sum(0)), 4 * (m[:, None] * X - MX)


def sobol(d, n, rng):
    """n scrambled quasi-random points in [0, 1)^d. Powers of two are drawn, so that no balance warning comes."""
    return qmc.Sobol(d, seed=rng).random_base2(max(0, (n - 1).bit_length()))[:n]
