/* Lines of numbers by name, in JSON; a matrix of counts. */
#include "log.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include "json.h"

enum { LONGEST = 1 << 30, PATHS = 4096, MOST_CLASSES = 4096 };

const char *const log_names[LOG_COLUMNS] = { "epoch",         "step",           "lr",
                                             "train_loss",    "train_accuracy", "test_loss",
                                             "test_accuracy", "images_per_s",   "seconds" };

bool log_add(log_table *t, const double row[LOG_COLUMNS]) {
    if (t->n == t->room) {
        int room = t->room ? 2 * t->room : 64;
        for (int k = 0; k < LOG_COLUMNS; k++) {
            double *more = realloc(t->column[k], (size_t)room * sizeof *more);
            if (!more) return false;
            t->column[k] = more;
        }
        t->room = room;
    }
    while (t->n && t->column[LOG_STEP][t->n - 1] >= row[LOG_STEP]) t->n--;
    for (int k = 0; k < LOG_COLUMNS; k++) t->column[k][t->n] = row[k];
    t->n++;
    return true;
}

void log_free(log_table *t) {
    for (int k = 0; k < LOG_COLUMNS; k++) free(t->column[k]);
    *t = (log_table){ 0 };
}

bool log_smooth(const log_table *epochs, const log_table *steps, log_column column, int parts,
                double **x, double **y) {
    const int n = steps->n, reach = n / parts / 2;
    const double *from = steps->column[column];
    *x = *y = NULL;
    if (n < 2 || !epochs->n) return false;
    double *to_x = calloc((size_t)n, sizeof *to_x), *to_y = calloc((size_t)n, sizeof *to_y);
    if (!to_x || !to_y) {
        free(to_x);
        free(to_y);
        return false;
    }
    const double in_epoch = epochs->column[LOG_STEP][0] / epochs->column[LOG_EPOCH][0];
    for (int i = 0; i < n; i++) {
        double sum = 0;
        int found = 0;
        for (int k = i < reach ? 0 : i - reach; k <= i + reach && k < n; k++)
            if (isfinite(from[k])) sum += from[k], found++;
        to_x[i] = steps->column[LOG_STEP][i] / in_epoch;
        to_y[i] = found ? sum / found : NAN;
    }
    *x = to_x;
    *y = to_y;
    return true;
}

static int read_line(const char *line, const char *path, int number, log_table *to) {
    cJSON *j = cJSON_Parse(line);
    double row[LOG_COLUMNS];
    if (!cJSON_IsObject(j)) {
        cJSON_Delete(j);
        if (json_lost()) return fail_text("out of memory");
        return fail_text("%s: line %d is not a JSON object", path, number);
    }
    for (int k = 0; k < LOG_COLUMNS; k++) {
        const cJSON *x = cJSON_GetObjectItem(j, log_names[k]);
        row[k] = cJSON_IsNumber(x) ? x->valuedouble : NAN;
    }
    cJSON_Delete(j);
    if (!isfinite(row[LOG_STEP])) return fail_text("%s: line %d has no step", path, number);
    return log_add(to, row) ? EXIT_OK : fail_text("out of memory");
}

/* The last line may have been cut by a crash: it is left out when it does not end. */
int log_parse(char *text, size_t bytes, const char *path, log_table *out) {
    log_table t = { 0 };
    int code = EXIT_OK, number = 1;
    for (char *line = text, *end;
         !code && (end = memchr(line, '\n', bytes - (size_t)(line - text))); line = end + 1) {
        *end = 0;
        code = read_line(line, path, number++, &t);
    }
    if (code)
        log_free(&t);
    else
        *out = t;
    return code;
}

/* DIR/NAME; *text NULL: it is not there. */
static int read_file(const char *dir, const char *name, char path[PATHS], char **text,
                     size_t *bytes) {
    fac_error err = { 0 };
    snprintf(path, PATHS, "%s/%s", dir, name);
    *text = NULL;
    if (access(path, F_OK) && errno == ENOENT) return EXIT_OK;
    return fac_read_text(path, LONGEST, FAC_READ_FILE, text, bytes, &err) ? fail(&err) : EXIT_OK;
}

int log_read(const char *dir, const char *name, bool missing, log_table *out) {
    char path[PATHS], *text;
    size_t bytes;
    int code = read_file(dir, name, path, &text, &bytes);
    if (!code && !text && !missing)
        code = fail_text("%s: cannot be read: is this the folder of a training?", path);
    if (!code && text) code = log_parse(text, bytes, path, out);
    fac_read_free(text);
    return code;
}

/* ---- confusion.json ---- */

int matrix_write(const char *dir, int n, const char *const *names, const int64_t *counts) {
    char path[4096], number[16];
    snprintf(path, sizeof path, "%s/confusion.json", dir);
    cJSON *root = cJSON_CreateObject(), *classes = cJSON_AddArrayToObject(root, "classes");
    cJSON *rows = cJSON_AddArrayToObject(root, "counts");
    for (int r = 0; r < n; r++) {
        snprintf(number, sizeof number, "%d", r);
        cJSON_AddItemToArray(classes, cJSON_CreateString(names ? names[r] : number));
        cJSON *row = cJSON_CreateArray();
        const int64_t *from = counts + (size_t)r * (size_t)n;
        for (int c = 0; c < n; c++) cJSON_AddItemToArray(row, cJSON_CreateNumber((double)from[c]));
        cJSON_AddItemToArray(rows, row);
    }
    return json_write(path, root, false);
}

static bool fill(const cJSON *root, log_matrix *m) {
    const cJSON *classes = cJSON_GetObjectItem(root, "classes"),
                *rows = cJSON_GetObjectItem(root, "counts");
    int n = cJSON_GetArraySize(classes);
    if (n < 1 || n > MOST_CLASSES || cJSON_GetArraySize(rows) != n) return false;
    m->names = calloc((size_t)n, sizeof *m->names);
    m->counts = calloc((size_t)n * (size_t)n, sizeof *m->counts);
    if (!m->names || !m->counts) return false;
    const cJSON *name = classes->child, *row = rows->child;
    for (m->n = 0; m->n < n; name = name->next, row = row->next) {
        int64_t *to = m->counts + (size_t)m->n * (size_t)n;
        if (!cJSON_IsString(name) || cJSON_GetArraySize(row) != n ||
            !(m->names[m->n] = strdup(name->valuestring)))
            return false;
        m->n++;
        for (const cJSON *x = row->child; x; x = x->next) {
            if (!cJSON_IsNumber(x) || !(x->valuedouble >= 0 && x->valuedouble < 1e15)) return false;
            *to++ = (int64_t)x->valuedouble;
        }
    }
    return true;
}

int matrix_parse(const char *text, size_t bytes, const char *path, log_matrix *out) {
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    log_matrix m = { 0 };
    const bool fine = root && fill(root, &m);
    cJSON_Delete(root);
    if (fine)
        *out = m;
    else
        matrix_free(&m);
    if (!fine && json_lost()) return fail_text("out of memory");
    return fine ? EXIT_OK : fail_text("%s: not a confusion matrix", path);
}

int matrix_read(const char *dir, log_matrix *out) {
    char path[PATHS], *text;
    size_t bytes;
    int code = read_file(dir, "confusion.json", path, &text, &bytes);
    if (!code && text) code = matrix_parse(text, bytes, path, out);
    fac_read_free(text);
    return code;
}

void matrix_free(log_matrix *m) {
    for (int k = 0; k < m->n; k++) free(m->names[k]);
    free(m->names);
    free(m->counts);
    *m = (log_matrix){ 0 };
}
