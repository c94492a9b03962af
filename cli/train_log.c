/* facula train: the logs of --out.  A resumed training writes them anew up to its checkpoint: steps that are done again, and
 * what a crash cut in the middle of a line, are in them once. */
#include <math.h>
#include <string.h>
#include <unistd.h>
#include "json.h"
#include "train_view.h"

enum { STEP_LINES = 2000 };             /* about so many in a whole training */

static const int json_order[LOG_COLUMNS] = { LOG_EPOCH, LOG_STEP, LOG_TRAIN_LOSS, LOG_TRAIN_ACCURACY, LOG_TEST_LOSS,
                                             LOG_TEST_ACCURACY, LOG_LR, LOG_SECONDS, LOG_IMAGES_PER_S };

static int digits(int column) { return column == LOG_EPOCH || column == LOG_STEP ? 15 : column >= LOG_IMAGES_PER_S ? 6 : 9; }

void train_log_print(FILE *to, const double row[LOG_COLUMNS]) {
    const char *between = "{";
    for (int k = 0; k < LOG_COLUMNS; k++) {
        int c = json_order[k];
        if (!isfinite(row[c])) continue;
        fprintf(to, "%s\"%s\":%.*g", between, log_names[c], digits(c), row[c]);
        between = ",";
    }
    fputs("}\n", to);
    fflush(to);
}

static void print_csv(FILE *to, const double *row) {
    for (int c = 0; c < LOG_COLUMNS; c++) {
        if (c) fputc(',', to);
        if (!row) fputs(log_names[c], to);
        else if (isfinite(row[c])) fprintf(to, "%.*g", digits(c), row[c]);
    }
    fputc('\n', to);
    fflush(to);
}

static void row_of(const log_table *t, int i, double row[LOG_COLUMNS]) {
    for (int k = 0; k < LOG_COLUMNS; k++) row[k] = t->column[k][i];
}

/* ---- opening ---- */

/* What lies behind the checkpoint will be done again. */
static void cut(log_table *t, int64_t steps) {
    while (t->n && t->column[LOG_STEP][t->n - 1] > (double)steps) t->n--;
}

/* A new file, complete before it takes the place of the old one; stays open. */
static FILE *begin(const char *dir, const char *name, const log_table *before, void (*print)(FILE *, const double *)) {
    char path[4096], aside[4096 + 8];
    double row[LOG_COLUMNS];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(aside, sizeof aside, "%s.tmp", path);
    FILE *f = fopen(aside, "w");
    if (f && print == print_csv) print_csv(f, NULL);
    for (int i = 0; f && i < before->n; i++) {
        row_of(before, i, row);
        print(f, row);
    }
    if (f && !fflush(f) && !rename(aside, path)) return f;
    if (f) fclose(f);
    fail_text("%s: cannot be written", path);
    return NULL;
}

static void print_json(FILE *to, const double *row) { train_log_print(to, row); }

int train_log_open(train_view *v, bool resume) {
    v->first = fac_trainer_steps(v->trainer);
    if (!v->dir) return EXIT_OK;
    int code = EXIT_OK;
    if (resume) code = log_read(v->dir, "log.jsonl", true, &v->epochs);
    if (resume && !code) code = log_read(v->dir, "steps.jsonl", true, &v->steps);
    if (code) return code;
    cut(&v->epochs, v->first);
    cut(&v->steps, v->first);
    if (v->epochs.n && isfinite(v->epochs.column[LOG_SECONDS][v->epochs.n - 1]))
        v->before = v->epochs.column[LOG_SECONDS][v->epochs.n - 1];
    v->log = begin(v->dir, "log.jsonl", &v->epochs, print_json);
    if (v->log) v->csv = begin(v->dir, "log.csv", &v->epochs, print_csv);
    if (v->csv) v->log_steps = begin(v->dir, "steps.jsonl", &v->steps, print_json);
    return v->log_steps ? EXIT_OK : EXIT_FAILED;
}

void train_log_close(train_view *v) {
    FILE *files[] = { v->log, v->csv, v->log_steps };
    for (int k = 0; k < 3; k++)
        if (files[k] && fclose(files[k]) && !v->lost) fail_text("%s: a log could not be written to its end", v->dir);
    log_free(&v->epochs);
    log_free(&v->steps);
}

/* ---- lines ---- */

void train_log_row(const train_view *v, const fac_progress *p, double row[LOG_COLUMNS]) {
    row[LOG_EPOCH] = (double)p->epoch + 1;
    row[LOG_STEP] = (double)p->step;
    row[LOG_LR] = p->lr;
    row[LOG_TRAIN_LOSS] = p->train.loss;
    row[LOG_TRAIN_ACCURACY] = p->train.accuracy;
    row[LOG_TEST_LOSS] = p->test ? p->test->loss : NAN;
    row[LOG_TEST_ACCURACY] = p->test ? p->test->accuracy : NAN;
    row[LOG_IMAGES_PER_S] = p->images_per_s;
    row[LOG_SECONDS] = v->before + p->seconds;
}

/* A full disk does not end a training, whose weights may still have room. */
static void check(train_view *v, FILE *f) {
    if (!f || !ferror(f) || v->lost) return;
    v->lost = true;
    fail_text("%s: a log cannot be written; the training goes on without", v->dir);
}

static void remember(train_view *v, log_table *t, const double row[LOG_COLUMNS]) {
    if (log_add(t, row) || v->lost) return;
    v->lost = true;
    fail_text("no memory for the log; the training goes on without");
}

void train_log_epoch(train_view *v, const double row[LOG_COLUMNS]) {
    remember(v, &v->epochs, row);
    if (v->log) train_log_print(v->log, row);
    if (v->csv) print_csv(v->csv, row);
    check(v, v->log);
    check(v, v->csv);
}

/* The mean over the last few steps; how many follows from the length of the training. */
bool train_log_step(train_view *v, const fac_progress *p) {
    int64_t every = p->steps / STEP_LINES > 1 ? p->steps / STEP_LINES : 1, n = v->window.samples + p->batch.samples;
    double share = n ? (double)p->batch.samples / (double)n : 0;
    v->window.loss += (p->batch.loss - v->window.loss) * share;
    v->window.accuracy += (p->batch.accuracy - v->window.accuracy) * share;
    v->window.samples = n;
    if (p->step % every) return false;
    double row[LOG_COLUMNS];
    for (int k = 0; k < LOG_COLUMNS; k++) row[k] = NAN;
    row[LOG_STEP] = (double)p->step;
    row[LOG_LR] = p->lr;
    row[LOG_TRAIN_LOSS] = v->window.loss;
    row[LOG_TRAIN_ACCURACY] = v->window.accuracy;
    v->window = (fac_score){ 0 };
    remember(v, &v->steps, row);
    if (v->log_steps) train_log_print(v->log_steps, row);
    check(v, v->log_steps);
    return true;
}
