/* NumPy's .npz: a zip archive of .npy files. */
#include <string.h>
#include "base/error.h"
#include "tensor/weights.h"

static const char suffix[] = ".npy";
enum { SUFFIX = sizeof suffix - 1 };

static fac_status read_one(const fac_zip *zip, const fac_zip_entry *e, size_t length, fac_weights *w, fac_error *err) {
    fac_section s;
    fac_tensor *t = NULL;
    FAC_TRY(fac_zip_read(zip, e, &s, err));
    fac_status status = fac_npy_parse(&s, &t, err);
    if (status) fac_raise_in(err, status, "%s", e->name);
    else status = fac_weights_add(w, e->name, length, t, err);
    fac_file_free(s.file);
    return status;
}

fac_status fac_npz_read(const fac_zip *zip, fac_weights *w, fac_error *err) {
    for (size_t i = 0; i < zip->n; i++) {
        const fac_zip_entry *e = &zip->entries[i];
        size_t n = strlen(e->name);
        if (n > SUFFIX && !strcmp(e->name + n - SUFFIX, suffix)) FAC_TRY(read_one(zip, e, n - SUFFIX, w, err));
    }
    return FAC_OK;
}

static fac_status write_one(fac_zip_writer *w, const char *name, const fac_tensor *t, fac_error *err) {
    fac_text file = { 0 };
    fac_npy npy;
    fac_status status = fac_npy_encode(t, &npy, err);
    if (status) return fac_raise_in(err, status, "%s", name);
    fac_text_print(&file, "%s%s", name, suffix);
    status = file.failed ? fac_raise(err, FAC_E_NOMEM, "%s: no memory", name)
                         : fac_zip_put(w, file.s, npy.header.s, npy.header.n, npy.data, npy.bytes, err);
    fac_text_free(&file);
    fac_npy_free(&npy);
    return status;
}

fac_status fac_npz_save(const char *path, int n, const char *const names[], fac_tensor *const t[], fac_error *err) {
    fac_zip_writer w = { 0 };
    FAC_TRY(fac_writer_open(path, &w.to, err));
    fac_status status = FAC_OK;
    for (int i = 0; i < n && !status; i++) status = write_one(&w, names[i], t[i], err);
    if (!status) status = fac_zip_finish(&w, err);
    if (status) fac_writer_cancel(w.to);
    else status = fac_writer_close(w.to, err);
    fac_zip_writer_free(&w);
    return status;
}
