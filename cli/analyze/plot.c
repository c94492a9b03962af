/* facula plot: the curves of one training or of several as a picture. */
#include <math.h>
#include <string.h>
#include "json.h"
#include "facula/view.h"
#include "log.h"
#include "plot.h"
#include "run/run_sound.h"

enum { MOST_RUNS = 8, MOST_SERIES = 2 * MOST_RUNS, PANELS = 4, PARTS = 50, FEW = 5 };

static struct {
    const char *to, *size, *title;
    list compare;
    bool text, weights;
} o;
static const option options[] = {
    { "-o", OPTION_OUT, &o.to, "FILE",
      "where to draw, a .png or .svg; default RUN/plot.png (.svg in a build without cairo)" },
    { "--compare", OPTION_LIST, &o.compare, "RUN",
      "draw this training in the same picture, too; may be repeated" },
    { "--size", OPTION_TEXT, &o.size, "WxH",
      "size in pixels; default 1200x800, of histograms as many as they need" },
    { "--title", OPTION_TEXT, &o.title, "TEXT",
      "title of the picture; default: the name of the folder" },
    { "--weights", OPTION_FLAG, &o.weights, NULL,
      "draw histograms of the trained parameters instead; default RUN/weights.png" },
    { "--text", OPTION_FLAG, &o.text, NULL,
      "print the loss curve here in the terminal, and draw no picture" },
    { 0 }
};

/* One training.  loss, accuracy: of single steps, averaged; NULL when there are none. */
typedef struct run_of {
    char name[64], result[80]; /* result: the name with the last test accuracy */
    log_table epochs, steps;
    log_matrix confusion;
    double *loss_x, *loss, *accuracy_x, *accuracy;
} run_of;

/* ---- reading ---- */

/* The last part of the path. */
static void name_run(const char *dir, char *to, size_t size) {
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') n--;
    size_t from = n;
    while (from && dir[from - 1] != '/') from--;
    snprintf(to, size, "%.*s", (int)(n - from), dir + from);
}

static int read_run(const char *dir, run_of *r) {
    name_run(dir, r->name, sizeof r->name);
    int code = log_read(dir, "log.jsonl", false, &r->epochs);
    if (!code && !r->epochs.n) code = fail_text("%s/log.jsonl: no epoch has ended yet", dir);
    if (!code) code = log_read(dir, "steps.jsonl", true, &r->steps);
    if (!code) code = matrix_read(dir, &r->confusion);
    if (!code) {
        double last = r->epochs.column[LOG_TEST_ACCURACY][r->epochs.n - 1];
        snprintf(r->result, sizeof r->result, "%s %.2f %%", r->name, 100 * last);
        if (!isfinite(last)) strcpy(r->result, r->name);
    }
    if (!code) log_smooth(&r->epochs, &r->steps, LOG_TRAIN_LOSS, PARTS, &r->loss_x, &r->loss);
    if (!code &&
        r->epochs.n < FEW) /* else its first steps would take the room of the last epochs */
        log_smooth(&r->epochs, &r->steps, LOG_TRAIN_ACCURACY, PARTS, &r->accuracy_x, &r->accuracy);
    return code;
}

static void free_run(run_of *r) {
    log_free(&r->epochs);
    log_free(&r->steps);
    matrix_free(&r->confusion);
    free(r->loss_x);
    free(r->loss);
    free(r->accuracy_x);
    free(r->accuracy);
}

/* ---- panels ---- */

typedef struct sheet {
    const run_of *runs;
    int n;
    fac_series series[PANELS][MOST_SERIES];
    fac_panel panels[PANELS];
} sheet;

static void add(fac_panel *p, fac_series *to, fac_series s) {
    to[p->n++] = s;
    p->series = to;
}

static fac_series of_epochs(const run_of *r, log_column y, const char *name, int colour,
                            fac_stroke stroke) {
    return (fac_series){ name,   r->epochs.n, r->epochs.column[LOG_EPOCH], r->epochs.column[y],
                         colour, stroke };
}

/* One training: train and test in two colours, single steps after them.  Several: a colour each,
 * train dashed. */
