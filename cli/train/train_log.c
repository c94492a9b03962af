/* facula train: the logs of --out.  A resumed training writes them anew up to its checkpoint: steps
 * that are done again, and what a crash cut in the middle of a line, are in them once. */
#include <math.h>
#include <string.h>
#include "files.h"
#include "json.h"
#include "train_view.h"

enum { STEP_LINES = 2000, LINE = 1024 }; /* about so many in a whole training; room for one */

typedef void (*row_writer)(const double *row, char *to);

static const int json_order[LOG_COLUMNS] = {
    LOG_EPOCH,         LOG_STEP, LOG_TRAIN_LOSS, LOG_TRAIN_ACCURACY, LOG_TEST_LOSS,
    LOG_TEST_ACCURACY, LOG_LR,   LOG_SECONDS,    LOG_IMAGES_PER_S
};

static int digits(int column) {
    if (column == LOG_EPOCH || column == LOG_STEP) return 15;
    return column >= LOG_IMAGES_PER_S ? 6 : 9;
}

/* JSON, what is known of it. */
static void json_row(const double *row, char *to) {
    const char *between = "{";
    for (int k = 0; k < LOG_COLUMNS; k++) {
        const int c = json_order[k];
        if (!isfinite(row[c])) continue;
        to += sprintf(to, "%s\"%s\":%.*g", between, log_names[c], digits(c), row[c]);
        between = ",";
    }
    strcpy(to, "}\n");
}

/* Without a row: the head. */
static void csv_row(const double *row, char *to) {
    for (int c = 0; c < LOG_COLUMNS; c++) {
        if (c) *to++ = ',';
        if (!row)
            to = stpcpy(to, log_names[c]);
        else if (isfinite(row[c]))
            to += sprintf(to, "%.*g", digits(c), row[c]);
    }
    strcpy(to, "\n");
}

void train_log_print(const double row[LOG_COLUMNS]) {
    char line[LINE];
    json_row(row, line);
    out_raw(line, stdout);
    fflush(stdout);
}

static void row_of(const log_table *t, int i, double row[LOG_COLUMNS]) {
    for (int k = 0; k < LOG_COLUMNS; k++) row[k] = t->column[k][i];
}

/* ---- opening ---- */

/* What lies after the checkpoint will be done again. */
static void cut(log_table *t, int64_t steps) {
    while (t->n && t->column[LOG_STEP][t->n - 1] > (double)steps) t->n--;
}

static void write_rows(FILE *to, const log_table *t, row_writer write) {
    char line[LINE];
    double row[LOG_COLUMNS];
    if (write == csv_row) {
        csv_row(NULL, line);
        fputs(line, to);
    }
    for (int i = 0; i < t->n; i++) {
        row_of(t, i, row);
        write(row, line);
        fputs(line, to);
    }
}

/* A new file, complete before it takes the place of the old one; stays open.  It is opened before,
 * too: only a file that may grow is written anew. */
static fac_appender *begin(const char *dir, const char *name, const log_table *before,
                           row_writer write) {
    char path[4096], *text = NULL;
    size_t size = 0;
    fac_error err = { 0 };
    fac_appender *log = NULL;
    if (path_join(path, sizeof path, dir, name, "")) return NULL;
    FILE *memory = open_memstream(&text, &size);
    if (memory) write_rows(memory, before, write);
    if (!memory || fclose(memory)) {
        free(text);
        fail_text("out of memory");
        return NULL;
    }
    fac_status status = fac_appender_open(path, &log, &err);
    if (!status) status = fac_appender_close(log, &err);
    log = NULL;
    if (!status) status = fac_file_write(path, text, size, &err);
    if (!status) status = fac_appender_open(path, &log, &err);
    free(text);
    if (status) fail(&err);
    return log;
}

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
    v->log = begin(v->dir, "log.jsonl", &v->epochs, json_row);
    if (v->log) v->csv = begin(v->dir, "log.csv", &v->epochs, csv_row);
    if (v->csv) v->log_steps = begin(v->dir, "steps.jsonl", &v->steps, json_row);
    return v->log_steps ? EXIT_OK : EXIT_FAILED;
}

void train_log_close(train_view *v) {
    fac_appender *files[] = { v->log, v->csv, v->log_steps };
    fac_error err = { 0 };
    for (int k = 0; k < 3; k++)
        if (fac_appender_close(files[k], &err) && !v->lost) v->lost = fail(&err);
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

/* A log that cannot be written ends the training, as it ends when it is interrupted: with a
 * checkpoint to go on from. */
static void append(train_view *v, fac_appender *to, const double *row, row_writer write) {
    char line[LINE];
    fac_error err = { 0 };
    if (!to || v->lost) return;
    write(row, line);
    if (fac_appender_put(to, line, strlen(line), &err)) v->lost = fail(&err);
}

static void remember(train_view *v, log_table *t, const double row[LOG_COLUMNS]) {
    if (!v->lost && !log_add(t, row)) v->lost = fail_text("no memory for the log");
}

void train_log_epoch(train_view *v, const double row[LOG_COLUMNS]) {
    remember(v, &v->epochs, row);
    append(v, v->log, row, json_row);
    append(v, v->csv, row, csv_row);
}

/* The mean over the last few steps; how many follows from the length of the training. */
bool train_log_step(train_view *v, const fac_progress *p) {
    int64_t every = p->steps / STEP_LINES > 1 ? p->steps / STEP_LINES : 1,
            n = v->window.samples + p->batch.samples;
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
    append(v, v->log_steps, row, json_row);
    return !v->lost;
}
