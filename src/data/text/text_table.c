/* Labelled texts from tables: which columns, clean UTF-8, what labels mean. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "data/text/text_internal.h"
#include "data/text/text_record.h"
#include "tensor/utf.h"

enum { CLASSES = 1 << 20, SHOWN = 40 };

/* ---- columns ---- */

static bool field_is(const fac_field *f, const char *name) {
    return strlen(name) == f->n && !memcmp(f->s, name, f->n);
}

static bool whole_number(const char *s, size_t n, int64_t most, int64_t *out) {
    int64_t x = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        x = 10 * x + (s[i] - '0');
        if (x > most) return false;
    }
    *out = x;
    return n > 0;
}

static fac_status column(const fac_records *t, const char *name, bool header, int *out,
                         fac_error *err) {
    int64_t number;
    for (int k = 0; header && k < t->nfields; k++) {
        fac_field f = t->fields[k];
        while (f.n && f.s[f.n - 1] == ' ') f.n--; /* GLUE's are "sentence \tlabel" in places */
        if (!field_is(&f, name)) continue;
        *out = k;
        return FAC_OK;
    }
    if (!whole_number(name, strlen(name), FAC_COLUMNS - 1, &number))
        return fac_raise(err, FAC_E_ARGUMENT,
                         header ? "%s: has no column \"%s\""
                                : "%s: columns are numbers where there is no "
                                  "header, not \"%s\"",
                         t->name, name);
    *out = (int)number;
    return FAC_OK;
}

/* ---- texts and labels ---- */

/* Doubled quotes become one; what is no UTF-8 becomes U+FFFD, three bytes for at least one. */
static const char *clean(fac_arena *arena, const fac_field *f) {
    size_t room, n = 0;
    unsigned char *s = fac_size_add(f->n, 1, &room) ? fac_arena_alloc(arena, room, 1) : NULL;
    if (!s) return NULL;
    for (size_t i = 0; i < f->n; i++) {
        s[n++] = (unsigned char)f->s[i];
        if (f->quoted && f->s[i] == '"') i++;
    }
    size_t broken = 0;
    for (const unsigned char *p = s; *p;) {
        const unsigned char *from = p;
        broken += fac_utf8_next(&p) == 0xfffd && (p - from != 3 || memcmp(from, "\xef\xbf\xbd", 3));
    }
    if (!broken) return (const char *)s;
    char *good =
             broken > (SIZE_MAX - 1 - n) / 3 ? NULL : fac_arena_alloc(arena, n + 3 * broken + 1, 1),
         *to = good;
    for (const unsigned char *p = s; good && *p;) to = fac_utf8_put(to, fac_utf8_next(&p));
    return good;
}

typedef struct reader {
    fac_records t;
    int text, label;
    size_t room_text, room_label, room_line;
    fac_field *labels;
    int64_t *lines;
    fac_texts out;
} reader;

static fac_status keep_record(reader *r, int64_t line, fac_error *err) {
    fac_records *t = &r->t;
    struct fac_texts_memory *m = r->out.memory;
    const size_t n = (size_t)r->out.count + 1;
    const int need = r->text > r->label ? r->text : r->label;
    if (t->nfields <= need)
        return fac_raise(err, FAC_E_FORMAT, "%s:%lld: %d columns where %d are needed", t->name,
                         (long long)line, t->nfields, need + 1);
    const fac_field *text = &t->fields[r->text];
    if (memchr(text->s, 0, text->n))
        return fac_raise(err, FAC_E_FORMAT, "%s:%lld: a NUL byte: this is no text", t->name,
                         (long long)line);
    if (!fac_reserve(&m->text, &r->room_text, n, sizeof *m->text) ||
        !fac_reserve(&r->labels, &r->room_label, n, sizeof *r->labels) ||
        !fac_reserve(&r->lines, &r->room_line, n, sizeof *r->lines) ||
        !(m->text[n - 1] = clean(&m->arena, text)))
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for its texts", t->name);
    r->labels[n - 1] = t->fields[r->label];
    while (r->labels[n - 1].n && r->labels[n - 1].s[r->labels[n - 1].n - 1] == ' ')
        r->labels[n - 1].n--;
    r->lines[n - 1] = line;
    r->out.count++;
    return FAC_OK;
}

static fac_status read_records(reader *r, const fac_texts_opts *o, fac_error *err) {
    int64_t line;
    const char *text = o->text ? o->text : "0";
    const char *label = o->label ? o->label : "1";
    FAC_TRY(fac_record_next(&r->t, &line, err));
    FAC_TRY(column(&r->t, text, o->header, &r->text, err));
    FAC_TRY(column(&r->t, label, o->header, &r->label, err));
    if (o->header) FAC_TRY(fac_record_next(&r->t, &line, err));
    while (r->t.nfields) {
        FAC_TRY(keep_record(r, line, err));
        FAC_TRY(fac_record_next(&r->t, &line, err));
    }
    return r->out.count ? FAC_OK : fac_raise(err, FAC_E_FORMAT, "%s: has no records", r->t.name);
}

/* ---- classes ---- */

static fac_status bad_label(const reader *r, int64_t i, const char *what, fac_error *err) {
    const fac_field *f = &r->labels[i];
    return fac_raise(err, FAC_E_FORMAT, "%s:%lld: the label \"%.*s\" %s", r->t.name,
                     (long long)r->lines[i], f->n < SHOWN ? (int)f->n : SHOWN, f->s, what);
}