static void train_and_test(sheet *s, int k, log_column train, log_column test) {
    fac_panel *p = &s->panels[k];
    for (int i = 0; i < s->n; i++) {
        const run_of *r = &s->runs[i];
        const double *x = train == LOG_TRAIN_LOSS ? r->loss_x : r->accuracy_x;
        const double *mean = train == LOG_TRAIN_LOSS ? r->loss : r->accuracy;
        if (mean && s->n == 1) {
            add(p, s->series[k],
                (fac_series){ NULL, r->steps.n, x, r->steps.column[train], 0, FAC_STROKE_FAINT });
            add(p, s->series[k], (fac_series){ "train", r->steps.n, x, mean, 0, FAC_STROKE_SOLID });
        } else if (s->n == 1) {
            add(p, s->series[k], of_epochs(r, train, "train", 0, FAC_STROKE_SOLID));
        } else {
            add(p, s->series[k], of_epochs(r, train, NULL, i, FAC_STROKE_DASHED));
        }
        const char *name = test == LOG_TEST_ACCURACY ? r->result : r->name;
        if (s->n == 1)
            add(p, s->series[k], of_epochs(r, test, "test", 1, FAC_STROKE_SOLID));
        else
            add(p, s->series[k], of_epochs(r, test, name, i, FAC_STROKE_SOLID));
    }
}

static void one_column(sheet *s, int k, log_column y) {
    for (int i = 0; i < s->n; i++)
        add(&s->panels[k], s->series[k],
            of_epochs(&s->runs[i], y, s->n == 1 ? NULL : s->runs[i].name, i, FAC_STROKE_SOLID));
}

/* The learning rate changes with every step. */
static void learning_rate(sheet *s, int k) {
    for (int i = 0; i < s->n; i++) {
        const run_of *r = &s->runs[i];
        const char *name = s->n == 1 ? NULL : r->name;
        add(&s->panels[k], s->series[k],
            !r->loss_x ? of_epochs(r, LOG_LR, name, i, FAC_STROKE_SOLID)
                       : (fac_series){ name, r->steps.n, r->loss_x, r->steps.column[LOG_LR], i,
                                       FAC_STROKE_SOLID });
    }
}

static void widen(const double *x, int n, double *lo, double *hi) {
    for (int k = 0; x && k < n; k++) {
        *lo = fmin(*lo, x[k]);
        *hi = fmax(*hi, x[k]);
    }
}

/* A loss that falls far is seen better in powers of ten. */
static fac_scale loss_scale(const sheet *s) {
    double lo = INFINITY, hi = 0;
    for (int i = 0; i < s->n; i++) {
        const run_of *r = &s->runs[i];
        widen(r->epochs.column[LOG_TRAIN_LOSS], r->epochs.n, &lo, &hi);
        widen(r->epochs.column[LOG_TEST_LOSS], r->epochs.n, &lo, &hi);
        if (s->n == 1) widen(r->loss, r->steps.n, &lo, &hi);
    }
    return lo > 0 && hi / lo > 50 ? FAC_SCALE_LOG : FAC_SCALE_LINEAR;
}

static void make_panels(sheet *s, fac_confusion *confusion) {
    s->panels[0] = (fac_panel){ .title = "loss", .x_label = "epoch", .scale = loss_scale(s) };
    s->panels[1] =
        (fac_panel){ .title = "accuracy", .x_label = "epoch", .scale = FAC_SCALE_PERCENT };
    s->panels[2] = (fac_panel){ .title = "learning rate", .x_label = "epoch" };
    s->panels[3] = (fac_panel){ .title = "samples a second", .x_label = "epoch" };
    train_and_test(s, 0, LOG_TRAIN_LOSS, LOG_TEST_LOSS);
    train_and_test(s, 1, LOG_TRAIN_ACCURACY, LOG_TEST_ACCURACY);
    learning_rate(s, 2);
    one_column(s, 3, LOG_IMAGES_PER_S);
    const log_matrix *m = &s->runs[0].confusion;
    if (s->n > 1 || !m->n) return;
    *confusion = (fac_confusion){ m->n, (const char *const *)m->names, m->counts };
    s->panels[3] = (fac_panel){ .title = "confusion of the test set", .confusion = confusion };
}

/* "test accuracy 91.23 % (best 91.40 % in epoch 7), loss 0.2612; 10 epochs, 9380 steps, 61 s" */
static void describe(const run_of *r, char *to, size_t size) {
    const log_table *t = &r->epochs;
    char loss[24];
    int last = t->n - 1, best = 0;
    for (int i = 0; i < t->n; i++)
        if (t->column[LOG_TEST_ACCURACY][i] > t->column[LOG_TEST_ACCURACY][best]) best = i;
    snprintf(to, size,
             "test accuracy %.2f %% (best %.2f %% in epoch %.0f), loss %s;  %.0f epoch%s, %.0f "
             "step%s, %.1f s",
             100 * t->column[LOG_TEST_ACCURACY][last], 100 * t->column[LOG_TEST_ACCURACY][best],
             t->column[LOG_EPOCH][best], loss_text(t->column[LOG_TEST_LOSS][last], loss),
             t->column[LOG_EPOCH][last], plural(t->column[LOG_EPOCH][last]),
             t->column[LOG_STEP][last], plural(t->column[LOG_STEP][last]),
             t->column[LOG_SECONDS][last]);
}

