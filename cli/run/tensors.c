/* Tensors from files, to files, and out of thin air. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analyze/kind.h"

bool ends_with(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && !strcasecmp(path + n - m, ending);
}

bool called_image(const char *path) {
    static const char *const endings[] = { ".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", NULL };
    for (const char *const *e = endings; *e; e++)
        if (ends_with(path, *e)) return true;
    return false;
}

bool is_image(const char *path) { return called_image(path) || kind_is_picture(path); }
fac_tensor **tensors_new(int n) { return calloc((size_t)n + 1, sizeof(fac_tensor *)); }

void tensors_free(fac_tensor **all, int n) {
    for (int i = 0; all && i < n; i++) fac_tensor_free(all[i]);
    free(all);
}

static fac_status npz_entry(const char *path, const char *name, fac_tensor **out, fac_error *err) {
    fac_weights *w;
    fac_status status = fac_weights_load(path, &w, err);
    if (status) return status;
    fac_skipped first = { .before = 1 };
    if (fac_weights_skipped(w)) first = fac_weights_skipped_at(w, 0);
    const bool lost = !name && !first.before; /* the first entry is none that can be read */
    const char *why = name ? fac_weights_why(w, name) : NULL;
    if (lost) why = first.why;
    fac_tensor *t = name ? fac_weights_find(w, name) : NULL;
    if (!name && !lost && fac_weights_count(w)) t = fac_weights_tensor(w, 0);
    if (t) {
        *out = fac_tensor_retain(t);
    } else {
        status = why ? FAC_E_UNSUPPORTED : FAC_E_ARGUMENT;
        err->status = status;
        if (why)
            snprintf(err->text, sizeof err->text, "%s: entry %s: %s", path,
                     lost ? first.name : name, why);
        else
            snprintf(err->text, sizeof err->text, "%s: there is no entry%s%s", path,
                     text_if(name, " "), text_or(name, ""));
    }
    fac_weights_free(w);
    return status;
}

fac_status tensor_load(const char *path, fac_tensor **out, fac_error *err) {
    const char *entry = strstr(path, ".npz:");
    if (entry) {
        char *file = strndup(path, (size_t)(entry - path) + 4);
        if (!file) return out_of_memory(err);
        fac_status status = npz_entry(file, entry + 5, out, err);
        free(file);
        return status;
    }
    if (ends_with(path, ".npy")) return fac_npy_load(path, out, err);
    if (ends_with(path, ".npz")) return npz_entry(path, NULL, out, err);
    if (ends_with(path, ".pb")) return fac_onnx_tensor_load(path, out, NULL, 0, err);
    if (access(path, F_OK)) {
        snprintf(err->text, sizeof err->text, "%s: %s", path, strerror(errno));
        return err->status = FAC_E_IO;
    }
    if (kind_check_input(path, err)) return err->status;
    err->status = FAC_E_UNSUPPORTED;
    snprintf(err->text, sizeof err->text, "%s: tensors are read from .npy, .npz and .pb files",
             path);
    return err->status;
}

fac_status tensor_save(const fac_tensor *t, const char *name, const char *path, fac_error *err) {
    fac_tensor *one[1] = { (fac_tensor *)(uintptr_t)t };
    if (ends_with(path, ".npy")) return fac_npy_save(t, path, err);
    if (ends_with(path, ".npz")) return fac_npz_save(path, 1, &name, one, err);
    if (ends_with(path, ".pb")) return fac_onnx_tensor_save(t, name, path, err);
    if (ends_with(path, ".safetensors")) return fac_safetensors_save(path, 1, &name, one, err);
    err->status = FAC_E_UNSUPPORTED;
    snprintf(err->text, sizeof err->text,
             "%s: tensors are written to .npy, .npz, .pb and .safetensors files", path);
    return err->status;
}

fac_type input_type(const fac_value *input, const list *shapes, long batch) {
    fac_type t = fac_value_type(input);
    const char *name = fac_value_name(input);
    for (int i = 0; shapes && i < shapes->n; i++) {
        const char *equals = strrchr(shapes->at[i], '=');
        bool mine = equals ? strlen(name) == (size_t)(equals - shapes->at[i]) &&
                                 !strncmp(shapes->at[i], name, strlen(name))
                           : i == 0;
        fac_dims d;
        if (mine && dims_parse(equals ? equals + 1 : shapes->at[i], &d)) t.dims = d;
    }
    for (int k = 0; k < t.dims.n; k++)
        if (t.dims.d[k] < 0) t.dims.d[k] = k == 0 && batch > 0 ? batch : 1;
    return t;
}

