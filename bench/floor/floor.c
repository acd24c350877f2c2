/* What two processes on this machine can do at best over one loopback TCP socket: swap N bytes, both busy-polling non-blocking
   calls on one buffer each way, without header, check or bookkeeping. Nothing above a socket can be faster than this by design,
   only by sending smarter.

   usage: floor WINDOW ITERS BYTES...
     WINDOW  how many bytes sending may be ahead of receiving; 0 is no bound
   prints, a line for each BYTES: exchange BYTES P50_US P90_US */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARMUP = 50 };

static void fail(const char *call) {
    fprintf(stderr, "floor: %s: %s\n", call, strerror(errno));
    exit(1);
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One connected pair of sockets over loopback TCP. */
static void connect_pair(int pair[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        fail("listen");
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (pair[0] < 0 || connect(pair[0], (struct sockaddr *)&address, length) < 0) fail("connect");
    if ((pair[1] = accept(listener, NULL, NULL)) < 0) fail("accept");
    close(listener);
    for (int side = 0; side < 2; side++) {
        int on = 1;
        if (setsockopt(pair[side], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) fail("TCP_NODELAY");
    }
}

/* The number of bytes that a non-blocking call moved, 0 when it would have blocked. */
static size_t moved(ssize_t result, const char *call) {
    if (result > 0) return (size_t)result;
    if (result == 0) {
        fprintf(stderr, "floor: the peer closed\n");
        exit(1);
    }
    if (errno != EAGAIN && errno != EINTR) fail(call);
    return 0;
}

static void swap(int fd, const char *out, char *in, size_t bytes, size_t window) {
    size_t sent = 0, received = 0;
    do {
        size_t limit = window && received + window < bytes ? received + window : bytes;
        if (sent < limit) sent += moved(send(fd, out + sent, limit - sent, MSG_DONTWAIT | MSG_NOSIGNAL), "send");
        if (received < bytes) received += moved(recv(fd, in + received, bytes - received, MSG_DONTWAIT), "recv");
    } while (sent < bytes || received < bytes);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void measure(int fd, int rank, size_t bytes, size_t iters, size_t window) {
    char *out = malloc(bytes), *in = calloc(bytes, 1);
    uint64_t *times = calloc(iters, sizeof *times);
    if (!out || !in || !times) fail("malloc");
    memset(out, 'a' + rank, bytes);
    for (size_t i = 0; i < WARMUP; i++) swap(fd, out, in, bytes, window);
    for (size_t i = 0; i < iters; i++) {
        uint64_t start = nanoseconds();
        swap(fd, out, in, bytes, window);
        times[i] = nanoseconds() - start;
    }
    for (size_t i = 0; i < bytes; i++)
        if (in[i] != 'b' - rank) {
            fprintf(stderr, "floor: wrong byte at %zu of %zu\n", i, bytes);
            exit(1);
        }
    qsort(times, iters, sizeof *times, by_value);
    if (rank == 0) printf("exchange %zu %.2f %.2f\n", bytes, times[iters / 2] / 1e3, times[iters - 1 - iters / 10] / 1e3);
    free(out);
    free(in);
    free(times);
}

int main(int argc, char **argv) {
    if (argc < 4 || atol(argv[2]) < 1) {
        fprintf(stderr, "usage: floor WINDOW ITERS BYTES...\n");
        return 2;
    }
    int pair[2];
    connect_pair(pair);
    pid_t child = fork();
    if (child < 0) fail("fork");
    int rank = child == 0;
    close(pair[!rank]);
    for (int i = 3; i < argc; i++)
        measure(pair[rank], rank, strtoull(argv[i], NULL, 10), strtoull(argv[2], NULL, 10), strtoull(argv[1], NULL, 10));
    if (rank) return 0;
    int status;
    if (waitpid(child, &status, 0) < 0 || status != 0) return 1;
    return 0;
}