/* ---- the verb ---- */

static int draw(const run_of *runs, int n, const char *dir, const plot_look *look) {
    static sheet s;
    fac_error err = { 0 };
    fac_confusion confusion;
    char subtitle[256], path[4096];
    s.runs = runs;
    s.n = n;
    make_panels(&s, &confusion);
    if (o.text) {
        fac_terminal how = { columns() < 120 ? columns() : 120, 14, unicode(), colour() };
        for (int k = 0; k < 2; k++)
            if (fac_panel_write(&s.panels[k], &how, stdout, &err)) return fail(&err);
        return EXIT_OK;
    }
    if (n == 1)
        describe(&runs[0], subtitle, sizeof subtitle);
    else
        snprintf(subtitle, sizeof subtitle, "solid: test set,  dashed: training set");
    const fac_chart chart = { .title = n == 1 || o.title ? look->title : "comparison",
                              .subtitle = subtitle,
                              .width = look->width,
                              .height = look->height,
                              .n = PANELS,
                              .panels = s.panels };
    snprintf(path, sizeof path, "%s/plot.%s", dir, fac_chart_draws_png() ? "png" : "svg");
    if (fac_chart_save(&chart, o.to ? o.to : path, &err)) return fail(&err);
    printf("%s\n", o.to ? o.to : path);
    return EXIT_OK;
}

static int run(list args) {
    static run_of runs[MOST_RUNS];
    fac_dims size = { 2, { 0, 0 } };
    char name[64];
    int n = args.n + o.compare.n, code = EXIT_OK;
    if (!args.n)
        return usage_error(verb_find("plot"),
                           "which training?  The folder that `facula train --out` made");
    if (n > MOST_RUNS)
        return usage_error(verb_find("plot"), "at most %d trainings in one picture", MOST_RUNS);
    if (o.size && (!dims_parse(o.size, &size) || size.n != 2 || size.d[0] < 200 ||
                   size.d[1] < 200 || size.d[0] > 16384 || size.d[1] > 16384))
        return usage_error(verb_find("plot"),
                           "--size needs WIDTHxHEIGHT of 200 to 16384 pixels, not \"%s\"", o.size);
    if (o.weights && (n > 1 || o.text))
        return usage_error(verb_find("plot"), "--weights is for one training, as a picture");
    if (is_sound(args.at[0])) {
        const plot_look how = { o.title ? o.title : args.at[0], (int)size.d[0], (int)size.d[1] };
        if (n > 1 || o.weights) return usage_error(verb_find("plot"), "one sound at a time");
        return plot_sound(args.at[0], o.to, o.text || !o.to, &how);
    }
    for (int i = 0; i < args.n; i++) args.at[i] = folder_name(args.at[i]);
    name_run(args.at[0], name, sizeof name);
    const plot_look look = { o.title ? o.title : name, (int)size.d[0], (int)size.d[1] };
    if (o.weights) return plot_weights(args.at[0], o.to, &look);
    for (int i = 0; i < n && !code; i++)
        code = read_run(i < args.n ? args.at[i] : o.compare.at[i - args.n], &runs[i]);
    if (!code) code = draw(runs, n, args.at[0], &look);
    for (int i = 0; i < n; i++) free_run(&runs[i]);
    return code;
}

const verb verb_plot = {
    .name = "plot",
    .summary = "draw the curves of trainings, and spectrograms of sounds",
    .usage = "facula plot RUN [RUN...] [-o FILE] [--compare RUN]...",
    .options = options,
    .examples = "plot runs/first --compare runs/second -o both.png\nplot runs/first --text\nplot "
                "bird.wav -o bird.png",
    .run = run,
    .more = "RUN is the folder that `facula train --out` made.  A sound (WAV, FLAC, Ogg, MP3) may "
            "stand for it:\nits spectrogram, in dB over seconds and kHz, becomes a picture with "
            "-o, else it is printed here in\nthe terminal."
};
