/* External data: the bytes of a tensor in another file of the model's folder.
 *
 * A model is data from strangers: its locations must not reach any other file.  So a location is
 * relative, has no "..", and the real path after all links lies under the model's folder; that real
 * path is what is opened.  There are two exceptions:
 *
 * - The cache of Hugging Face keeps contents in models--X/blobs and names in
 *   models--X/snapshots/HASH, which are links there. Where the model itself is such a link, into a
 *   folder `blobs` beside one of the folders that its name lies in, its data may be files of that
 *   same folder: what lies there was fetched for the same models.
 * - Below a folder that the caller names (fac_onnx_opts.link_root), whatever links lead there. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "onnx/source.h"

static const char *entry(const fac_proto_tensor *t, const char *key) {
    const char *found = NULL;
    for (size_t k = 0; k < t->external.n; k++)
        if (!strcmp(t->external.at[k].key, key)) found = t->external.at[k].value;
    return found;
}

/* Decimal digits only; false when there is anything else or too much. */
static bool number_of(const char *s, size_t *out) {
    size_t n = 0;
    if (!*s) return false;
    for (; *s; s++)
        if (*s < '0' || *s > '9' || !fac_size_mul(n, 10, &n) ||
            !fac_size_add(n, (size_t)(*s - '0'), &n))
            return false;
    *out = n;
    return true;
}

static bool climbs(const char *location) {
    for (const char *s = location; *s;) {
        size_t n = strcspn(s, "/");
        if (n == 2 && s[0] == '.' && s[1] == '.') return true;
        s += n + (s[n] == '/');
    }
    return false;
}

static bool join(char to[PATH_MAX], const char *a, size_t na, const char *b) {
    size_t nb = strlen(b) + 1;
    if (na + nb > PATH_MAX) return false;
    memcpy(to, a, na);
    memcpy(to + na, b, nb);
    return true;
}

/* The real path is the folder's own or of something in it; both without a slash at the end, but for
 * "/". */
static bool lies_below(const char *real, const char *folder) {
    const size_t n = strlen(folder);
    return !strncmp(real, folder, n) && (n == 1 || !real[n] || real[n] == '/');
}

/* The length of a path's folder, without the slash. */
static size_t folder_length(const char *real) { return (size_t)(strrchr(real, '/') - real); }

/* The data and the model, whose name stands in `folder`, are files of one folder `blobs`, and what
 * holds that holds `folder`, too.  All are real paths. */
static bool same_blobs(const char *data, const char *model, const char *folder) {
    static const char blobs[] = "/blobs";
    const size_t n = folder_length(model), last = sizeof blobs - 1;
    if (folder_length(data) != n || strncmp(data, model, n) || n <= last ||
        memcmp(model + n - last, blobs, last))
        return false;
    return !strncmp(folder, model, n - last) && folder[n - last] == '/';
}

static bool may_leave(const fac_source_files *s, const char *real, const char *folder) {
    char other[PATH_MAX];
    if (s->link_root && realpath(s->link_root, other) && lies_below(real, other)) return true;
    return realpath(s->path, other) && same_blobs(real, other, folder);
}

/* The real path of `location` in the folder of the model. */
static fac_status resolve(const fac_source_files *s, const char *location, char real[PATH_MAX],
                          fac_error *err) {
    const char *path = s->path;
    char joined[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (*location == '/' || climbs(location))
        return fac_raise(err, FAC_E_FORMAT,
                         "external data at \"%s\", which is not inside the model's folder",
                         location);
    if (!join(joined, path, n, n ? "." : "./") || !realpath(joined, folder))
        return fac_raise(err, FAC_E_IO, "the model's folder has no real path");
    if (!join(joined, path, n, location))
        return fac_raise(err, FAC_E_IO, "external data at \"%s\": the path is too long", location);
    if (!realpath(joined, real))
        return fac_raise(err, FAC_E_IO, "external data file \"%s\" %s", location,
                         errno == ENOENT ? "is missing" : "cannot be reached");
    if (lies_below(real, folder) || may_leave(s, real, folder)) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT,
                     "external data at \"%s\", a link that leaves the model's folder%s", location,
                     s->link_root ? " and does not lead below link_root"
                                  : ": link_root (--link-root DIR) may allow it");
}

static fac_status open_file(fac_source_files *s, const char *location, fac_file **out,
                            fac_error *err) {
    char real[PATH_MAX];
    fac_file *file = fac_table_get(&s->external, location);
    if (!file) {
        if (!s->path)
            return fac_raise(err, FAC_E_UNSUPPORTED, "external data of a model that is not a file");
        FAC_TRY(resolve(s, location, real, err));
        FAC_TRY(fac_file_map(real, &file, err));
        if (!fac_table_put(&s->external, location, file)) {
            fac_file_free(file);
            return fac_raise_memory(err, "external data");
        }
    }
    *out = file;
    return FAC_OK;
}

fac_status fac_source_external(fac_source_files *s, const fac_proto_tensor *t, size_t need,
                               fac_file **file, fac_bytes *out, fac_error *err) {
    const char *location = entry(t, "location"), *from = entry(t, "offset"),
               *many = entry(t, "length");
    fac_file *f;
    size_t offset = 0, length = need;
    if (!location || !*location)
        return fac_raise(err, FAC_E_FORMAT, "external data without a location");
    FAC_TRY(open_file(s, location, &f, err));
    size_t size = fac_file_size(f);
    if (from && !number_of(from, &offset))
        return fac_raise(err, FAC_E_FORMAT, "external data with offset \"%s\"", from);
    if (offset > size)
        return fac_raise(err, FAC_E_FORMAT, "external data from byte %zu of \"%s\", which has %zu",
                         offset, location, size);
    if (many && !number_of(many, &length))
        return fac_raise(err, FAC_E_FORMAT, "external data with length \"%s\"", many);
    if (length > size - offset)
        return fac_raise(err, FAC_E_FORMAT,
                         "%zu bytes of external data from byte %zu of \"%s\", which has %zu",
                         length, offset, location, size);
    *file = f;
    *out = (fac_bytes){ (const uint8_t *)fac_file_data(f) + offset, length };
    return FAC_OK;
}
