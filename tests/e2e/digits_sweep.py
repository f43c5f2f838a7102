"""A small sweep of the built-in trainer over the digits, for tests of the models that it leaves."""


def digits_sweep(max_trials):
    return """
name: keep
metric: {name: val_error, goal: minimize}
parameters:
  lr: {type: float, min: 0.003, max: 0.1, scale: log}
  width: {type: categorical, values: [8, 16]}
search: {method: random, seed: 5}
limits: {max_trials: %d}
ensemble: {method: greedy, size: 6}
trial:
  train:
    dataset: digits
    model: {kind: mlp, layers: ["${width}"]}
    optimizer: {kind: adamw, lr: "${lr}"}
    batch_size: 128
    epochs: 2
""" % max_trials
