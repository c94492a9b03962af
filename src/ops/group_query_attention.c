/* com.microsoft's GroupQueryAttention, which language models of onnxruntime-genai are made of: keys
 * and values are written after those of earlier calls, each row of the batch after its own. */
#include <math.h>
#include <string.h>
#include "graph/onnx_write.h"
#include "ops/fusions.h"
#include "ops/shape.h"

/* Inputs. */
enum { Q, K, V, PAST_KEY, PAST_VALUE, LAST, TOTAL, COS, SIN, POSITIONS, BIAS, SINK, USED };

static const fac_onnx_attr names[] = {
    { "num_heads", NULL },       { "kv_num_heads", NULL },
    { "do_rotary", NULL },       { "rotary_interleaved", NULL },
    { "scale", NULL },           { "local_window_size", NULL },
    { "softcap", NULL },         { "smooth_softmax", NULL },
    { "qk_output", NULL },       { "k_quant_type", NULL },
    { "v_quant_type", NULL },    { "kv_cache_bit_width", NULL },
    { "causal", NULL },          { "sliding_window_cache", NULL },
    { "q_norm_epsilon", NULL },  { "k_norm_epsilon", NULL },
    { "qk_norm_epsilon", NULL }, { 0 }
};

/* A read node. */
typedef struct reader {
    const fac_onnx_node *n;
    fac_graph *g;
    fac_value *in[USED];
    bool more;                     /* inputs than these */
    int64_t heads, kv_heads, size; /* of a head */
    fac_value *rows, *batch;       /* i64[1]: new ones of a sequence; sequences */
    fac_value *lengths, *past;     /* i64 B: with the new ones, before them */
    fac_value *all;                /* i64 B: as lengths, without what pads a first call */
    fac_value *before;             /* i64 B: rows of the cache before the new ones */
    bool sliding;                  /* the cache holds the last rows only */
    int64_t window;                /* keys that a query sees; 0: all */
} reader;

static fac_value *whole(const reader *r, int64_t x) { return fac_number(r->g, FAC_I64, (double)x); }
static fac_value *size_along(fac_value *x, int axis) {
    return fac_slice(fac_shape_of(x), 0, axis, axis + 1, 1);
}

static const char *refused(const reader *r) {
    const fac_onnx_node *n = r->n;
    const char *k_type = fac_onnx_text(n, "k_quant_type", "NONE");
    const char *v_type = fac_onnx_text(n, "v_quant_type", "NONE");
    if (strcmp(k_type, "NONE") || strcmp(v_type, "NONE")) return "a quantized cache";
    if (r->more) return "an input after head_sink";
    if (r->sliding && r->in[BIAS]) return "attention_bias with sliding_window_cache";
    if (r->sliding && (!r->window || !r->in[PAST_KEY]))
        return "sliding_window_cache without a window or a past";
    if (!fac_onnx_int(n, "causal", 1)) return "causal = 0";
    if (fac_onnx_int(n, "qk_output", 0) || *fac_onnx_output(n, 3)) return "the output of scores";
    if (!r->in[K] != !r->in[V]) return "k without v";
    if (!r->in[PAST_KEY] != !r->in[PAST_VALUE]) return "past_key without past_value";
    if (fac_onnx_int(n, "do_rotary", 0) && (!r->in[COS] || !r->in[SIN])) return "do_rotary alone";
    return NULL;
}

static bool counts(reader *r, fac_value *y[]) {
    const fac_dims *q = &r->in[Q]->type.dims;
    r->heads = fac_onnx_int(r->n, "num_heads", 0);
    r->kv_heads = fac_onnx_int(r->n, "kv_num_heads", 0);
    const bool some =
        r->heads > 0 && r->kv_heads > 0 && r->heads <= INT32_MAX && r->kv_heads <= r->heads;
    const int64_t parts = r->in[K] || !some ? r->heads : r->heads + 2 * r->kv_heads;
    const char *why = refused(r);
    const bool good = some && r->heads % r->kv_heads == 0 && q->n == 3 && q->d[2] > 0 &&
                      q->d[2] % parts == 0 && r->in[LAST] && r->in[TOTAL];
    if (why)
        y[0] = fac_fail_graph(r->g, FAC_E_UNSUPPORTED, "GroupQueryAttention: %s is not supported",
                              why);
    else if (!good)
        y[0] = fac_fail_graph(r->g, FAC_E_FORMAT,
                              "GroupQueryAttention: %lld heads of q, %lld of k and v",
                              (long long)r->heads, (long long)r->kv_heads);
    else
        r->size = q->d[2] / parts;
    return !why && good;
}

