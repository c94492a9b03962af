/* facula inspect --onnx: the operators of a file as it spells them, ours or not. */
#include <stdlib.h>
#include <string.h>
#include "inspect.h"
#include "analyze/summary/summary.h"

/* ---- operators: nodes of one type, domain and opset ---- */

enum { KEYS = 48, VALUES = 64, SHOWN = 6 };
typedef struct value {
    const char *text;
    int count;
    bool given;
} value;
typedef struct key {
    const char *name;
    value *at;
    int n;
    bool number;
    double least, most;
} key;
typedef struct group {
    const fac_onnx_listed *first;
    int nodes, nkeys;
    key *keys;
} group;
typedef struct groups {
    group *at;
    int n;
} groups;

static bool same_operator(const fac_onnx_listed *a, const fac_onnx_listed *b) {
    return a->opset == b->opset && a->whose == b->whose && !strcmp(a->type, b->type) &&
           !strcmp(a->domain, b->domain);
}

static key *key_of(group *g, const char *name) {
    for (int k = 0; k < g->nkeys; k++)
        if (!strcmp(g->keys[k].name, name)) return &g->keys[k];
    if (g->nkeys == KEYS) return NULL;
    key *to = &g->keys[g->nkeys];
    *to = (key){ .name = name, .at = calloc(VALUES, sizeof *to->at) };
    if (to->at) g->nkeys++;
    return to->at ? to : NULL;
}

/* A single number widens the range; a value beyond VALUES only does that. */
static void note_value(key *k, const fac_onnx_said *said) {
    char *end;
    int v = 0;
    const double x = strtod(said->value, &end);
    if (!*end && end != said->value) {
        if (!k->number || x < k->least) k->least = x;
        if (!k->number || x > k->most) k->most = x;
        k->number = true;
    }
    while (v < k->n && (k->at[v].given != said->given || strcmp(k->at[v].text, said->value))) v++;
    if (v == VALUES) return;
    if (v == k->n) k->at[k->n++] = (value){ said->value, 0, said->given };
    k->at[v].count++;
}

static bool note_node(groups *all, const fac_onnx_listed *n) {
    int i = 0;
    while (i < all->n && !same_operator(all->at[i].first, n)) i++;
    group *g = &all->at[i];
    if (i == all->n) {
        *g = (group){ .first = n, .keys = calloc(KEYS, sizeof *g->keys) };
        if (!g->keys) return false;
        all->n++;
    }
    g->nodes++;
    for (int k = 0; k < n->nattrs; k++) {
        key *to = key_of(g, n->attrs[k].name);
        if (to) note_value(to, &n->attrs[k]);
    }
    return true;
}

static void groups_free(groups *all) {
    for (int i = 0; i < all->n; i++) {
        for (int k = 0; k < all->at[i].nkeys; k++) free(all->at[i].keys[k].at);
        free(all->at[i].keys);
    }
    free(all->at);
}

static bool groups_find(const fac_onnx_listing *l, groups *all) {
    bool good = (all->at = calloc((size_t)fac_onnx_listing_count(l) + 1, sizeof *all->at)) != NULL;
    for (int i = 0; good && fac_onnx_listing_node(l, i); i++)
        good = note_node(all, fac_onnx_listing_node(l, i));
    return good;
}

static const char *domain_text(const fac_onnx_listed *n) {
    return *n->domain ? n->domain : "ai.onnx";
}

/* ---- text ---- */

static void key_print(const key *k) {
    char least[32], most[32];
    printf("  %-22s", k->name);
    if (k->n > SHOWN && k->number) {
        snprintf(least, sizeof least, "%.9g", k->least);
        snprintf(most, sizeof most, "%.9g", k->most);
        printf(" %s to %s, %d values\n", least, most, k->n);
        return;
    }
    for (int v = 0; v < k->n && v < SHOWN; v++)
        printf("%s %s%s x%d", text_if(v, ","), k->at[v].text,
               text_if(!k->at[v].given, " (default)"), k->at[v].count);
    if (k->n > SHOWN) printf(", and %d other values", k->n - SHOWN);
    putchar('\n');
}

static void groups_print(const groups *all) {
    const int widths[] = { -24, -20, 6, 7, -10 };
    char opset[24], nodes[16];
    table_row(stdout, widths, 5, "operator", "domain", "opset", "nodes", "whose");
    for (int i = 0; i < all->n; i++) {
        const group *g = &all->at[i];
        snprintf(opset, sizeof opset, "%lld", (long long)g->first->opset);
        snprintf(nodes, sizeof nodes, "%d", g->nodes);
        table_row(stdout, widths, 5, g->first->type, domain_text(g->first),
                  g->first->opset ? opset : "none", nodes, fac_onnx_whose_name(g->first->whose));
        for (int k = 0; k < g->nkeys; k++) key_print(&g->keys[k]);
    }
}

