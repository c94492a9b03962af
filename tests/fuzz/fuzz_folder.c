/* libFuzzer: what lies in the folder of a training; the first byte says which file the others are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../cli/common/log.h"
#include "../../cli/run/samples.h"
#include "../../cli/train/train.h"
#include "fuzz.h"

static void log_file(char *text, size_t bytes) {
    log_table t = { 0 };
    double *x, *y;
    if (log_parse(text, bytes, "fuzz", &t)) return;
    for (int i = 0; i < t.n; i++) {
        const double step = t.column[LOG_STEP][i];
        if (!isfinite(step) || (i && step <= t.column[LOG_STEP][i - 1])) abort();
    }
    if (log_smooth(&t, &t, LOG_TRAIN_LOSS, 50, &x, &y)) {
        free(x);
        free(y);
    }
    log_free(&t);
}

static void matrix_file(const char *text, size_t bytes) {
    log_matrix m = { 0 };
    if (matrix_parse(text, bytes, "fuzz", &m)) return;
    for (int k = 0; k < m.n; k++)
        if (!m.names[k] || m.counts[(size_t)k * (size_t)m.n] < 0) abort();
    matrix_free(&m);
}

static void samples_file(const char *text, size_t bytes) {
    samples s = { 0 };
    if (samples_parse(text, bytes, "fuzz", &s)) return;
    if (s.like.item.n < 1 || s.like.classes < 1 || !s.like.class_names[s.like.classes - 1]) abort();
    samples_free(&s);
}

static void run_file(const char *text, size_t bytes) {
    memset(&train_given, 0, sizeof train_given);
    if (!train_recall_text(text, bytes, "fuzz", &train_given) && !train_given.set) abort();
    free(train_given.freeze.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (!bytes) return 0;
    char *text = malloc(bytes);
    if (!text) return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = 0;
    switch (data[0] % 4) {
    case 0:
        run_file(text, bytes - 1);
        break;
    case 1:
        log_file(text, bytes - 1);
        break;
    case 2:
        matrix_file(text, bytes - 1);
        break;
    default:
        samples_file(text, bytes - 1);
        break;
    }
    free(text);
    return 0;
}
