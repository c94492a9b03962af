/* facula activations: what the numbers inside of a model look like while it runs on inputs. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include "activations.h"
#include "run/inputs.h"
#include "kind.h"

static struct {
    device_options device;
    input_options input;
    list at;
    const char *weights, *sort, *pictures, *npz, *channels;
    long top, bits;
    bool json, quantiles;
} o = { .top = -1 };

static const option options[] = {
    { "--at", OPTION_LIST, &o.at, "NAME",
      "only these tensors: their names in any view, modules, op:conv2d or kind:Conv2d; '*' stands "
      "for any text" },
    { "--sort", OPTION_TEXT, &o.sort, "BY",
      "sort rows by order (default), zeros, dead, min, max, mean, std or size" },
    { "--top", OPTION_INT, &o.top, "N", "how many rows to print; default all", OPTION_TALLY },
    { "--quantiles", OPTION_FLAG, &o.quantiles, NULL, "print columns of percentiles" },
    { "--bits", OPTION_INT, &o.bits, "N",
      "print columns of what integers of N bits, 2 to 16, would do", "[2, 16]" },
    { "--channels", OPTION_TEXT, &o.channels, "WHERE",
      "where channels are: first (N,C,H,W) or last (N,H,W,C); default: as the operators say" },
    { "--pictures", OPTION_TEXT, &o.pictures, "DIR",
      "write a PNG for each tensor of feature maps" },
    { "--npz", OPTION_OUT, &o.npz, "FILE", "write the tensors themselves, for numpy.load" },
    INPUT_OPTIONS(o.input),
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME: .safetensors, .pth, .npz" },
    LINK_ROOT_OPTION,
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* ---- order ---- */

static double in_order(const fac_stats *s) {
    (void)s;
    return 0;
}
static double by_zeros(const fac_stats *s) {
    return s->count ? (double)s->zeros / (double)s->count : 0;
}
static double by_dead(const fac_stats *s) { return (double)s->dead; }
static double by_min(const fac_stats *s) { return -s->min; }
static double by_max(const fac_stats *s) { return s->max; }
static double by_mean(const fac_stats *s) { return fabs(s->mean); }
static double by_std(const fac_stats *s) { return s->std; }
static double by_size(const fac_stats *s) { return (double)s->count; }
static const struct {
    const char *name;
    double (*of)(const fac_stats *s);
} sorts[] = {
    { "order", in_order }, { "zeros", by_zeros }, { "dead", by_dead }, { "min", by_min },
    { "max", by_max },     { "mean", by_mean },   { "std", by_std },   { "size", by_size }
};
enum { SORTS = sizeof sorts / sizeof *sorts };

typedef struct place {
    double by;
    int at;
    const fac_activation *row;
} place;
static int larger_first(const void *x, const void *y) {
    const place *a = x, *b = y;
    return a->by != b->by ? (a->by < b->by) - (a->by > b->by) : a->at - b->at;
}

/* The rows to be shown, NULL when there is no memory for them; how many. */
static int choose(const fac_activations *a, double (*of)(const fac_stats *s),
                  const fac_activation ***out) {
    int n = 0;
    while (fac_activations_get(a, n)) n++;
    place *p = calloc((size_t)n + 1, sizeof *p);
    const fac_activation **rows = p ? calloc((size_t)n + 1, sizeof *rows) : NULL;
    for (int i = 0; rows && i < n; i++) {
        const fac_activation *r = fac_activations_get(a, i);
        const fac_stats s = fac_tally_stats(r->tally);
        p[i] = (place){ of(&s), i, r };
    }
    if (rows) qsort(p, (size_t)n, sizeof *p, larger_first);
    for (int i = 0; rows && i < n; i++) rows[i] = p[i].row;
    free(p);
    *out = rows;
    return o.top >= 0 && o.top < n ? (int)o.top : n;
}

/* ---- the table ---- */

enum { PARTS = 16 };

