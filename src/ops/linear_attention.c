/* ONNX's LinearAttention: a state of keys times values that is decayed, corrected and added to,
 * token by token. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/shape.h"

#if FAC_INTERFACE
typedef enum fac_linear_attention_rule {
    FAC_RULE_LINEAR,
    FAC_RULE_GATED,
    FAC_RULE_DELTA,
    FAC_RULE_GATED_DELTA
} fac_linear_attention_rule;
typedef struct fac_linear_attention_opts {
    int64_t q_heads, kv_heads; /* the first is a multiple of the second */
    double scale;              /* of results; 0: 1 / sqrt of the size of a key */
    int rule;                  /* fac_linear_attention_rule */
} fac_linear_attention_opts;
/* For each token t:  S = e^decay[t] S (gated);  v = beta[t] (v[t] - S^T k[t]) (delta), else v[t];
 * S = S + k[t] v^T; y[t] = scale S^T q[t].  Query heads share the states of kv_heads in groups of
 * neighbours.
 *   q B,T,q_heads Dk   k B,T,kv_heads Dk   v B,T,kv_heads Dv   y B,T,q_heads Dv
 *   past: S before, B,kv_heads,Dk,Dv or NULL (zeros)
 *   decay B,T,kv_heads [Dk], given when gated   beta B,T,kv_heads or B,T,1, given with delta
 * fac_value_other(y, 1): S after the last token.  Floats. */
fac_value *fac_linear_attention(fac_value *q, fac_value *k, fac_value *v, fac_value *past,
                                fac_value *decay, fac_value *beta,
                                const fac_linear_attention_opts *opts);
#endif

#define AT(field) offsetof(fac_linear_attention_opts, field)
static const char *const rules[] = { "linear", "gated", "delta", "gated_delta", NULL };
static const char *takes(bool it) { return it ? "takes" : "has no"; }
static const fac_attr table[] = {
    { "q_heads", FAC_A_INT, AT(q_heads), 0, 1, 1, INT_MAX, NULL, "of queries" },
    { "kv_heads", FAC_A_INT, AT(kv_heads), 0, 1, 1, INT_MAX, NULL, "of keys and values" },
    { "scale", FAC_A_REAL, AT(scale), 0, 0, 0, 0, NULL,
      "of results; 0: 1 / sqrt of the size of a key" },
    { "rule", FAC_A_ENUM, AT(rule), 0, 0, 0, 0, rules, "how the state changes" },
    { 0 }
};
#undef AT
static const fac_port in[] = { { "q", FAC_FLOATS, 0 },
                               { "k", FAC_FLOATS, 0 },
                               { "v", FAC_FLOATS, 0 },
                               { "past", FAC_FLOATS, FAC_OPTIONAL },
                               { "decay", FAC_FLOATS, FAC_OPTIONAL },
                               { "beta", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
enum { Q, K, V, PAST, DECAY, BETA };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 }, { "state", FAC_FLOATS, 0 }, { 0 } };

static bool gates(const fac_linear_attention_opts *o) {
    return o->rule == FAC_RULE_GATED || o->rule == FAC_RULE_GATED_DELTA;
}
static bool corrects(const fac_linear_attention_opts *o) { return o->rule >= FAC_RULE_DELTA; }

static bool packs(fac_node *n, int port, int64_t heads) {
    const fac_dims *d = &n->in[port]->type.dims;
    if (d->n != 3) return fac_fail(n, FAC_E_SHAPE, "%s has %d dims, not 3", in[port].name, d->n);
    for (int k = 0; k < 2; k++) {
        const int64_t want = n->in[Q]->type.dims.d[k];
        if (d->d[k] >= 0 && want >= 0 && d->d[k] != want)
            return fac_fail(n, FAC_E_SHAPE, "dim %d of %s is not that of q", k, in[port].name);
    }
    if (d->d[2] < 0 || d->d[2] % heads == 0) return true;
    return fac_fail(n, FAC_E_SHAPE, "%s has %lld columns for %lld heads", in[port].name,
                    (long long)d->d[2], (long long)heads);
}

