import assay


def objective(trial):
    lr = trial.suggest_float("lr", 1e-3, 1.0, log=True)
    layers = trial.suggest_categorical("layers", [None, (16,), (16, 8)])
    momentum = trial.suggest_float("momentum", 0.0, 0.9) if layers else 0.0
    weight, speed = 5.0, 0.0
    for step in range(30):
        speed = momentum * speed - lr * 2 * weight
        weight += speed
        trial.report(abs(weight), step)
    return min(abs(weight), 1e3) + (0.0 if layers else 0.5)


study = assay.create_study(direction="minimize")
study.optimize(objective, n_trials=25)
print("best", study.best_value, study.best_params)
