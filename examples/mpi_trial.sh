#!/bin/sh
# Counts the processes that mpirun starts on the hosts of this trial. --allow-run-as-root and
# --oversubscribe are for containers and small machines.
set -e
n=$(mpirun --hostfile "$ASSAY_HOSTFILE" -np "$WORLD_SIZE" --allow-run-as-root --oversubscribe \
    sh -c 'echo "process $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"' | tee /dev/stderr | wc -l)
echo "{\"processes\": $n}" >> "$ASSAY_REPORT"
