/* See cache.h.  FACULA_CACHE names another folder than the usual one; empty, it turns the cache
 * off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backends/opencl/device/cache.h"
#include "base/file/cache.h"
#include "base/file/file.h"
#include "base/memory.h"

static const size_t limit = (size_t)256 << 20;

/* In front of the contents; all of it must fit. */
typedef struct header {
    char magic[8];
    uint64_t version, bytes;
    fac_hash key, sum;
} header;
static const char magic[8] = "facula.C";
enum { VERSION = 1, PATH = 4096 };

bool fac_cl_cache_folder(char *to, size_t size) {
    const char *own = getenv("FACULA_CACHE");
    if (!own) return fac_cache_folder("opencl", to, size);
    const int n = snprintf(to, size, "%s", own);
    return n > 0 && (size_t)n < size;
}

static bool path_of(fac_hash key, char *to, size_t size) {
    char folder[PATH];
    if (!fac_cl_cache_folder(folder, sizeof folder)) return false;
    int n = snprintf(to, size, "%s/%016llx%016llx.bin", folder, (unsigned long long)key.a,
                     (unsigned long long)key.b);
    return n > 0 && (size_t)n < size;
}

static fac_hash sum_of(const void *data, size_t bytes) {
    return fac_hash_bytes(fac_hash_start(VERSION), data, bytes);
}

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
        bool good = !memcmp(h.magic, magic, sizeof magic) && h.version == VERSION &&
                    h.bytes == size - sizeof h && fac_hash_equal(h.key, key) &&
                    fac_hash_equal(h.sum, sum_of(data + sizeof h, h.bytes));
        if (good && (copy = fac_alloc(1, h.bytes + 1))) {
            memcpy(copy, data + sizeof h, h.bytes);
            *bytes = h.bytes;
        }
    }
    fac_file_free(f);
    if (copy) fac_cache_touch(path);
    return copy;
}

void fac_cl_cache_prune(const char *folder, size_t most) { fac_cache_prune(folder, ".bin", most); }

void fac_cl_cache_put(fac_hash key, const void *data, size_t bytes) {
    char path[PATH], folder[PATH];
    fac_writer *w = NULL;
    header h = { .version = VERSION, .bytes = bytes, .key = key, .sum = sum_of(data, bytes) };
    memcpy(h.magic, magic, sizeof magic);
    if (!path_of(key, path, sizeof path) || !fac_cl_cache_folder(folder, sizeof folder)) return;
    fac_cache_make_folders(path);
    if (fac_writer_open(path, &w, NULL)) return;
    if (fac_writer_put(w, &h, sizeof h, NULL) || fac_writer_put(w, data, bytes, NULL)) {
        fac_writer_cancel(w);
        return;
    }
    if (fac_writer_close(w, NULL)) return;
    fac_cl_cache_prune(folder, limit);
}
