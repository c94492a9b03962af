/* NumPy's .npz: a zip archive of .npy files. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/weights.h"

static const char suffix[] = ".npy";
enum { SUFFIX = sizeof suffix - 1 };

/* What is wrong with an entry, without its name in front. */
static const char *after_name(const char *text) {
    const char *colon = strstr(text, ": ");
    return colon ? colon + 2 : text;
}

static fac_status read_one(const fac_zip *zip, const fac_zip_entry *e, size_t length,
                           fac_weights *w, fac_error *err) {
    fac_section s;
    fac_error why = { 0 };
    fac_status status = fac_zip_read(zip, e, &s, &why);
    if (status == FAC_E_UNSUPPORTED)
        return fac_weights_skip(w, e->name, length, after_name(why.text), err);
    if (status) return fac_raise(err, status, "%s", why.text);
    status = fac_npy_add(&s, e->name, length, w, err);
    if (status) fac_raise_in(err, status, "%s", e->name);
    fac_file_free(s.file);
    return status;
}

fac_status fac_npz_read(const fac_zip *zip, fac_weights *w, fac_error *err) {
    for (size_t i = 0; i < zip->n; i++) {
        const fac_zip_entry *e = &zip->entries[i];
        size_t n = strlen(e->name);
        if (n > SUFFIX && !strcmp(e->name + n - SUFFIX, suffix))
            FAC_TRY(read_one(zip, e, n - SUFFIX, w, err));
    }
    return FAC_OK;
}

/* ---- writing ---- */

struct fac_npz {
    fac_zip_writer zip;
};

fac_status fac_npz_open(const char *path, fac_npz **out, fac_error *err) {
    fac_npz *z = fac_alloc(1, sizeof *z);
    if (!z) return fac_raise(err, FAC_E_NOMEM, "%s: no memory", path);
    fac_status status = fac_writer_open(path, &z->zip.to, err);
    if (status)
        fac_release(z);
    else
        *out = z;
    return status;
}

fac_status fac_npz_add(fac_npz *z, const char *name, const fac_tensor *t, fac_error *err) {
    fac_text file = { 0 };
    fac_npy npy;
    fac_status status = fac_npy_encode(t, &npy, err);
    if (status) return fac_raise_in(err, status, "%s", name);
    fac_text_print(&file, "%s%s", name, suffix);
    status = file.failed ? fac_raise(err, FAC_E_NOMEM, "%s: no memory", name)
                         : fac_zip_put(&z->zip, file.s, npy.header.s, npy.header.n, npy.data,
                                       npy.bytes, err);
    fac_text_free(&file);
    fac_npy_free(&npy);
    return status;
}

static void forget(fac_npz *z) {
    fac_zip_writer_free(&z->zip);
    fac_release(z);
}

void fac_npz_cancel(fac_npz *z) {
    if (!z) return;
    fac_writer_cancel(z->zip.to);
    forget(z);
}

fac_status fac_npz_close(fac_npz *z, fac_error *err) {
    fac_status status = fac_zip_finish(&z->zip, err);
    if (status)
        fac_writer_cancel(z->zip.to);
    else
        status = fac_writer_close(z->zip.to, err);
    forget(z);
    return status;
}

fac_status fac_npz_save(const char *path, int n, const char *const names[], fac_tensor *const t[],
                        fac_error *err) {
    fac_npz *z;
    FAC_TRY(fac_npz_open(path, &z, err));
    fac_status status = FAC_OK;
    for (int i = 0; i < n && !status; i++) status = fac_npz_add(z, names[i], t[i], err);
    if (!status) return fac_npz_close(z, err);
    fac_npz_cancel(z);
    return status;
}
