// What the files of softhip share. Lock order: world, then an engine's, then the trace's; neither is held while waiting.
#ifndef SOFTHIP_WORLD_H
#define SOFTHIP_WORLD_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "calls.h"
#include "hip.h"
#include "names.h"
#include "softhip.h"

enum { MAX_DEVICES = 16, MAX_RINGS = 8, MAX_POOL = 32, MAX_ENGINES = 8192, MAX_FAULTS = 64, MAX_USES = 24 };
#define ANYWHERE UINTPTR_MAX
enum { INLINE_ARGS = 256, MAX_ARGS = 4096, QUEUE_LIMIT = 16384 };

#define CALL_ID(name, since) CALL_##name,
enum call { SOFTHIP_CALLS(CALL_ID) CALLS };
#undef CALL_ID

enum values { VALUES_RUN, VALUES_REFUSE, VALUES_RECORD };

struct settings {
    int devices, major, minor, patch, integrated, hw_queues, ignore_priority, sdma_rings;
    int copy_blocks, stream_lock, stream_wait, write_releases, relaxed_waits, dirty, host_coherent, no_gpu;
    enum values capture_values;
    long blit_bytes, copy_latency_us, copy_mb_s, memory_mb;
    char arch[64], name[128], missing[1024];
    int visible[MAX_DEVICES], visibles;
};

enum memory { MEMORY_DEVICE, MEMORY_HOST, MEMORY_REGISTERED };

struct alloc {
    uintptr_t base;
    size_t size, mapped;
    char *view;       // where workers touch it; base itself unless discrete or non-coherent
    char *agreed;     // non-coherent: the bytes on which view and base last agreed
    void *reserved;   // the mapping around base, guard pages included
    size_t reserved_bytes;
    enum memory kind;
    int device, fd;
    unsigned flags;
    bool stale;       // non-coherent
    _Atomic int uses; // queued operations that touch it
    uint64_t number;
};

struct engine;
struct stream;

// A dependency is met once the engine has completed that many operations.
struct point {
    struct engine *engine;
    uint64_t seq;
};

enum kind { OP_MARK, OP_COPY, OP_SET, OP_WAIT, OP_WRITE, OP_KERNEL, OP_HOST };

struct op {
    struct op *next;
    enum kind kind;
    enum call call;         // what it was queued by, for reports
    struct stream *stream;  // an identity, never followed by a worker
    int device;
    uint64_t seq, queued_ns, start_ns;
    struct point after[2];  // engine NULL: none
    char *dst, *src;        // as the caller named them
    char *to, *from;        // as a worker touches them
    size_t bytes;
    uint64_t value, mask;
    unsigned flags, width;  // width: 4 or 8
    bool sdma, pageable, null_stream;
    struct alloc *used[MAX_USES];
    int uses;
    softhip_twin *twin;
    const struct kernel *kernel;
    unsigned blocks, threads, arg_bytes;
    void *args;             // inline_args, or malloc'd
    void (*fn)(void *);
    void *fn_arg;
    struct timing *timing;  // of an event record
    uint64_t _Alignas(16) inline_args[INLINE_ARGS / 8];
};

enum state { IDLE, HELD, RUNNING, DEPENDENT, PARKED, SPINNING, HUNG, LATE };

struct engine {
    int id, device, priority, streams; // streams: how many are bound to it
    bool ring, masked;
    pthread_mutex_t lock;              // the list, the states below
    struct op *head, *tail, *spare;
    unsigned queued, steps;
    bool held, started, stop;
    _Atomic bool hang;
    _Atomic int state;
    _Atomic uint64_t submitted, completed;
    _Atomic uint32_t bell, done;       // futexes: something for the worker; something completed
    _Atomic int asleep, watchers;
    _Atomic uintptr_t looks_at;        // the address of the word that it waits for; 0, or ANYWHERE
    _Atomic uint32_t poke;             // futex: that word may have changed
    _Atomic int dozing;
    _Atomic uint64_t pauses, pause_at; // of a twin
    _Atomic uint32_t landings;         // that a late copy has seen
    jmp_buf leave;                     // out of a twin
    pthread_t thread;
    bool after_wait;                   // worker's: the operation before was a wait
};

struct capture;

struct stream {
    bool live, closing;
    int device, priority;
    unsigned flags;
    bool null, masked;
    struct engine *queue;
    struct point last;
    struct capture *capture;
    uint64_t pending; // capture: operations recorded since the last event that another stream joined by
    pthread_mutex_t exec;
};

// The time at which a recorded event was reached. Shared by the event and the operation, so that either may go first.
struct timing {
    _Atomic int holders;
    _Atomic uint64_t at_ns;
};

struct event {
    bool live, recorded;
    int device;
    unsigned flags;
    struct point at;
    struct timing *timing;
    struct capture *capture; // recorded inside one, by its number
    uint64_t capture_number;
    struct stream *from;
};

struct capture {
    struct stream *origin;
    int mode, status;
    uint64_t thread, number;
    struct graph *graph;
    int members;
};

struct graph {
    bool live;
    struct op *first, *last;
    int count;
};

struct exec {
    bool live;
    struct op *first;
};

struct module {
    bool live;
    int device;
    char *symbols; // names apart by zero bytes, ended by an empty one; NULL: not known
    size_t symbol_bytes;
    struct function *functions;
};

struct function {
    bool live;
    struct function *next;
    struct module *module;
    const struct kernel *kernel;
};

// A pool hands out objects of one size at fixed places, so that a handle can be told from a stray pointer.
struct pool {
    char *at;
    size_t size;
    unsigned cap, high, next, live;
};

struct fault {
    bool set;
    int call;     // enum call, or -1
    char what;    // 'c' call, 'a' async, 'd' drop, 'l' lost, 't' late, 'h' hang
    int code, queue;
    unsigned nth, seen, times;
    long us;
};

