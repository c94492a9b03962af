/* A data set from a folder of folders of photos, as torchvision's ImageFolder: class 0 is the first
 * folder by name. */
#include <string.h>
#include <strings.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/image/image_internal.h"
#include "data/sets/dataset_internal.h"
#include "data/sets/listing.h"

typedef fac_names names;

static bool is_photo(const char *name) {
    static const char *const ends[] = { ".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", NULL };
    const char *dot = strrchr(name, '.');
    for (const char *const *e = ends; dot && *e; e++)
        if (!strcasecmp(dot, *e)) return true;
    return false;
}

/* What is in a folder: folders, or photos. */
static fac_status look(const char *folder, bool folders, fac_arena *arena, names *out,
                       fac_error *err) {
    return fac_list_folder(folder, folders ? NULL : is_photo, arena, out, err);
}

/* A folder of parts of the data set, such as train and val, that hold the folders of the classes:
 * one of them is meant. */
static fac_status no_photos(const char *folder, const names *classes, fac_arena *arena,
                            fac_error *err) {
    for (size_t c = 0; c < classes->n; c++) {
        names inner = { 0 };
        const fac_status status = look(classes->at[c], true, arena, &inner, err);
        const size_t n = inner.n;
        fac_release(inner.at);
        FAC_TRY(status);
        if (n)
            return fac_raise(err, FAC_E_FORMAT,
                             "%s: no photos in its folders, but in %s are %zu folders: is that the "
                             "data set?",
                             folder, classes->at[c], n);
    }
    return fac_raise(err, FAC_E_FORMAT,
                     "%s: no photos in its %zu folders: each is a class, with .png, .jpg, .bmp, "
                     ".ppm or .pgm "
                     "files",
                     folder, classes->n);
}

/* One photo to planes of bytes. */
static fac_status load(const char *path, int height, int width, uint8_t *to, fac_error *err) {
    fac_image image = { 0 }, small = { 0 };
    fac_status status = fac_image_load(path, &image, err);
    if (!status) status = fac_image_resize(&image, width, height, FAC_BILINEAR, &small, err);
    if (!status) fac_image_planes(&small, 3, to);
    fac_image_free(&image);
    fac_image_free(&small);
    return status;
}

static fac_status load_all(const names *photos, const int64_t *labels, int height, int width,
                           fac_dataset *d, fac_error *err) {
    for (size_t i = 0; i < photos->n; i++) {
        FAC_TRY(load(photos->at[i], height, width,
                     fac_dataset_bytes(d) + i * 3 * (size_t)height * (size_t)width, err));
        fac_dataset_labels(d)[i] = labels[i];
    }
    return FAC_OK;
}

static fac_status take_names(const names *classes, fac_dataset *d, fac_error *err) {
    const char **to = fac_arena_alloc(&d->memory->arena, classes->n, sizeof *to);
    for (size_t c = 0; to && c < classes->n; c++)
        if (!(to[c] = fac_arena_text(&d->memory->arena, strrchr(classes->at[c], '/') + 1)))
            to = NULL;
    if (!to) return fac_raise_memory(err, "the names of %zu classes", classes->n);
    static const double mean[3] = { 0.485, 0.456, 0.406 },
                        std[3] = { 0.229, 0.224, 0.225 }; /* as the preset "imagenet" */
    d->classes = (int)classes->n;
    d->class_names = to;
    memcpy(d->mean, mean, sizeof mean);
    memcpy(d->std, std, sizeof std);
    return FAC_OK;
}

static fac_status read_folder(const char *folder, int height, int width, fac_arena *arena,
                              names *classes, names *photos, int64_t **labels, fac_dataset *d,
                              fac_error *err) {
    size_t room = 0, labelled = 0;
    FAC_TRY(look(folder, true, arena, classes, err));
    if (classes->n < 2 || classes->n > 1 << 20)
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: holds %zu folders: it needs one with photos for each class", folder,
                         classes->n);
    for (size_t c = 0; c < classes->n; c++) {
        names more = { photos->at, photos->n, photos->room };
        names own = { 0 };
        fac_status status = look(classes->at[c], false, arena, &own, err);
        if (!status && (!fac_reserve(&more.at, &more.room, more.n + own.n + 1, sizeof *more.at) ||
                        !fac_reserve(labels, &room, more.n + own.n + 1, sizeof **labels)))
            status = fac_raise(err, FAC_E_NOMEM, "%s: no memory for its list", folder);
        for (size_t i = 0; !status && i < own.n; i++) {
            more.at[more.n++] = own.at[i];
            (*labels)[labelled++] = (int64_t)c;
        }
        *photos = more;
        fac_release(own.at);
        FAC_TRY(status);
    }
    if (!photos->n) return no_photos(folder, classes, arena, err);
    FAC_TRY(
        fac_dataset_new(d, (int64_t)photos->n, fac_shape(3, height, width), false, folder, err));
    FAC_TRY(take_names(classes, d, err));
    return load_all(photos, *labels, height, width, d, err);
}

fac_status fac_dataset_images(const char *folder, int height, int width, fac_dataset *out,
                              fac_error *err) {
    if (height < 1 || width < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "photos cannot become %d x %d", height, width);
    fac_arena arena = { 0 };
    names classes = { 0 }, photos = { 0 };
    int64_t *labels = NULL;
    fac_dataset d = { 0 };
    fac_status status =
        read_folder(folder, height, width, &arena, &classes, &photos, &labels, &d, err);
    fac_release(classes.at);
    fac_release(photos.at);
    fac_release(labels);
    fac_arena_free(&arena);
    if (status)
        fac_dataset_free(&d);
    else
        *out = d;
    return status;
}
