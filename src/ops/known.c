/* See known.h. */
#include "ops/known.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "graph/graph_internal.h"

fac_item fac_contents_get(const fac_contents *c, int k) {
    return (fac_item){ c->v[k], (c->symbolic >> k & 1) != 0 };
}

void fac_contents_put(fac_contents *c, int k, fac_item x) {
    c->v[k] = x.v;
    c->symbolic = (c->symbolic & ~(1u << k)) | (unsigned)x.symbolic << k;
}

/* As the element type stores it: i32 arithmetic wraps at 32 bits. */
static int64_t wrapped(fac_dtype dtype, int64_t v) {
    switch (dtype) {
    case FAC_I8:
        return (int8_t)v;
    case FAC_I16:
        return (int16_t)v;
    case FAC_I32:
        return (int32_t)v;
    case FAC_U8:
        return (uint8_t)v;
    case FAC_U16:
        return (uint16_t)v;
    case FAC_U32:
        return (uint32_t)v;
    case FAC_BOOL:
        return v != 0;
    default:
        return v;
    }
}

static bool is_small_integer(const fac_type *t) {
    char kind = fac_dtype_get(t->dtype)->kind;
    return (kind == 'i' || kind == 'u' || kind == 'b') && t->dims.n <= 1;
}

bool fac_knows_items(fac_node *n, const fac_contents *c) {
    const fac_type *t = &n->out[0]->type;
    if (is_small_integer(t) && (t->dims.n == 0 ? c->n == 1 : t->dims.d[0] == c->n))
        fac_knows(n->out[0], c);
    return true;
}

bool fac_knows_map(fac_node *n, fac_knows_rule *rule) {
    enum { INPUTS = 3 };
    const fac_map *map = n->op->map;
    const fac_type *t = &n->out[0]->type;
    int64_t count = t->dims.n ? t->dims.d[0] : 1;
    fac_contents x[INPUTS], y = { 0 };
    if (!is_small_integer(t) || count < 0 || count > FAC_KNOWN || map->inputs > INPUTS) return true;
    fac_loop *loop = map->i64;
    for (int i = 0; i < map->inputs; i++) {
        if (!is_small_integer(&n->in[i]->type) || !fac_known(n->in[i], &x[i])) return true;
        if (n->in[i]->type.dtype == FAC_U64 && map->u64) loop = map->u64;
    }
    y.n = (int)count;
    for (int k = 0; k < y.n; k++) {
        fac_item a[INPUTS], r = { 0 };
        const void *arg[INPUTS];
        bool symbolic = false;
        for (int i = 0; i < map->inputs; i++) {
            a[i] = fac_contents_get(&x[i], x[i].n == 1 ? 0 : k);
            arg[i] = &a[i].v;
            symbolic |= a[i].symbolic;
        }
        if (!symbolic)
            loop(1, arg, n->attrs, &r.v);
        else if (!rule || !rule(n->graph, a, &r))
            return true;
        if (!r.symbolic) r.v = wrapped(t->dtype, r.v);
        fac_contents_put(&y, k, r);
    }
    return fac_knows_items(n, &y);
}

bool fac_host_numbers(const fac_node *n, int input, fac_contents *c) {
    return n->in[input] && fac_known_numbers(n->in[input], c);
}

int fac_host_length(const fac_value *v) {
    const fac_dims *d = &v->type.dims;
    if (d->n == 0) return 1;
    return d->n == 1 && d->d[0] >= 0 && d->d[0] <= FAC_KNOWN ? (int)d->d[0] : -1;
}

/* ---- sizes ---- */

static void size_print(fac_graph *g, int64_t a, char *to, size_t room) {
    if (a < 0)
        snprintf(to, room, "%s", fac_symbol_name(g, a));
    else
        snprintf(to, room, "%lld", (long long)a);
}

/* The symbol called "(a op b)".  Formulas that grow too long become a size of which nothing is
 * known. */
static int64_t derived(fac_graph *g, int64_t a, char op, int64_t b) {
    enum { LONG = 64 };
    char left[LONG], right[LONG], name[2 * LONG + 4];
    size_print(g, a, left, sizeof left);
    size_print(g, b, right, sizeof right);
    snprintf(name, sizeof name, "(%s%c%s)", left, op, right);
    return fac_symbol(g, strlen(name) < LONG - 1 ? name : NULL);
}

/* Of a symbol called "(N*12)": N and 12, where N is a symbol as well. */
static bool is_multiple(fac_graph *g, int64_t a, int64_t *size, int64_t *times) {
    char name[64];
    const char *is = a < 0 ? fac_symbol_name(g, a) : NULL;
    const char *star = is ? strrchr(is, '*') : NULL;
    if (!star || *is != '(' || strlen(is) >= sizeof name || star[1] < '1' || star[1] > '9')
        return false;
    char *end;
    *times = strtoll(star + 1, &end, 10);
    if (strcmp(end, ")") || *times > INT32_MAX) return false;
    memcpy(name, is + 1, (size_t)(star - is - 1));
    name[star - is - 1] = 0;
    if (!fac_table_get(&g->symbol_names, name)) return false;
    *size = fac_symbol(g, name);
    return true;
}

bool fac_size_divides(fac_graph *g, int64_t a, int64_t b) {
    int64_t size, times;
    if (b == 1 || a == 0) return true;
    return a > 0 ? a % b == 0 : is_multiple(g, a, &size, &times) && times % b == 0;
}

int64_t fac_size_sum(fac_graph *g, int64_t a, int64_t b) {
    if (a == 0) return b;
    if (b == 0) return a;
    if (a < 0 || b < 0) return derived(g, a, '+', b);
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

int64_t fac_size_difference(fac_graph *g, int64_t a, int64_t b) {
    if (b == 0) return a;
    if (a == b) return 0;
    return a < 0 || b < 0 ? derived(g, a, '-', b) : a - b;
}

int64_t fac_size_product(fac_graph *g, int64_t a, int64_t b) {
    if (a == 0 || b == 0) return 0;
    if (a == 1) return b;
    if (b == 1) return a;
    int64_t size, times;
    if (b > 1 && b <= INT32_MAX && is_multiple(g, a, &size, &times))
        return derived(g, size, '*', times * b);
    if (a < 0 || b < 0) return derived(g, a, '*', b);
    return a > INT64_MAX / b ? INT64_MAX : a * b;
}

int64_t fac_size_quotient(fac_graph *g, int64_t a, int64_t b) {
    int64_t size, times;
    if (b == 1 || a == 0) return a;
    if (b > 1 && is_multiple(g, a, &size, &times) && times % b == 0)
        return fac_size_product(g, size, times / b);
    return a < 0 || b < 0 ? derived(g, a, '/', b) : a / b;
}
