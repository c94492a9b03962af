/* facula tile: a model whose products fit a matrix unit of limited size. */
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "summary.h"
#include "facula/backend.h"

static struct {
    const char *output, *weights, *target, *mode, *sum, *only, *gemm, *memory;
    list shapes;
    long m, n, k, batch, opset;
    bool pad, json;
} o;
static const option options[] = {
    { "-o", OPTION_TEXT, &o.output, "FILE.onnx", "where to; without it only the report is made" },
    { "--max-m", OPTION_INT, &o.m, "M", "rows of a product: at most so many (a convolution's output channels)" },
    { "--max-n", OPTION_INT, &o.n, "N", "columns (a convolution's output positions)" },
    { "--max-k", OPTION_INT, &o.k, "K", "depth (a convolution's channels times taps)" },
    { "--target", OPTION_TEXT, &o.target, "FILE.json", "the limits and rates of a device: see below" },
    { "--mode", OPTION_TEXT, &o.mode, "MODE", "unroll (default): every tile a node; schedule: the model stays, the tiles are listed as JSON" },
    { "--sum", OPTION_TEXT, &o.sum, "HOW", "along K: chain (default; each product adds to the last one), tree or sum" },
    { "--pad", OPTION_FLAG, &o.pad, NULL, "equal tiles with zeros behind, instead of smaller last ones" },
    { "--only", OPTION_TEXT, &o.only, "NAME", "the layer of this name alone" },
    { "--gemm", OPTION_TEXT, &o.gemm, "MxNxK", "instead of a model: one product" },
    { "--batch", OPTION_INT, &o.batch, "N", "size of the open first dim; default 1" },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS", "sizes of an input" },
    { "--opset", OPTION_INT, &o.opset, "N", "of FILE.onnx" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE", "memory this process may take, such as 2G" },
    { "--json", OPTION_FLAG, &o.json, NULL, "for machines" },
    { 0 } };

/* ---- the target: { "max_m": 64, "max_n": 64, "max_k": 64, "macs_per_second": 1e12, "bytes_per_second": 5e10 } ---- */

typedef struct target { double macs_per_second, bytes_per_second, sram_bytes; } target;

static char *file_text(const char *path) {
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long n = 0;
    if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET) && (text = calloc((size_t)n + 1, 1)) &&
        fread(text, 1, (size_t)n, f) != (size_t)n) {
        free(text);
        text = NULL;
    }
    if (f) fclose(f);
    return text;
}

static int read_target(const char *path, target *t) {
    const struct { const char *key; long *limit; double *rate; } keys[] = {
        { "max_m", &o.m, NULL }, { "max_n", &o.n, NULL }, { "max_k", &o.k, NULL },
            { "macs_per_second", NULL, &t->macs_per_second },
        { "bytes_per_second", NULL, &t->bytes_per_second }, { "sram_bytes", NULL, &t->sram_bytes } };
    enum { KEYS = sizeof keys / sizeof *keys };
    char *text = file_text(path);
    if (!text) return fail_text("%s: cannot be read", path);
    cJSON *j = cJSON_Parse(text);
    free(text);
    if (!cJSON_IsObject(j)) {
        cJSON_Delete(j);
        return fail_text("%s: not a JSON object; expected {\"max_m\": 64, \"max_n\": 64, \"max_k\": 64, ...}", path);
    }
    for (const cJSON *c = j->child; c; c = c->next) {
        size_t k = 0;
        while (k < KEYS && strcmp(keys[k].key, c->string)) k++;
        if (k == KEYS || !cJSON_IsNumber(c) || c->valuedouble <= 0) {
            const int code = fail_text(k == KEYS ? "%s: there is no \"%s\"; there are max_m, max_n, max_k, macs_per_second, bytes_per_second, sram_bytes"
                                                 : "%s: \"%s\" must be a number above 0", path, c->string);
            cJSON_Delete(j);
            return code;
        }
        if (keys[k].rate) *keys[k].rate = c->valuedouble;
        else if (!*keys[k].limit) *keys[k].limit = (long)c->valuedouble;
    }
    cJSON_Delete(j);
    return EXIT_OK;
}

/* ---- the report ---- */

/* Every tile takes the time of a full one, and its operands pass the memory once. */
static double seconds_of(const fac_tile_row *r, const target *t) {
    const double full = r->utilisation > 0 ? r->macs / r->utilisation : 0;
    const double m = o.m && o.m < r->m ? (double)o.m : (double)r->m, n = o.n && o.n < r->n ? (double)o.n : (double)r->n;
    const double k = o.k && o.k < r->k ? (double)o.k : (double)r->k;
    const double bytes = 4 * ((double)r->tiles * (m * k + k * n) + (double)r->count * (double)r->m * (double)r->n);
    const double compute = t->macs_per_second > 0 ? full / t->macs_per_second : 0,
        memory = t->bytes_per_second > 0 ? bytes / t->bytes_per_second : 0;
    return compute > memory ? compute : memory;
}

