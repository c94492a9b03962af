/* The operators of a model, how often each occurs, and the values that its attributes take. */
#include <stdlib.h>
#include <string.h>
#include "inspect.h"

enum { OPS = 256, KEYS = 32, VALUES = 8, TEXT = 96 };

typedef struct key {
    char name[32];
    int n, more;
    struct {
        char text[TEXT];
        int count;
    } value[VALUES];
} key;
typedef struct range {
    int64_t lo, hi;
} range;
typedef struct usage {
    const char *op;
    int count, nkeys;
    double macs, params;
    range in, out; /* channels of those with a weight; lo 0: none */
    key keys[KEYS];
} usage;

static void note(usage *u, const char *name, size_t length, const char *value) {
    int k = 0, v = 0;
    while (k < u->nkeys &&
           (strlen(u->keys[k].name) != length || memcmp(u->keys[k].name, name, length)))
        k++;
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
        if (name < word)
            snprintf(value, sizeof value, "%.*s", (int)(word - name - 1), s + name + 1);
        note(u, s, name, value);
        s += word + (s[word] == ' ');
    }
}

static void widen(range *r, const fac_dims *d, bool last) {
    if (d->n < 2) return;
    const int64_t n = d->d[last ? d->n - 1 : 1];
    if (n < 1) return;
    if (!r->lo || n < r->lo) r->lo = n;
    if (n > r->hi) r->hi = n;
}

static void note_weight(usage *u, const fac_layer *l) {
    char text[TEXT];
    fac_dims taps = { 0 };
    if (!l->kernel.n || !l->macs) return;
    const bool conv = !strncmp(l->op, "conv", 4);
    widen(&u->in, &l->in.dims, !conv);
    widen(&u->out, &l->out.dims, !conv);
    if (!conv) return;
    for (int k = 2; k < l->kernel.n; k++) taps.d[taps.n++] = l->kernel.d[k];
    note(u, "kernel", 6, dims_text(NULL, &taps, text, sizeof text));
}

/* How many; -1: no memory. */
static int find_usage(const fac_analysis *a, usage **out) {
    usage *u = calloc(OPS, sizeof *u);
    int n = 0;
    if (!u) return -1;
    for (int i = 0; fac_analysis_layer(a, i); i++) {
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

static int seen(const key *k) {
    int n = k->more;
    for (int v = 0; v < k->n; v++) n += k->value[v].count;
    return n;
}

static const char *range_text(range r, char to[48]) {
    snprintf(to, 48, r.lo < r.hi ? "%lld..%lld" : "%lld", (long long)r.lo, (long long)r.hi);
    return to;
}

int ops_print(const fac_analysis *a) {
    usage *u;
    const int n = find_usage(a, &u), widths[] = { -18, 6, 10, 12, -1 };
    if (n < 0) return fail_text("out of memory");
    table_row(stdout, widths, 5, "operator", "nodes", "MACs", "parameters",
              "attributes that are not at their defaults");
    for (int k = 0; k < n; k++) {
        char count[16], macs[32], params[32];
        snprintf(count, sizeof count, "%d", u[k].count);
        printf("%-18s  %6s  %10s  %12s  ", u[k].op, count,
               u[k].macs > 0 ? count_text(u[k].macs, macs, sizeof macs) : "--",
               u[k].params > 0 ? count_text(u[k].params, params, sizeof params) : "--");
        for (int i = 0; i < u[k].nkeys; i++) {
            const key *y = &u[k].keys[i];
            printf("%s%s", i ? "; " : "", y->name);
            for (int v = 0; v < y->n; v++)
                printf("%s %s x%d", v ? "," : "", y->value[v].text, y->value[v].count);
            if (y->more) printf(", others x%d", y->more);
            const int rest = u[k].count - seen(y);
            if (rest) printf(", default x%d", rest);
        }
        if (u[k].in.lo && u[k].out.lo) {
            char from[48], to[48];
            printf("%schannels %s -> %s", u[k].nkeys ? "; " : "", range_text(u[k].in, from),
                   range_text(u[k].out, to));
        }
        putchar('\n');
    }
    free(u);
    return EXIT_OK;
}

cJSON *ops_json(const fac_analysis *a) {
    usage *u = NULL;
    cJSON *all = cJSON_CreateArray();
    const int n = find_usage(a, &u);
    if (n < 0) json_lose();
    for (int k = 0; k < n; k++) {
        cJSON *j = cJSON_CreateObject(), *attrs = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "op", u[k].op);
        cJSON_AddNumberToObject(j, "nodes", u[k].count);
        json_number(j, "macs", u[k].macs, 17);
        json_number(j, "params", u[k].params, 17);
        for (int i = 0; i < u[k].nkeys; i++) {
            cJSON *values = cJSON_AddObjectToObject(attrs, u[k].keys[i].name);
            for (int v = 0; v < u[k].keys[i].n; v++)
                cJSON_AddNumberToObject(values, u[k].keys[i].value[v].text,
                                        u[k].keys[i].value[v].count);
        }
        cJSON_AddItemToObject(j, "attributes", attrs);
        if (u[k].in.lo && u[k].out.lo) {
            const int64_t ends[] = { u[k].in.lo, u[k].in.hi, u[k].out.lo, u[k].out.hi };
            cJSON *channels = cJSON_AddArrayToObject(j, "channels");
            for (int i = 0; i < 4; i++)
                cJSON_AddItemToArray(channels, cJSON_CreateNumber((double)ends[i]));
        }
        cJSON_AddItemToArray(all, j);
    }
    free(u);
    return all;
}