/* B,S,(D + E + E) in three. */
static void unpack(reader *r) {
    if (r->in[K]) return;
    const int64_t q = r->heads * r->size, k = r->kv_heads * r->size;
    fac_value *all = r->in[Q];
    r->in[Q] = fac_slice(all, 2, 0, q, 1);
    r->in[K] = fac_slice(all, 2, q, q + k, 1);
    r->in[V] = fac_slice(all, 2, q + k, q + 2 * k, 1);
}

/* Of so many rows, those that a cache of the last ones holds: as many as it has room for, or, once
 * they are more, after a few were dropped at a time: room - window + 1, so that the window stays.
 */
static fac_value *held(const reader *r, fac_value *rows) {
    if (!r->sliding) return rows;
    fac_value *room = size_along(r->in[PAST_KEY], 2), *one = whole(r, 1);
    fac_value *each = fac_max(fac_sub(room, whole(r, r->window - 1)), one);
    fac_value *over = fac_max(fac_sub(rows, room), whole(r, 0));
    fac_value *times = fac_div(fac_add(over, fac_sub(each, one)), each);
    return fac_sub(rows, fac_mul(each, times));
}

/* A first call may be padded on its right: all its rows are there, and nothing is before them. */
static void positions(reader *r) {
    r->rows = size_along(r->in[Q], 1);
    r->batch = size_along(r->in[Q], 0);
    fac_value *last = fac_reshape(fac_cast(r->in[LAST], FAC_I64), fac_shape(-1));
    r->all = fac_add(last, whole(r, 1));
    r->lengths = fac_max(r->all, r->rows);
    r->past = fac_sub(r->lengths, r->rows);
    r->before = held(r, r->past);
    if (r->sliding) r->lengths = fac_add(r->before, r->rows);
    if (r->in[POSITIONS]) return;
    fac_value *step = fac_arange(whole(r, 0), fac_squeeze(r->rows, fac_shape(0)), whole(r, 1));
    r->in[POSITIONS] = fac_add(fac_unsqueeze(r->past, fac_shape(1)), step);
}

static fac_value *rotated(const reader *r, fac_value *x) {
    if (!fac_onnx_int(r->n, "do_rotary", 0)) return x;
    const fac_dims *d = &r->in[COS]->type.dims;
    const bool part = d->n == 2 && d->d[1] > 0 && 2 * d->d[1] < r->size;
    const fac_rotary_opts o = { .width = part ? 2 * d->d[1] : 0,
                                .interleaved = fac_onnx_int(r->n, "rotary_interleaved", 0) != 0 };
    return fac_rotary(x, r->in[COS], r->in[SIN], fac_cast(r->in[POSITIONS], FAC_I64), &o);
}

/* Room for as many rows as there are altogether, and the new ones in their places. */
static fac_value *cached(const reader *r, fac_value *past, fac_value *x) {
    fac_value *total = fac_reshape(fac_cast(r->in[TOTAL], FAC_I64), fac_shape(1));
    fac_value *have = past ? size_along(past, 2) : fac_ints(r->g, fac_shape(0));
    fac_value *more = fac_max(fac_sub(fac_max(total, r->rows), have), whole(r, 0));
    if (r->sliding) more = r->rows;
    if (!past) {
        fac_value *dims[] = { size_along(x, 0), size_along(x, 1), more, size_along(x, 3) };
        past = fac_full(fac_concat(dims, 4, 0), x->type.dtype, 0);
    } else {
        fac_value *pads[] = { fac_ints(r->g, fac_shape(0)), more };
        past = fac_pad(past, fac_concat(pads, 2, 0), NULL, fac_ints(r->g, fac_shape(2)),
                       FAC_PAD_CONSTANT);
    }
    return fac_cache_write(past, x, r->before);
}

/* The last rows of a cache, as many as it had room for, moved to its begin. */
static fac_value *kept(const reader *r, fac_value *cache) {
    if (!r->sliding) return cache;
    const fac_dims order = fac_shape(0, 2, 1, 3);
    fac_value *rows = fac_add(r->before, fac_sub(r->all, r->past));
    fac_value *first = fac_sub(rows, held(r, r->all));
    fac_value *step = fac_arange(whole(r, 0), fac_dim_of(r->in[PAST_KEY], 2), whole(r, 1));
    fac_value *at = fac_add(fac_unsqueeze(first, fac_shape(1)), step);
    at = fac_min(at, fac_sub(size_along(cache, 2), whole(r, 1)));
    fac_value *read =
        fac_gather_nd(fac_transpose(cache, order), fac_unsqueeze(at, fac_shape(2)), 1);
    return fac_transpose(read, order);
}

