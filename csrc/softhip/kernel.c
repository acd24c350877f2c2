//go:build cgo && linux

// Kernels' host twins, and launches.
#include <stdlib.h>
#include <string.h>

#include "world.h"

// Twins are known by name for as long as the process lives: a world comes and goes, the code that was linked stays.
static struct kernel *kernels;
static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;

// The twins of csrc/mailbox, known from the start where they are linked.
__attribute__((weak)) extern softhip_twin hf_stage__host, hf_collect__host, hf_gather__host, hf_all_reduce__host, hf_exchange__host;
enum { GATE_ARGS = 120, MAILBOX_ARGS = 88 }; // of struct hf_args, of struct hf_call

static void know_mailbox(void) {
    if (&hf_stage__host != NULL && &hf_collect__host != NULL) {
        softhip_kernel("hf_stage", hf_stage__host, GATE_ARGS);
        softhip_kernel("hf_collect", hf_collect__host, GATE_ARGS);
    }
    if (&hf_gather__host != NULL && &hf_all_reduce__host != NULL && &hf_exchange__host != NULL) {
        softhip_kernel("hf_gather", hf_gather__host, MAILBOX_ARGS);
        softhip_kernel("hf_all_reduce", hf_all_reduce__host, MAILBOX_ARGS);
        softhip_kernel("hf_exchange", hf_exchange__host, MAILBOX_ARGS);
    }
}

struct kernel *kernel_find(const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, know_mailbox);
    pthread_mutex_lock(&kernels_lock);
    struct kernel *k = kernels;
    while (k != NULL && (strcmp(k->name, name) != 0 || k->twin == NULL))
        k = k->next;
    pthread_mutex_unlock(&kernels_lock);
    return k;
}

// Parameters lie in a kernel's argument segment aligned to their size, 8 at most.
static unsigned align(unsigned at, unsigned size) {
    unsigned to = size >= 8 || (size & (size - 1)) != 0 ? 8 : size;
    return (at + to - 1) & ~(to - 1);
}

SOFTHIP_API int softhip_kernel_args(const char *name, softhip_twin *twin, const unsigned *sizes, unsigned count) {
    if (name == NULL || *name == 0 || strlen(name) >= sizeof((struct kernel *)0)->name)
        return fail("softhip: a kernel's name has 1 to %zu bytes", sizeof((struct kernel *)0)->name - 1);
    if (count > sizeof((struct kernel *)0)->sizes / sizeof(unsigned) || (count > 0 && sizes == NULL))
        return fail("softhip: kernel %s has %u parameters; at most 64", name, count);
    unsigned bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (sizes[i] == 0 || sizes[i] > MAX_ARGS)
            return fail("softhip: parameter %u of kernel %s has %u bytes; 1 to %d", i, name, sizes[i], MAX_ARGS);
        bytes = align(bytes, sizes[i]) + sizes[i];
    }
    if (bytes > MAX_ARGS)
        return fail("softhip: kernel %s has %u bytes of arguments; at most %d", name, bytes, MAX_ARGS);
    pthread_mutex_lock(&kernels_lock);
    struct kernel *k = kernels;
    while (k != NULL && strcmp(k->name, name) != 0)
        k = k->next;
    if (k == NULL && (k = calloc(1, sizeof *k)) != NULL) {
        strcpy(k->name, name);
        k->next = kernels;
        kernels = k;
    }
    if (k != NULL) {
        k->twin = twin;
        k->count = count;
        k->bytes = bytes;
        if (count > 0)
            memcpy(k->sizes, sizes, count * sizeof *sizes);
    }
    pthread_mutex_unlock(&kernels_lock);
    return k == NULL ? fail("softhip: out of memory") : 0;
}

SOFTHIP_API int softhip_kernel(const char *name, softhip_twin *twin, unsigned bytes) {
    return softhip_kernel_args(name, twin, &bytes, bytes > 0 ? 1 : 0);
}

// op_args gives o a copy of n bytes of arguments.
bool op_args(struct op *o, const void *args, size_t n) {
    o->args = n <= INLINE_ARGS ? (void *)o->inline_args : malloc((n + 7) & ~(size_t)7);
    o->arg_bytes = (unsigned)n;
    if (o->args != NULL)
        memcpy(o->args, args, n);
    return o->args != NULL;
}

// pack gathers a launch's parameters into one block, from either of HIP's two ways to pass them.
static int pack(const struct kernel *k, void **params, void **extra, unsigned char *to) {
    if (params != NULL && extra != NULL)
        return hipErrorInvalidValue;
    if (params != NULL) {
        unsigned at = 0;
        for (unsigned i = 0; i < k->count; i++) {
            if (params[i] == NULL)
                return hipErrorInvalidValue;
            at = align(at, k->sizes[i]);
            memcpy(to + at, params[i], k->sizes[i]);
            at += k->sizes[i];
        }
        return hipSuccess;
    }
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (; extra != NULL && *extra != LAUNCH_END; extra += 2) {
        if (*extra == LAUNCH_BUFFER)
            buffer = extra[1];
        else if (*extra == LAUNCH_BUFFER_SIZE)
            size = extra[1];
        else
            return hipErrorInvalidValue;
    }
    if (k->bytes == 0)
        return hipSuccess;
    if (buffer == NULL || size == NULL || *size < k->bytes)
        return hipErrorInvalidValue;
    memcpy(to, buffer, k->bytes);
    return hipSuccess;
}

API(hipModuleLaunchKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                           unsigned shared, void *stream, void **params, void **extra) {
    CALL(hipModuleLaunchKernel);
    uint64_t blocks = (uint64_t)gx * gy * gz, threads = (uint64_t)bx * by * bz;
    if (blocks == 0 || threads == 0 || threads > 1024 || blocks > UINT32_MAX || shared > 65536)
        return call_leave(hipErrorInvalidConfiguration);
    struct stream *s;
    int code = stream_begin(stream, &s);
    if (code != hipSuccess)
        return call_leave(code);
    struct function *f = function;
    if (!pool_has(&world.functions, function) || f->module->device != s->device)
        return stream_unlock(s, hipErrorInvalidHandle);
    unsigned char args[MAX_ARGS] = {0};
    code = pack(f->kernel, params, extra, args);
    struct op *o = code == hipSuccess ? stream_op(s, s->queue, OP_KERNEL, CALL_hipModuleLaunchKernel) : NULL;
    if (o == NULL)
        return stream_unlock(s, code != hipSuccess ? code : hipErrorOutOfMemory);
    o->twin = f->kernel->twin;
    o->kernel = f->kernel;
    o->blocks = (unsigned)blocks;
    o->threads = (unsigned)threads;
    if (!op_args(o, args, f->kernel->bytes)) {
        stream_discard(s, s->queue, o);
        return stream_unlock(s, hipErrorOutOfMemory);
    }
    if (s->capture == NULL)
        op_bind(o);
    stream_submit(s, s->queue, o);
    return stream_unlock(s, hipSuccess);
}