/* How the numbers that are not zero lie between min and max: heights go with the square root, so
 * that tails are seen. */
static const char *sketch(const fac_tally *t, const fac_stats *s, char *to) {
    static const char plain[] = " .:-=+*#@";
    double counts[PARTS], most = 0;
    char *end = to;
    fac_tally_histogram(t, s->min, s->max, PARTS, counts);
    if (s->zeros && s->max > s->min) {
        const int k = (int)(-s->min / (s->max - s->min) * PARTS);
        counts[k < PARTS ? k : PARTS - 1] -= (double)s->zeros;
    }
    for (int k = 0; k < PARTS; k++) most = fmax(most, counts[k]);
    for (int k = 0; k < PARTS; k++) {
        const int height =
            most > 0 && counts[k] > 0.5 ? 1 + (int)lround(7 * sqrt(counts[k] / most)) : 0;
        if (!unicode())
            *end++ = plain[height];
        else
            end += height ? sprintf(end, "\xe2\x96%c", 0x80 + height) : sprintf(end, " ");
    }
    *end = 0;
    return to;
}

static const char *number(double x, char to[16]) {
    const double size = fabs(x);
    snprintf(to, 16,
             x == 0                       ? "0"
             : size >= 1e5 || size < 1e-3 ? "%.1e"
             : size >= 100                ? "%.1f"
                                          : "%.4f",
             x);
    return to;
}

static const char *percent(double part, double all, char to[16]) {
    if (all > 0)
        snprintf(to, 16, "%.1f %%", 100 * part / all);
    else
        snprintf(to, 16, "--");
    return to;
}

static int name_width(const fac_activation *const *rows, int n) {
    enum { LEAST = 8, MOST = 44 };
    int width = LEAST;
    for (int i = 0; i < n; i++)
        if ((int)strlen(rows[i]->name) > width) width = (int)strlen(rows[i]->name);
    return width < MOST ? width : MOST;
}

static void print_more(const fac_activation *a) {
    static const double at[] = { 0.001, 0.01, 0.5, 0.99, 0.999 };
    char text[16];
    for (int k = 0; k < 5 && o.quantiles; k++)
        printf("%10s  ", number(fac_tally_quantile(a->tally, at[k]), text));
    if (!o.bits) return;
    const fac_quantization whole =
        fac_tally_quantize(a->tally, (int)o.bits, fac_tally_magnitude(a->tally, 1));
    const fac_quantization best = fac_tally_quantize(a->tally, (int)o.bits, 0);
    printf("%9s  ", number(best.clip, text));
    printf("%10.3g  ", best.scale);
    if (isfinite(best.sqnr))
        printf("%7.1f  %7.1f  ", best.sqnr, whole.sqnr);
    else
        printf("%7s  %7s  ", "--", "--");
}

static void print_row(const fac_activation *a, int width) {
    const fac_stats s = fac_tally_stats(a->tally);
    char dims[96], cells[5][16], drawn[4 * PARTS + 1];
    printf("%-*s  %-14s  %16s  ", width, end_of(a->name, width), a->op,
           dims_text(NULL, &a->type.dims, dims, sizeof dims));
    printf("%10s  %10s  %10s  %10s  %8s  ", number(s.min, cells[0]), number(s.max, cells[1]),
           number(s.mean, cells[2]), number(s.std, cells[3]),
           percent((double)s.zeros, (double)s.count, cells[4]));
    print_more(a);
    printf("%s\n", sketch(a->tally, &s, drawn));
}

static void print_head(int width) {
    printf("%-*s  %-14s  %16s  %10s  %10s  %10s  %10s  %8s  ", width, "tensor", "op", "shape",
           "min", "max", "mean", "std", "zeros");
    if (o.quantiles)
        printf("%10s  %10s  %10s  %10s  %10s  ", "0.1 %", "1 %", "50 %", "99 %", "99.9 %");
    if (o.bits) printf("%9s  %10s  %7s  %7s  ", "clip", "scale", "SQNR dB", "no clip");
    puts("not zero");
}

