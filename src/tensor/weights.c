/* Named tensors, and which reader a file needs. */
#include "tensor/weights.h"
#include <limits.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/content.h"
#include "tensor/gguf.h"

typedef struct item {
    const char *name;
    fac_tensor *tensor;
} item;
struct fac_weights {
    fac_arena arena;   /* names, and reasons */
    fac_table by_name; /* fac_tensor */
    fac_table reasons; /* of what was skipped, by name: texts */
    item *items;
    fac_skipped *skipped;
    size_t n, room, nskipped, room_skipped;
};

static fac_status no_memory(const fac_weights *w, fac_error *err) {
    return fac_raise_memory(err, "the names of %zu tensors", w->n + w->nskipped + 1);
}

/* A copy of a name that nothing has yet. */
static fac_status new_name(fac_weights *w, const char *name, size_t length, char **out,
                           fac_error *err) {
    if (length > FAC_NAME)
        return fac_raise(err, FAC_E_FORMAT, "%.40s...: a name of %zu bytes: more than %d", name,
                         length, FAC_NAME);
    if (memchr(name, 0, length))
        return fac_raise(err, FAC_E_FORMAT, "%s: a name with a zero byte", name);
    char *copy = fac_arena_alloc(&w->arena, length + 1, 1);
    if (!copy || w->n + w->nskipped >= INT_MAX) return no_memory(w, err);
    memcpy(copy, name, length);
    if (fac_table_get(&w->by_name, copy) || fac_table_get(&w->reasons, copy))
        return fac_raise(err, FAC_E_FORMAT, "%s: there are two tensors of this name", copy);
    *out = copy;
    return FAC_OK;
}

static fac_status add(fac_weights *w, const char *name, size_t length, fac_tensor *t,
                      fac_error *err) {
    char *copy;
    FAC_TRY(new_name(w, name, length, &copy, err));
    if (!fac_reserve(&w->items, &w->room, w->n + 1, sizeof *w->items) ||
        !fac_table_put(&w->by_name, copy, t))
        return no_memory(w, err);
    w->items[w->n++] = (item){ copy, t };
    return FAC_OK;
}

fac_status fac_weights_add(fac_weights *w, const char *name, size_t length, fac_tensor *t,
                           fac_error *err) {
    const fac_status status = add(w, name, length, t, err);
    if (status) fac_tensor_free(t);
    return status;
}

fac_status fac_weights_skip(fac_weights *w, const char *name, size_t length, const char *why,
                            fac_error *err) {
    char *copy, *reason = fac_arena_print(&w->arena, "%s", why);
    FAC_TRY(new_name(w, name, length, &copy, err));
    if (!reason ||
        !fac_reserve(&w->skipped, &w->room_skipped, w->nskipped + 1, sizeof *w->skipped) ||
        !fac_table_put(&w->reasons, copy, reason))
        return no_memory(w, err);
    w->skipped[w->nskipped++] = (fac_skipped){ copy, reason, (int)w->n };
    return FAC_OK;
}

fac_weights *fac_weights_new(void) { return fac_alloc(1, sizeof(fac_weights)); }

void fac_weights_free(fac_weights *w) {
    if (!w) return;
    for (size_t i = 0; i < w->n; i++) fac_tensor_free(w->items[i].tensor);
    fac_release(w->items);
    fac_release(w->skipped);
    fac_table_free(&w->by_name);
    fac_table_free(&w->reasons);
    fac_arena_free(&w->arena);
    fac_release(w);
}

int fac_weights_count(const fac_weights *w) { return (int)w->n; }
const char *fac_weights_name(const fac_weights *w, int i) { return w->items[i].name; }
fac_tensor *fac_weights_tensor(const fac_weights *w, int i) { return w->items[i].tensor; }
fac_tensor *fac_weights_find(const fac_weights *w, const char *name) {
    return fac_table_get(&w->by_name, name);
}
int fac_weights_skipped(const fac_weights *w) { return (int)w->nskipped; }
fac_skipped fac_weights_skipped_at(const fac_weights *w, int i) { return w->skipped[i]; }
const char *fac_weights_why(const fac_weights *w, const char *name) {
    return fac_table_get(&w->reasons, name);
}

/* ---- what is it? ---- */

static bool begins(const fac_file *f, const char *bytes, size_t n) {
    return fac_file_size(f) >= n && !memcmp(fac_file_data(f), bytes, n);
}

static fac_status read_zip(fac_file *f, fac_weights *w, fac_error *err) {
    fac_zip zip;
    FAC_TRY(fac_zip_open(f, &zip, err));
    fac_status status =
        fac_pth_find(&zip) ? fac_pth_read_zip(&zip, w, err) : fac_npz_read(&zip, w, err);
    if (!status && !w->n && !w->nskipped)
        status = fac_raise(err, FAC_E_FORMAT, "a zip archive without tensors");
    fac_zip_close(&zip);
    return status;
}

static fac_status read_npy(fac_file *f, fac_weights *w, fac_error *err) {
    fac_tensor *t = NULL;
    FAC_TRY(fac_npy_parse(&(fac_section){ f, 0, fac_file_size(f) }, &t, err));
    return fac_weights_add(w, "arr_0", 5, t,
                           err); /* what numpy.savez calls an array without a name */
}

static fac_status read_any(fac_file *f, fac_weights *w, fac_error *err) {
    if (fac_zip_here(f)) return read_zip(f, w, err);
    if (begins(f, "\x93NUMPY", 6)) return read_npy(f, w, err);
    if (fac_gguf_here(f)) return fac_gguf_read(f, w, err);
    if (fac_file_size(f) > 8 && ((const char *)fac_file_data(f))[8] == '{')
        return fac_safetensors_read(f, w, err);
    if (begins(f, "\x80", 1)) return fac_pth_read_legacy(f, w, err);
    const char *is = fac_content_of(fac_file_data(f), fac_file_size(f)).name;
    if (is)
        return fac_raise(err, FAC_E_FORMAT,
                         "no weights, but %s: .safetensors, .npy, .npz and PyTorch's .pth are "
                         "read",
                         is);
    return fac_raise(err, FAC_E_FORMAT,
                     "no weights: not .safetensors, .gguf, .npy, .npz or PyTorch's .pth");
}

fac_status fac_weights_parse(fac_file *file, const char *name, fac_weights **out, fac_error *err) {
    fac_weights *w = fac_alloc(1, sizeof *w);
    if (!w) return fac_raise(err, FAC_E_NOMEM, "%s: no memory", name);
    fac_status status = read_any(file, w, err);
    if (!status && !w->n && w->nskipped) /* whatever is wanted, it is not there */
        status = fac_raise(err, FAC_E_UNSUPPORTED, "%s: %s", w->skipped[0].name, w->skipped[0].why);
    if (status) {
        fac_weights_free(w);
        return fac_raise_in(err, status, "%s", name);
    }
    *out = w;
    return FAC_OK;
}

fac_status fac_weights_load(const char *path, fac_weights **out, fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    fac_status status = fac_weights_parse(f, path, out, err);
    fac_file_free(f);
    return status;
}
