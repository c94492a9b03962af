/* The page of runs: trainings of other processes, live.  Frames contain the numbers of lines; the
 * page requests those that it lacks, so none is lost or sent twice. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/read.h"
#include "studio/server/export.h"
#include "studio/server/session.h"
#include "studio/runs/watch.h"

enum { ROWS_MOST = 2000 };
#define LOOK_NS INT64_C(40000000)

typedef struct runs {
    watch watch;
    bool watches, more;
    int64_t looked;
} runs;

static void close_page(void *self) {
    runs *r = self;
    fac_watch_close(&r->watch);
    fac_release(r);
}

static fac_status open_page(const studio_means *with, const cJSON *how, void **self,
                            fac_error *err) {
    (void)how;
    runs *r = fac_alloc(1, sizeof *r);
    if (!r) return fac_raise_memory(err, "a page");
    r->more = true;
    r->watches = with->opts.watch != NULL;
    const fac_status status =
        r->watches ? fac_watch_open(with->opts.watch, &r->watch, err) : FAC_OK;
    if (status)
        fac_release(r);
    else
        *self = r;
    return status;
}

static int64_t work(void *self) {
    runs *r = self;
    if (!r->watches) return -1;
    r->more |= fac_watch_look(&r->watch);
    return LOOK_NS;
}

static void write_run(const watch_run *run, fac_text *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double age =
        (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - 1e-9 * (double)run->written_ns;
    fac_json_put_pair_text(to, "name", run->name);
    fac_json_put_pair_bool(to, "done", run->done);
    fac_json_put_pair(to, "age", run->written_ns ? age : -1);
    fac_json_put_pair(to, "epochs", (double)run->log[WATCH_EPOCHS].n);
    fac_json_put_pair(to, "epochs_turn", run->log[WATCH_EPOCHS].turn);
    fac_json_put_pair(to, "steps", (double)run->log[WATCH_STEPS].n);
    fac_json_put_pair(to, "steps_turn", run->log[WATCH_STEPS].turn);
}

static void show(void *self, frames *to) {
    runs *r = self;
    fac_text t = { 0 };
    if (!r->more) return;
    r->more = false;
    fac_text_add(&t, "{");
    fac_json_put_pair_text(&t, "folder", r->watches ? r->watch.root : "");
    fac_json_put_key(&t, "runs");
    fac_text_add(&t, "[");
    for (size_t k = 0; k < r->watch.n; k++) {
        fac_text_add(&t, k ? ",{" : "{");
        write_run(&r->watch.run[k], &t);
        fac_text_add(&t, "}");
    }
    fac_text_add(&t, "]}");
    fac_frames_put(to, FRAME_STATE, &t);
}

/* ---- commands ---- */

static fac_status find(const runs *r, const cJSON *what, size_t *run, fac_error *err) {
    int64_t k = -1;
    FAC_TRY(fac_json_int(what, "run", 0, INT32_MAX, &k, err));
    if (k < 0 || (size_t)k >= r->watch.n) return fac_raise(err, FAC_E_ARGUMENT, "unknown run");
    *run = (size_t)k;
    return FAC_OK;
}

static void write_rows(const watch_log *l, size_t from, fac_text *to) {
    const size_t end = l->n - from < ROWS_MOST ? l->n : from + ROWS_MOST;
    fac_json_put_pair(to, "turn", l->turn);
    fac_json_put_key(to, "rows");
    fac_text_add(to, "[");
    for (size_t i = from; i < end; i++) {
        fac_text_add(to, i > from ? ",[" : "[");
        for (int k = 0; k < WATCH_COLUMNS; k++) {
            if (k) fac_text_add(to, ",");
            fac_json_put_number(to, l->row[i][k]);
        }
        fac_text_add(to, "]");
    }
    fac_text_add(to, "]");
}

static fac_status rows(runs *r, const cJSON *what, fac_text *to, fac_error *err) {
    size_t run = 0;
    int64_t from = 0;
    bool steps = false;
    FAC_TRY(find(r, what, &run, err));
    FAC_TRY(fac_json_bool(what, "steps", &steps, err));
    const watch_log *l = &r->watch.run[run].log[steps ? WATCH_STEPS : WATCH_EPOCHS];
    FAC_TRY(fac_json_int(what, "from", 0, (int64_t)l->n, &from, err));
    write_rows(l, (size_t)from, to);
    return FAC_OK;
}

/* run.json, confusion.json, samples.json: parsed and written again, since other programs wrote
 * them. */
static fac_status about(runs *r, const cJSON *what, fac_text *to, fac_error *err) {
    static const char *const names[] = { "run.json", "confusion.json", "samples.json" };
    static const char *const keys[] = { "about", "confusion", "samples" };
    size_t run = 0;
    FAC_TRY(find(r, what, &run, err));
    for (int k = 0; k < 3; k++) {
        char *text;
        if (fac_watch_read(&r->watch, run, names[k], &text, NULL)) continue;
        cJSON *j = cJSON_Parse(text);
        char *again = j ? cJSON_PrintUnformatted(j) : NULL;
        if (again) {
            fac_json_put_key(to, keys[k]);
            fac_text_add(to, again);
        }
        cJSON_free(again);
        cJSON_Delete(j);
        fac_read_free(text);
    }
    return FAC_OK;
}

static fac_status stop(runs *r, const cJSON *what, fac_text *to, fac_error *err) {
    size_t run = 0;
    (void)to;
    FAC_TRY(find(r, what, &run, err));
    return fac_watch_stop(&r->watch, run, err);
}

static const struct {
    const char *name;
    fac_status (*run)(runs *r, const cJSON *what, fac_text *to, fac_error *err);
} commands[] = { { "rows", rows }, { "about", about }, { "stop", stop } };

static fac_status command(void *self, const cJSON *what, fac_text *answer, fac_error *err) {
    const char *name = fac_json_string_of(what, "do");
    for (size_t k = 0; name && k < sizeof commands / sizeof *commands; k++)
        if (!strcmp(commands[k].name, name)) return commands[k].run(self, what, answer, err);
    return fac_raise(err, FAC_E_ARGUMENT, "unknown command");
}

/* ---- files: "3.model.onnx" is that of run 3 ---- */

static void write_commands(const watch_run *run, fac_text *to) {
    fac_text_print(to, "facula train --resume '%s'\nfacula evaluate '%s'\n", run->path, run->path);
}

static fac_status file(void *self, const char *name, fac_text *out, const char **type,
                       fac_error *err) {
    runs *r = self;
    char *end;
    const unsigned long k = strtoul(name, &end, 10);
    if (end == name || *end != '.' || k >= r->watch.n)
        return fac_raise(err, FAC_E_ARGUMENT, "unknown run");
    const char *of = end + 1;
    *type = "application/octet-stream";
    if (!strcmp(of, "model.onnx") || !strcmp(of, "model.safetensors"))
        return fac_watch_model(&r->watch, k, of, out, err);
    if (strcmp(of, "command.txt")) return fac_export_file(NULL, of, out, type, err);
    *type = "text/plain; charset=utf-8";
    write_commands(&r->watch.run[k], out);
    return FAC_OK;
}

const page fac_page_runs = { .name = "runs",
                             .open = open_page,
                             .close = close_page,
                             .command = command,
                             .work = work,
                             .show = show,
                             .file = file };