/* Are all labels numbers?  Then the classes are 0 .. the largest. */
static bool number_labels(reader *r, int64_t most) {
    int64_t largest = 0;
    for (int64_t i = 0; i < r->out.count; i++) {
        int64_t *to = &r->out.memory->labels[i];
        if (!whole_number(r->labels[i].s, r->labels[i].n, most, to)) return false;
        if (*to > largest) largest = *to;
    }
    r->out.classes = (int)largest + 1;
    return true;
}

/* Looks up labels in sorted names. */
static int64_t find_name(const char *const *names, int64_t n, const fac_field *f) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const size_t length = strlen(names[middle]);
        const int order = memcmp(names[middle], f->s, length < f->n ? length : f->n);
        if (order < 0 || (!order && length < f->n))
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && field_is(f, names[low]) ? low : -1;
}

static fac_status known_labels(reader *r, const fac_texts *like, fac_error *err) {
    for (int64_t i = 0; i < r->out.count; i++) {
        int64_t *to = &r->out.memory->labels[i];
        const fac_field *f = &r->labels[i];
        bool good = like->class_names ? (*to = find_name(like->class_names, like->classes, f)) >= 0
                                      : whole_number(f->s, f->n, like->classes - 1, to);
        if (!good) return bad_label(r, i, "is none of the classes", err);
    }
    r->out.classes = like->classes;
    return FAC_OK;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct labels, sorted, in the arena of the texts. */
static fac_status collect_names(reader *r, const char ***names, int64_t *n, fac_error *err) {
    fac_arena *arena = &r->out.memory->arena;
    fac_table seen = { 0 };
    size_t room = 0;
    fac_status status = FAC_OK;
    for (int64_t i = 0; i < r->out.count && !status; i++) {
        const fac_field *f = &r->labels[i];
        if (!f->n || memchr(f->s, 0, f->n)) status = bad_label(r, i, "is no name of a class", err);
        const char *name = status ? NULL : clean(arena, f);
        if (status || (name && fac_table_get(&seen, name))) continue;
        if (!name || !fac_reserve(names, &room, (size_t)*n + 1, sizeof **names) ||
            !fac_table_put(&seen, name, arena))
            status = fac_raise(err, FAC_E_NOMEM, "%s: no memory for its classes", r->t.name);
        else if (*n == CLASSES)
            status = bad_label(r, i, "is one class too many", err);
        else
            (*names)[(*n)++] = name;
    }
    fac_table_free(&seen);
    if (!status) qsort(*names, (size_t)*n, sizeof **names, by_bytes);
    return status;
}

/* The arena's copy of the names, for the caller: `from` is not kept. */
static fac_status take_names(reader *r, const char *const *from, int64_t n, fac_error *err) {
    const char **names = fac_arena_texts(&r->out.memory->arena, from, (size_t)n);
    if (!names) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for its classes", r->t.name);
    r->out.class_names = names;
    r->out.classes = (int)n;
    return FAC_OK;
}

static fac_status classes(reader *r, const fac_texts *like, fac_error *err) {
    if (!(r->out.memory->labels = fac_alloc((size_t)r->out.count, sizeof(int64_t))))
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for its labels", r->t.name);
    if (like) {
        FAC_TRY(known_labels(r, like, err));
        return like->class_names ? take_names(r, like->class_names, like->classes, err) : FAC_OK;
    }
    if (number_labels(r, CLASSES - 1)) return FAC_OK;
    const char **names = NULL;
    int64_t n = 0;
    fac_status status = collect_names(r, &names, &n, err);
    if (!status) status = take_names(r, names, n, err);
    for (int64_t i = 0; i < r->out.count && !status; i++)
        if ((r->out.memory->labels[i] = find_name(names, n, &r->labels[i])) < 0)
            status = bad_label(r, i, "holds a quote or bytes that are no UTF-8", err);
    fac_release(names);
    return status;
}

/* ---- the whole ---- */

static bool ends_in(const char *name, const char *ending) {
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && !strcasecmp(name + n - m, ending);
}

fac_status fac_texts_scan(const char *data, size_t bytes, const char *name,
                          const fac_texts_opts *opts, fac_texts *out, fac_error *err) {
    static const fac_texts_opts usual;
    const fac_texts_opts *o = opts ? opts : &usual;
    reader *r = fac_alloc(1, sizeof *r);
    if (!r || !(r->out.memory = fac_alloc(1, sizeof *r->out.memory))) {
        fac_release(r);
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory", name);
    }
    const size_t mark =
        bytes >= 3 && !memcmp(data, "\xef\xbb\xbf", 3) ? 3 : 0; /* a byte order mark */
    r->t = (fac_records){ .at = data + mark,
                          .end = data + bytes,
                          .name = name,
                          .line = 1,
                          .separator = o->separator            ? o->separator
                                       : ends_in(name, ".csv") ? ','
                                                               : '\t' };
    fac_status status = read_records(r, o, err);
    if (!status) status = classes(r, o->like, err);
    r->out.text = r->out.memory->text;
    r->out.labels = r->out.memory->labels;
    fac_release(r->labels);
    fac_release(r->lines);
    if (status)
        fac_texts_free(&r->out);
    else
        *out = r->out;
    fac_release(r);
    return status;
}

fac_status fac_texts_load(const char *path, const fac_texts_opts *opts, fac_texts *out,
                          fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    fac_status status = fac_texts_scan(fac_file_data(f), fac_file_size(f), path, opts, out, err);
    fac_file_free(f);
    return status;
}

void fac_texts_free(fac_texts *t) {
    if (t->memory) {
        fac_arena_free(&t->memory->arena);
        fac_release(t->memory->text);
        fac_release(t->memory->labels);
        fac_release(t->memory);
    }
    *t = (fac_texts){ 0 };
}
