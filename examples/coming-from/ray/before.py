from ray import tune


def train(config):
    weight = 5.0
    for _ in range(20):
        weight -= config["lr"] * 2 * weight
        tune.report({"loss": abs(weight) + config["width"] / 100})


space = {"lr": tune.loguniform(1e-3, 0.4), "width": tune.choice([8, 16, 32])}
tuner = tune.Tuner(train, param_space=space,
                   tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=20))
best = tuner.fit().get_best_result()
print("best", best.metrics["loss"], best.config)
