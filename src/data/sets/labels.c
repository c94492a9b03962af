/* Names of classes, a line each. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/data/classes.h"
#include "facula/read.h"

enum { LONGEST = 64 << 20 };

/* text as it is written into models; the names are copies of its lines in one piece of memory. */
struct fac_labels {
    char *text, *lines;
    const char **names;
    int n;
};

void fac_labels_free(fac_labels *l) {
    if (!l) return;
    fac_release(l->text);
    fac_release(l->lines);
    fac_release(l->names);
    fac_release(l);
}

int fac_labels_count(const fac_labels *l) { return l ? l->n : 0; }
const char *fac_labels_text(const fac_labels *l) { return l->text; }
const char *fac_labels_get(const fac_labels *l, int64_t index) {
    return l && index >= 0 && index < l->n && *l->names[index] ? l->names[index] : NULL;
}

/* What would move a terminal's cursor is no part of a name. */
static bool control(const unsigned char *c) { return (*c < ' ' && *c != '\n') || *c == 127; }
/* C1 in UTF-8 */
static bool control_two(const unsigned char *c) {
    return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
}

/* Lines without CR and without what follows the last name; control characters become question
 * marks. */
static size_t clean(const char *from, size_t bytes, char *to) {
    size_t n = 0, end = 0;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char *c = (const unsigned char *)from + i;
        const bool line_end = *c == '\r' && (i + 1 == bytes || c[1] == '\n');
        const bool two = i + 1 < bytes && control_two(c);
        if (line_end) continue;
        to[n++] = two || control(c) ? '?' : from[i];
        if (from[i] != '\n') end = n;
        i += two;
    }
    to[end] = 0;
    return end;
}

static fac_status cut(fac_labels *l, size_t bytes, fac_error *err) {
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++) lines += l->text[i] == '\n';
    l->lines = fac_copy_text(l->text);
    l->names = fac_alloc(lines, sizeof *l->names);
    if (!l->lines || !l->names) return fac_raise_memory(err, "%zu names of classes", lines);
    for (char *p = l->lines; p;) {
        char *end = strchr(p, '\n');
        if (end) *end++ = 0;
        l->names[l->n++] = p;
        p = end;
    }
    return FAC_OK;
}

static fac_status no_names(const char *name, fac_error *err) {
    return fac_raise(err, FAC_E_FORMAT, "%s: has no names of classes, one a line", name);
}

fac_status fac_labels_parse(const char *text, size_t bytes, const char *name, fac_labels **out,
                            fac_error *err) {
    if (bytes > LONGEST)
        return fac_raise(err, FAC_E_ARGUMENT, "%s: %zu bytes of names; there may be %d", name,
                         bytes, LONGEST);
    if (memchr(text, 0, bytes))
        return fac_raise(err, FAC_E_FORMAT, "%s: holds no names: there is a zero byte in it", name);
    fac_labels *l = fac_alloc(1, sizeof *l);
    if (l) l->text = fac_alloc(bytes + 1, 1);
    if (!l || !l->text) {
        fac_labels_free(l);
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes of names", name, bytes);
    }
    const size_t n = clean(text, bytes, l->text);
    fac_status status = n ? cut(l, n, err) : no_names(name, err);
    if (status)
        fac_labels_free(l);
    else
        *out = l;
    return status;
}

fac_status fac_labels_load(const char *path, fac_labels **out, fac_error *err) {
    char *text;
    size_t n;
    FAC_TRY(fac_read_text(path, LONGEST, FAC_READ_FILE_OR_PIPE, &text, &n, err));
    const fac_status status = fac_labels_parse(text, n, path, out, err);
    fac_read_free(text);
    return status;
}