/* The bias of scores, for all rows of the cache. */
static fac_value *filled(const reader *r, fac_value *k) {
    fac_value *bias = r->in[BIAS];
    fac_value *more = fac_sub(size_along(k, 2), size_along(bias, bias->type.dims.n - 1));
    fac_value *pads[] = { fac_ints(r->g, fac_shape(0)), more };
    return fac_pad(bias, fac_concat(pads, 2, 0), fac_number(r->g, bias->type.dtype, -INFINITY),
                   fac_ints(r->g, fac_shape(-1)), FAC_PAD_CONSTANT);
}

/* What each query sees, B,1,S,T, and room for one key more in front: that of the sink. */
static fac_value *with_sink(const reader *r, fac_value *q, fac_value *k, fac_value *v,
                            const fac_attention_opts *o) {
    const fac_dtype t = q->type.dtype;
    fac_value *zero = whole(r, 0), *one = whole(r, 1);
    fac_value *keys = fac_arange(zero, fac_dim_of(k, 2), one);
    fac_value *step = fac_arange(zero, fac_squeeze(r->rows, fac_shape(0)), one);
    fac_value *at =
        fac_add(fac_reshape(r->before, fac_shape(-1, 1, 1, 1)), fac_unsqueeze(step, fac_shape(1)));
    fac_value *seen = fac_less_or_equal(keys, at);
    if (o->window) seen = fac_and(seen, fac_greater(keys, fac_sub(at, whole(r, o->window))));
    fac_value *score = r->in[BIAS] ? filled(r, k) : fac_number(r->g, t, 0);
    score = fac_where(seen, score, fac_number(r->g, t, -INFINITY));
    fac_value *sink =
        r->in[SINK] ? fac_reshape(r->in[SINK], fac_shape(1, -1, 1, 1)) : fac_number(r->g, t, 0);
    fac_value *heads = fac_ints(r->g, fac_shape(r->heads));
    fac_value *ones = fac_ints(r->g, fac_shape(1));
    fac_value *wide[] = { r->batch, heads, r->rows, size_along(k, 2) };
    fac_value *thin[] = { r->batch, heads, r->rows, ones };
    score = fac_expand_to(score, fac_concat(wide, 4, 0));
    sink = fac_expand_to(fac_cast(sink, t), fac_concat(thin, 4, 0));
    fac_value *pads = fac_ints(r->g, fac_shape(1, 0));
    fac_value *axis = fac_ints(r->g, fac_shape(2));
    const fac_attention_opts plain = { .scale = o->scale, .softcap = o->softcap };
    return fac_attention(q, fac_pad(k, pads, NULL, axis, FAC_PAD_CONSTANT),
                         fac_pad(v, pads, NULL, axis, FAC_PAD_CONSTANT),
                         fac_concat((fac_value *[]){ sink, score }, 2, 3), NULL, NULL, NULL,
                         &plain);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const int64_t window = fac_onnx_int(n, "local_window_size", -1);
    reader r = { .n = n,
                 .g = g,
                 .sliding = fac_onnx_int(n, "sliding_window_cache", 0) != 0,
                 .window = window > 0 ? window : 0 };
    for (int k = 0; k < USED; k++) r.in[k] = fac_onnx_in(n, x, k);
    for (int k = USED; k < n->nin && k < FAC_ONNX_ROOM; k++) r.more |= x[k] != NULL;
    const bool smooth = fac_onnx_int(n, "smooth_softmax", 0) > 0;
    const fac_attention_opts o = { .scale = fac_onnx_real(n, "scale", 0),
                                   .softcap = fac_onnx_real(n, "softcap", 0),
                                   .causal = true,
                                   .window = r.window };
    if (!counts(&r, y)) return;
    unpack(&r);
    positions(&r);
    fac_value *q = rotated(&r, fac_in_heads(r.in[Q], r.heads));
    fac_value *k = cached(&r, r.in[PAST_KEY], rotated(&r, fac_in_heads(r.in[K], r.kv_heads)));
    fac_value *v = cached(&r, r.in[PAST_VALUE], fac_in_heads(r.in[V], r.kv_heads));
    fac_value *z = smooth || r.in[SINK]
                       ? with_sink(&r, q, k, v, &o)
                       : fac_attention(q, k, v, r.in[BIAS], NULL, NULL, r.lengths, &o);
    y[0] = fac_out_of_heads(z);
    if (n->nout > 1) y[1] = kept(&r, k);
    if (n->nout > 2) y[2] = kept(&r, v);
}

const fac_onnx fac_reads_group_query_attention[] = {
    { "com.microsoft", "GroupQueryAttention", 1, 0, names, load, 1 }, { 0 }
};