static const char *advice(const fac_tile_row *r) {
    const bool product = strncmp(r->op, "conv", 4) != 0;
    if (r->kept) return r->kept;
    if (product && o.m > 1 && r->m == 1 && r->count == 1) return "one row: batch the input";
    if (o.m && o.n && r->m * 4 < o.m && r->n >= o.m && o.m > o.n) return "swap M and N";
    if (r->utilisation < 0.5) return "small against the limit";
    return "";
}

typedef struct sums { double macs, full, seconds; int64_t tiles, kept; } sums;

static sums add_up(const fac_tiling *t, const target *rates) {
    sums s = { 0 };
    for (int i = 0; i < fac_tiling_rows(t); i++) {
        const fac_tile_row *r = fac_tiling_row(t, i);
        s.macs += r->macs;
        s.full += r->utilisation > 0 ? r->macs / r->utilisation : 0;
        s.tiles += r->tiles;
        s.kept += r->kept != NULL;
        s.seconds += seconds_of(r, rates);
    }
    return s;
}

static void peak_text(const fac_graph *g, char *to, size_t size) {
    fac_analysis *a = NULL;
    if (fac_analyze(g, o.batch, &a, NULL)) snprintf(to, size, "?");
    else bytes_text(fac_analysis_totals(a).peak, to, size);
    fac_analysis_free(a);
}

static void print_table(const fac_tiling *t, const target *rates) {
    const int widths[] = { -32, -10, 7, 7, 7, 6, 8, 6, 9, -1 };
    table_row(stdout, widths, 10, "layer", "op", "M", "N", "K", "times", "tiles", "used", "time", "");
    for (int i = 0; i < fac_tiling_rows(t); i++) {
        const fac_tile_row *r = fac_tiling_row(t, i);
        char m[16], n[16], k[16], count[16], tiles[16], used[16], time[16] = "--";
        snprintf(m, sizeof m, "%lld", (long long)r->m), snprintf(n, sizeof n, "%lld", (long long)r->n),
            snprintf(k, sizeof k, "%lld", (long long)r->k);
        snprintf(count, sizeof count, "%lld", (long long)r->count), snprintf(tiles, sizeof tiles, "%lld", (long long)r->tiles);
        snprintf(used, sizeof used, "%.0f %%", 100 * r->utilisation);
        if (rates->macs_per_second > 0 || rates->bytes_per_second > 0)
            snprintf(time, sizeof time, "%.3g ms", 1e3 * seconds_of(r, rates));
        table_row(stdout, widths, 10, r->name, r->op, m, n, k, count, tiles, used, time, advice(r));
    }
}

static cJSON *rows_json(const fac_tiling *t, const target *rates) {
    cJSON *rows = cJSON_CreateArray();
    for (int i = 0; i < fac_tiling_rows(t); i++) {
        const fac_tile_row *r = fac_tiling_row(t, i);
        cJSON *j = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "name", r->name);
        cJSON_AddStringToObject(j, "op", r->op);
        cJSON_AddNumberToObject(j, "m", (double)r->m);
        cJSON_AddNumberToObject(j, "n", (double)r->n);
        cJSON_AddNumberToObject(j, "k", (double)r->k);
        cJSON_AddNumberToObject(j, "count", (double)r->count);
        cJSON_AddNumberToObject(j, "tile_m", (double)(o.m && o.m < r->m && !r->kept ? o.m : r->m));
        cJSON_AddNumberToObject(j, "tile_n", (double)(o.n && o.n < r->n && !r->kept ? o.n : r->n));
        cJSON_AddNumberToObject(j, "tile_k", (double)(o.k && o.k < r->k && !r->kept ? o.k : r->k));
        cJSON_AddNumberToObject(j, "tiles", (double)r->tiles);
        json_number(j, "utilisation", r->utilisation, 6);
        json_number(j, "seconds", seconds_of(r, rates), 6);
        if (r->kept) cJSON_AddStringToObject(j, "kept", r->kept);
        cJSON_AddItemToArray(rows, j);
    }
    return rows;
}