/* "batch_size,3,224,224"; an open dim without a name is ? */
static const char *shape_text(const fac_onnx_arg *a, char *to, size_t size) {
    size_t n = 0;
    if (a->rank < 0) return "unknown";
    if (!a->rank) return "scalar";
    for (int k = 0; k < a->rank && n < size; k++) {
        const fac_onnx_dim *d = &a->dims[k];
        if (d->size >= 0)
            n += (size_t)snprintf(to + n, size - n, "%s%lld", k ? "," : "", (long long)d->size);
        else
            n += (size_t)snprintf(to + n, size - n, "%s%s", text_if(k, ","), text_or(d->name, "?"));
    }
    return to;
}

static void arg_print(const char *what, const fac_onnx_arg *a) {
    const int widths[] = { 2, -8, -10, -28, 16, 2, -1 };
    char shape[160], bytes[48];
    if (!*a->name) return;
    table_row(stdout, widths, 7, "", what, a->dtype ? a->dtype : "unknown",
              shape_text(a, shape, sizeof shape),
              a->rank < 0 ? "unknown" : digits_text(a->bytes, bytes, sizeof bytes), "B", a->name);
}

static void node_print(const fac_onnx_listed *n) {
    printf("\n%s%s%s  %s%s%s%s", n->domain, text_if(*n->domain, ":"), n->type,
           *n->name ? n->name : "(no name)", text_if(*n->inside, "  in "), n->inside,
           n->whose == FAC_ONNX_KNOWN ? "" : "  ");
    puts(n->whose == FAC_ONNX_KNOWN ? "" : fac_onnx_whose_name(n->whose));
    for (int k = 0; k < n->nattrs; k++)
        printf("  %-22s %s%s\n", n->attrs[k].name, n->attrs[k].value,
               n->attrs[k].given ? "" : " (default)");
    for (int k = 0; k < n->nin; k++) {
        const fac_onnx_role role = n->in[k].role;
        arg_print(role == FAC_ONNX_DATA ? "input" : fac_onnx_role_name(role), &n->in[k]);
    }
    for (int k = 0; k < n->nout; k++) arg_print("output", &n->out[k]);
}

static void sum_print(const char *what, double bytes, const char *why) {
    char text[48];
    printf("%-26s %16s B  %s\n", what, digits_text(bytes, text, sizeof text), why);
}

static void sums_print(const fac_onnx_listing *l) {
    const fac_onnx_sums s = fac_onnx_listing_sums(l);
    const double data = s.results - s.reshaped;
    putchar('\n');
    sum_print("inputs", s.inputs, "of the graph; an open dim counts once, here and below");
    sum_print("results", s.results, "of the nodes of the main graph, Constants apart");
    sum_print("prepared", s.prepared,
              "results of nodes that read nothing but what the file stores");
    sum_print("shape tensors", s.shapes, "integers that nodes compute as sizes");
    sum_print("scalar sizes", s.scalars, "the same without dims");
    sum_print("reshaped", s.reshaped,
              "results of a shape that nodes compute: onnx.shape_inference does not know it");
    sum_print("activations", data + s.shapes,
              "results and shape tensors that onnx.shape_inference knows");
    sum_print("activations and inputs", data + s.shapes + s.inputs, "the same with the inputs");
    sum_print("stored", s.weights, "tensors of the file, each once");
    if (s.unknown)
        printf("%-26s %16d    results have a shape that is unknown; they count 0\n", "unknown",
               s.unknown);
}

/* ---- JSON ---- */

static cJSON *arg_json(const fac_onnx_arg *a, bool input) {
    cJSON *j = cJSON_CreateObject(),
          *shape = a->rank < 0 ? cJSON_CreateNull() : cJSON_CreateArray();
    cJSON_AddStringToObject(j, "name", a->name);
    if (input) cJSON_AddStringToObject(j, "role", fac_onnx_role_name(a->role));
    cJSON_AddStringToObject(j, "dtype", a->dtype ? a->dtype : "unknown");
    for (int k = 0; k < a->rank; k++) {
        const fac_onnx_dim *d = &a->dims[k];
        cJSON *size = d->size < 0 ? cJSON_CreateString(text_or(d->name, "?"))
                                  : cJSON_CreateNumber((double)d->size);
        cJSON_AddItemToArray(shape, size);
    }
    cJSON_AddItemToObject(j, "shape", shape);
    json_number(j, "bytes", a->bytes, 17);
    return j;
}

static cJSON *args_json(const fac_onnx_arg *a, int n, bool input) {
    cJSON *all = cJSON_CreateArray();
    for (int k = 0; k < n; k++)
        if (*a[k].name) cJSON_AddItemToArray(all, arg_json(&a[k], input));
    return all;
}

