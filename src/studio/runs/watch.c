/* Follows folders of trainings while they grow. */
#include "studio/runs/watch.h"
#include <cjson/cJSON.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "facula/read.h"

enum { RUNS = 64, LINE = 4096, LONGEST = 4 << 20, ROWS = 200000 };
#define LIST_NS INT64_C(500000000)

const char *const fac_watch_names[WATCH_COLUMNS] = { "epoch",         "step",           "lr",
                                                     "train_loss",    "train_accuracy", "test_loss",
                                                     "test_accuracy", "images_per_s",   "seconds" };
static const char *const files[WATCH_LOGS] = { "log.jsonl", "steps.jsonl" };

/* ---- the list of folders ---- */

static bool join(char *to, size_t size, const char *dir, const char *name) {
    return snprintf(to, size, "%s/%s", dir, name) < (int)size;
}

static bool is_file(const char *dir, const char *name) {
    char path[LINE];
    struct stat s;
    return join(path, sizeof path, dir, name) && !stat(path, &s) && S_ISREG(s.st_mode);
}

static bool known(const watch *w, const char *name) {
    for (size_t k = 0; k < w->n; k++)
        if (!strcmp(w->run[k].name, name)) return true;
    return false;
}

static void release_run(watch_run *r) {
    for (int k = 0; k < WATCH_LOGS; k++) fac_release(r->log[k].row);
    fac_release(r->name);
    fac_release(r->path);
}

/* A folder with run.json is a training. */
static bool add(watch *w, const char *path, const char *name) {
    if (w->n >= RUNS || known(w, name) || !is_file(path, "run.json")) return false;
    if (!fac_reserve(&w->run, &w->room, w->n + 1, sizeof *w->run)) return false;
    watch_run r = { .name = fac_copy_text(name), .path = fac_copy_text(path) };
    if (r.name && r.path)
        w->run[w->n++] = r;
    else
        release_run(&r);
    return r.name && r.path;
}

static bool list(watch *w) {
    char path[LINE];
    bool more = add(w, w->root, ".");
    DIR *d = opendir(w->root);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && join(path, sizeof path, w->root, e->d_name))
            more |= add(w, path, e->d_name);
    if (d) closedir(d);
    return more;
}

fac_status fac_watch_open(const char *root, watch *out, fac_error *err) {
    struct stat s;
    if (stat(root, &s) || !S_ISDIR(s.st_mode))
        return fac_raise(err, FAC_E_IO, "%s: not a folder", root);
    char *copy = fac_copy_text(root);
    if (!copy) return fac_raise(err, FAC_E_NOMEM, "%s: no memory", root);
    *out = (watch){ .root = copy };
    return FAC_OK;
}

void fac_watch_close(watch *w) {
    for (size_t k = 0; k < w->n; k++) release_run(&w->run[k]);
    fac_release(w->run);
    fac_release(w->root);
    *w = (watch){ 0 };
}

/* ---- logs ---- */

static void take_line(watch_log *l, const char *line, size_t n) {
    cJSON *j = n < LINE && l->n < ROWS ? cJSON_ParseWithLength(line, n) : NULL;
    if (cJSON_IsObject(j) && fac_reserve(&l->row, &l->room, l->n + 1, sizeof *l->row)) {
        for (int k = 0; k < WATCH_COLUMNS; k++) {
            const cJSON *x = cJSON_GetObjectItemCaseSensitive(j, fac_watch_names[k]);
            l->row[l->n][k] = cJSON_IsNumber(x) ? x->valuedouble : NAN;
        }
        l->n += isfinite(l->row[l->n][WATCH_STEP]) != 0;
    }
    cJSON_Delete(j);
}

/* Reads whole lines after the last position; half a line waits for its end. */
static void take(watch_log *l, const char *text, size_t bytes) {
    const char *at = text + l->at, *end;
    while ((end = memchr(at, '\n', bytes - (size_t)(at - text)))) {
        take_line(l, at, (size_t)(end - at));
        at = end + 1;
    }
    l->at = at - text;
}

static bool look_at_log(watch_run *r, int which) {
    char path[LINE];
    struct stat s;
    fac_file *f;
    watch_log *l = &r->log[which];
    if (!join(path, sizeof path, r->path, files[which]) || stat(path, &s)) return false;
    const bool anew = (int64_t)s.st_ino != l->inode || s.st_size < l->at;
    if (!anew && s.st_size == l->at) return false;
    if (anew) {
        l->n = 0;
        l->at = 0;
        l->turn++;
        l->inode = (int64_t)s.st_ino;
    }
    r->written_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    const size_t before = l->n;
    if (!fac_file_map(path, &f, NULL)) {
        if ((int64_t)fac_file_size(f) >= l->at) take(l, fac_file_data(f), fac_file_size(f));
        fac_file_free(f);
    }
    return anew || l->n != before;
}

bool fac_watch_look(watch *w) {
    bool more = false;
    if (fac_now_ns() - w->listed > LIST_NS) {
        w->listed = fac_now_ns();
        more = list(w);
        for (size_t k = 0; k < w->n; k++) {
            const bool done = is_file(w->run[k].path, "model.safetensors");
            more |= done != w->run[k].done;
            w->run[k].done = done;
        }
    }
    for (size_t k = 0; k < w->n; k++)
        for (int i = 0; i < WATCH_LOGS; i++) more |= look_at_log(&w->run[k], i);
    return more;
}

fac_status fac_watch_stop(const watch *w, size_t run, fac_error *err) {
    char path[LINE];
    if (!join(path, sizeof path, w->run[run].path, "stop"))
        return fac_raise(err, FAC_E_IO, "%s: the path is too long", w->run[run].path);
    return fac_file_write(path, "", 0, err);
}

fac_status fac_watch_read(const watch *w, size_t run, const char *name, char **text,
                          fac_error *err) {
    char path[LINE];
    if (!join(path, sizeof path, w->run[run].path, name))
        return fac_raise(err, FAC_E_IO, "%s: the path is too long", w->run[run].path);
    return fac_read_text(path, LONGEST, FAC_READ_FILE, text, NULL, err);
}

fac_status fac_watch_model(const watch *w, size_t run, const char *name, fac_text *to,
                           fac_error *err) {
    char path[LINE];
    fac_file *f;
    if (!join(path, sizeof path, w->run[run].path, name))
        return fac_raise(err, FAC_E_IO, "%s: the path is too long", w->run[run].path);
    FAC_TRY(fac_file_map(path, &f, err));
    fac_text_add_bytes(to, fac_file_data(f), fac_file_size(f));
    fac_file_free(f);
    return FAC_OK;
}
