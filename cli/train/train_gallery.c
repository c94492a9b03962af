/* facula train --show N: samples of the test set with what the model takes them for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "run/picture.h"
#include "train_view.h"

enum { LEAST = 16, MOST = 28, GAP = 2 }; /* columns of one picture */

typedef struct shown {
    int64_t sample, truth, best;
    double sure;
    picture drawn;
} shown;

/* ---- predictions ---- */

/* The part of one class in the softmax of its row. */
static double probability(const float *row, int64_t classes, int64_t k) {
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) sum += exp((double)row[c] - row[k]);
    return 1 / sum;
}

/* Samples spread over the whole set, one by one: as few as are shown. */
static fac_status predict(const train_view *v, shown *s, fac_error *err) {
    const fac_batches one = { .size = 1 };
    fac_tensor *x, *labels, *logits = NULL, *as = NULL;
    fac_status status = fac_batch(v->test, &one, 0, s->sample, &x, &labels, err);
    if (status) return status;
    status = fac_trainer_predict(v->trainer, x, &logits, err);
    if (!status) status = fac_tensor_best(logits, &s->best, err);
    if (!status) status = fac_tensor_convert(logits, FAC_F32, &as, err);
    if (!status) s->sure = probability(fac_tensor_data(as), fac_tensor_type(as).dims.d[1], s->best);
    s->truth = v->test->labels[s->sample];
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_tensor_free(logits);
    fac_tensor_free(as);
    return status;
}

/* ---- pictures ---- */

static fac_status draw(const fac_dataset *d, shown *s, int width, fac_error *err) {
    fac_image image = { 0 };
    fac_status status = fac_dataset_image(d, s->sample, &image, err);
    if (!status) status = picture_draw(&image, width, width, &s->drawn, err);
    fac_image_free(&image);
    return status;
}

/* At most `width` letters, filled up. */
static void cell(const char *text, int width, const char *code) {
    size_t n;
    int letters = letters_in(text, width, &n);
    style(stdout, code);
    printf("%.*s", (int)n, text);
    style(stdout, "0");
    printf("%*s", width + GAP - letters, "");
}

static void print_row(const fac_dataset *d, const shown *s, int n, int width) {
    char text[256], room[24];
    for (int y = 0; y < s->drawn.lines; y++) {
        for (int k = 0; k < n; k++) {
            out_raw(s[k].drawn.line[y], stdout);
            printf("%*s", width - s[k].drawn.columns + GAP, "");
        }
        putchar('\n');
    }
    for (int k = 0; k < n; k++) {
        bool right = s[k].best == s[k].truth;
        snprintf(text, sizeof text, "%s %s", right ? "\xe2\x9c\x93" : "\xe2\x9c\x97",
                 class_name(d, s[k].best, room));
        cell(text, width, right ? "38;5;77" : "1;38;5;203");
    }
    putchar('\n');
    for (int k = 0; k < n; k++) {
        snprintf(text, sizeof text, "%.1f %%", 100 * s[k].sure);
        if (s[k].best != s[k].truth)
            snprintf(text + strlen(text), sizeof text - strlen(text), ", is %s",
                     class_name(d, s[k].truth, room));
        cell(text, width, "38;5;245");
    }
    fputs("\n\n", stdout);
}

static int print_pictures(const fac_dataset *d, shown *s, int n) {
    fac_error err = { 0 };
    int beside = columns() / (LEAST + GAP);
    if (beside < 1) beside = 1;
    int rows = (n + beside - 1) / beside, width = columns() / ((n + rows - 1) / rows) - GAP;
    beside = (n + rows - 1) / rows; /* rows of equal length */
    if (width > MOST) width = MOST;
    if (width < 1) width = 1;
    for (int k = 0; k < n; k++)
        if (draw(d, &s[k], width, &err)) return fail(&err);
    for (int k = 0; k < n; k += beside) print_row(d, s + k, n - k < beside ? n - k : beside, width);
    return EXIT_OK;
}

/* Where there are no colours, or no pictures: a line for each. */
static void print_list(const fac_dataset *d, const shown *s, int n) {
    char a[24], b[24];
    for (int k = 0; k < n; k++) {
        printf("  test sample %-6lld %-20s %5.1f %%", (long long)s[k].sample,
               class_name(d, s[k].best, a), 100 * s[k].sure);
        if (s[k].best != s[k].truth) printf("   wrong: it is %s", class_name(d, s[k].truth, b));
        putchar('\n');
    }
    putchar('\n');
}

int train_gallery(const train_view *v, long n) {
    fac_error err = { 0 };
    if (n > v->test->count) n = (long)v->test->count;
    shown *s = calloc((size_t)n + 1, sizeof *s);
    int code = s ? EXIT_OK : fail_text("out of memory");
    for (long k = 0; k < n && !code; k++) {
        s[k].sample = k * v->test->count / n;
        if (predict(v, &s[k], &err)) code = fail(&err);
    }
    bool pictures = colour() && unicode() && v->test->bytes && v->test->item.n == 3;
    if (!code)
        printf("  the model's answers to %ld sample%s of the test set\n\n", n, plural((double)n));
    if (!code && pictures)
        code = print_pictures(v->test, s, (int)n);
    else if (!code)
        print_list(v->test, s, (int)n);
    for (long k = 0; s && k < n; k++) picture_free(&s[k].drawn);
    free(s);
    return code;
}
