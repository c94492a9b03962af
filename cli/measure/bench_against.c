/* facula bench --against: two models in turn, and layer by layer. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "json.h"

enum { NAME = 128, ROUNDS = 2000 };

/* Steps of one layer: those whose names begin alike. */
typedef struct layer {
    char name[NAME];
    const char *solver; /* of the step with the most multiply-adds */
    double us, macs;
} layer;
typedef struct table {
    layer *at;
    int n;
    double us;
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

static void add(table *t, const fac_step_stat *s) {
    char name[NAME];
    name_of(s->nodes ? s->nodes : "", name);
    layer *l = find(t, name);
    if (!l) {
        l = &t->at[t->n++];
        *l = (layer){ .solver = s->solver };
        memcpy(l->name, name, sizeof name);
    }
    const double us = s->runs ? 1e6 * s->seconds / (double)s->runs : 0;
    l->us += us;
    t->us += us;
    if (s->macs <= l->macs) return;
    l->macs = s->macs;
    l->solver = s->solver;
}

static int collect(const job *j, table *t) {
    const size_t n = fac_program_steps(j->program, NULL, 0);
    fac_step_stat *s = calloc(n + 1, sizeof *s);
    t->at = calloc(n + 1, sizeof *t->at);
    if (s) fac_program_steps(j->program, s, n);
    for (size_t i = 0; s && t->at && i < n; i++) add(t, &s[i]);
    free(s);
    return t->at ? EXIT_OK : fail_text("out of memory");
}

static int once(job *j) {
    fac_error err = { 0 };
    if (fac_program_run(j->program, j->in, j->out, &err) || fac_device_sync(j->device, &err))
        return fail(&err);
    return EXIT_OK;
}

/* In turn, so that both see the same machine. */
static int measure(job *a, job *b, double seconds) {
    int code = once(a);
    if (!code) code = once(b);
    if (code) return code;
    fac_program_profile(a->program, true);
    fac_program_profile(b->program, true);
    const double start = now();
    for (int i = 0; i < ROUNDS && !code && (i < 5 || now() - start < seconds); i++) {
        code = once(a);
        if (!code) code = once(b);
    }
    return code;
}

/* ---- bits ---- */

/* Planes of a layer's weights and inputs; 0: floats, or not known by these names. */
static int planes_of(const job *j, const char *layer_name, const char *ending) {
    char name[NAME + 32];
    snprintf(name, sizeof name, "%s.%s", layer_name, ending);
    fac_value *v = fac_graph_find(j->m.graph, name);
    return v ? (int)fac_value_type(v).dims.d[0] : 0;
}

static double bytes_of(const job *j, const char *layer_name) {
    static const char *const endings[] = { "weight", "weight.bits", "weight.levels" };
    double bytes = 0;
    for (int k = 0; k < 3; k++) {
        char name[NAME + 32];
        snprintf(name, sizeof name, "%s.%s", layer_name, endings[k]);
        fac_value *v = fac_graph_find(j->m.graph, name);
        const fac_type t = v ? fac_value_type(v) : (fac_type){ FAC_NONE, { 0 } };
        if (v) bytes += (double)fac_type_bytes(&t);
    }
    return bytes;
}

/* ---- telling ---- */

static double ratio_of(double against, double us) { return us > 0 ? against / us : 0; }

static int print_json(const job *a, const job *b, const table *x, table *y) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "layers");
    for (int i = 0; i < x->n; i++) {
        const layer *l = &x->at[i], *other = find(y, l->name);
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(rows, row);
        cJSON_AddStringToObject(row, "layer", l->name);
        cJSON_AddStringToObject(row, "solver", l->solver);
        cJSON_AddNumberToObject(row, "weight_bits", planes_of(a, l->name, "weight.bits"));
        cJSON_AddNumberToObject(row, "input_bits", planes_of(a, l->name, "input.basis"));
        json_number(row, "us", l->us, 6);
        json_number(row, "against_us", other ? other->us : 0, 6);
        cJSON_AddNumberToObject(row, "weight_bytes", bytes_of(a, l->name));
        cJSON_AddNumberToObject(row, "against_weight_bytes", bytes_of(b, l->name));
    }
    json_number(root, "us", x->us, 6);
    json_number(root, "against_us", y->us, 6);
    json_number(root, "ratio", ratio_of(y->us, x->us), 4);
    return json_print(root);
}

static void bits_text(int bits, char to[8]) {
    if (bits)
        snprintf(to, 8, "%d", bits);
    else
        strcpy(to, "-");
}

static int print_table(const job *a, const job *b, const table *x, table *y) {
    printf("%-20s %3s %3s  %-26s %9s %9s %6s %10s %10s\n", "layer", "W", "A", "solver", "us",
           "float us", "ratio", "bytes", "of floats");
    for (int i = 0; i < x->n; i++) {
        char w[8], in[8], bytes[32], before[32];
        const layer *l = &x->at[i], *other = find(y, l->name);
        const double before_us = other ? other->us : 0;
        bits_text(planes_of(a, l->name, "weight.bits"), w);
        bits_text(planes_of(a, l->name, "input.basis"), in);
        printf("%-20s %3s %3s  %-26s %9.1f %9.1f %6.2f %10s %10s\n", l->name, w, in, l->solver,
               l->us, before_us, ratio_of(before_us, l->us),
               bytes_text(bytes_of(a, l->name), bytes, sizeof bytes),
               bytes_text(bytes_of(b, l->name), before, sizeof before));
    }
    printf("%-20s %3s %3s  %-26s %9.1f %9.1f %6.2f\n", "whole", "", "", "", x->us, y->us,
           ratio_of(y->us, x->us));
    return EXIT_OK;
}

int bench_against(job *a, const job_options *o, const char *what, double seconds, bool json) {
    static job b;
    table x = { 0 }, y = { 0 };
    int code = job_open(&b, verb_find("bench"), o, what);
    if (!code) code = measure(a, &b, seconds);
    if (!code) code = collect(a, &x);
    if (!code) code = collect(&b, &y);
    if (!code) code = json ? print_json(a, &b, &x, &y) : print_table(a, &b, &x, &y);
    free(x.at);
    free(y.at);
    job_close(&b);
    return code;
}
