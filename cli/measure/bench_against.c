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
typedef struct side {
    const fac_graph *graph;
    fac_analysis *of;
    const fac_analysis *against; /* of the other one */
} side;
typedef struct table {
    side from;
    layer *at;
    int n, steps;
    layer whole;
    fac_step_stat *stats; /* scratch */
} table;

/* Is it an op, as nodes without a name are called: "relu", "conv2d_3"? */
static bool is_op(const char *name) {
    char op[NAME];
    snprintf(op, sizeof op, "%s", name);
    char *number = strrchr(op, '_');
    if (fac_op_find(op)) return true;
    if (!number || !number[1] || number[1 + strspn(number + 1, "0123456789")]) return false;
    *number = 0;
    return fac_op_find(op) != NULL;
}

static bool has_layer(const fac_analysis *of, const char *name) {
    const fac_layer *l;
    for (int i = 0; (l = fac_analysis_layer(of, i)); i++)
        if (l->macs > 0 && !strcmp(l->name, name)) return true;
    return false;
}

/* "conv2" of "conv2.conv2d_3", all of "layer1.0.conv2"; without a dot what both models call a layer
 * so, else "other". */
static void name_of(const side *s, const char *nodes, char to[NAME]) {
    snprintf(to, NAME, "%.*s", (int)strcspn(nodes, " +,"), nodes);
    char *dot = strrchr(to, '.');
    if (dot && is_op(dot + 1))
        *dot = 0;
    else if (!dot && !(has_layer(s->of, to) && has_layer(s->against, to)))
        strcpy(to, "other");
}

static layer *find(table *t, const char *name) {
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->at[i].name, name)) return &t->at[i];
    return NULL;
}

static layer *layer_of(table *t, const fac_step_stat *s) {
    char name[NAME];
    name_of(&t->from, s->nodes ? s->nodes : "", name);
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
    fac_analysis_free(t->from.of);
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

static double stored_bytes(const fac_graph *g, const char *name) {
    fac_value *v = fac_graph_find((fac_graph *)g, name);
    if (!v || !fac_value_tensor(v)) return 0;
    const fac_type t = fac_value_type(v);
    return (double)fac_type_bytes(&t);
}

/* Weights of packed files are bits and levels, or bytes and scales, which the analysis sees as the
 * floats that they stand for. */
static double weight_bytes(const fac_graph *g, const fac_layer_value *v) {
    static const char *const parts[][2] = { { ".bits", ".levels" }, { ".int8", ".scale" } };
    char other[2 * NAME];
    const double own = stored_bytes(g, v->name);
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(v->name), ending = strlen(parts[k][0]);
        if (n < ending || strcmp(v->name + n - ending, parts[k][0])) continue;
        snprintf(other, sizeof other, "%.*s%s", (int)(n - ending), v->name, parts[k][1]);
        return own + stored_bytes(g, other);
    }
    return own > 0 ? own : v->bytes;
}

/* In ONNX bytes are constants, named after the layer that reads what is made of them. */
static double onnx_bytes(const fac_graph *g, const char *layer_name) {
    char name[2 * NAME];
    snprintf(name, sizeof name, "%s.weight.int8", layer_name);
    const double bytes = stored_bytes(g, name);
    snprintf(name, sizeof name, "%s.weight.scale", layer_name);
    return bytes > 0 ? bytes + stored_bytes(g, name) : 0;
}

static double bytes_of(const fac_graph *g, const fac_layer *l, const char *layer_name) {
    double bytes = onnx_bytes(g, layer_name);
    if (bytes > 0) return bytes;
    for (int i = 0; i < l->nin; i++) {
        const fac_role role = l->inputs[i].role;
        if (role == FAC_ROLE_WEIGHT || role == FAC_ROLE_BUFFER)
            bytes += weight_bytes(g, &l->inputs[i]);
    }
    return bytes;
}

static facts facts_of(const side *s, const char *layer_name) {
    facts f = { 0 };
    char name[NAME];
    const fac_layer *l;
    for (int i = 0; (l = fac_analysis_layer(s->of, i)); i++) {
        name_of(s, l->name, name);
        if (strcmp(name, layer_name) || !(l->macs > 0)) continue;
        f.bytes += bytes_of(s->graph, l, layer_name);
        if (!(l->macs > f.macs)) continue;
        f.macs = l->macs;
        f.weight_bits = l->weight_bits;
        f.input_bits = l->input_bits;
    }
    return f;
}

/* ---- telling ---- */

static double ratio_of(double against, double us) { return us > 0 ? against / us : 0; }

static int print_json(const table *x, table *y) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "layers");
    for (int i = 0; i < x->n; i++) {
        const layer *l = &x->at[i], *other = find(y, l->name);
        const facts f = facts_of(&x->from, l->name), before = facts_of(&y->from, l->name);
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

static int print_table(const table *x, table *y) {
    int width = 20;
    for (int i = 0; i < x->n; i++)
        if ((int)strlen(x->at[i].name) > width) width = (int)strlen(x->at[i].name);
    printf("%-*s %3s %3s  %-26s %9s %9s %6s %10s %10s\n", width, "layer", "W", "A", "solver", "us",
           "float us", "ratio", "bytes", "of floats");
    for (int i = 0; i < x->n; i++) {
        char w[16], in[16], bytes[32], before[32];
        const layer *l = &x->at[i], *other = find(y, l->name);
        const double before_us = other ? other->us : 0;
        const facts f = facts_of(&x->from, l->name), floats = facts_of(&y->from, l->name);
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

static int analyze(table *t, const job *j, int64_t batch) {
    fac_error err = { 0 };
    t->from.graph = j->m.graph;
    return fac_analyze(t->from.graph, batch, &t->from.of, &err) ? fail(&err) : EXIT_OK;
}

int bench_against(job *a, const job_options *o, const char *what, double seconds, bool json) {
    static job b;
    table x = { 0 }, y = { 0 };
    int code = job_open(&b, verb_find("bench"), o, what);
    if (!code) code = analyze(&x, a, o->batch);
    if (!code) code = analyze(&y, &b, o->batch);
    x.from.against = y.from.of;
    y.from.against = x.from.of;
    if (!code) code = measure(a, &b, seconds, &x, &y);
    if (!code) code = json ? print_json(&x, &y) : print_table(&x, &y);
    drop(&x);
    drop(&y);
    job_close(&b);
    return code;
}
