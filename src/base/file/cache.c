/* See cache.h. */
#include "base/file/cache.h"
#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/memory.h"

enum { PATH = 4096 };

bool fac_cache_folder(const char *name, char *to, size_t size) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (cache && *cache)
        n = snprintf(to, size, "%s/facula/%s", cache, name);
    else if (home && *home)
        n = snprintf(to, size, "%s/.cache/facula/%s", home, name);
    return n > 0 && (size_t)n < size;
}

void fac_cache_make_folders(char *path) {
    for (char *at = *path ? strchr(path + 1, '/') : NULL; at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0777);
        *at = '/';
    }
}

void fac_cache_touch(const char *path) { utimensat(AT_FDCWD, path, NULL, 0); }

/* ---- the least recently used go first ---- */

typedef struct entry {
    char name[48];
    struct timespec used;
    size_t bytes;
} entry;

static int by_age(const void *a, const void *b) {
    const struct timespec *x = &((const entry *)a)->used, *y = &((const entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec);
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* What a writer that was killed left beside a file with this ending: a live one needs no hour. */
static bool is_left(const char *name, const char *ending, const struct stat *s) {
    const size_t n = strlen(name);
    return n > 4 && !strcmp(name + n - 4, ".tmp") && strstr(name, ending) &&
           time(NULL) - s->st_mtim.tv_sec > 3600;
}

typedef struct entries {
    entry *at;
    size_t n, room, bytes;
} entries;

/* All of a folder, or what there is memory for. */
static void list(const char *folder, const char *ending, entries *to) {
    DIR *d = opendir(folder);
    const size_t tail = strlen(ending);
    for (const struct dirent *e;
         d && fac_reserve(&to->at, &to->room, to->n + 1, sizeof *to->at) && (e = readdir(d));) {
        struct stat s;
        size_t length = strlen(e->d_name);
        if (fstatat(dirfd(d), e->d_name, &s, 0) || !S_ISREG(s.st_mode)) continue;
        if (is_left(e->d_name, ending, &s)) unlinkat(dirfd(d), e->d_name, 0);
        entry *x = &to->at[to->n];
        if (length < tail || length >= sizeof x->name || strcmp(e->d_name + length - tail, ending))
            continue;
        memcpy(x->name, e->d_name, length + 1);
        x->used = s.st_mtim;
        x->bytes = (size_t)s.st_size;
        to->bytes += x->bytes;
        to->n++;
    }
    if (d) closedir(d);
}

void fac_cache_prune(const char *folder, const char *ending, size_t most) {
    entries all = { 0 };
    list(folder, ending, &all);
    if (all.bytes > most) qsort(all.at, all.n, sizeof *all.at, by_age);
    for (size_t i = 0; i < all.n && all.bytes > most; i++) {
        char path[PATH + 64];
        snprintf(path, sizeof path, "%s/%s", folder, all.at[i].name);
        if (!unlink(path)) all.bytes -= all.at[i].bytes;
    }
    fac_release(all.at);
}

/* ---- hashes ---- */

/* Eight chains, so that the latency of the product is hidden; the rotation brings high bits down,
 * where the product left them. */
fac_hash fac_hash_bulk(fac_hash h, const void *data, size_t n) {
    enum { CHAINS = 8 };
    static const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t chain[CHAINS], word[CHAINS];
    const unsigned char *p = data;
    size_t rest = n;
    for (uint64_t k = 0; k < CHAINS; k++) chain[k] = (k + 1) * factor;
    for (; rest >= sizeof word; rest -= sizeof word, p += sizeof word) {
        memcpy(word, p, sizeof word);
        for (int k = 0; k < CHAINS; k++) {
            const uint64_t x = (chain[k] ^ word[k]) * factor;
            chain[k] = x << 31 | x >> 33;
        }
    }
    h = fac_hash_int(h, n);
    for (int k = 0; k < CHAINS; k++) h = fac_hash_int(h, chain[k]);
    return fac_hash_bytes(h, p, rest);
}

/* The notes of the program or library that holds this very function: the linker puts a hash of all
 * of it there. */
typedef struct search {
    uintptr_t here;
    bool found;
    fac_hash hash;
} search;

static int look(struct dl_phdr_info *info, size_t size, void *arg) {
    search *s = arg;
    bool mine = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + p->p_vaddr;
        mine |= p->p_type == PT_LOAD && s->here >= at && s->here - at < p->p_memsz;
    }
    for (int i = 0; mine && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + p->p_vaddr), *end = at + p->p_memsz;
        for (const ElfW(Nhdr) * note;
             p->p_type == PT_NOTE && end - at >= (ptrdiff_t)sizeof *note;) {
            note = (const ElfW(Nhdr) *)(const void *)at;
            const size_t name = ((size_t)note->n_namesz + 3) & ~(size_t)3,
                         text = ((size_t)note->n_descsz + 3) & ~(size_t)3;
            const char *contents = at + sizeof *note + name;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                !memcmp(at + sizeof *note, "GNU", 4)) {
                s->hash = fac_hash_bytes(fac_hash_start(29), contents, note->n_descsz);
                s->found = true;
            }
            if ((size_t)(end - contents) <= text) break;
            at = contents + text;
        }
    }
    return mine;
}

bool fac_build_id(fac_hash *out) {
    search s = { .here = (uintptr_t)&fac_build_id };
    dl_iterate_phdr(look, &s);
    if (s.found) *out = s.hash;
    return s.found;
}
