/* Wisdom: measured choices by device and problem, and the text they are kept as.  The format is
 * told in facula/tune.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "backends/wisdom.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "facula/read.h"

enum { LONGEST = 64 << 20 };

typedef struct entry {
    fac_wisdom_entry e;
    char *key;
} entry; /* key: device, newline, problem; e's texts are our own */

struct fac_wisdom {
    entry *at;
    size_t n, room;
    fac_table places; /* key -> its place in at + 1, as a pointer */
};

static const char heading[] = FAC_WISDOM_HEADING;

fac_status fac_wisdom_new(fac_wisdom **out, fac_error *err) {
    fac_wisdom *w = fac_alloc(1, sizeof *w);
    if (!w) return fac_raise_memory(err, "wisdom");
    *out = w;
    return FAC_OK;
}

static void free_texts(entry *x) {
    fac_release((char *)(uintptr_t)x->e.device);
    fac_release((char *)(uintptr_t)x->e.problem);
    fac_release((char *)(uintptr_t)x->e.solver);
}

void fac_wisdom_free(fac_wisdom *w) {
    if (!w) return;
    for (size_t i = 0; i < w->n; i++) {
        free_texts(&w->at[i]);
        fac_release(w->at[i].key);
    }
    fac_release(w->at);
    fac_table_free(&w->places);
    fac_release(w);
}

/* ---- by key ---- */

static char *key_of(const char *device, const char *problem) {
    const size_t n = strlen(device), size = n + strlen(problem) + 2;
    char *key = fac_alloc(size, 1);
    if (key) snprintf(key, size, "%s\n%s", device, problem);
    return key;
}

static entry *lookup(const fac_wisdom *w, const char *key) {
    const uintptr_t place = (uintptr_t)fac_table_get(&w->places, key);
    return place ? &w->at[place - 1] : NULL;
}

bool fac_wisdom_find(const fac_wisdom *w, const char *device, const char *problem,
                     fac_wisdom_entry *out) {
    if (!w || !w->n || !device || !problem) return false;
    char *key = key_of(device, problem);
    const entry *x = key ? lookup(w, key) : NULL;
    fac_release(key);
    if (x) *out = x->e;
    return x != NULL;
}

size_t fac_wisdom_count(const fac_wisdom *w) { return w->n; }
fac_wisdom_entry fac_wisdom_at(const fac_wisdom *w, size_t i) { return w->at[i].e; }

/* What would not come back from a line of text. */
static const char *unfit(const fac_wisdom_entry *e) {
    if (!e->device || !*e->device || strchr(e->device, '\n')) return "the device";
    if (!e->problem || !*e->problem || strchr(e->problem, '\n')) return "the problem";
    if (!e->solver || !*e->solver || strpbrk(e->solver, " :\n") || *e->solver == '#')
        return "the solver";
    if (e->variant < 0 || e->version < 0) return "the variant or version";
    if (!(e->seconds >= 0 && isfinite(e->seconds)) ||
        !(e->otherwise >= 0 && isfinite(e->otherwise)))
        return "the time";
    return NULL;
}

fac_status fac_wisdom_put(fac_wisdom *w, const fac_wisdom_entry *e, fac_error *err) {
    const char *bad = !w || !e ? "the wisdom or its entry" : unfit(e);
    if (bad)
        return fac_raise(err, FAC_E_ARGUMENT, "wisdom: %s is missing or cannot be written", bad);
    entry x = { .e = *e, .key = key_of(e->device, e->problem) };
    x.e.device = fac_copy_text(e->device);
    x.e.problem = fac_copy_text(e->problem);
    x.e.solver = fac_copy_text(e->solver);
    entry *old = x.key ? lookup(w, x.key) : NULL;
    bool ok = x.key && x.e.device && x.e.problem && x.e.solver;
    if (ok && old) {
        char *key = old->key; /* the table has borrowed it */
        free_texts(old);
        fac_release(x.key);
        *old = x;
        old->key = key;
        return FAC_OK;
    }
    ok = ok && fac_reserve(&w->at, &w->room, w->n + 1, sizeof *w->at);
    if (ok && fac_table_put(&w->places, x.key, (void *)(w->n + 1))) {
        w->at[w->n++] = x;
        return FAC_OK;
    }
    free_texts(&x);
    fac_release(x.key);
    return fac_raise_memory(err, "wisdom of %zu entries", w->n);
}

static bool better(const fac_wisdom_entry *a, const fac_wisdom_entry *b) {
    if (a->version != b->version) return a->version > b->version;
    return a->seconds * b->otherwise < b->seconds * a->otherwise; /* the larger gain */
}

fac_status fac_wisdom_merge(fac_wisdom *into, const fac_wisdom *from, fac_error *err) {
    if (!into || !from)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_wisdom_merge: %s is NULL",
                         into ? "from" : "into");
    for (size_t i = 0; i < from->n; i++) {
        const entry *old = lookup(into, from->at[i].key);
        if (!old || better(&from->at[i].e, &old->e))
            FAC_TRY(fac_wisdom_put(into, &from->at[i].e, err));
    }
    return FAC_OK;
}

/* ---- as text ---- */

