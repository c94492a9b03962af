/* See cache.h.  FACULA_CACHE names another folder than the usual one; empty, it turns the cache off. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backends/opencl/cache.h"
#include "base/file.h"
#include "base/memory.h"

static const size_t limit = (size_t)256 << 20;

/* In front of the contents; all of it must fit. */
typedef struct header { char magic[8]; uint64_t version, bytes; fac_hash key, sum; } header;
static const char magic[8] = "facula.C";
enum { VERSION = 1, PATH = 4096, ENTRIES = 4096 };

bool fac_cl_cache_folder(char *to, size_t size) {
    const char *own = getenv("FACULA_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (own) n = snprintf(to, size, "%s", own);
    else if (cache && *cache) n = snprintf(to, size, "%s/facula/opencl", cache);
    else if (home && *home) n = snprintf(to, size, "%s/.cache/facula/opencl", home);
    return n > 0 && (size_t)n < size;
}

static bool path_of(fac_hash key, char *to, size_t size) {
    char folder[PATH];
    if (!fac_cl_cache_folder(folder, sizeof folder)) return false;
    int n = snprintf(to, size, "%s/%016llx%016llx.bin", folder, (unsigned long long)key.a, (unsigned long long)key.b);
    return n > 0 && (size_t)n < size;
}

static fac_hash sum_of(const void *data, size_t bytes) { return fac_hash_bytes(fac_hash_start(VERSION), data, bytes); }

void *fac_cl_cache_get(fac_hash key, size_t *bytes) {
    char path[PATH];
    fac_file *f = NULL;
    void *copy = NULL;
    if (!path_of(key, path, sizeof path) || fac_file_map(path, &f, NULL)) return NULL;
    const char *data = fac_file_data(f);
    header h;
    size_t size = fac_file_size(f);
    if (size >= sizeof h) {
        memcpy(&h, data, sizeof h);
        bool good = !memcmp(h.magic, magic, sizeof magic) && h.version == VERSION && h.bytes == size - sizeof h &&
                    fac_hash_equal(h.key, key) && fac_hash_equal(h.sum, sum_of(data + sizeof h, h.bytes));
        if (good && (copy = fac_alloc(1, h.bytes + 1))) {
            memcpy(copy, data + sizeof h, h.bytes);
            *bytes = h.bytes;
        }
    }
    fac_file_free(f);
    if (copy) utimensat(AT_FDCWD, path, NULL, 0);       /* used now */
    return copy;
}

/* The folder with all above it. */
static void make_folders(char *path) {
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0777);
        *at = '/';
    }
}

/* ---- the least recently used go first ---- */

typedef struct entry { char name[48]; struct timespec used; size_t bytes; } entry;

static int by_age(const void *a, const void *b) {
    const struct timespec *x = &((const entry *)a)->used, *y = &((const entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec);
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static int list(const char *folder, entry *to, size_t *all) {
    DIR *d = opendir(folder);
    int n = 0;
    for (const struct dirent *e; d && n < ENTRIES && (e = readdir(d));) {
        struct stat s;
        size_t length = strlen(e->d_name);
        if (length < 4 || length >= sizeof to->name || strcmp(e->d_name + length - 4, ".bin")) continue;
        if (fstatat(dirfd(d), e->d_name, &s, 0) || !S_ISREG(s.st_mode)) continue;
        memcpy(to[n].name, e->d_name, length + 1);
        to[n].used = s.st_mtim;
        to[n].bytes = (size_t)s.st_size;
        *all += to[n++].bytes;
    }
    if (d) closedir(d);
    return n;
}

void fac_cl_cache_prune(const char *folder, size_t most) {
    entry *entries = fac_alloc(ENTRIES, sizeof *entries);
    size_t all = 0;
    if (!entries) return;
    int n = list(folder, entries, &all);
    if (all > most) qsort(entries, (size_t)n, sizeof *entries, by_age);
    for (int i = 0; i < n && all > most; i++) {
        char path[PATH + 64];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i].name);
        if (!unlink(path)) all -= entries[i].bytes;
    }
    fac_release(entries);
}

void fac_cl_cache_put(fac_hash key, const void *data, size_t bytes) {
    char path[PATH], folder[PATH];
    fac_writer *w = NULL;
    header h = { .version = VERSION, .bytes = bytes, .key = key, .sum = sum_of(data, bytes) };
    memcpy(h.magic, magic, sizeof magic);
    if (!path_of(key, path, sizeof path) || !fac_cl_cache_folder(folder, sizeof folder)) return;
    make_folders(path);
    if (fac_writer_open(path, &w, NULL)) return;
    if (fac_writer_put(w, &h, sizeof h, NULL) || fac_writer_put(w, data, bytes, NULL)) {
        fac_writer_cancel(w);
        return;
    }
    if (fac_writer_close(w, NULL)) return;
    fac_cl_cache_prune(folder, limit);
}
