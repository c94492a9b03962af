/* The operators of a model, how often each occurs, and the values that its attributes take. */
#include <stdlib.h>
#include <string.h>
#include "inspect.h"

enum { OPS = 256, KEYS = 32, VALUES = 8, TEXT = 96 };

typedef struct key { char name[32]; int n, more; struct { char text[TEXT]; int count; } value[VALUES]; } key;
typedef struct usage { const char *op; int count, nkeys; double macs, params; key keys[KEYS]; } usage;

static void note(usage *u, const char *name, size_t length, const char *value) {
    int k = 0, v = 0;
    while (k < u->nkeys && (strlen(u->keys[k].name) != length || memcmp(u->keys[k].name, name, length))) k++;
    if (k == KEYS || length >= sizeof u->keys[0].name) return;
    key *to = &u->keys[k];
    if (k == u->nkeys) {
        snprintf(to->name, sizeof to->name, "%.*s", (int)length, name);
        u->nkeys++;
    }
    while (v < to->n && strcmp(to->value[v].text, value)) v++;
    if (v == VALUES) {
        to->more++;
        return;
    }
    if (v == to->n) snprintf(to->value[to->n++].text, TEXT, "%s", value);
    to->value[v].count++;
}

/* "stride=2,2 ceil_mode": words without a value are flags. */
static void note_attrs(usage *u, const char *attrs) {
    for (const char *s = attrs; *s;) {
        const size_t word = strcspn(s, " "), name = strcspn(s, " =");
        char value[TEXT] = "yes";
        if (name < word) snprintf(value, sizeof value, "%.*s", (int)(word - name - 1), s + name + 1);
        note(u, s, name, value);
        s += word + (s[word] == ' ');
    }
}

static void note_weight(usage *u, const fac_layer *l) {
    char text[TEXT];
    fac_dims taps = { 0 };
    if (!l->kernel.n || strncmp(l->op, "conv", 4)) return;
    for (int k = 2; k < l->kernel.n; k++) taps.d[taps.n++] = l->kernel.d[k];
    note(u, "kernel", 6, dims_text(NULL, &taps, text, sizeof text));
}

static int find_usage(const fac_analysis *a, usage **out) {
    usage *u = calloc(OPS, sizeof *u);
    int n = 0;
    for (int i = 0; u && fac_analysis_layer(a, i); i++) {
        const fac_layer *l = fac_analysis_layer(a, i);
        int k = 0;
        while (k < n && strcmp(u[k].op, l->op)) k++;
        if (k == OPS) continue;
        if (k == n) u[n++].op = l->op;
        u[k].count++;
        u[k].macs += l->macs;
        u[k].params += l->params;
        note_weight(&u[k], l);
        note_attrs(&u[k], l->attrs);
    }
    *out = u;
    return n;
}

void ops_print(const fac_analysis *a) {
    usage *u;
    const int n = find_usage(a, &u), widths[] = { -18, 6, 10, 12, -1 };
    table_row(stdout, widths, 5, "operator", "nodes", "MACs", "parameters", "attributes that are not at their defaults");
    for (int k = 0; k < n; k++) {
        char count[16], macs[32], params[32];
        snprintf(count, sizeof count, "%d", u[k].count);
        printf("%-18s  %6s  %10s  %12s  ", u[k].op, count, u[k].macs > 0 ? count_text(u[k].macs, macs, sizeof macs) : "--",
               u[k].params > 0 ? count_text(u[k].params, params, sizeof params) : "--");
        for (int i = 0; i < u[k].nkeys; i++) {
            const key *y = &u[k].keys[i];
            printf("%s%s", i ? "; " : "", y->name);
            for (int v = 0; v < y->n; v++) printf("%s %s x%d", v ? "," : "", y->value[v].text, y->value[v].count);
            if (y->more) printf(", others x%d", y->more);
        }
        putchar('\n');
    }
    free(u);
}

cJSON *ops_json(const fac_analysis *a) {
    usage *u;
    cJSON *all = cJSON_CreateArray();
    const int n = find_usage(a, &u);
    for (int k = 0; k < n; k++) {
        cJSON *j = cJSON_CreateObject(), *attrs = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "op", u[k].op);
        cJSON_AddNumberToObject(j, "nodes", u[k].count);
        json_number(j, "macs", u[k].macs, 17);
        json_number(j, "params", u[k].params, 17);
        for (int i = 0; i < u[k].nkeys; i++) {
            cJSON *values = cJSON_AddObjectToObject(attrs, u[k].keys[i].name);
            for (int v = 0; v < u[k].keys[i].n; v++)
                cJSON_AddNumberToObject(values, u[k].keys[i].value[v].text, u[k].keys[i].value[v].count);
        }
        cJSON_AddItemToObject(j, "attributes", attrs);
        cJSON_AddItemToArray(all, j);
    }
    free(u);
    return all;
}
