/* facula bench --against: two models in turn, and layer by layer. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "json.h"

enum { NAME = 128, ROUNDS = 2000, FEWEST = 5 };

/* Steps of one layer: those whose names begin alike. */
typedef struct layer {
    char name[NAME];
    const char *solver; /* of the step with the most multiply-adds */
    double us, macs;    /* us: the median of its runs */
    double *runs;
} layer;
typedef struct table {
    layer *at;
    int n, steps;
    layer whole;
    fac_step_stat *stats; /* scratch */
} table;

/* "conv2" of "conv2.conv2d_3"; what has no scope is "other". */
static void name_of(const char *nodes, char to[NAME]) {
    const char *end = nodes + strcspn(nodes, " +,");
    const char *dot = NULL;
    for (const char *s = nodes; s < end; s++)
        if (*s == '.') dot = s;
    if (dot)
        snprintf(to, NAME, "%.*s", (int)(dot - nodes), nodes);
    else
        strcpy(to, "other");
}

static layer *find(table *t, const char *name) {
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->at[i].name, name)) return &t->at[i];
    return NULL;
}

static layer *layer_of(table *t, const fac_step_stat *s) {
    char name[NAME];
    name_of(s->nodes ? s->nodes : "", name);
    layer *l = find(t, name);
    if (!l) {
        l = &t->at[t->n];
        *l = (layer){ .solver = s->solver, .runs = calloc(ROUNDS, sizeof *l->runs) };
        if (!l->runs) return NULL;
        memcpy(l->name, name, sizeof name);
        t->n++;
    }
    if (s->macs > l->macs) {
        l->macs = s->macs;
        l->solver = s->solver;
    }
    return l;
}

static bool make_room(table *t, const job *j) {
    t->steps = (int)fac_program_steps(j->program, NULL, 0);
    t->stats = calloc((size_t)t->steps + 1, sizeof *t->stats);
    t->at = calloc((size_t)t->steps + 1, sizeof *t->at);
    t->whole.runs = calloc(ROUNDS, sizeof *t->whole.runs);
    return t->stats && t->at && t->whole.runs;
}

static void drop(table *t) {
    for (int i = 0; i < t->n; i++) free(t->at[i].runs);
    free(t->whole.runs);
    free(t->at);
    free(t->stats);
}

static int once(job *j) {
    fac_error err = { 0 };
    if (fac_program_run(j->program, j->in, j->out, &err) || fac_device_sync(j->device, &err))
        return fail(&err);
    return EXIT_OK;
}

/* One run, which is round k of the table. */
static int watch(job *j, table *t, int k) {
    fac_program_profile(j->program, true);
    const int code = once(j);
    if (code) return code;
    size_t n = fac_program_steps(j->program, t->stats, (size_t)t->steps);
    if (n > (size_t)t->steps) n = (size_t)t->steps;
    for (size_t i = 0; i < n; i++) {
        const fac_step_stat *s = &t->stats[i];
        layer *l = layer_of(t, s);
        if (!l) return fail_text("out of memory");
        const double us = s->runs ? 1e6 * s->seconds / (double)s->runs : 0;
        l->runs[k] += us;
        t->whole.runs[k] += us;
    }
    return EXIT_OK;
}

static void settle(table *t, int rounds) {
    for (int i = 0; i < t->n; i++) t->at[i].us = median_of(t->at[i].runs, rounds);
    t->whole.us = median_of(t->whole.runs, rounds);
}

/* In turn, so that both see the same machine. */
static int measure(job *a, job *b, double seconds, table *x, table *y) {
    int code = once(a), n = 0;
    if (!code) code = once(b);
    if (code) return code;
    if (!make_room(x, a) || !make_room(y, b)) return fail_text("out of memory");
    for (double start = now(); n < ROUNDS && (n < FEWEST || now() - start < seconds); n++) {
        code = watch(a, x, n);
        if (!code) code = watch(b, y, n);
        if (code) return code;
    }
    settle(x, n);
    settle(y, n);
    return EXIT_OK;
}

/* ---- bits and bytes ---- */

/* Of the weights of a layer, as the file has them; bits of its products: 0: it has none. */
typedef struct facts {
    int weight_bits, input_bits;
    double bytes, macs;
} facts;

/* Of a constant: none where it is a parameter or state. */
static double constant_bytes(const fac_graph *g, const char *name) {
    fac_value *v = fac_graph_find((fac_graph *)g, name);
    if (!v || !fac_value_tensor(v)) return 0;
    for (int i = 0; i < fac_graph_params(g); i++)
        if (fac_graph_param(g, i) == v) return 0;
    const fac_type t = fac_value_type(v);
    return (double)fac_type_bytes(&t);
}

/* Weights of packed files are bits and levels, or bytes and scales, which the analysis sees as
 * floats; in ONNX bytes are constants. */
