// Images as a compiler makes them, in miniature.
#include <elf.h>

#include "check.h"

const void *image_elf(unsigned mach, const char *kernel) {
    static unsigned char image[2048];
    memset(image, 0, sizeof image);
    char *names = (char *)image + 512;
    size_t n = 1 + (size_t)sprintf(names + 1, "%s.kd", kernel) + 1;
    Elf64_Sym symbols[2] = {{0}, {.st_name = 1}};
    memcpy(image + 256, symbols, sizeof symbols);
    Elf64_Shdr sections[3] = {
        {0},
        {.sh_type = SHT_DYNSYM, .sh_offset = 256, .sh_size = sizeof symbols, .sh_entsize = sizeof *symbols, .sh_link = 2},
        {.sh_type = SHT_STRTAB, .sh_offset = 512, .sh_size = n},
    };
    memcpy(image + 1024, sections, sizeof sections);
    Elf64_Ehdr h = {.e_machine = 224, .e_flags = 0x500 | mach, .e_shoff = 1024, .e_shentsize = sizeof *sections, .e_shnum = 3};
    memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    memcpy(image, &h, sizeof h);
    return image;
}

const void *image_bundle(const char *arch, const void *elf) {
    static unsigned char image[8192];
    char host[] = "host-x86_64-unknown-linux--", id[128];
    memset(image, 0, sizeof image);
    snprintf(id, sizeof id, "hipv4-amdgcn-amd-amdhsa--%s", arch);
    unsigned char *at = image;
    uint64_t numbers[] = {2, 4096, 0, strlen(host)};
    memcpy(at, "__CLANG_OFFLOAD_BUNDLE__", 24);
    memcpy(at + 24, numbers, sizeof numbers);
    at += 24 + sizeof numbers;
    memcpy(at, host, strlen(host));
    at += strlen(host);
    uint64_t entry[] = {4096, 2048, strlen(id)};
    memcpy(at, entry, sizeof entry);
    memcpy(at + sizeof entry, id, strlen(id));
    memcpy(image + 4096, elf, 2048);
    return image;
}
