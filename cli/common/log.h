/* The logs of a training: what `facula train --out` writes and `facula plot` reads. */
#ifndef FACULA_CLI_LOG_H
#define FACULA_CLI_LOG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns of log.jsonl, a line for each epoch, and of steps.jsonl, a line for some steps. */
typedef enum log_column {
    LOG_EPOCH,
    LOG_STEP,
    LOG_LR,
    LOG_TRAIN_LOSS,
    LOG_TRAIN_ACCURACY,
    LOG_TEST_LOSS,
    LOG_TEST_ACCURACY,
    LOG_IMAGES_PER_S,
    LOG_SECONDS,
    LOG_COLUMNS
} log_column;
extern const char *const log_names[LOG_COLUMNS];

/* NaN where a line does not say.  Steps ascend: what was done again after a crash replaces what was
 * done before it. */
typedef struct log_table {
    int n, room;
    double *column[LOG_COLUMNS];
} log_table;
bool log_add(log_table *t, const double row[LOG_COLUMNS]); /* false: no memory */
void log_free(log_table *t);                               /* an empty one is fine */

/* A column of single steps, each as the mean over a `parts`-th of all around it, on an axis of
 * epochs: steps->n numbers of malloc.  False: no memory, or nothing to show; both are NULL then. */
bool log_smooth(const log_table *epochs, const log_table *steps, log_column column, int parts,
                double **x, double **y);

/* DIR/NAME; missing: a file that is not there is an empty table.  An exit code. */
int log_read(const char *dir, const char *name, bool missing, log_table *out);
/* The same of its contents, in which the ends of lines are overwritten. */
int log_parse(char *text, size_t bytes, const char *path, log_table *out);

/* DIR/confusion.json: { "classes": [names], "counts": [[row], ...] }. */
typedef struct log_matrix {
    int n;
    char **names;
    int64_t *counts;
} log_matrix;
int matrix_write(const char *dir, int n, const char *const *names, const int64_t *counts);
int matrix_read(const char *dir, log_matrix *out); /* missing: an empty one */
int matrix_parse(const char *text, size_t bytes, const char *path, log_matrix *out);
void matrix_free(log_matrix *m);
#endif