/* What somebody should look at.  A channel of few numbers is easily nothing but zeros. */
static int64_t strange(const fac_stats *s) { return s->nan + s->infinite; }
static int64_t denormal(const fac_stats *s) { return s->denormals; }
static int64_t dead(const fac_stats *s) {
    enum { FEW = 16 };
    return s->count >= FEW * s->channels ? s->dead : 0;
}
static int64_t numbers(const fac_stats *s) { return s->count; }
static int64_t channels(const fac_stats *s) { return s->channels; }

/* "dead channels: conv1 (3 of 64), conv2 (1 of 64) and 5 tensors more", in the order of execution.
 */
static void print_alarm(const fac_activations *a, const char *what,
                        int64_t (*count)(const fac_stats *s), int64_t (*all)(const fac_stats *s)) {
    enum { MOST = 6 };
    const fac_activation *r;
    int found = 0;
    for (int i = 0; (r = fac_activations_get(a, i)); i++) {
        const fac_stats s = fac_tally_stats(r->tally);
        if (!count(&s) || found++ >= MOST) continue;
        printf("%s %s (%lld of %lld)", found == 1 ? what : ",", r->name, (long long)count(&s),
               (long long)all(&s));
    }
    if (found > MOST) printf(" and %d tensor%s more", found - MOST, found == MOST + 1 ? "" : "s");
    if (found) putchar('\n');
}

static void print_end(const fac_activations *a, int runs) {
    const fac_activation *r;
    double zeros = 0, all = 0;
    char text[16], total[32];
    int n = 0;
    for (; (r = fac_activations_get(a, n)); n++) {
        const fac_stats s = fac_tally_stats(r->tally);
        zeros += (double)s.zeros;
        all += (double)s.count;
    }
    print_alarm(a, "NaN or infinite:", strange, numbers);
    print_alarm(a, "nothing but zeros in channels of", dead, channels);
    print_alarm(a, "denormal numbers:", denormal, numbers);
    printf("%d tensor%s of %d run%s, %s numbers, %s of them zeros\n", n, n == 1 ? "" : "s", runs,
           runs == 1 ? "" : "s", count_text(all, total, sizeof total), percent(zeros, all, text));
}

static int report(const fac_activations *a, const char *path, const keeper *k,
                  double (*of)(const fac_stats *s)) {
    const fac_activation **rows;
    const int n = choose(a, of, &rows);
    int code = EXIT_OK;
    if (!rows) return fail_text("out of memory");
    if (o.json) {
        code = activations_json(path, k, rows, n, o.bits);
    } else {
        const int width = name_width(rows, n);
        print_head(width);
        for (int i = 0; i < n; i++) print_row(rows[i], width);
        putchar('\n');
        print_end(a, k->runs);
        photo_plan_print(&k->plan);
        if (k->drawn || k->undrawn)
            printf("%d picture%s in %s; %d tensor%s none\n", k->drawn, plural(k->drawn),
                   k->pictures, k->undrawn, k->undrawn == 1 ? " is" : "s are");
        if (k->saved) printf("%d tensor%s in %s\n", k->saved, plural(k->saved), o.npz);
    }
    free(rows);
    return code;
}

/* ---- running ---- */

static int one_run(const model *m, fac_activations *a, list files, keeper *k) {
    inputs in = { 0 };
    fac_error err = { 0 };
    int code = inputs_load(m, &o.input, verb_find("activations"), files, &in);
    if (!code && fac_activations_add(a, in.tensor, &err))
        code = kind_fail_run(&err, m->graph, in.random);
    k->plan = in.plan;
    inputs_free(&in);
    return code;
}

