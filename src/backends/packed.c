/* See packed.h.  One file for each packed parameter: a page with the header, then the bytes as the
 * kernels read them, so that the mapping is the packed form and pages that other processes have
 * read are shared.  Files appear whole or not at all; what does not check out is ignored and
 * written anew. */
#include "backends/packed.h"
#include <stdio.h>
#include <string.h>
#include "base/file/cache.h"
#include "base/error.h"
#include "base/memory.h"

enum { VERSION = 1, PAGE = 4096, PATH = 4096, LEAST = 64 << 10 };
static const size_t limit = (size_t)4 << 30; /* of the folder */
static const char ending[] = ".packed";

typedef struct header {
    char magic[8];
    uint64_t version, bytes;
    fac_hash key, sum;
} header;
static const char magic[8] = "facula.P";

static fac_hash sum_of(const void *data, size_t bytes) {
    return fac_hash_bulk(fac_hash_start(VERSION), data, bytes);
}

fac_status fac_packed_open(fac_device *d, fac_error *err) {
    char usual[PATH];
    const char *folder = d->opts.packed_cache;
    if (!folder) return FAC_OK;
    if (!*folder) folder = fac_cache_folder("packed", usual, sizeof usual) ? usual : NULL;
    if (!folder) return FAC_OK; /* there is no home: nothing is kept */
    if (strlen(folder) + 64 > PATH)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "%s: the name of the folder for packed weights is too long", d->name);
    d->packed_folder = fac_copy_text(folder);
    return d->packed_folder ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "%s: no memory", d->name);
}

bool fac_packed_key(const fac_device *d, const fac_type *type, const void *contents,
                    const fac_solver *solver, int input, uint64_t pack_key, size_t bytes,
                    fac_hash *out) {
    fac_hash h;
    if (!d->packed_folder || !d->backend->host || bytes < LEAST || !fac_build_id(&h)) return false;
    h = fac_hash_text(h, d->key);
    h = fac_hash_text(h, solver->name);
    h = fac_hash_int(fac_hash_int(fac_hash_int(h, (uint64_t)input), pack_key), bytes);
    h = fac_hash_int(fac_hash_int(h, type->dtype), (uint64_t)type->dims.n);
    for (int k = 0; k < type->dims.n; k++) h = fac_hash_int(h, (uint64_t)type->dims.d[k]);
    *out = fac_hash_bulk(h, contents, fac_type_bytes(type));
    return true;
}

static void path_of(const fac_device *d, fac_hash key, char to[PATH]) {
    const unsigned long long a = key.a, b = key.b >> 32;
    snprintf(to, PATH, "%s/%016llx%08llx%s", d->packed_folder, a, b, ending);
}

static bool good(const fac_file *f, fac_hash key, size_t bytes) {
    header h;
    if (fac_file_size(f) != PAGE + bytes) return false;
    memcpy(&h, fac_file_data(f), sizeof h);
    return !memcmp(h.magic, magic, sizeof magic) && h.version == VERSION && h.bytes == bytes &&
           fac_hash_equal(h.key, key) &&
           fac_hash_equal(h.sum, sum_of((const char *)fac_file_data(f) + PAGE, bytes));
}

bool fac_packed_find(fac_device *d, fac_hash key, fac_pack *pack) {
    char path[PATH];
    fac_file *f = NULL;
    path_of(d, key, path);
    if (fac_file_map(path, &f, NULL)) return false;
    if (!good(f, key, pack->bytes)) {
        fac_file_free(f);
        return false;
    }
    fac_device_drop(d, FAC_HOLD_PACKED, pack->memory, pack->bytes);
    pack->file = f;
    pack->memory = (char *)(uintptr_t)fac_file_data(f) + PAGE;
    fac_cache_touch(path);
    return true;
}

void fac_packed_keep(fac_device *d, fac_hash key, const fac_pack *pack) {
    char path[PATH], page[PAGE] = { 0 };
    fac_writer *w = NULL;
    const void *data = d->backend->host(d, pack->memory);
    header h = {
        .version = VERSION, .bytes = pack->bytes, .key = key, .sum = sum_of(data, pack->bytes)
    };
    memcpy(h.magic, magic, sizeof magic);
    memcpy(page, &h, sizeof h);
    path_of(d, key, path);
    fac_cache_make_folders(path);
    if (fac_writer_open(path, &w, NULL)) return;
    if (fac_writer_put(w, page, sizeof page, NULL) || fac_writer_put(w, data, pack->bytes, NULL))
        fac_writer_cancel(w);
    else if (!fac_writer_close(w, NULL))
        fac_cache_prune(d->packed_folder, ending, limit);
}
