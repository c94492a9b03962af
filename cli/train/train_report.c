/* facula train, the end: the loss curve, which classes were taken for which, how well each class is
 * known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "facula/view.h"
#include "run/picture.h"
#include "train_view.h"

enum { CURVE_LINES = 10, CURVE_COLUMNS = 100, NAME = 12, WORST = 5, MOST_BARS = 20, BAR = 24 };

const char *class_name(const fac_dataset *d, int64_t k, char room[24]) {
    if (d->class_names && k < d->classes)
        return d->class_names[k]; /* a model may have more outputs than that */
    snprintf(room, 24, "%lld", (long long)k);
    return room;
}

int letters_in(const char *text, int most, size_t *bytes) {
    int letters = 0;
    size_t n = 0;
    for (; text[n]; n++) {
        if (((unsigned char)text[n] & 0xC0) == 0x80) continue;
        if (letters == most) break;
        letters++;
    }
    *bytes = n;
    return letters;
}

/* A name in so many columns, cut or filled up. */
static void print_name(const char *name, int width, bool right) {
    size_t n;
    int letters = letters_in(name, width, &n);
    if (right) printf("%*s", width - letters, "");
    printf("%.*s", (int)n, name);
    if (!right) printf("%*s", width - letters, "");
}

/* ---- the curve ---- */

/* Of the steps a mean over a thirtieth of them: a terminal has no room for more. */
static int curve(const train_view *v) {
    const log_table *e = &v->epochs, *s = &v->steps;
    fac_error err = { 0 };
    double *x, *y;
    if (!log_smooth(e, s, LOG_TRAIN_LOSS, 30, &x, &y)) return EXIT_OK;
    const fac_series lines[] = { { "train", s->n, x, y, 0, FAC_STROKE_SOLID },
                                 { "test", e->n, e->column[LOG_EPOCH], e->column[LOG_TEST_LOSS], 1,
                                   FAC_STROKE_SOLID } };
    const fac_panel panel = { .title = "loss", .x_label = "epoch", .n = 2, .series = lines };
    int width = columns() < CURVE_COLUMNS ? columns() : CURVE_COLUMNS;
    const fac_terminal how = { width < 40 ? 40 : width, CURVE_LINES, unicode(), colour() };
    putchar('\n');
    fac_status status = fac_panel_write(&panel, &how, stdout, &err);
    free(x);
    free(y);
    return status ? fail(&err) : EXIT_OK;
}

/* ---- the matrix ---- */

typedef struct matrix {
    const fac_dataset *data;
    int n;
    const int64_t *counts;
    int64_t *rows;
} matrix;

static double share(const matrix *m, int row, int column) {
    return m->rows[row] ? (double)m->counts[(size_t)row * (size_t)m->n + (size_t)column] /
                              (double)m->rows[row]
                        : 0;
}

/* A background between black and blue (right) or orange (wrong): levels of the 256-colour cube. */
static void print_cell(double part, bool right, int width, bool in_colour) {
    static const int blue[] = { 17, 18, 25, 26, 32 }, orange[] = { 52, 94, 130, 166, 202 };
    char text[16];
    int level = right ? (int)(part * 4.99) : (int)(fmin(1, sqrt(part) * 1.6) * 4.99);
    snprintf(text, sizeof text, width < 6 ? "%.0f" : "%.1f", 100 * part);
    if (part == 0) snprintf(text, sizeof text, in_colour ? "" : ".");
    if (in_colour && part > 0)
        printf("\033[48;5;%d;97m%*s \033[0m", right ? blue[level] : orange[level], width - 1, text);
    else
        printf("%*s ", width - 1, text);
}

/* Rows and columns of percents, when they fit. */
static void print_matrix(const matrix *m) {
    char room[24];
    int width = NAME + 2 + 6 * m->n <= columns() ? 6 : 4;
    if (NAME + 2 + width * m->n > columns()) return;
    printf("\n  confusion of the test set, %% of each row: what it was (down), what it was taken "
           "for (across)\n");
    printf("%*s", NAME + 2, "");
    for (int c = 0; c < m->n; c++) {
        print_name(class_name(m->data, c, room), width - 1, true);
        putchar(' ');
    }
    putchar('\n');
    for (int r = 0; r < m->n; r++) {
        print_name(class_name(m->data, r, room), NAME, true);
        fputs("  ", stdout);
        for (int c = 0; c < m->n; c++) print_cell(share(m, r, c), r == c, width, colour());
        putchar('\n');
    }
}