static bool infer(fac_node *n) {
    const fac_linear_attention_opts *o = n->attrs;
    if (o->q_heads % o->kv_heads)
        return fac_fail(n, FAC_E_ARGUMENT, "%lld query heads do not share %lld states",
                        (long long)o->q_heads, (long long)o->kv_heads);
    if (!packs(n, Q, o->q_heads) || !packs(n, K, o->kv_heads) || !packs(n, V, o->kv_heads))
        return false;
    const fac_dims *q = &n->in[Q]->type.dims;
    const int64_t H = o->kv_heads;
    const int64_t key = fac_size_quotient(n->graph, n->in[K]->type.dims.d[2], H);
    const int64_t value = fac_size_quotient(n->graph, n->in[V]->type.dims.d[2], H);
    if (fac_differ(fac_size_quotient(n->graph, q->d[2], o->q_heads), key))
        return fac_fail(n, FAC_E_SHAPE, "queries and keys have heads of other sizes");
    if (gates(o) != !!n->in[DECAY] || corrects(o) != !!n->in[BETA])
        return fac_fail(n, FAC_E_ARGUMENT, "rule %s %s decay and %s beta", rules[o->rule],
                        takes(gates(o)), takes(corrects(o)));
    const int64_t keys = fac_size_product(n->graph, key, H);
    if (n->in[DECAY] && (!packs(n, DECAY, H) || (fac_differ(n->in[DECAY]->type.dims.d[2], H) &&
                                                 fac_differ(n->in[DECAY]->type.dims.d[2], keys))))
        return fac_fail(n, FAC_E_SHAPE, "decay must have %lld or %lld columns", (long long)H,
                        (long long)keys);
    if (n->in[BETA] && (!packs(n, BETA, 1) || (fac_differ(n->in[BETA]->type.dims.d[2], H) &&
                                               fac_differ(n->in[BETA]->type.dims.d[2], 1))))
        return fac_fail(n, FAC_E_SHAPE, "beta must have 1 or %lld columns", (long long)H);
    const fac_dims state = fac_shape(q->d[0], H, key, value);
    const fac_dtype kept = n->in[PAST] ? n->in[PAST]->type.dtype : n->in[Q]->type.dtype;
    if (n->in[PAST]) {
        const fac_dims *p = &n->in[PAST]->type.dims;
        bool same = p->n == 4;
        for (int k = 0; same && k < 4; k++)
            same = p->d[k] < 0 || state.d[k] < 0 || p->d[k] == state.d[k];
        if (!same)
            return fac_fail(n, FAC_E_SHAPE, "past must be B,%lld,%lld,%lld", (long long)H,
                            (long long)key, (long long)value);
    }
    n->out[0]->type =
        (fac_type){ n->in[Q]->type.dtype,
                    fac_shape(q->d[0], q->d[1], fac_size_product(n->graph, value, o->q_heads)) };
    n->out[1]->type = (fac_type){ kept, state };
    return true;
}

/* ---- meaning ---- */

typedef struct sizes {
    int64_t T, H, G, key, value;
} sizes;

/* One token of one head: the state S [key, value] changes. */
static void step(const fac_ref *r, const sizes *z, int64_t b, int64_t t, int64_t h, double *S,
                 double *room) {
    const int64_t row = b * z->T + t;
    const double *k = r->in[K].f + (row * z->H + h) * z->key,
                 *v = r->in[V].f + (row * z->H + h) * z->value;
    const double *decay = r->in[DECAY].f, *beta = r->in[BETA].f;
    const int64_t wide = decay ? r->in[DECAY].type.dims.d[2] : 0,
                  betas = beta ? r->in[BETA].type.dims.d[2] : 0;
    for (int64_t i = 0; i < z->key && decay; i++) {
        const double g = exp(decay[row * wide + (wide == z->H ? h : h * z->key + i)]);
        for (int64_t j = 0; j < z->value; j++) S[i * z->value + j] *= g;
    }
    for (int64_t j = 0; j < z->value; j++) {
        double seen = 0;
        for (int64_t i = 0; i < z->key && beta; i++) seen += S[i * z->value + j] * k[i];
        room[j] = v[j];
        if (beta) room[j] = beta[row * betas + (betas == 1 ? 0 : h)] * (v[j] - seen);
    }
    for (int64_t i = 0; i < z->key; i++)
        for (int64_t j = 0; j < z->value; j++) S[i * z->value + j] += k[i] * room[j];
}

static void answer(const fac_ref *r, const sizes *z, int64_t row, int64_t head, double scale,
                   const double *S) {
    const double *q = r->in[Q].f + (row * z->H * z->G + head) * z->key;
    double *y = r->out[0].f + (row * z->H * z->G + head) * z->value;
    for (int64_t j = 0; j < z->value; j++) {
        double sum = 0;
        for (int64_t i = 0; i < z->key; i++) sum += S[i * z->value + j] * q[i];
        y[j] = scale * sum;
    }
}

