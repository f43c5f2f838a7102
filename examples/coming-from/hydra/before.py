import hydra


@hydra.main(version_base=None, config_path=".", config_name="config")
def main(config):
    weight = 5.0
    for _ in range(20):
        weight -= config.optimizer.lr * 2 * weight
    print("loss", abs(weight) + len(config.layers) / 100)


main()