static int report(const fac_graph *before, const fac_graph *after, const fac_tiling *t, const target *rates,
                  const fac_onnx_saved *saved) {
    const sums s = add_up(t, rates);
    char was[32], is[32] = "";
    if (o.json || (o.mode && !strcmp(o.mode, "schedule"))) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddNumberToObject(root, "schema_version", 1);
        cJSON_AddNumberToObject(root, "tiles", (double)s.tiles);
        cJSON_AddNumberToObject(root, "kept", (double)s.kept);
        json_number(root, "macs", s.macs, 17);
        json_number(root, "utilisation", s.full > 0 ? s.macs / s.full : 0, 6);
        json_number(root, "seconds", s.seconds, 6);
        cJSON_AddStringToObject(root, "sum", o.sum ? o.sum : "chain");
        cJSON_AddItemToObject(root, "products", rows_json(t, rates));
        return json_print(root);
    }
    print_table(t, rates);
    printf("\n%d products became %lld; %.1f %% of their arithmetic is used%s\n", fac_tiling_rows(t), (long long)s.tiles,
           s.full > 0 ? 100 * s.macs / s.full : 0,
           s.kept ? "" : "; all are legal");
    if (s.kept) printf("%lld are larger than the limit and stay: see the last column\n", (long long)s.kept);
    if (s.seconds > 0) printf("time by these rates: %.3g ms\n", 1e3 * s.seconds);
    peak_text(before, was, sizeof was);
    if (after) peak_text(after, is, sizeof is);
    printf("memory of results at their peak: %s%s%s\n", was, after ? " before, now " : "", is);
    if (saved)
        printf("%s: opset %d, %d nodes, %s\n", o.output, saved->opset, saved->nodes,
               bytes_text((double)saved->bytes, was, sizeof was));
    return EXIT_OK;
}

/* ---- the verb ---- */

static int work(const fac_graph *g, const fac_tile_opts *opts, const target *rates) {
    fac_error err = { 0 };
    fac_graph *quiet = fac_graph_inference(g), *cut = NULL;
    fac_tiling *t = NULL;
    fac_onnx_saved saved = { 0 };
    if (!quiet) return fail_text("out of memory");
    int code = fac_graph_tile(quiet, opts, opts->count_only ? NULL : &cut, &t, &err) ? fail(&err) : EXIT_OK;
    const fac_onnx_save_opts how = { .opset = (int)o.opset, .saved = &saved };
    if (!code && o.output && fac_onnx_save(cut, o.output, &how, &err)) code = fail(&err);
    if (!code) code = report(quiet, cut, t, rates, o.output ? &saved : NULL);
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(quiet);
    return code;
}

static int load(list args, model *m) {
    fac_error err = { 0 };
    if (!o.gemm) return model_load(args.at[0], o.weights, &o.shapes, 0, m);
    fac_dims d;
    char problem[128];
    if (!dims_parse(o.gemm, &d) || d.n != 3 || d.d[0] < 1 || d.d[1] < 1 || d.d[2] < 1)
        return fail_text("--gemm needs MxNxK such as 196x256x512, not \"%s\"", o.gemm);
    snprintf(problem, sizeof problem, "matmul(f32[%lld,%lld], f32[%lld,%lld])", (long long)d.d[0], (long long)d.d[2],
             (long long)d.d[2], (long long)d.d[1]);
    return fac_problem_graph(problem, true, &m->graph, &err) ? fail(&err) : EXIT_OK;
}

static int run(list args) {
    const verb *self = verb_find("tile");
    static const char *const how[] = { "chain", "tree", "sum" };
    model m = { 0 };
    target rates = { 0 };
    int sum = 0;
    if (args.n != !o.gemm) return usage_error(self, o.gemm ? "a model, or --gemm: not both" : "which model?");
    while (o.sum && sum < 3 && strcmp(how[sum], o.sum)) sum++;
    if (sum == 3) return usage_error(self, "--sum is chain, tree or sum, not \"%s\"", o.sum);
    if (o.mode && strcmp(o.mode, "unroll") && strcmp(o.mode, "schedule"))
        return usage_error(self, "--mode is unroll or schedule, not \"%s\"", o.mode);
    if (o.mode && !strcmp(o.mode, "schedule") && o.output)
        return usage_error(self, "--mode schedule writes no model: leave out -o");
    if (o.m < 0 || o.n < 0 || o.k < 0 || o.batch < 0)
        return usage_error(self, "--max-m, --max-n, --max-k and --batch are positive");
    int code = o.target ? read_target(o.target, &rates) : EXIT_OK;
    if (!code && !o.m && !o.n && !o.k) code = usage_error(self, "no limit: give --max-m, --max-n, --max-k or --target");
    if (!code) code = memory_limit(o.memory);
    if (!code) code = load(args, &m);
    const fac_tile_opts opts = { .m = o.m, .n = o.n, .k = o.k, .sum = (fac_tile_sum)sum, .pad = o.pad, .count_only = !o.output,
                                 .batch = o.batch,
                                 .only = o.only };
    if (!code) code = work(m.graph, &opts, &rates);
    model_free(&m);
    return code;
}

const verb verb_tile = {
    .name = "tile", .summary = "a model whose matrix products fit a unit of limited size",
    .usage = "facula tile MODEL --max-m M --max-n N --max-k K [-o OUT.onnx] [options]",
    .options = options, .run = run,
    .more = "Products of linear, gemm, matmul and attention, and convolutions as products of weights and patches, become products of at\n"
            "most M x N x K in ordinary ONNX nodes; weights are cut in the file.  `facula verify MODEL OUT.onnx` proves that both are\n"
            "the same.  A target file holds any of max_m, max_n, max_k, macs_per_second, bytes_per_second, sram_bytes; rates give times." };