static double stored_bytes(const fac_graph *g, const char *layer_name) {
    char prefix[NAME + 16];
    const int length = snprintf(prefix, sizeof prefix, "%s.weight", layer_name);
    double bytes = 0;
    for (int i = 0; i < fac_graph_params(g); i++) {
        const char *name = fac_value_name(fac_graph_param(g, i));
        const fac_type t = fac_value_type(fac_graph_param(g, i));
        if (name && !strncmp(name, prefix, (size_t)length)) bytes += (double)fac_type_bytes(&t);
    }
    snprintf(prefix, sizeof prefix, "%s.weight.int8", layer_name);
    return bytes + constant_bytes(g, prefix);
}

typedef struct side {
    const fac_graph *graph;
    fac_analysis *of;
} side;

static facts facts_of(const side *s, const char *layer_name) {
    facts f = { 0 };
    char name[NAME];
    const fac_layer *l;
    for (int i = 0; (l = fac_analysis_layer(s->of, i)); i++) {
        name_of(l->name, name);
        if (strcmp(name, layer_name)) continue;
        f.bytes += l->weights;
        if (!(l->macs > f.macs)) continue;
        f.macs = l->macs;
        f.weight_bits = l->weight_bits;
        f.input_bits = l->input_bits;
    }
    const double stored = stored_bytes(s->graph, layer_name);
    if (stored > 0) f.bytes = stored;
    return f;
}

/* ---- telling ---- */

static double ratio_of(double against, double us) { return us > 0 ? against / us : 0; }

static int print_json(const side *a, const side *b, const table *x, table *y) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "layers");
    for (int i = 0; i < x->n; i++) {
        const layer *l = &x->at[i], *other = find(y, l->name);
        const facts f = facts_of(a, l->name), before = facts_of(b, l->name);
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(rows, row);
        cJSON_AddStringToObject(row, "layer", l->name);
        cJSON_AddStringToObject(row, "solver", l->solver);
        cJSON_AddNumberToObject(row, "weight_bits", f.weight_bits);
        cJSON_AddNumberToObject(row, "input_bits", f.input_bits);
        json_number(row, "us", l->us, 6);
        json_number(row, "against_us", other ? other->us : 0, 6);
        cJSON_AddNumberToObject(row, "weight_bytes", f.bytes);
        cJSON_AddNumberToObject(row, "against_weight_bytes", before.bytes);
    }
    json_number(root, "us", x->whole.us, 6);
    json_number(root, "against_us", y->whole.us, 6);
    json_number(root, "ratio", ratio_of(y->whole.us, x->whole.us), 4);
    return json_print(root);
}

static void bits_text(int bits, char to[16]) {
    if (bits && bits < 32)
        snprintf(to, 16, "%d", bits);
    else
        strcpy(to, "-");
}

static int print_table(const side *a, const side *b, const table *x, table *y) {
    int width = 20;
    for (int i = 0; i < x->n; i++)
        if ((int)strlen(x->at[i].name) > width) width = (int)strlen(x->at[i].name);
    printf("%-*s %3s %3s  %-26s %9s %9s %6s %10s %10s\n", width, "layer", "W", "A", "solver", "us",
           "float us", "ratio", "bytes", "of floats");
    for (int i = 0; i < x->n; i++) {
        char w[16], in[16], bytes[32], before[32];
        const layer *l = &x->at[i], *other = find(y, l->name);
        const double before_us = other ? other->us : 0;
        const facts f = facts_of(a, l->name), floats = facts_of(b, l->name);
        bits_text(f.weight_bits, w);
        bits_text(f.input_bits, in);
        printf("%-*s %3s %3s  %-26s %9.1f %9.1f %6.2f %10s %10s\n", width, l->name, w, in,
               l->solver, l->us, before_us, ratio_of(before_us, l->us),
               bytes_text(f.bytes, bytes, sizeof bytes),
               bytes_text(floats.bytes, before, sizeof before));
    }
    printf("%-*s %3s %3s  %-26s %9.1f %9.1f %6.2f\n", width, "whole", "", "", "", x->whole.us,
           y->whole.us, ratio_of(y->whole.us, x->whole.us));
    puts("Times are medians of runs of both in turn.");
    return EXIT_OK;
}

static int tell(const job *a, const job *b, const table *x, table *y, int64_t batch, bool json) {
    fac_error err = { 0 };
    side one = { a->m.graph, NULL }, other = { b->m.graph, NULL };
    fac_status status = fac_analyze(one.graph, batch, &one.of, &err);
    if (!status) status = fac_analyze(other.graph, batch, &other.of, &err);
    const int code = status ? fail(&err)
                     : json ? print_json(&one, &other, x, y)
                            : print_table(&one, &other, x, y);
    fac_analysis_free(one.of);
    fac_analysis_free(other.of);
    return code;
}

int bench_against(job *a, const job_options *o, const char *what, double seconds, bool json) {
    static job b;
    table x = { 0 }, y = { 0 };
    int code = job_open(&b, verb_find("bench"), o, what);
    if (!code) code = measure(a, &b, seconds, &x, &y);
    if (!code) code = tell(a, &b, &x, &y, o->batch, json);
    drop(&x);
    drop(&y);
    job_close(&b);
    return code;
}