int batch_fits(const fac_graph *g, int n, long batch) {
    char dims[128], word[1024];
    for (int i = 0; i < n && batch; i++) {
        const fac_type t = fac_value_type(fac_graph_input(g, i));
        if (t.dims.n && (t.dims.d[0] < 0 || t.dims.d[0] == batch)) return EXIT_OK;
    }
    if (!batch) return EXIT_OK;
    if (!n) return fail_text("--batch %ld: the model has no input", batch);
    const fac_value *x = fac_graph_input(g, 0);
    const fac_type t = fac_value_type(x);
    return fail_text("--batch %ld: the batch is fixed, input %s is %s[%s]; --shape %s=... gives it "
                     "other sizes",
                     batch, fac_value_name(x), fac_dtype_get(t.dtype)->name,
                     dims_text(g, &t.dims, dims, sizeof dims),
                     shell_word(fac_value_name(x), word, sizeof word));
}

static uint64_t mixed(uint64_t x) { /* splitmix64: enough for test data */
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Blocks have scales of f16 among their bytes.  Without bit 6 of any byte these are below 2. */
static fac_status random_blocks(fac_type type, uint64_t seed, uint64_t stream, fac_tensor **out,
                                fac_error *err) {
    enum { ALL_BUT_6 = 0xbf };
    const size_t bytes = fac_type_bytes(&type);
    unsigned char *data = bytes == SIZE_MAX ? NULL : malloc(bytes + 1);
    fac_tensor *t = NULL;
    if (!data) {
        err->status = bytes == SIZE_MAX ? FAC_E_ARGUMENT : FAC_E_NOMEM;
        snprintf(err->text, sizeof err->text, "random blocks need a whole shape, and memory");
        return err->status;
    }
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(mixed(seed ^ mixed(stream) ^ i) & ALL_BUT_6);
    fac_status status = fac_tensor_new(NULL, type.dtype, type.dims, &t, err);
    if (!status) status = fac_tensor_write(t, data, bytes, err);
    free(data);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}

fac_status tensor_random(fac_type type, uint64_t seed, uint64_t stream, fac_tensor **out,
                         fac_error *err) {
    char kind = fac_dtype_get(type.dtype)->kind;
    if (kind == 'q') return random_blocks(type, seed, stream, out, err);
    fac_type plain = { kind == 'f' ? FAC_F32 : FAC_I32, type.dims };
    int64_t n = fac_dims_count(&type.dims);
    size_t bytes = fac_type_bytes(&plain);
    if (n < 0 || bytes == SIZE_MAX || kind == 't') {
        err->status = FAC_E_ARGUMENT;
        snprintf(err->text, sizeof err->text,
                 kind == 't' ? "text cannot be random" : "random contents need a whole shape");
        return err->status;
    }
    char *data = malloc(bytes ? bytes : 1);
    fac_tensor *t = NULL, *made = NULL;
    fac_status status = data ? FAC_OK : FAC_E_NOMEM;
    if (status) {
        err->status = status;
        snprintf(err->text, sizeof err->text, "no memory for a random tensor of %zu bytes", bytes);
    }
    for (int64_t i = 0; data && i < n; i++) {
        uint64_t bits = mixed(seed ^ mixed(stream) ^ (uint64_t)i);
        if (kind == 'f')
            ((float *)(void *)data)[i] = (float)(bits >> 40) * 0x1p-23f - 1;
        else
            ((int32_t *)(void *)data)[i] = (int32_t)(bits % (kind == 'b' ? 2 : 10));
    }
    if (!status) status = fac_tensor_new(NULL, plain.dtype, type.dims, &t, err);
    if (!status) status = fac_tensor_write(t, data, bytes, err);
    if (!status && plain.dtype == type.dtype)
        made = fac_tensor_retain(t);
    else if (!status)
        status = fac_tensor_convert(t, type.dtype, &made, err);
    fac_tensor_free(t);
    free(data);
    if (!status) *out = made;
    return status;
}