static double scale_of(const fac_linear_attention_opts *o, int64_t key) {
    if (o->scale != 0) return o->scale;
    return 1 / sqrt((double)(key > 0 ? key : 1));
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_linear_attention_opts *o = r->attrs;
    const fac_dims *s = &r->out[1].type.dims;
    const sizes z = { r->in[Q].type.dims.d[1], o->kv_heads, o->q_heads / o->kv_heads, s->d[2],
                      s->d[3] };
    const int64_t state = z.key * z.value;
    double *room = fac_alloc((size_t)z.value + 1, sizeof *room);
    if (!room) return fac_raise_memory(err, "a value");
    for (int64_t b = 0; b < s->d[0]; b++)
        for (int64_t h = 0; h < z.H; h++) {
            double *S = r->out[1].f + (b * z.H + h) * state;
            for (int64_t k = 0; k < state; k++)
                S[k] = r->in[PAST].f ? r->in[PAST].f[(b * z.H + h) * state + k] : 0;
            for (int64_t t = 0; t < z.T; t++) {
                step(r, &z, b, t, h, S, room);
                for (int64_t k = 0; k < z.G; k++)
                    answer(r, &z, b * z.T + t, h * z.G + k, scale_of(o, z.key), S);
            }
        }
    fac_release(room);
    return FAC_OK;
}

/* ---- as ops: token after token ---- */

enum { MOST = 1024 }; /* tokens whose steps are written out */
static int64_t expands(const fac_node *n) {
    const fac_dims *q = &n->in[Q]->type.dims;
    for (int k = K; k <= BETA; k++)
        if (n->in[k] && !fac_dims_known(&n->in[k]->type.dims, 0)) return 0;
    return fac_dims_known(q, 0) && q->d[1] <= MOST ? 40 + 16 * q->d[1] : 0;
}

/* B,T,H D as B,T,H,D; one token is B,H,D. */
static fac_value *heads(fac_value *v, int64_t count, fac_dtype wide) {
    const fac_dims *d = &v->type.dims;
    return fac_shaped(fac_grad_as(v, wide), fac_shape(d->d[0], d->d[1], count, d->d[2] / count));
}
static fac_value *token(fac_value *v, int64_t t) {
    return fac_squeeze(fac_slice(v, 1, t, t + 1, 1), fac_shape(1));
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_linear_attention_opts *o = n->attrs;
    const fac_dims *s = &n->out[1]->type.dims;
    const int64_t T = n->in[Q]->type.dims.d[1], H = o->kv_heads, G = o->q_heads / H, B = s->d[0];
    const fac_dtype wide = fac_grad_wide(n->in[Q]->type.dtype);
    const fac_dims last = fac_shape(-1), inner = fac_shape(-2);
    fac_value *q = heads(n->in[Q], o->q_heads, wide), *k = heads(n->in[K], H, wide),
              *v = heads(n->in[V], H, wide);
    fac_value *S =
        n->in[PAST] ? fac_grad_as(n->in[PAST], wide) : fac_full(fac_ints(n->graph, *s), wide, 0);
    fac_value *decay = n->in[DECAY] ? fac_exp(heads(n->in[DECAY], H, wide)) : NULL;
    fac_value *beta = n->in[BETA] ? heads(n->in[BETA], n->in[BETA]->type.dims.d[2], wide) : NULL;
    fac_value **rows = fac_alloc((size_t)T + 1, sizeof *rows);
    if (!rows)
        y[0] = fac_fail_graph(n->graph, FAC_E_NOMEM, "linear_attention: no memory for %lld tokens",
                              (long long)T);
    for (int64_t t = 0; t < T && rows; t++) {
        fac_value *key = token(k, t), *value = token(v, t);
        if (decay) S = fac_mul(S, fac_unsqueeze(token(decay, t), last));
        if (beta) {
            fac_value *seen = fac_squeeze(fac_matmul(fac_unsqueeze(key, inner), S), inner);
            value = fac_mul(token(beta, t), fac_sub(value, seen));
        }
        S = fac_add(S, fac_mul(fac_unsqueeze(key, last), fac_unsqueeze(value, inner)));
        fac_value *ask = fac_shaped(token(q, t), fac_shape(B, H, G, s->d[2]));
        rows[t] = fac_shaped(fac_matmul(ask, S), fac_shape(B, 1, o->q_heads * s->d[3]));
    }
    if (!rows) return;
    fac_value *all = T ? fac_concat(rows, (int)T, 1)
                       : fac_full(fac_ints(n->graph, n->out[0]->type.dims), wide, 0);
    y[0] = fac_grad_as(fac_grad_times(all, scale_of(o, s->d[2])), n->in[Q]->type.dtype);
    y[1] = fac_grad_as(S, n->out[1]->type.dtype);
    fac_release(rows);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *s = &n->out[1]->type.dims;
    const double key = s->d[2] > 0 ? (double)s->d[2] : 0;
    fac_cost_bytes(n, c);
    c->macs = (fac_cost_count(n->out[0]) + 2 * fac_cost_count(n->in[V])) * key;
    c->other = 0;
}

