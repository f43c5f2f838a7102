#!/bin/sh
for lr in 0.01 0.1 0.3; do
  for width in 8 16; do
    echo "$(python3 train.py --lr $lr --width $width) lr=$lr width=$width"
  done
done | sort -g | head -n 1
