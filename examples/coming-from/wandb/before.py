import wandb


def main():
    run = wandb.init()
    config = run.config
    weight = 5.0
    for epoch in range(20):
        weight -= config.lr * 2 * weight + config.decay * weight
        run.log({"epoch": epoch, "loss": abs(weight)})


main()
