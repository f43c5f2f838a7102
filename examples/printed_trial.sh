#!/bin/sh
# It knows nothing of Assay: it prints a line for people in each epoch.
x=$1 y=$2
for step in 1 2 3 4 5; do
    awk -v x="$x" -v y="$y" -v s="$step" 'BEGIN { l = (x - 1)^2 + (y + 2)^2; printf "epoch %d: loss %.9g, validation %.9g\n", s, l + 1 / s, l + 2 / s }'
done
