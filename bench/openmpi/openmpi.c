/* The calls of an engine through MPI: swap with the peer (two ranks), all-gather and f32 sum, timed on rank 0 from a common start.

   usage: mpirun -n RANKS openmpi ITERS OP,OP... BYTES...    OP: exchange, all-gather, all-reduce
   prints, a line for each: OP BYTES P50_US P90_US (bytes a rank) */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUP = 50 };

static int rank, world;

static void call(const char *op, void *out, void *in, int bytes) {
    if (strcmp(op, "exchange") == 0)
        MPI_Sendrecv(in, bytes, MPI_BYTE, 1 - rank, 0, out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (strcmp(op, "all-gather") == 0)
        MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
    else
        MPI_Allreduce(in, out, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(const char *op, int bytes, int iters) {
    char *in = calloc(1, (size_t)bytes), *out = calloc((size_t)world, (size_t)bytes);
    double *times = calloc((size_t)iters, sizeof *times);
    if (!in || !out || !times) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = -WARMUP; i < iters; i++) {
        double start = MPI_Wtime();
        call(op, out, in, bytes);
        if (i >= 0) times[i] = (MPI_Wtime() - start) * 1e6;
    }
    qsort(times, (size_t)iters, sizeof *times, by_value);
    if (rank == 0) printf("%s %d %.2f %.2f\n", op, bytes, times[iters / 2], times[iters - 1 - iters / 10]);
    free(in);
    free(out);
    free(times);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (argc < 4 || atoi(argv[1]) < 1) {
        if (rank == 0) fprintf(stderr, "usage: mpirun -n RANKS openmpi ITERS OP,OP... BYTES...\n");
        MPI_Finalize();
        return 2;
    }
    for (char *op = strtok(argv[2], ","); op; op = strtok(NULL, ","))
        for (int i = 3; i < argc; i++) measure(op, atoi(argv[i]), atoi(argv[1]));
    MPI_Finalize();
    return 0;
}
