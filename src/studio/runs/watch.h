/* Follows folders of trainings, as `facula train --out` writes them, while they grow.  It writes
 * nothing there except a file `stop`, which asks a training to end. */
#ifndef FACULA_STUDIO_WATCH_H
#define FACULA_STUDIO_WATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"
#include "facula/status.h"

typedef enum watch_column {
    WATCH_EPOCH,
    WATCH_STEP,
    WATCH_LR,
    WATCH_TRAIN_LOSS,
    WATCH_TRAIN_ACCURACY,
    WATCH_TEST_LOSS,
    WATCH_TEST_ACCURACY,
    WATCH_PER_S,
    WATCH_SECONDS,
    WATCH_COLUMNS
} watch_column;
extern const char *const fac_watch_names[WATCH_COLUMNS];

/* A log: whole lines, as numbers; NaN if a line lacks one. */
typedef struct watch_log {
    double (*row)[WATCH_COLUMNS];
    size_t n, room;
    int64_t at, inode; /* bytes read so far */
    unsigned turn;     /* changes when the file starts again */
} watch_log;

enum { WATCH_EPOCHS, WATCH_STEPS, WATCH_LOGS };
typedef struct watch_run {
    char *name, *path; /* name below the watched folder; "." is that folder */
    watch_log log[WATCH_LOGS];
    int64_t written_ns; /* when a log last grew, by the time of files */
    bool done;          /* its weights exist */
} watch_run;

typedef struct watch {
    char *root;
    watch_run *run;
    size_t n, room;
    int64_t listed;
} watch;

/* FAC_E_IO if root is not a folder. */
fac_status fac_watch_open(const char *root, watch *out, fac_error *err);
void fac_watch_close(watch *w);
bool fac_watch_look(watch *w); /* reads what is new; true: there was something */
fac_status fac_watch_stop(const watch *w, size_t run, fac_error *err);
/* The whole text of a small file of a run; free it with fac_read_free. */
fac_status fac_watch_read(const watch *w, size_t run, const char *name, char **text,
                          fac_error *err);
/* Appends a model file of a run, of any size, to `to`. */
fac_status fac_watch_model(const watch *w, size_t run, const char *name, fac_text *to,
                           fac_error *err);
#endif
