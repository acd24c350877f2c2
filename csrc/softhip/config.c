//go:build cgo && linux

// Settings as text.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static _Thread_local char reason[512];

int fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return -1;
}

SOFTHIP_API const char *softhip_error(void) { return reason; }

struct number {
    const char *key;
    size_t at;
    bool is_long;
    long least, most;
};

#define INT(key, field, least, most) {key, offsetof(struct settings, field), false, least, most}
#define LONG(key, field, least, most) {key, offsetof(struct settings, field), true, least, most}
static const struct number numbers[] = {
    INT("devices", devices, 0, MAX_DEVICES),
    INT("integrated", integrated, 0, 1),
    INT("hw_queues", hw_queues, 1, MAX_POOL),
    INT("ignore_priority", ignore_priority, 0, 1),
    INT("sdma_rings", sdma_rings, 1, MAX_RINGS),
    INT("copy_blocks", copy_blocks, 0, 1),
    INT("stream_lock", stream_lock, 0, 1),
    INT("write_releases", write_releases, 0, 1),
    INT("relaxed_waits", relaxed_waits, 0, 1),
    INT("dirty", dirty, 0, 1),
    INT("host_coherent", host_coherent, 0, 1),
    LONG("blit_bytes", blit_bytes, 0, 1L << 40),
    LONG("copy_latency_us", copy_latency_us, 0, 60000000),
    LONG("copy_mb_s", copy_mb_s, 0, 1L << 30),
    LONG("memory_mb", memory_mb, 1, 1L << 24),
};

static int set_number(struct settings *s, const struct number *n, const char *value) {
    char *end;
    long v = strtol(value, &end, 10);
    if (end == value || *end != 0 || v < n->least || v > n->most)
        return fail("softhip: %s=%s is not a number from %ld to %ld", n->key, value, n->least, n->most);
    void *at = (char *)s + n->at;
    if (n->is_long)
        *(long *)at = v;
    else
        *(int *)at = (int)v;
    return 0;
}

static int one_of(int *to, const char *key, const char *value, const char *const *words, const int *means) {
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(value, words[i]) == 0) {
            *to = means[i];
            return 0;
        }
    return fail("softhip: %s=%s is not one it knows", key, value);
}

static int set_text(char *to, size_t n, const char *key, const char *value) {
    if (strlen(value) >= n)
        return fail("softhip: %s is longer than %zu bytes", key, n - 1);
    strcpy(to, value);
    return 0;
}

static int set_visible(struct settings *s, const char *value) {
    s->visibles = 0;
    for (const char *at = value; *at != 0;) {
        char *end;
        long v = strtol(at, &end, 10);
        if (end == at || v < 0 || v >= MAX_DEVICES || (*end != ',' && *end != 0) || s->visibles == MAX_DEVICES)
            return fail("softhip: visible=%s is not a list of devices", value);
        s->visible[s->visibles++] = (int)v;
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}

static int set_missing(struct settings *s, const char *value) {
    char names[sizeof s->missing], *rest = NULL;
    if (set_text(s->missing, sizeof s->missing, "missing", value) != 0)
        return -1;
    strcpy(names, value);
    for (char *name = strtok_r(names, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
        if (call_named(name) < 0)
            return fail("softhip: missing=%s: it has no function of that name", name);
    return 0;
}

static int set(struct settings *s, const char *key, const char *value) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            return set_number(s, &numbers[i], value);
    if (strcmp(key, "hip") == 0) {
        char rest;
        if (sscanf(value, "%d.%d.%d%c", &s->major, &s->minor, &s->patch, &rest) != 3 || s->major < 5 || s->major > 7 ||
            s->minor < 0 || s->minor > 99 || s->patch < 0 || s->patch > 99999)
            return fail("softhip: hip=%s is not major.minor.patch of HIP 5 to 7", value);
        return 0;
    }
    if (strcmp(key, "arch") == 0)
        return set_text(s->arch, sizeof s->arch, key, value);
    if (strcmp(key, "name") == 0) {
        int code = set_text(s->name, sizeof s->name, key, value);
        for (char *c = s->name; *c != 0; c++)
            *c = *c == '_' ? ' ' : *c; // words are apart by spaces
        return code;
    }
    if (strcmp(key, "missing") == 0)
        return set_missing(s, value);
    if (strcmp(key, "visible") == 0)
        return set_visible(s, value);
    int v = 0;
    if (strcmp(key, "stream_wait") == 0)
        return one_of(&s->stream_wait, key, value, (const char *const[]){"0", "1", "error", NULL}, (const int[]){0, 1, -1});
    if (strcmp(key, "no_gpu") == 0)
        return one_of(&s->no_gpu, key, value, (const char *const[]){"0", "100", "101", NULL}, (const int[]){0, 100, 101});
    if (strcmp(key, "capture_values") == 0) {
        int code = one_of(&v, key, value, (const char *const[]){"run", "refuse", "record", NULL},
                          (const int[]){VALUES_RUN, VALUES_REFUSE, VALUES_RECORD});
        s->capture_values = (enum values)v;
        return code;
    }
    return fail("softhip: no setting is named %s", key);
}

#ifndef SOFTHIP_MAJOR
#define SOFTHIP_MAJOR 7
#endif

static const struct settings defaults = {
    .devices = 1,
    .major = SOFTHIP_MAJOR,
    .minor = SOFTHIP_MAJOR == 7 ? 15 : 2,
    .patch = SOFTHIP_MAJOR == 7 ? 26333 : 21153,
    .hw_queues = 4,
    .sdma_rings = 2,
    .stream_wait = 1,
    .write_releases = 1,
    .relaxed_waits = 1,
    .blit_bytes = -1,
    .memory_mb = 16384,
    .arch = "gfx1151",
    .name = "Software HIP device",
};

int settings_parse(struct settings *s, const char *text) {
    *s = defaults;
    char word[1200];
    while (*text != 0) {
        size_t n = strcspn(text, " \n\t");
        if (n >= sizeof word)
            return fail("softhip: a setting is longer than %zu bytes", sizeof word - 1);
        memcpy(word, text, n);
        word[n] = 0;
        text += n;
        text += strspn(text, " \n\t");
        if (n == 0)
            continue;
        char *value = strchr(word, '=');
        if (value == NULL)
            return fail("softhip: setting %s has no value", word);
        *value++ = 0;
        if (set(s, word, value) != 0)
            return -1;
    }
    if (s->blit_bytes < 0)
        s->blit_bytes = s->major >= 7 ? 16384 : 0;
    for (int i = 0; i < s->visibles; i++)
        if (s->visible[i] >= s->devices)
            return fail("softhip: visible names device %d of %d", s->visible[i], s->devices);
    if (s->visibles == 0)
        for (int i = 0; i < s->devices; i++)
            s->visible[s->visibles++] = i;
    return 0;
}
