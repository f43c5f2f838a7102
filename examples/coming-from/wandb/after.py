import assay


def main():
    config = assay.params()
    weight = 5.0
    for epoch in range(20):
        weight -= config["lr"] * 2 * weight + config["decay"] * weight
        assay.report(step=epoch, loss=abs(weight))


main()