static int by_key(const void *a, const void *b) {
    const entry *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static bool write_entries(const fac_wisdom *w, const entry **sorted, fac_text *to) {
    const char *device = "";
    for (size_t i = 0; i < w->n; i++) sorted[i] = &w->at[i];
    qsort(sorted, w->n, sizeof *sorted, by_key);
    fac_text_print(to, "%s\n", heading);
    for (size_t i = 0; i < w->n; i++) {
        const fac_wisdom_entry *e = &sorted[i]->e;
        if (strcmp(e->device, device)) fac_text_print(to, "\ndevice %s\n", e->device);
        device = e->device;
        fac_text_print(to, "%s", e->solver);
        if (e->variant) fac_text_print(to, ":%d", e->variant);
        fac_text_print(to, " %d %.4g %.4g %s\n", e->version, 1e6 * e->seconds, 1e6 * e->otherwise,
                       e->problem);
    }
    return !to->failed;
}

fac_status fac_wisdom_save(const fac_wisdom *w, const char *path, fac_error *err) {
    if (!w || !path)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_wisdom_save: %s is NULL",
                         w ? "path" : "the wisdom");
    const entry **sorted = fac_alloc(w->n + 1, sizeof *sorted);
    fac_text text = { 0 };
    fac_writer *writer = NULL;
    fac_status status = sorted && write_entries(w, sorted, &text)
                            ? FAC_OK
                            : fac_raise(err, FAC_E_NOMEM, "%s: no memory", path);
    if (!status) status = fac_writer_open(path, &writer, err);
    if (!status) {
        status = fac_writer_put(writer, text.s, text.n, err);
        if (status)
            fac_writer_cancel(writer);
        else
            status = fac_writer_close(writer, err);
    }
    fac_text_free(&text);
    fac_release(sorted);
    return status;
}

/* A word, a decimal number or a time of a line; *s goes after it and the space that follows.
 * false: there is none. */
static bool word(const char **s, char *to, size_t size) {
    const size_t n = strcspn(*s, " ");
    if (!n || n >= size || (*s)[n] != ' ') return false;
    memcpy(to, *s, n);
    to[n] = 0;
    *s += n + 1;
    return true;
}

static bool natural(const char **s, int *out) {
    char text[16], *end;
    if (!word(s, text, sizeof text)) return false;
    const long x = strtol(text, &end, 10);
    *out = (int)x;
    return !*end && x >= 0 && x <= INT32_MAX;
}

static bool microseconds(const char **s, double *out) {
    char text[32], *end;
    if (!word(s, text, sizeof text)) return false;
    *out = 1e-6 * strtod(text, &end);
    return !*end && end != text && *out >= 0 && isfinite(*out);
}

/* "SOLVER[:VARIANT] VERSION MICROSECONDS MICROSECONDS PROBLEM"; NULL, or what was expected. */
static const char *read_entry(const char *line, char solver[96], fac_wisdom_entry *e) {
    if (!word(&line, solver, 96)) return "a solver";
    char *colon = strchr(solver, ':'), *end = NULL;
    if (colon) {
        const long variant = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || variant < 1 || variant > INT32_MAX)
            return "a variant after the colon";
        e->variant = (int)variant;
        *colon = 0;
    }
    e->solver = solver;
    if (!*solver) return "a solver";
    if (!natural(&line, &e->version)) return "the solver's version";
    if (!microseconds(&line, &e->seconds) || !microseconds(&line, &e->otherwise))
        return "two times in microseconds";
    e->problem = line;
    return *line ? NULL : "a problem";
}

typedef struct reading {
    fac_wisdom *w;
    const char *path;
    char *device;
    int line;
} reading;

static fac_status read_line(reading *r, char *line, fac_error *err) {
    char solver[96];
    fac_wisdom_entry e = { .device = r->device };
    size_t n = strlen(line);
    if (n && line[n - 1] == '\r') line[--n] = 0;
    if (r->line == 1 && strcmp(line, heading))
        return fac_raise(err, FAC_E_FORMAT, "%s: not wisdom: its first line is not \"%s\"", r->path,
                         heading);
    if (r->line == 1 || !n || *line == '#') return FAC_OK;
    if (!strncmp(line, "device ", 7)) {
        fac_release(r->device);
        r->device = fac_copy_text(line + 7);
        return r->device ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "%s: no memory", r->path);
    }
    const char *expected =
        !r->device || !*r->device ? "a line \"device ...\"" : read_entry(line, solver, &e);
    if (expected)
        return fac_raise(err, FAC_E_FORMAT, "%s:%d: expected %s", r->path, r->line, expected);
    return fac_wisdom_put(r->w, &e, err);
}

static fac_status read_lines(reading *r, char *text, size_t bytes, fac_error *err) {
    if (memchr(text, 0, bytes))
        return fac_raise(err, FAC_E_FORMAT, "%s: not wisdom: it has zero bytes", r->path);
    for (char *line = text, *end; line < text + bytes; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + bytes - line));
        if (!end) end = text + bytes;
        *end = 0;
        r->line++;
        FAC_TRY(read_line(r, line, err));
    }
    return FAC_OK;
}

fac_status fac_wisdom_parse(const char *name, char *text, size_t bytes, fac_wisdom **out,
                            fac_error *err) {
    reading r = { .path = name };
    fac_status status = fac_wisdom_new(&r.w, err);
    if (!status) status = read_lines(&r, text, bytes, err);
    fac_release(r.device);
    if (status)
        fac_wisdom_free(r.w);
    else
        *out = r.w;
    return status;
}

fac_status fac_wisdom_load(const char *path, fac_wisdom **out, fac_error *err) {
    if (!path || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_wisdom_load: %s is NULL", path ? "out" : "path");
    char *text;
    size_t bytes;
    FAC_TRY(fac_read_text(path, LONGEST, FAC_READ_FILE, &text, &bytes, err));
    fac_status status = bytes ? FAC_OK : fac_raise(err, FAC_E_FORMAT, "%s: is empty", path);
    if (!status) status = fac_wisdom_parse(path, text, bytes, out, err);
    fac_read_free(text);
    return status;
}
