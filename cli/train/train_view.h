/* facula train: what is seen of a training. */
#ifndef FACULA_CLI_TRAIN_VIEW_H
#define FACULA_CLI_TRAIN_VIEW_H
#include "cli.h"
#include "log.h"

typedef struct train_events train_events;

typedef struct train_view {
    /* set before train_view_open */
    bool json, quiet;        /* quiet: no charts at the end */
    long show;               /* so many test samples are shown with their predictions at the end */
    const char *dir;         /* of the logs; NULL: none */
    const char *tensorboard; /* a folder for event files; NULL: none */
    const char *about;       /* run.json, as text */
    const char *adapted;     /* the model that got adapters; NULL: none did */
    fac_trainer *trainer;
    const fac_graph *model;
    const fac_dataset *train, *test;
    const fac_batches *batches;
    /* its own */
    fac_appender *log, *csv, *log_steps;
    bool lost; /* a log could not be written, which was said: the end */
    log_table epochs, steps;
    fac_score window; /* of the steps since the last line of log_steps */
    int64_t first;    /* the step that this call began with */
    double last, looked,
        before; /* when the line was drawn, a file `stop` looked for; seconds of earlier calls */
    train_events *events;
} train_view;

/* After the loading of a checkpoint.  An exit code. */
int train_view_open(train_view *v, bool resume);
void train_view_close(train_view *v);
bool train_progress(void *view,
                    const fac_progress *p); /* a fac_train_opts.report; false after Ctrl-C */
/* The end: charts, predictions, the last line. */
int train_summary(train_view *v, const fac_train_result *r);
void train_catch_interrupt(void);

/* ---- its parts ---- */

/* train_log.c: DIR/log.jsonl, log.csv and steps.jsonl, and the same in memory. */
int train_log_open(train_view *v, bool resume);
void train_log_close(train_view *v);
void train_log_row(const train_view *v, const fac_progress *p, double row[LOG_COLUMNS]);
void train_log_epoch(train_view *v, const double row[LOG_COLUMNS]);
bool train_log_step(
    train_view *v,
    const fac_progress *p); /* true after every few steps, when there is a new line */
void train_log_print(const double row[LOG_COLUMNS]); /* JSON to standard output */

/* train_events.c: TensorBoard. */
int train_events_open(train_view *v);
void train_events_step(train_view *v, const fac_progress *p);
void train_events_epoch(train_view *v, const double row[LOG_COLUMNS]);
void train_events_close(train_view *v, bool success);

/* train_report.c, train_gallery.c */
int train_report(const train_view *v);
int train_gallery(const train_view *v, long n);
const char *class_name(const fac_dataset *d, int64_t k, char room[24]);
int letters_in(const char *text, int most,
               size_t *bytes); /* of its first `most` letters: how many, and in how many bytes */
#endif
