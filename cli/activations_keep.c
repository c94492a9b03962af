/* facula activations: the tensors themselves, as pictures and in a file. */
#include <string.h>
#include "activations.h"

/* A name of a file from the name of a tensor. */
static void file_name(const char *name, char *to, size_t size) {
    size_t n = 0;
    while (*name == '/') name++;
    for (; *name && n + 1 < size; name++) to[n++] = strchr("/\\: ", *name) ? '_' : *name;
    to[n] = 0;
}

/* N,C,H,W of a tensor whose channels come last. */
static fac_status channels_first(const fac_activation *a, const fac_tensor *t, fac_tensor **out, fac_error *err) {
    const fac_dims d = a->type.dims;
    const int64_t *s = fac_tensor_strides(t);
    if (d.n != 4 || a->channels != 3) {
        *out = fac_tensor_retain((fac_tensor *)(uintptr_t)t);
        return FAC_OK;
    }
    return fac_tensor_view((fac_tensor *)(uintptr_t)t, fac_shape(d.d[0], d.d[3], d.d[1], d.d[2]),
                           (int64_t[]){ s[0], s[3], s[1], s[2] }, 0, out, err);
}

/* Colours end at what all but one in a thousand numbers stay below, so that one outlier does not make all the others dark. */
static fac_status draw(keeper *k, const fac_activation *a, const fac_tensor *t, fac_error *err) {
    const fac_mosaic how = { .limit = fac_tally_magnitude(a->tally, 0.999) };
    fac_image image = { 0 };
    char clean[160], number[16] = "", path[4096];
    fac_tensor *maps = NULL;
    file_name(a->path, clean, sizeof clean);
    if (k->runs > 1) snprintf(number, sizeof number, "%d_", k->run);
    snprintf(path, sizeof path, "%s/%s%s.png", k->pictures, number, clean);
    fac_status status = channels_first(a, t, &maps, err);
    if (!status) status = fac_image_mosaic(maps, &how, &image, err);
    fac_tensor_free(maps);
    if (!status) status = fac_image_save(&image, path, err);
    fac_image_free(&image);
    k->drawn++;
    return status;
}

static fac_status save(keeper *k, const fac_activation *a, const fac_tensor *t, fac_error *err) {
    char name[512];
    const char *own = a->path;
    while (*own == '/') own++;                          /* of ONNX names; no path out of the archive */
    if (k->runs > 1) snprintf(name, sizeof name, "%d/%s", k->run, own);
    else snprintf(name, sizeof name, "%s", own);
    k->saved++;
    return fac_npz_add(k->npz, name, t, err);
}

fac_status keep_tensor(void *self, const fac_activation *a, const fac_tensor *t, fac_error *err) {
    keeper *k = self;
    const fac_dims d = a->type.dims;
    fac_status status = FAC_OK;
    const int wide = d.n == 4 && a->channels == 3 ? 2 : d.n - 1;        /* the axis from left to right in a picture */
    const bool flat = d.n < 3 || d.n > 4 || fac_dims_count(&d) < 1 || d.d[wide] * d.d[wide - 1] < 2;
    if (k->pictures && flat) k->undrawn++;
    else if (k->pictures) status = draw(k, a, t, err);
    return status || !k->npz ? status : save(k, a, t, err);
}
