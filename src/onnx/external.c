/* External data: the bytes of a tensor in another file of the model's folder.
 *
 * A model is data from strangers: its locations must not reach any other file.  So a location is relative, has no "..", and
 * the real path behind all links lies under the model's folder; that real path is what is opened. */
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
        if (*s < '0' || *s > '9' || !fac_size_mul(n, 10, &n) || !fac_size_add(n, (size_t)(*s - '0'), &n)) return false;
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

/* The real path of `location` in the folder of the model at `path`. */
static fac_status resolve(const char *path, const char *location, char real[PATH_MAX], fac_error *err) {
    char joined[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (*location == '/' || climbs(location))
        return fac_raise(err, FAC_E_FORMAT, "external data at \"%s\", which is not inside the model's folder", location);
    if (!join(joined, path, n, n ? "." : "./") || !realpath(joined, folder))
        return fac_raise(err, FAC_E_IO, "the model's folder has no real path");
    if (!join(joined, path, n, location))
        return fac_raise(err, FAC_E_IO, "external data at \"%s\": the path is too long", location);
    if (!realpath(joined, real))
        return fac_raise(err, FAC_E_IO, "external data file \"%s\" %s", location,
                         errno == ENOENT ? "is missing" : "cannot be reached");
    size_t m = strlen(folder);
    if (strncmp(real, folder, m) || (m > 1 && real[m] && real[m] != '/'))
        return fac_raise(err, FAC_E_FORMAT, "external data at \"%s\", a link that leaves the model's folder", location);
    return FAC_OK;
}

static fac_status open_file(fac_source_files *s, const char *location, fac_file **out, fac_error *err) {
    char real[PATH_MAX];
    fac_file *file = fac_table_get(&s->external, location);
    if (!file) {
        if (!s->path) return fac_raise(err, FAC_E_UNSUPPORTED, "external data of a model that is not a file");
        FAC_TRY(resolve(s->path, location, real, err));
        FAC_TRY(fac_file_map(real, &file, err));
        if (!fac_table_put(&s->external, location, file)) {
            fac_file_free(file);
            return fac_raise(err, FAC_E_NOMEM, "no memory for external data");
        }
    }
    *out = file;
    return FAC_OK;
}

fac_status fac_source_external(fac_source_files *s, const fac_proto_tensor *t, size_t need, fac_file **file, fac_bytes *out,
                               fac_error *err) {
    const char *location = entry(t, "location"), *from = entry(t, "offset"), *many = entry(t, "length");
    fac_file *f;
    size_t offset = 0, length = need;
    if (!location || !*location) return fac_raise(err, FAC_E_FORMAT, "external data without a location");
    FAC_TRY(open_file(s, location, &f, err));
    size_t size = fac_file_size(f);
    if (from && !number_of(from, &offset)) return fac_raise(err, FAC_E_FORMAT, "external data with offset \"%s\"", from);
    if (offset > size)
        return fac_raise(err, FAC_E_FORMAT, "external data from byte %zu of \"%s\", which has %zu", offset, location, size);
    if (many && !number_of(many, &length)) return fac_raise(err, FAC_E_FORMAT, "external data with length \"%s\"", many);
    if (length > size - offset)
        return fac_raise(err, FAC_E_FORMAT, "%zu bytes of external data from byte %zu of \"%s\", which has %zu", length, offset,
                         location, size);
    *file = f;
    *out = (fac_bytes){ (const uint8_t *)fac_file_data(f) + offset, length };
    return FAC_OK;
}
