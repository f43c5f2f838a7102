#!/usr/bin/env python3
"""The recipes' own parts (bench/search/recipes): gradients against finite differences, and spaces: documents come
back as the points that made them, inactive parameters are left out and stay at their defaults, steps hold.

Exit 77 where no python has numpy and scipy: Debian's is tried too.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "search"))
try:
    import numpy as np
    from recipes import botorch, gauss, hebo
    from recipes.space import Space
except ImportError as missing:
    if sys.executable != "/usr/bin/python3" and os.access("/usr/bin/python3", os.X_OK):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print(f"skipped: {missing}")
    raise SystemExit(77)

PARAMETERS = {
    "x": {"type": "float", "min": -2, "max": 3},
    "rate": {"type": "float", "min": 1e-4, "max": 1, "scale": "log"},
    "count": {"type": "int", "min": 1, "max": 10},
    "wide": {"type": "int", "min": 8, "max": 512, "scale": "log"},
    "share": {"type": "float", "min": 0, "max": 1, "step": 0.25},
    "kind": {"type": "categorical", "values": ["a", "b", "c"]},
    "size": {"type": "ordinal", "values": [16, 64, 256]},
    "on": {"type": "bool"},
    "fixed": {"type": "constant", "value": 7},
    "inner": {"type": "float", "min": 0, "max": 1, "when": {"kind": "b"}},
    "deep": {"type": "int", "min": 1, "max": 3, "when": {"kind": ["b", "c"], "count": {"min": 5}}},
    "deeper": {"type": "categorical", "values": ["u", "v"], "when": {"deep": 2, "on": True}},
}


def slope(f, x, i, h=1e-6):
    e = np.zeros_like(x)
    e[i] = h
    return (f(x + e) - f(x - e)) / (2 * h)


class Recipes(unittest.TestCase):
    def setUp(self):
        self.space = Space(PARAMETERS)
        self.rng = np.random.default_rng(3)
        self.U = self.space.spread(gauss.sobol(self.space.d, 64, self.rng))
        self.y = 3 * self.U[:, 0] + (self.U[:, 5] == 1) + 0.1 * self.rng.standard_normal(64)

    def test_documents_come_back(self):
        for u in self.U:
            document = self.space.document(u)
            np.testing.assert_allclose(self.space.point(document), u, atol=1e-12)
            np.testing.assert_allclose(self.space.canonical(u[None])[0], u, atol=1e-12)
            self.assertEqual(document["fixed"], 7)
            self.assertIsInstance(document["wide"], int)
            self.assertIn(document["share"], (0, 0.25, 0.5, 0.75, 1))
            self.assertIn(document["size"], (16, 64, 256))

    def test_conditions(self):
        seen = set()
        for document in map(self.space.document, self.U):
            deep = document["kind"] in "bc" and document["count"] >= 5
            self.assertEqual("inner" in document, document["kind"] == "b")
            self.assertEqual("deep" in document, deep)
            self.assertEqual("deeper" in document, deep and document["deep"] == 2 and document["on"])
            seen |= set(document)
        self.assertEqual(seen, set(PARAMETERS))

    def test_every_value_of_a_choice_is_as_likely(self):
        counts = np.bincount(self.space.spread(gauss.sobol(self.space.d, 1024, self.rng))[:, 5].astype(int))
        self.assertTrue((abs(counts - 1024 / 3) < 40).all(), counts)

    def check_gradient(self, f, gradient, x, part=2e-4):
        for i in range(len(x)):
            self.assertAlmostEqual(slope(f, x, i), gradient[i], delta=part * (1 + abs(gradient[i])))

    def test_gradients_of_the_evidence(self):
        models = (hebo.Model(self.space, self.space.features(self.U), hebo.power_transform(self.y), None),
                  botorch.Model(self.space, self.U, self.y, None))
        for m in models:
            theta = m.theta + 0.1 * self.rng.standard_normal(len(m.theta))
            self.check_gradient(lambda t: m.objective(t)[0], m.objective(theta)[1], theta)

    def test_gradient_of_log_ei(self):
        acquisition = botorch.LogEi(botorch.Model(self.space, self.U, self.y, None), self.y.min())
        for far in (0.0, 0.3):
            f = np.clip(self.space.features(self.U[:1])[0] + far, 0.01, 0.99)
            self.check_gradient(lambda x: acquisition.of_features(x[None])[0],
                                acquisition.of_features(f[None], gradient=True)[1][0], f, part=5e-3)

    def test_the_model_predicts(self):
        V = self.space.spread(self.rng.random((200, self.space.d)))
        truth = 3 * V[:, 0] + (V[:, 5] == 1)
        guess = botorch.Model(self.space, self.U, self.y, None).expect(V)
        self.assertLess(np.mean((guess - truth) ** 2), 0.05 * truth.var())
        m = hebo.Model(self.space, self.space.features(self.U), (self.y - self.y.mean()) / self.y.std(), None)
        guess = self.y.mean() + self.y.std() * m.predict(self.space.features(V))[0]
        self.assertLess(np.mean((guess - truth) ** 2), 0.05 * truth.var())

    def test_fronts(self):
        F = np.array([[0, 2], [1, 1], [2, 0], [1, 2], [3, 3], [2, 2]], float)
        self.assertEqual(hebo.fronts(F).tolist(), [0, 0, 0, 1, 3, 2])
        crowded = hebo.crowding(F, hebo.fronts(F))
        self.assertTrue(np.isinf(crowded[[0, 2]]).all() and np.isfinite(crowded[1]))

    def test_a_power_transform_makes_values_symmetric(self):
        for values in (np.exp(self.rng.standard_normal(200)), self.rng.standard_normal(200) ** 3):
            z = hebo.power_transform(values)
            self.assertTrue(abs(z.mean()) < 1e-9 and abs(z.std() - 1) < 1e-9)
            self.assertEqual(np.argsort(z).tolist(), np.argsort(values).tolist())
        self.assertLess(abs((hebo.power_transform(np.exp(self.rng.standard_normal(400))) ** 3).mean()), 0.3)
        self.assertTrue((hebo.power_transform(np.ones(5)) == 0).all())


if __name__ == "__main__":
    unittest.main()
