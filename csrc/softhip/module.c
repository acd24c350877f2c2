//go:build cgo && linux

// Modules: an image is a code object or a bundle of them, and must have one for this device. Its kernels run as twins.
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static const struct { unsigned mach; const char *arch; } machs[] = {
    {0x2c, "gfx900"}, {0x2f, "gfx906"}, {0x30, "gfx908"}, {0x3f, "gfx90a"}, {0x40, "gfx940"}, {0x4c, "gfx942"},
    {0x33, "gfx1010"}, {0x36, "gfx1030"}, {0x37, "gfx1031"}, {0x38, "gfx1032"}, {0x45, "gfx1036"}, {0x41, "gfx1100"},
    {0x46, "gfx1101"}, {0x47, "gfx1102"}, {0x44, "gfx1103"}, {0x43, "gfx1150"}, {0x4a, "gfx1151"}, {0x55, "gfx1152"},
    {0x48, "gfx1200"}, {0x4e, "gfx1201"},
};

static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";

// same_arch compares up to the features: gfx90a:sramecc+ runs on gfx90a.
static bool same_arch(const char *a, size_t n, const char *b) {
    const char *colon = memchr(a, ':', n);
    n = colon == NULL ? n : (size_t)(colon - a);
    size_t m = strcspn(b, ":");
    return n == m && memcmp(a, b, n) == 0;
}

static uint64_t read64(const unsigned char *at) {
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

// unbundle finds this device's code object. The image has no length, as in HIP, so what it says of itself is believed.
static int unbundle(const unsigned char **image) {
    if (memcmp(*image, magic, sizeof magic - 1) != 0)
        return hipSuccess;
    const unsigned char *at = *image + sizeof magic - 1;
    uint64_t count = read64(at);
    at += 8;
    if (count == 0 || count > 256)
        return hipErrorInvalidImage;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset = read64(at), size = read64(at + 8), n = read64(at + 16);
        const char *id = (const char *)at + 24;
        if (n > 4096)
            return hipErrorInvalidImage;
        at += 24 + n;
        static const char *const kinds[] = {"hipv4-amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa-"};
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            size_t m = strlen(kinds[k]);
            if (size > 0 && n > m && memcmp(id, kinds[k], m) == 0 && same_arch(id + m, n - m, world.set.arch)) {
                *image += offset;
                return hipSuccess;
            }
        }
    }
    return hipErrorNoBinaryForGpu;
}

static int check_arch(const Elf64_Ehdr *h) {
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != 224)
        return hipErrorInvalidImage;
    for (size_t i = 0; i < sizeof machs / sizeof *machs; i++)
        if (machs[i].mach == (h->e_flags & 0xff))
            return same_arch(machs[i].arch, strlen(machs[i].arch), world.set.arch) ? hipSuccess : hipErrorNoBinaryForGpu;
    return hipErrorNoBinaryForGpu;
}

// add_symbol keeps a kernel's name: the symbol of its descriptor without ".kd".
static bool add_symbol(struct module *m, const char *name) {
    size_t n = strlen(name);
    if (n <= 3 || strcmp(name + n - 3, ".kd") != 0)
        return true;
    char *grown = realloc(m->symbols, m->symbol_bytes + n - 2);
    if (grown == NULL)
        return false;
    memcpy(grown + m->symbol_bytes, name, n - 3);
    grown[m->symbol_bytes + n - 3] = 0;
    m->symbols = grown;
    m->symbol_bytes += n - 2;
    return true;
}

static bool read_symbols(struct module *m, const unsigned char *image) {
    Elf64_Ehdr h;
    memcpy(&h, image, sizeof h);
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr table, names;
        memcpy(&table, image + h.e_shoff + (uint64_t)i * h.e_shentsize, sizeof table);
        if (table.sh_type != SHT_DYNSYM || table.sh_entsize == 0)
            continue;
        memcpy(&names, image + h.e_shoff + (uint64_t)table.sh_link * h.e_shentsize, sizeof names);
        for (uint64_t at = 0; at < table.sh_size; at += table.sh_entsize) {
            Elf64_Sym s;
            memcpy(&s, image + table.sh_offset + at, sizeof s);
            if (!add_symbol(m, (const char *)image + names.sh_offset + s.st_name))
                return false;
        }
    }
    return true;
}

static bool has_symbol(const struct module *m, const char *name) {
    for (size_t at = 0; at < m->symbol_bytes; at += strlen(m->symbols + at) + 1)
        if (strcmp(m->symbols + at, name) == 0)
            return true;
    return false;
}

API(hipModuleLoadData)(void **out, const void *data) {
    CALL(hipModuleLoadData);
    if (out == NULL || data == NULL)
        return call_leave(hipErrorInvalidValue);
    *out = NULL;
    const unsigned char *image = data;
    int code = device_error(current_device());
    if (code == hipSuccess)
        code = unbundle(&image);
    if (code == hipSuccess) {
        Elf64_Ehdr h;
        memcpy(&h, image, sizeof h);
        code = check_arch(&h);
    }
    if (code != hipSuccess)
        return call_leave(code);
    pthread_mutex_lock(&world_lock);
    code = capture_forbids();
    struct module *m = code == hipSuccess ? pool_new(&world.modules) : NULL;
    if (m == NULL && code == hipSuccess)
        code = hipErrorOutOfMemory;
    if (m != NULL) {
        m->device = current_device();
        if (!read_symbols(m, image)) {
            free(m->symbols);
            pool_free(&world.modules, m);
            code = hipErrorOutOfMemory;
        }
    }
    pthread_mutex_unlock(&world_lock);
    if (code == hipSuccess)
        *out = m;
    return call_leave(code);
}

API(hipModuleGetFunction)(void **out, void *module, const char *name) {
    CALL(hipModuleGetFunction);
    if (out == NULL || name == NULL)
        return call_leave(hipErrorInvalidValue);
    *out = NULL;
    pthread_mutex_lock(&world_lock);
    int code = hipSuccess;
    struct module *m = module;
    struct kernel *k = kernel_find(name);
    if (!pool_has(&world.modules, module))
        code = hipErrorInvalidHandle;
    else if (!has_symbol(m, name))
        code = hipErrorNotFound;
    else if (k == NULL) {
        report("kernel %s is in the image, but no twin of that name is registered", name);
        code = hipErrorNotFound;
    }
    struct function *f = code == hipSuccess ? pool_new(&world.functions) : NULL;
    if (f == NULL && code == hipSuccess)
        code = hipErrorOutOfMemory;
    if (f != NULL) {
        f->module = m;
        f->kernel = k;
        f->next = m->functions;
        m->functions = f;
        *out = f;
    }
    pthread_mutex_unlock(&world_lock);
    return call_leave(code);
}

API(hipModuleUnload)(void *module) {
    CALL(hipModuleUnload);
    pthread_mutex_lock(&world_lock);
    struct module *m = module;
    bool live = pool_has(&world.modules, module);
    int device = live ? m->device : 0;
    for (struct function *f = live ? m->functions : NULL; f != NULL; f = f->next)
        pool_free(&world.functions, f);
    if (live) {
        free(m->symbols);
        pool_free(&world.modules, m);
    }
    pthread_mutex_unlock(&world_lock);
    if (!live)
        return call_leave(hipErrorInvalidHandle);
    drain_device(device);
    return call_leave(hipSuccess);
}

void modules_end(void) {
    for (unsigned i = 0; i < world.modules.high; i++) {
        struct module *m = (struct module *)(void *)(world.modules.at + world.modules.size * i);
        if (m->live)
            free(m->symbols);
    }
}
