/* Tables of sounds: a record a line, FILE,label[,start,end]; a first record that names columns may
 * give them in another order, and a group. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/error.h"
#include "facula/read.h"
#include "base/memory.h"
#include "data/sound/recordings.h"
#include "data/text/text_record.h"

enum { FILE_, LABEL, START, END, GROUP, KINDS, LONGEST = 1 << 28, SHOWN = 99 };
static const char *const names[KINDS] = { "file", "label", "start", "end", "group" };

typedef struct table {
    fac_recordings *r;
    fac_records t;
    int column[KINDS]; /* -1: there is none */
    int64_t line;
    char *folder; /* of the table, with its slash */
} table;

static bool field_is(const fac_field *f, const char *name) {
    return strlen(name) == f->n && !strncasecmp(f->s, name, f->n);
}

static fac_status wrong(const table *t, const char *what) {
    return fac_raise(t->r->err, FAC_E_FORMAT, "%s:%lld: %s", t->t.name, (long long)t->line, what);
}

/* The usual order, or that of a first record with the names "file" and "label". */
static fac_status read_columns(table *t) {
    int named[KINDS];
    for (int k = 0; k < KINDS; k++) {
        t->column[k] = k < GROUP ? k : -1;
        named[k] = -1;
        for (int c = 0; c < t->t.nfields; c++)
            if (field_is(&t->t.fields[c], names[k])) named[k] = c;
    }
    if (named[FILE_] < 0 || named[LABEL] < 0) return FAC_OK;
    memcpy(t->column, named, sizeof named);
    return fac_record_next(&t->t, &t->line, t->r->err);
}

static const fac_field *field(const table *t, int kind) {
    const int c = t->column[kind];
    return c >= 0 && c < t->t.nfields && t->t.fields[c].n ? &t->t.fields[c] : NULL;
}

static fac_status seconds_of(const table *t, int kind, double *to) {
    const fac_field *f = field(t, kind);
    char text[64], *end = text;
    if (!f) return FAC_OK;
    snprintf(text, sizeof text, "%.*s", f->n < 63 ? (int)f->n : 63, f->s);
    *to = strtod(text, &end);
    if (end != text && !*end && *to >= 0 && *to < 1e9) return FAC_OK;
    return fac_raise(t->r->err, FAC_E_FORMAT,
                     "%s:%lld: %s is \"%s\", it must be seconds, 0 or more", t->t.name,
                     (long long)t->line, names[kind], text);
}

/* As it stands, or below the table's folder. */
static const char *path_of(table *t, const fac_field *f) {
    const char *folder = f->s[0] == '/' ? "" : t->folder;
    return fac_arena_print(&t->r->arena, "%s%.*s", folder, (int)f->n, f->s);
}

static fac_status keep(table *t) {
    const fac_field *file = field(t, FILE_), *label = field(t, LABEL), *group = field(t, GROUP);
    fac_recording one = { 0 };
    if (!file || !label) return wrong(t, "a record needs FILE,label");
    if (memchr(file->s, 0, file->n) || memchr(label->s, 0, label->n) || label->n > 4096)
        return wrong(t, "this is no text");
    FAC_TRY(seconds_of(t, START, &one.start));
    FAC_TRY(seconds_of(t, END, &one.end));
    if (one.end > 0 && one.end <= one.start) return wrong(t, "its end is not after its start");
    if (!(one.path = path_of(t, file)))
        return fac_raise(t->r->err, FAC_E_NOMEM, "%s: no memory for its list", t->t.name);
    if (!group) group = file;
    FAC_TRY(fac_recordings_class(t->r, label->s, label->n, &one.label));
    FAC_TRY(fac_recordings_name(t->r, &t->r->groups, group->s, group->n, &one.group));
    return fac_recordings_add(t->r, one);
}

static fac_status read_records(table *t) {
    FAC_TRY(fac_record_next(&t->t, &t->line, t->r->err));
    FAC_TRY(read_columns(t));
    while (t->t.nfields) {
        FAC_TRY(keep(t));
        FAC_TRY(fac_record_next(&t->t, &t->line, t->r->err));
    }
    return FAC_OK;
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcasecmp(text + n - m, end);
}

fac_status fac_recordings_table(fac_recordings *r) {
    table t = { .r = r };
    char *text = NULL;
    size_t bytes = 0;
    const char *slash = strrchr(r->from, '/');
    if (fac_is_sound(r->from))
        return fac_raise(r->err, FAC_E_FORMAT,
                         "%s: one sound is no data set: that is a folder, or a table FILE,label",
                         r->from);
    FAC_TRY(fac_read_text(r->from, LONGEST, FAC_READ_FILE_OR_PIPE, &text, &bytes, r->err));
    t.folder = fac_arena_print(&r->arena, "%.*s", slash ? (int)(slash - r->from + 1) : 0, r->from);
    const char separator = ends_with(r->from, ".tsv") ? '\t' : ',';
    t.t = (fac_records){
        .at = text, .end = text + bytes, .name = r->from, .line = 1, .separator = separator
    };
    const fac_status status = t.folder ? read_records(&t) : fac_raise_memory(r->err, "a table");
    fac_read_free(text);
    return status;
}
