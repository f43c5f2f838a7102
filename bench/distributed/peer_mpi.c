/* The peer of bench/distributed: MPI_Allreduce, timed as our all-reduce is. Compiled with mpicc
 * when the benchmark runs.
 *
 *   mpirun -n P peer_mpi BYTES REPEATS [BYTES REPEATS ...]
 * prints a line "BYTES SECONDS" for each: the median over the repeats of the slowest rank's
 * time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_seconds(size_t bytes, int repeats)
{
    size_t n = bytes / sizeof(float);
    float *in = malloc(bytes), *out = malloc(bytes);
    double *own = malloc((size_t)repeats * sizeof *own),
           *all = malloc((size_t)repeats * sizeof *all);
    if (!in || !out || !own || !all)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < n; i++)
        in[i] = (float)i, out[i] = 0;
    for (int k = -1; k < repeats; k++) { /* the first one warms up */
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        MPI_Allreduce(in, out, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (k >= 0)
            own[k] = MPI_Wtime() - start;
    }
    MPI_Allreduce(own, all, repeats, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(all, (size_t)repeats, sizeof *all, compare);
    double median = all[repeats / 2];
    free(in);
    free(out);
    free(own);
    free(all);
    return median;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t bytes = strtoul(argv[i], NULL, 10);
        double seconds = median_seconds(bytes, (int)strtol(argv[i + 1], NULL, 10));
        if (rank == 0)
            printf("%zu %.9f\n", bytes, seconds);
    }
    MPI_Finalize();
    return 0;
}
