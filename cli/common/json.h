/* JSON to stdout through cJSON. */
#ifndef FACULA_CLI_JSON_H
#define FACULA_CLI_JSON_H
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli.h"
#include "json_memory.h"

/* Of all that the command prints as JSON, see docs/JSON.md: raised when a key goes away or changes
 * its meaning. */
enum { JSON_SCHEMA = 1 };

/* The text of j, which is freed: valid UTF-8 without control characters, whatever names are in it.
 * The caller's to free; NULL: no memory, also for any item before.  The only way from cJSON to a
 * stream or a file. */
char *json_string(cJSON *j, bool pretty);
/* Prints and frees; NULL (no memory) is an error.  Every object says its schema_version. */
int json_print(cJSON *j);
int json_line(cJSON *j);                                 /* in one line, as it is */
int json_write(const char *path, cJSON *j, bool pretty); /* a whole file; frees j */

/* A number with as many digits as it deserves. */
static inline void json_number(cJSON *to, const char *key, double x, int digits) {
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, x);
    cJSON_AddItemToObject(to, key, cJSON_CreateRaw(text));
}

static inline cJSON *json_dims(const fac_dims *d) {
    cJSON *a = cJSON_CreateArray();
    for (int k = 0; k < d->n; k++) cJSON_AddItemToArray(a, cJSON_CreateNumber((double)d->d[k]));
    return a;
}

/* The same of a graph's values: sizes that are open by their names. */
static inline cJSON *json_shape(const fac_graph *g, const fac_dims *d) {
    cJSON *all = cJSON_CreateArray();
    for (int k = 0; k < d->n; k++) {
        const char *name = d->d[k] < 0 ? fac_symbol_name(g, d->d[k]) : NULL;
        cJSON_AddItemToArray(all, d->d[k] < 0 ? cJSON_CreateString(text_or(name, "?"))
                                              : cJSON_CreateNumber((double)d->d[k]));
    }
    return all;
}
/* Of a type; null when it is unknown. */
static inline cJSON *json_type(const fac_graph *g, const fac_type *t) {
    return t->dtype == FAC_NONE ? cJSON_CreateNull() : json_shape(g, &t->dims);
}

/* Operands of a layer. */
static inline cJSON *json_values(const fac_graph *g, const fac_layer_value *v, int n) {
    cJSON *all = cJSON_CreateArray();
    for (int k = 0; k < n; k++) {
        cJSON *j = cJSON_CreateObject();
        const bool known = v[k].type.dtype != FAC_NONE;
        const char *dtype = known ? fac_dtype_get(v[k].type.dtype)->name : "unknown";
        cJSON_AddStringToObject(j, "name", v[k].name);
        cJSON_AddStringToObject(j, "port", v[k].port);
        cJSON_AddStringToObject(j, "role", fac_role_name(v[k].role));
        cJSON_AddStringToObject(j, "dtype", dtype);
        cJSON_AddItemToObject(j, "shape", json_type(g, &v[k].type));
        json_number(j, "bytes", v[k].bytes, 17);
        cJSON_AddItemToArray(all, j);
    }
    return all;
}

/* What inspect and summary say of each layer alike: its names, ... */
static inline cJSON *json_layer(const fac_layer *l) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "name", l->name);
    cJSON_AddStringToObject(j, "module", l->module);
    cJSON_AddStringToObject(j, "op", l->op);
    cJSON_AddStringToObject(j, "kind", l->kind);
    return j;
}
/* ...and all that it reads and writes. */
static inline void json_layer_facts(cJSON *j, const fac_graph *g, const fac_layer *l) {
    cJSON_AddStringToObject(j, "node", l->node);
    cJSON_AddItemToObject(j, "inputs", json_values(g, l->inputs, l->nin));
    cJSON_AddItemToObject(j, "outputs", json_values(g, l->outputs, l->nout));
    if (!l->weight_bits) return;
    cJSON_AddNumberToObject(j, "weight_bits", l->weight_bits);
    cJSON_AddNumberToObject(j, "input_bits", l->input_bits);
    json_number(j, "binary_ops", l->binary_ops, 17);
}

/* How few bits the products of all layers have. */
static inline void json_bits(cJSON *j, const fac_totals *t) {
    json_number(j, "binary_macs", t->binary_macs, 17);
    json_number(j, "integer_macs", t->integer_macs, 17);
    json_number(j, "binary_ops", t->binary_ops, 17);
    json_number(j, "packed_bits", 8 * t->weights - t->spared_bits, 17);
}
#endif
