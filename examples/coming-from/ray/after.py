import assay


def train(trial):
    config, weight = trial.params, 5.0
    for _ in range(20):
        weight -= config["lr"] * 2 * weight
        trial.report(abs(weight) + config["width"] / 100)
    return abs(weight) + config["width"] / 100


space = {"lr": (1e-3, 0.4, "log"), "width": [8, 16, 32]}
best = assay.optimize(train, space, n_trials=20, n_jobs=4, metric="loss")
print("best", best.best_value, best.best_params)