struct device {
    struct stream *null;
    struct engine *pool[3][MAX_POOL];
    struct engine *rings[MAX_RINGS];
    _Atomic int sticky;
    _Atomic bool lost;
    uint64_t used;
};

struct world {
    struct settings set;
    bool begun;
    uint64_t generation;
    struct device devices[MAX_DEVICES];
    struct engine *engines[MAX_ENGINES];
    _Atomic int engine_count;
    struct alloc **allocs; // by base
    int alloc_count, alloc_cap;
    struct { void *at; size_t bytes; uint64_t number; } freed[1024];
    unsigned freed_next;
    struct pool streams, events, graphs, execs, modules, functions;
    uint64_t next_number;
    struct capture *captures[64];
    _Atomic int capturing, stale_count;
    pthread_mutex_t stale_lock;
    _Atomic uint32_t changes; // counts what queues have changed in memory
    _Atomic int sleepers;
    _Atomic bool ending;
    struct { uintptr_t at; uint64_t value; unsigned width; } unseen[256]; // write_releases=0
    unsigned unseen_next;
    _Atomic uint32_t landings;
};

extern struct world world;
extern pthread_mutex_t world_lock;

// API names a HIP function: HIP's own name in the shared library, a private one in process, so that an engine that links
// the real library beside this one gets the real one.
#ifdef SOFTHIP_SHARED
#define API(name) SOFTHIP_API int name
#define NAMED(name) name
#else
#define API(name) SOFTHIP_API int softhip_##name
#define NAMED(name) softhip_##name
#endif

// CALL begins a HIP function: the world exists, and does until the function returns; there is a GPU, no fault is planted here.
#define CALL(name) \
    int code_ __attribute__((cleanup(call_over))) = call_enter(CALL_##name); \
    if (code_ != hipSuccess) \
    return call_leave(code_)

// config.c
int settings_parse(struct settings *s, const char *text);
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// addresses.c
void *claim(size_t bytes);
void retire(void *at, size_t bytes);
// world.c
void world_begin(void);
bool world_busy(void);
void world_end(void);
int call_enter(enum call c);
int call_leave(int code);
void call_over(const int *code); // after call_enter
int current_device(void);
void set_current_device(int device);
bool in_host_function(void);
void set_in_host_function(bool in);
void *pool_new(struct pool *p);
void pool_free(struct pool *p, void *object);
bool pool_has(const struct pool *p, const void *object);
bool version_at_least(int major, int minor);
bool name_missing(const char *name, int since);
// device.c
int device_error(int device);
void device_fail(int device, int code);
const char *error_name(int code);
// park.c
struct pace {
    unsigned turns;
    unsigned sleep_ns;
    _Atomic int *dozing; // set while it sleeps; may be NULL
};
void futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void futex_wake(_Atomic uint32_t *word);
void pace(struct pace *p, _Atomic uint32_t *word, uint32_t seen);
void changed(const char *at, size_t bytes);
uint64_t now_ns(void);
uint64_t thread_number(void);
// memory.c
struct alloc *alloc_find(uintptr_t p);
char *alloc_view(struct alloc *a, uintptr_t p);
bool was_freed(uintptr_t p, uint64_t *number);
void use(struct op *o, struct alloc *a);
void unuse(struct op *o);
void memory_end(void);
// stale.c
void stale_add(struct alloc *a);
void stale_remove(struct alloc *a);
void acquire_stale(void);
void release_stale(void);
// engine.c
struct engine *engine_new(int device, int priority, bool ring);
void engine_end(struct engine *e);
struct op *op_new(struct engine *e);
void op_free(struct engine *e, struct op *o);
struct point engine_submit(struct engine *e, struct op *o);
bool point_met(struct point p);
bool point_wait(struct point p, struct engine *waiter);
void wake(struct engine *e);
void rouse(struct engine *e);
// run.c
int op_run(struct engine *e, struct op *o);
uint64_t word_load(const struct op *o);
bool word_met(const struct op *o, uint64_t is);
void forget_unseen(const char *at, size_t bytes);
// stream.c
int stream_enter(void *handle, struct stream **s);
int stream_begin(void *handle, struct stream **s);
int stream_unlock(struct stream *s, int code);
struct engine *stream_queue(int device, int priority);
struct op *stream_op(struct stream *s, struct engine *on, enum kind kind, enum call call);
void stream_submit(struct stream *s, struct engine *on, struct op *o);
void stream_discard(struct stream *s, struct engine *on, struct op *o);
int drain_device(int device);
// bind.c
int copy_engine(struct stream *s, struct op *o, struct engine **on);
struct engine *ring_of(int device, int index);
int op_bind(struct op *o);
// capture.c
struct op *capture_op(void);
void capture_add(struct stream *s, struct op *o);
int capture_forbids(void);
bool capture_implicit(const struct stream *s);
int capture_join(struct stream *s, struct event *e);
void capture_leave(struct stream *s);
void captures_end(void);
// graph.c
void graph_drop(struct op *first);
void graph_free(struct graph *g);
void graphs_end(void);
// kernel.c
struct kernel *kernel_find(const char *name);
bool op_args(struct op *o, const void *args, size_t n);
// module.c
void modules_end(void);
// fault.c
int call_named(const char *name);
int fault_call(enum call c);
struct fault fault_op(const struct op *o, const struct engine *e);
void faults_end(void);
// report.c
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
void trace_add(const struct op *o, const struct engine *e, int code);
void reports_end(void);

struct kernel {
    struct kernel *next;
    char name[128];
    softhip_twin *twin;
    unsigned sizes[64], count, bytes;
};

#endif