/* Files for as many runs as they are enough for. */
static int all_runs(const model *m, fac_activations *a, list files, keeper *k) {
    const int each = fac_graph_inputs(m->graph) - o.input.named.n;
    const double start = now();
    int code = EXIT_OK;
    if (each > 0 && files.n > each && files.n % each)
        return fail_text("%d files for %d inputs of each run: not as many for each run", files.n,
                         each);
    k->runs = each > 0 && files.n > each ? files.n / each : 1;
    for (; k->run < k->runs && !code; k->run++) {
        const list part = { files.at + (ptrdiff_t)k->run * each, each };
        code = one_run(m, a, k->runs > 1 ? part : files, k);
        if (!o.json) progress("runs", k->run + 1, k->runs, start);
    }
    return code;
}

static int work(list args, double (*of)(const fac_stats *s), fac_channels channels) {
    fac_error err = { 0 };
    model m = { 0 };
    fac_device *device = NULL;
    fac_activations *a = NULL;
    keeper k = { .pictures = o.pictures };
    const fac_activations_opts opts = { o.at.n, o.at.at, o.pictures || o.npz ? keep_tensor : NULL,
                                        &k, channels };
    const list files = { args.at + 1, args.n - 1 };
    int code = photo_options_fit(&o.input.photo, verb_find("activations"), files, o.input.named);
    if (!code) code = device_open(&o.device, &device);
    inputs_given = &o.input.named;
    if (!code) code = model_load(args.at[0], o.weights, &o.input.shapes, o.input.seed, &m);
    if (!code && o.pictures && mkdir(o.pictures, 0777) && errno != EEXIST)
        code = fail_text("%s: cannot be made", o.pictures);
    if (!code && o.npz && fac_npz_open(o.npz, &k.npz, &err)) code = fail(&err);
    if (!code && fac_activations_new(m.graph, device, &opts, &a, &err)) code = fail(&err);
    if (!code) code = all_runs(&m, a, files, &k);
    if (!code && k.npz) {
        if (fac_npz_close(k.npz, &err)) code = fail(&err);
        k.npz = NULL;
    }
    if (!code) code = report(a, args.at[0], &k, of);
    fac_npz_cancel(k.npz);
    file_names_free(&k.files);
    file_names_free(&k.parts);
    fac_activations_free(a);
    model_free(&m);
    fac_device_free(device);
    return code;
}

static int run(list args) {
    const verb *self = verb_find("activations");
    int k = 0;
    const int wrong = arguments_fit(self, args, 1, ANY_NUMBER, "which model?");
    if (wrong) return wrong;
    while (o.sort && k < SORTS && strcmp(sorts[k].name, o.sort)) k++;
    if (k == SORTS)
        return usage_error(
            self, "--sort is by order, zeros, dead, min, max, mean, std or size, not \"%s\"",
            o.sort);
    fac_channels channels = FAC_CHANNELS_FOUND;
    if (o.channels && !strcmp(o.channels, "first"))
        channels = FAC_CHANNELS_FIRST;
    else if (o.channels && !strcmp(o.channels, "last"))
        channels = FAC_CHANNELS_LAST;
    else if (o.channels)
        return usage_error(self, "--channels is first or last, not \"%s\"", o.channels);
    return work(args, sorts[k].of, channels);
}

const verb verb_activations = {
    .name = "activations",
    .summary = "print statistics and draw pictures of every tensor inside a model",
    .usage = "facula activations MODEL [PHOTO|TENSOR...] [options]",
    .options = options,
    .examples =
        "activations model.onnx photo1.jpg photo2.jpg\nactivations model.onnx --random --sort dead "
        "--top 10\nactivations model.onnx photo.jpg --at 'layer1*' --pictures maps",
    .run = run,
    .list = photo_presets,
    .more = "Files are inputs as for `facula run`; with more of them there are further runs, and "
            "the statistics\nare those of all runs together.  Memory is needed for counts alone.  "
            "The histograms leave exact\nzeros out, and their heights are square roots of the "
            "counts.  clip and scale: those with the least\nsquared error of symmetric integers "
            "(unsigned ones where nothing is negative)."
};