static void head_json(cJSON *j, const fac_onnx_listed *n) {
    cJSON_AddStringToObject(j, "type", n->type);
    cJSON_AddStringToObject(j, "domain", domain_text(n));
    cJSON_AddNumberToObject(j, "opset", (double)n->opset);
    cJSON_AddStringToObject(j, "whose", fac_onnx_whose_name(n->whose));
}

static cJSON *node_json(const fac_onnx_listed *n) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "name", n->name);
    head_json(j, n);
    cJSON_AddStringToObject(j, "inside", n->inside);
    cJSON *attrs = cJSON_AddArrayToObject(j, "attributes");
    for (int k = 0; k < n->nattrs; k++) {
        cJSON *a = cJSON_CreateObject();
        cJSON_AddStringToObject(a, "name", n->attrs[k].name);
        cJSON_AddStringToObject(a, "value", n->attrs[k].value);
        cJSON_AddBoolToObject(a, "given", n->attrs[k].given);
        cJSON_AddItemToArray(attrs, a);
    }
    cJSON_AddItemToObject(j, "inputs", args_json(n->in, n->nin, true));
    cJSON_AddItemToObject(j, "outputs", args_json(n->out, n->nout, false));
    return j;
}

static cJSON *key_json(const key *k) {
    cJSON *j = cJSON_CreateObject(), *values = cJSON_AddArrayToObject(j, "values");
    for (int v = 0; v < k->n; v++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "value", k->at[v].text);
        cJSON_AddNumberToObject(one, "nodes", k->at[v].count);
        cJSON_AddBoolToObject(one, "given", k->at[v].given);
        cJSON_AddItemToArray(values, one);
    }
    if (k->number) json_number(j, "least", k->least, 17);
    if (k->number) json_number(j, "most", k->most, 17);
    return j;
}

static cJSON *group_json(const group *g) {
    cJSON *j = cJSON_CreateObject();
    head_json(j, g->first);
    cJSON_AddNumberToObject(j, "nodes", g->nodes);
    cJSON *attrs = cJSON_AddObjectToObject(j, "attributes");
    for (int k = 0; k < g->nkeys; k++)
        cJSON_AddItemToObject(attrs, g->keys[k].name, key_json(&g->keys[k]));
    return j;
}

static cJSON *sums_json(const fac_onnx_listing *l) {
    const fac_onnx_sums s = fac_onnx_listing_sums(l);
    const double data = s.results - s.reshaped;
    cJSON *j = cJSON_CreateObject();
    json_number(j, "input_bytes", s.inputs, 17);
    json_number(j, "result_bytes", s.results, 17);
    json_number(j, "prepared_bytes", s.prepared, 17);
    json_number(j, "shape_tensor_bytes", s.shapes, 17);
    json_number(j, "scalar_size_bytes", s.scalars, 17);
    json_number(j, "reshaped_bytes", s.reshaped, 17);
    json_number(j, "activation_bytes", data + s.shapes, 17);
    json_number(j, "activation_and_input_bytes", data + s.shapes + s.inputs, 17);
    json_number(j, "stored_bytes", s.weights, 17);
    cJSON_AddNumberToObject(j, "unknown", s.unknown);
    return j;
}

static int print_json(const fac_onnx_listing *l, const groups *all, const char *path) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema_version", JSON_SCHEMA);
    const int code = file_json(root, path);
    if (code) {
        cJSON_Delete(root);
        return code;
    }
    cJSON_AddItemToObject(root, "totals", sums_json(l));
    cJSON *operators = cJSON_AddArrayToObject(root, "operators"),
          *nodes = cJSON_AddArrayToObject(root, "nodes");
    for (int i = 0; i < all->n; i++) cJSON_AddItemToArray(operators, group_json(&all->at[i]));
    for (int i = 0; fac_onnx_listing_node(l, i); i++)
        cJSON_AddItemToArray(nodes, node_json(fac_onnx_listing_node(l, i)));
    return json_print(root);
}

/* ---- the view ---- */

static int print(const fac_onnx_listing *l, const groups *all, const char *path, bool verbose) {
    const int code = file_print(path);
    if (code) return code;
    putchar('\n');
    groups_print(all);
    for (int i = 0; verbose && fac_onnx_listing_node(l, i); i++)
        node_print(fac_onnx_listing_node(l, i));
    sums_print(l);
    return EXIT_OK;
}

int inspect_onnx(const char *path, bool verbose, bool json) {
    fac_error err = { 0 };
    fac_onnx_listing *l;
    groups all = { 0 };
    if (!strncmp(path, "zoo:", 4) || ends_with(path, ".txt"))
        return fail_text("--onnx is for ONNX files, not for %s", path);
    if (fac_onnx_list_nodes(path, &l, &err)) return fail(&err);
    int code = groups_find(l, &all) ? EXIT_OK : fail_text("out of memory");
    if (!code) code = json ? print_json(l, &all, path) : print(l, &all, path, verbose);
    groups_free(&all);
    fac_onnx_listing_free(l);
    return code;
}
