import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--width", type=int, required=True)
options = parser.parse_args()
weight = 5.0
for _ in range(20):
    weight -= options.lr * 2 * weight
print(abs(weight) + options.width / 100)