/* ---- ONNX ---- */

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const char *rule = fac_onnx_text(n, "update_rule", "gated_delta");
    fac_linear_attention_opts o = { fac_onnx_int(n, "q_num_heads", 0),
                                    fac_onnx_int(n, "kv_num_heads", 0),
                                    fac_onnx_real(n, "scale", 0), 0 };
    while (rules[o.rule] && strcmp(rules[o.rule], rule)) o.rule++;
    if (!rules[o.rule] || o.q_heads < 1 || o.kv_heads < 1)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "LinearAttention: rule \"%s\", %lld and %lld heads",
                              rule, (long long)o.q_heads, (long long)o.kv_heads);
    else {
        fac_value *ins[6] = { 0 };
        for (int k = 0; k < 6 && k < n->nin; k++) ins[k] = x[k];
        y[0] = fac_linear_attention(ins[Q], ins[K], ins[V], ins[PAST], ins[DECAY], ins[BETA], &o);
    }
    if (n->nout > 1) y[1] = fac_value_other(y[0], 1);
}
static const fac_onnx_attr names[] = { { "q_num_heads", NULL }, { "kv_num_heads", NULL },
                                       { "scale", NULL },       { "update_rule", NULL },
                                       { "chunk_size", NULL },  { 0 } };
static const fac_onnx onnx[] = { { "", "LinearAttention", 27, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_linear_attention_opts *o = n->attrs;
    const char *ins[6];
    if (w->opset < 27) return false;
    for (int k = 0; k < 6; k++) ins[k] = fac_onnx_name(w, n->in[k]);
    const char *state = fac_onnx_name(w, n->out[1]);
    fac_onnx_put(w, "LinearAttention", 6, ins, fac_onnx_name(w, n->out[0]));
    if (state) fac_onnx_put_out(w, state);
    fac_onnx_put_int(w, "q_num_heads", o->q_heads);
    fac_onnx_put_int(w, "kv_num_heads", o->kv_heads);
    fac_onnx_put_text(w, "update_rule", rules[o->rule]);
    if (o->scale != 0) fac_onnx_put_real(w, "scale", o->scale);
    return true;
}

static const fac_case cases[] = {
    { "linear_attention(f32[2,3,4], f32[2,3,4], f32[2,3,6], -, -, -) q_heads=2 kv_heads=2", -1, 1,
      1e-5 },
    { "linear_attention(f32[1,4,8], f32[1,4,4], f32[1,4,3], f32[1,1,4,3], f32[1,4,1], -) q_heads=2 "
      "rule=gated",
      -1, 1, 1e-5 },
    { "linear_attention(f32[2,2,6], f32[2,2,6], f32[2,2,4], -, -, f32[2,2,1]) q_heads=2 kv_heads=2 "
      "rule=delta scale=0.7",
      -1, 1, 1e-5 },
    { "linear_attention(f32[1,3,12], f32[1,3,6], f32[1,3,4], f32[1,2,3,2], f32[1,3,6], f32[1,3,2]) "
      "q_heads=4 kv_heads=2 "
      "rule=gated_delta",
      -1, 1, 1e-5 },
    { "linear_attention(f16[1,2,4], f16[1,2,4], f16[1,2,4], -, -, -)", -1, 1, 8e-3 },
    { "linear_attention(f32[0,2,4], f32[0,2,4], f32[0,2,4], -, -, -)", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_linear_attention = {
    .name = "linear_attention",
    .doc = "attention by a state of keys times values",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_linear_attention_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_linear_attention(fac_value *q, fac_value *k, fac_value *v, fac_value *past,
                                fac_value *decay, fac_value *beta,
                                const fac_linear_attention_opts *opts) {
    return fac_emit(&fac_op_linear_attention, opts, 6,
                    (fac_value *[]){ q, k, v, past, decay, beta });
}