/* The worst ones by count, those of equal count in the order of the matrix. */
static void print_worst(const matrix *m) {
    char a[24], b[24];
    int64_t before = INT64_MAX, at_before = -1;
    for (int k = 0; k < WORST; k++) {
        int64_t best = 0, where = -1;
        for (int64_t i = 0; i < (int64_t)m->n * m->n; i++) {
            int64_t count = i / m->n == i % m->n ? 0 : m->counts[i];
            bool later = count < before || (count == before && i > at_before);
            if (later && count > best) {
                best = count;
                where = i;
            }
        }
        if (where < 0) break;
        if (!k) printf("\n  most common mistakes\n");
        int row = (int)(where / m->n), column = (int)(where % m->n);
        printf("  %6lld  ", (long long)best);
        printf("%s taken for %s (%.1f %% of its %lld)\n", class_name(m->data, row, a),
               class_name(m->data, column, b), 100 * share(m, row, column),
               (long long)m->rows[row]);
        before = best;
        at_before = where;
    }
}

typedef struct ranked {
    int label;
    double part;
} ranked;

static int by_accuracy(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->part < y->part) return -1;
    return x->part > y->part ? 1 : x->label - y->label;
}

/* All classes in their order; of many only the worst. */
static void print_classes(const matrix *m, ranked *order) {
    static const char signs[] = "########################";
    char room[24], blocks[BAR_BYTES(BAR)];
    bool many = m->n > MOST_BARS;
    for (int k = 0; k < m->n; k++) order[k] = (ranked){ k, share(m, k, k) };
    if (many) qsort(order, (size_t)m->n, sizeof *order, by_accuracy);
    printf("\n  accuracy by class%s\n", many ? ", the worst" : "");
    for (int i = 0; i < (many ? MOST_BARS : m->n); i++) {
        double part = order[i].part;
        print_name(class_name(m->data, order[i].label, room), NAME + 8, true);
        fputs("  ", stdout);
        style(stdout, "38;5;39");
        if (unicode())
            printf("%s", bar(part, BAR, blocks));
        else
            printf("%.*s%*s", (int)(part * BAR), signs, BAR - (int)(part * BAR), "");
        style(stdout, "0");
        printf(" %6.2f %%  of %lld\n", 100 * part, (long long)m->rows[order[i].label]);
    }
    putchar('\n');
}

static int print_all(const train_view *v, const int64_t *counts, int64_t *rows, ranked *order) {
    const matrix m = { v->test, v->test->classes, counts, rows };
    for (int r = 0; r < m.n; r++)
        for (int c = 0; c < m.n; c++) rows[r] += counts[(size_t)r * (size_t)m.n + (size_t)c];
    if (v->dir) {
        int code = matrix_write(v->dir, m.n, v->test->class_names, counts);
        if (code) return code;
    }
    if (v->quiet || v->json) return EXIT_OK;
    int code = curve(v);
    print_matrix(&m);
    print_worst(&m);
    print_classes(&m, order);
    return code;
}

int train_report(const train_view *v) {
    fac_error err = { 0 };
    size_t n = (size_t)v->test->classes;
    if (v->test->sequences) return v->quiet || v->json ? EXIT_OK : curve(v);
    if ((v->quiet || v->json) && !v->dir) return EXIT_OK;
    int64_t *counts = calloc(n * n + 1, sizeof *counts), *rows = calloc(n + 1, sizeof *rows);
    ranked *order = calloc(n + 1, sizeof *order);
    int code;
    if (!counts || !rows || !order)
        code = fail_text("out of memory");
    else if (fac_trainer_confusion(v->trainer, v->test, v->batches->size, counts, &err))
        code = fail(&err);
    else
        code = print_all(v, counts, rows, order);
    free(counts);
    free(rows);
    free(order);
    return code;
}
