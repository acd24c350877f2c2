//go:build cgo && linux

// Planted failures.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

static struct fault faults[MAX_FAULTS];
static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int planted;

static const char *const call_names[] = {
#define NAME(name, since) #name,
    SOFTHIP_CALLS(NAME)
#undef NAME
};

int call_named(const char *name) {
    for (int i = 0; i < CALLS; i++)
        if (strcmp(call_names[i], name) == 0)
            return i;
    return -1;
}

void faults_end(void) {
    memset(faults, 0, sizeof faults);
    atomic_store(&planted, 0);
}

// due counts one more occasion for f and says whether it is the one.
static bool due(struct fault *f) {
    if (++f->seen < f->nth || (f->times > 0 && f->seen >= f->nth + f->times))
        return false;
    if (f->times > 0 && f->seen + 1 == f->nth + f->times) {
        f->set = false;
        atomic_fetch_sub(&planted, 1);
    }
    return true;
}

int fault_call(enum call c) {
    if (atomic_load_explicit(&planted, memory_order_relaxed) == 0)
        return hipSuccess;
    int code = hipSuccess;
    long us = 0;
    pthread_mutex_lock(&faults_lock);
    for (int i = 0; i < MAX_FAULTS && code == hipSuccess; i++)
        if (faults[i].set && faults[i].what == 'c' && faults[i].call == (int)c) {
            struct fault is = faults[i];
            if (!due(&faults[i]))
                continue;
            code = is.code;
            us += is.us;
        }
    pthread_mutex_unlock(&faults_lock);
    for (struct timespec slice; us > 0 && !atomic_load(&world.ending); us -= 1000) {
        slice = (struct timespec){0, (us < 1000 ? us : 1000) * 1000};
        nanosleep(&slice, NULL);
    }
    return code;
}

struct fault fault_op(const struct op *o, const struct engine *e) {
    struct fault hit = {0};
    if (atomic_load_explicit(&planted, memory_order_relaxed) == 0)
        return hit;
    pthread_mutex_lock(&faults_lock);
    for (int i = 0; i < MAX_FAULTS && hit.what == 0; i++) {
        struct fault *f = &faults[i];
        bool copy = f->what == 'd' || f->what == 'l' || f->what == 't';
        if (!f->set || f->what == 'c' || (copy && o->kind != OP_COPY) || (f->queue >= 0 && f->queue != e->id))
            continue;
        struct fault is = *f;
        if (due(f))
            hit = is;
    }
    pthread_mutex_unlock(&faults_lock);
    return hit;
}

static int plant(const struct fault *f) {
    int code = -1;
    pthread_mutex_lock(&faults_lock);
    for (int i = 0; i < MAX_FAULTS && code != 0; i++)
        if (!faults[i].set) {
            faults[i] = *f;
            faults[i].set = true;
            atomic_fetch_add(&planted, 1);
            code = 0;
        }
    pthread_mutex_unlock(&faults_lock);
    return code == 0 ? 0 : fail("softhip: more than %d faults planted", MAX_FAULTS);
}

static void lose(int device, int code) {
    device_fail(device, code);
    atomic_store(&world.devices[device].lost, true);
    changed(NULL, 0);
    pthread_mutex_lock(&world_lock);
    for (int i = 0; i < world.engine_count; i++)
        rouse(world.engines[i]);
    pthread_mutex_unlock(&world_lock);
}

static int copy_fault(const char *value, struct fault *f) {
    f->what = strcmp(value, "drop") == 0 ? 'd' : strcmp(value, "lost") == 0 ? 'l' : strcmp(value, "late") == 0 ? 't' : 0;
    return f->what != 0 ? 0 : fail("softhip: a copy can be drop, lost or late, not %s", value);
}

static int read_fault(const char *key, const char *value, struct fault *f, int *device) {
    long v = strtol(value, NULL, 10);
    if (strcmp(key, "call") == 0) {
        f->what = 'c';
        f->call = call_named(value);
        return f->call >= 0 ? 0 : fail("softhip: it has no function %s", value);
    }
    if (strcmp(key, "copy") == 0)
        return copy_fault(value, f);
    if (strcmp(key, "async") == 0) {
        f->what = 'a';
        f->code = (int)v;
    } else if (strcmp(key, "hang") == 0) {
        f->what = 'h';
    } else if (strcmp(key, "lost") == 0) {
        f->what = 'x';
    } else if (strcmp(key, "code") == 0) {
        f->code = (int)v;
    } else if (strcmp(key, "nth") == 0) {
        f->nth = (unsigned)v;
    } else if (strcmp(key, "times") == 0) {
        f->times = (unsigned)v;
    } else if (strcmp(key, "us") == 0) {
        f->us = v;
    } else if (strcmp(key, "queue") == 0) {
        f->queue = (int)v;
    } else if (strcmp(key, "device") == 0) {
        *device = (int)v;
    } else {
        return fail("softhip: a fault has no %s", key);
    }
    return 0;
}

SOFTHIP_API int softhip_fault(const char *spec) {
    world_begin();
    struct fault f = {.call = -1, .queue = -1, .nth = 1, .times = 1};
    int device = 0;
    char text[512];
    if (spec == NULL || strlen(spec) >= sizeof text)
        return fail("softhip: a fault is told in up to %zu bytes", sizeof text - 1);
    strcpy(text, spec);
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        if (value == NULL)
            return fail("softhip: fault word %s has no value", word);
        *value++ = 0;
        if (read_fault(word, value, &f, &device) != 0)
            return -1;
    }
    if (f.what == 0)
        return fail("softhip: a fault names call, async, copy, hang or lost");
    if (f.what == 'x') {
        if (device < 0 || device >= world.set.visibles)
            return fail("softhip: there is no device %d", device);
        lose(device, f.code == 0 ? hipErrorLaunchFailure : f.code);
        return 0;
    }
    if ((f.what == 'c' && f.code == 0 && f.us == 0) || (f.what == 'a' && f.code == 0))
        return fail("softhip: that fault needs a code");
    return plant(&f);
}

SOFTHIP_API void softhip_land(void) {
    atomic_fetch_add(&world.landings, 1);
    futex_wake(&world.landings);
}
