/* facula activations: the tensors themselves, as pictures and in a file. */
#include <stdlib.h>
#include <string.h>
#include "activations.h"

static fac_status failed(fac_error *err, fac_status status, const char *what, const char *why) {
    err->status = status;
    snprintf(err->text, sizeof err->text, "%.300s: %s", what, why);
    return status;
}

/* "conv1", or of several runs "0/conv1": what names a file, or a part of one. */
static const char *own_name(keeper *k, file_names *all, const fac_activation *a, int how) {
    char *name = NULL;
    if (k->runs < 2) return file_name(all, a->path, how);
    if (asprintf(&name, "%d/%s", k->run, a->path) < 0) return NULL;
    const char *file = file_name(all, name, how);
    free(name);
    return file;
}

/* N,C,H,W of a tensor whose channels come last. */
static fac_status channels_first(const fac_activation *a, const fac_tensor *t, fac_tensor **out,
                                 fac_error *err) {
    const fac_dims d = a->type.dims;
    const int64_t *s = fac_tensor_strides(t);
    if (d.n != 4 || a->channels != 3) {
        *out = fac_tensor_retain((fac_tensor *)(uintptr_t)t);
        return FAC_OK;
    }
    return fac_tensor_view((fac_tensor *)(uintptr_t)t, fac_shape(d.d[0], d.d[3], d.d[1], d.d[2]),
                           (int64_t[]){ s[0], s[3], s[1], s[2] }, 0, out, err);
}

/* Colours end at what all but one in a thousand numbers stay below, so that one outlier does not
 * make all the others dark. */
static fac_status draw(keeper *k, const fac_activation *a, const fac_tensor *t, fac_error *err) {
    const fac_mosaic how = { .limit = fac_tally_magnitude(a->tally, 0.999) };
    fac_image image = { 0 };
    char path[4096];
    fac_tensor *maps = NULL;
    const char *own = own_name(k, &k->files, a, NAMES_FLAT);
    if (!own) return failed(err, FAC_E_NOMEM, a->path, "no memory for a name");
    if ((size_t)snprintf(path, sizeof path, "%s/%s.png", k->pictures, own) >= sizeof path)
        return failed(err, FAC_E_IO, k->pictures, "a path that is too long");
    if (is_input(path)) return failed(err, FAC_E_IO, path, INPUT_TOO);
    fac_status status = channels_first(a, t, &maps, err);
    if (!status) status = fac_image_mosaic(maps, &how, &image, err);
    fac_tensor_free(maps);
    if (!status) status = fac_image_save(&image, path, err);
    fac_image_free(&image);
    k->drawn++;
    return status;
}

static fac_status save(keeper *k, const fac_activation *a, const fac_tensor *t, fac_error *err) {
    const char *own = own_name(k, &k->parts, a, NAMES_FOLDERS); /* no path out of the archive */
    if (!own) return failed(err, FAC_E_NOMEM, a->path, "no memory for a name");
    k->saved++;
    return fac_npz_add(k->npz, own, t, err);
}

fac_status keep_tensor(void *self, const fac_activation *a, const fac_tensor *t, fac_error *err) {
    keeper *k = self;
    const fac_dims d = a->type.dims;
    fac_status status = FAC_OK;
    const int wide =
        d.n == 4 && a->channels == 3 ? 2 : d.n - 1; /* the axis from left to right in a picture */
    const bool flat = d.n < 3 || d.n > 4 || fac_dims_count(&d) < 1 || d.d[wide] * d.d[wide - 1] < 2;
    if (k->pictures && flat)
        k->undrawn++;
    else if (k->pictures)
        status = draw(k, a, t, err);
    return status || !k->npz ? status : save(k, a, t, err);
}
