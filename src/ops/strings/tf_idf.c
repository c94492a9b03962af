/* How often n-grams of a pool stand in lists of integers or texts: ONNX's TfIdfVectorizer. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "ops/ml/ml.h"
#include "ops/shape.h"
#include "ops/strings/strings.h"

#if FAC_INTERFACE
/* Counts of n-grams, f32 [.., width], in x [n] or [rows, n], integers or texts.
 *
 * The pool, a list of x's dtype, has all 1-grams, then all 2-grams and so on; starts, i64, says
 * where each of these begins in it.  places, i64, one for each n-gram: where in y its count is
 * added. weights, f32, one for each; NULL: 1.
 *
 * Counted are n-grams of least..most elements that stand 1..skip+1 apart.  IDF: the weight instead
 * of the count, where it is not 0; TFIDF: their product. */
typedef enum fac_tf_mode { FAC_TF, FAC_IDF, FAC_TFIDF } fac_tf_mode;
typedef struct fac_tf_opts {
    int64_t least, most, skip, width;
    int mode;
} fac_tf_opts;
fac_value *fac_tf_idf(fac_value *x, fac_value *pool, fac_value *starts, fac_value *places,
                      fac_value *weights, const fac_tf_opts *opts);
#endif

static const char *const modes[] = { "TF", "IDF", "TFIDF", NULL };
static const fac_attr table[] = { { "least", FAC_A_INT, offsetof(fac_tf_opts, least), 0, 1, 1, 1e6,
                                    NULL, "elements of the shortest n-gram" },
                                  { "most", FAC_A_INT, offsetof(fac_tf_opts, most), 0, 1, 1, 1e6,
                                    NULL, "elements of the longest n-gram" },
                                  { "skip", FAC_A_INT, offsetof(fac_tf_opts, skip), 0, 0, 0, 1e9,
                                    NULL, "elements at most between two of an n-gram" },
                                  { "width", FAC_A_INT, offsetof(fac_tf_opts, width), 0, 1, 1, 1e9,
                                    NULL, "length of the result" },
                                  { "mode", FAC_A_ENUM, offsetof(fac_tf_opts, mode), 0, 0, 0, 0,
                                    modes, "counts, weights or both" },
                                  { 0 } };
enum { X, POOL, STARTS, PLACES, WEIGHTS };
static const fac_port in[] = { { "x", FAC_INTS | FAC_TEXTS, 0 },
                               { "pool", FAC_INTS | FAC_TEXTS, 0 },
                               { "starts", FAC_INTS, 0 },
                               { "places", FAC_INTS, 0 },
                               { "weights", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[X]->type.dims;
    const int64_t width = ((const fac_tf_opts *)n->attrs)->width;
    if (x->n < 1 || x->n > 2) return fac_fail(n, FAC_E_SHAPE, "x must be a list or rows");
    if (n->in[POOL]->type.dtype != n->in[X]->type.dtype)
        return fac_fail(n, FAC_E_DTYPE, "pool must be of the type of x");
    for (int k = POOL; k <= WEIGHTS; k++)
        if (n->in[k] && n->in[k]->type.dims.n != 1)
            return fac_fail(n, FAC_E_SHAPE, "%s must be a list", in[k].name);
    if (n->in[WEIGHTS] && n->in[WEIGHTS]->type.dims.d[0] != n->in[PLACES]->type.dims.d[0])
        return fac_fail(n, FAC_E_SHAPE, "weights and places must be of one length");
    n->out[0]->type =
        (fac_type){ FAC_F32, x->n == 1 ? fac_shape(width) : fac_shape(x->d[0], width) };
    return true;
}

/* An n-gram: elements of an array, some places apart; id: which of the pool it is. */
typedef struct gram {
    const fac_array *of;
    int64_t at, step, size, id;
} gram;

static int compare_at(const fac_array *a, int64_t i, const fac_array *b, int64_t j) {
    if (a->t) return strcmp(a->t[i], b->t[j]);
    return (a->i[i] > b->i[j]) - (a->i[i] < b->i[j]);
}

static int by_elements(const void *x, const void *y) {
    const gram *a = x, *b = y;
    for (int64_t k = 0; k < a->size; k++) {
        const int order = compare_at(a->of, a->at + k * a->step, b->of, b->at + k * b->step);
        if (order) return order;
    }
    return 0;
}

/* The n-grams of one size, sorted. */
typedef struct shelf {
    gram *grams;
    int64_t n;
} shelf;

typedef struct ngrams {
    gram *all;
    shelf *of_size;
} ngrams;

static fac_status bad_pool(fac_error *err) {
    return fac_raise(err, FAC_E_ARGUMENT, "tf_idf: pool, starts and places do not fit together");
}

static fac_status fill(const fac_ref *r, ngrams *p, fac_error *err) {
    const fac_tf_opts *o = r->attrs;
    const int64_t total = r->in[POOL].type.dims.d[0], sizes = r->in[STARTS].type.dims.d[0];
    const int64_t ids = r->in[PLACES].type.dims.d[0];
    int64_t id = 0;
    for (int64_t s = 1; s <= sizes; s++) {
        const int64_t from = r->in[STARTS].i[s - 1], to = s < sizes ? r->in[STARTS].i[s] : total;
        if (from < 0 || to < from || to > total || (to - from) % s) return bad_pool(err);
        shelf *here = s <= o->most ? &p->of_size[s] : NULL;
        if (here) here->grams = p->all + id;
        for (int64_t k = from; k < to; k += s, id++) {
            if (id >= ids) return bad_pool(err);
            p->all[id] = (gram){ &r->in[POOL], k, 1, s, id };
            if (here) here->n++;
        }
        if (here && here->n) qsort(here->grams, (size_t)here->n, sizeof *here->grams, by_elements);
    }
    return id == ids ? FAC_OK : bad_pool(err);
}

static void count(const fac_ref *r, const ngrams *p, int64_t first, int64_t n, double *counts) {
    const fac_tf_opts *o = r->attrs;
    for (int64_t size = o->least; size <= o->most; size++) {
        const shelf *s = &p->of_size[size];
        for (int64_t step = 1; s->n && step <= (size == 1 ? 1 : o->skip + 1); step++)
            for (int64_t at = 0; at + (size - 1) * step < n; at++) {
                const gram g = { &r->in[X], first + at, step, size, 0 };
                const gram *found = bsearch(&g, s->grams, (size_t)s->n, sizeof g, by_elements);
                if (found) counts[found->id]++;
            }
    }
}

static fac_status put(const fac_ref *r, const double *counts, double *y, fac_error *err) {
    const fac_tf_opts *o = r->attrs;
    for (int64_t k = 0; k < o->width; k++) y[k] = 0;
    for (int64_t id = 0; id < r->in[PLACES].type.dims.d[0]; id++) {
        const int64_t place = r->in[PLACES].i[id];
        const double w = r->in[WEIGHTS].f ? r->in[WEIGHTS].f[id] : 1;
        if (place < 0 || place >= o->width)
            return fac_raise(err, FAC_E_ARGUMENT, "tf_idf: a place outside the result");
        if (o->mode == FAC_TF)
            y[place] += counts[id];
        else if (o->mode == FAC_TFIDF)
            y[place] += counts[id] * w;
        else if (counts[id] > 0)
            y[place] += w;
    }
    return FAC_OK;
}

static fac_status all_rows(const fac_ref *r, const ngrams *p, double *counts, fac_error *err) {
    const fac_dims *x = &r->in[X].type.dims;
    const int64_t rows = x->n == 2 ? x->d[0] : 1, n = x->d[x->n - 1],
                  ids = r->in[PLACES].type.dims.d[0];
    for (int64_t k = 0; k < rows; k++) {
        memset(counts, 0, (size_t)ids * sizeof *counts);
        count(r, p, k * n, n, counts);
        FAC_TRY(put(r, counts, r->out[0].f + k * ((const fac_tf_opts *)r->attrs)->width, err));
    }
    return FAC_OK;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const size_t ids = (size_t)r->in[PLACES].type.dims.d[0] + 1;
    ngrams p = { fac_alloc(ids, sizeof *p.all),
                 fac_alloc((size_t)((const fac_tf_opts *)r->attrs)->most + 1, sizeof *p.of_size) };
    double *counts = fac_alloc(ids, sizeof *counts);
    fac_status status =
        p.all && p.of_size && counts ? fill(r, &p, err) : fac_raise_memory(err, "n-grams");
    if (!status) status = all_rows(r, &p, counts, err);
    fac_release(p.all);
    fac_release(p.of_size);
    fac_release(counts);
    return status;
}

/* ---- ONNX ---- */

static bool read_opts(const fac_onnx_node *n, fac_graph *g, fac_ml_ints places, fac_tf_opts *o) {
    const char *mode = fac_onnx_text(n, "mode", "TF");
    *o =
        (fac_tf_opts){ fac_onnx_int(n, "min_gram_length", 1), fac_onnx_int(n, "max_gram_length", 1),
                       fac_onnx_int(n, "max_skip_count", 0), 0, 0 };
    while (modes[o->mode] && strcmp(modes[o->mode], mode)) o->mode++;
    for (int k = 0; k < places.n; k++)
        if (places.v[k] >= o->width) o->width = places.v[k] + 1;
    if (modes[o->mode] && o->width > 0 && o->least > 0 && o->least <= o->most) return true;
    fac_fail_graph(g, FAC_E_FORMAT, "TfIdfVectorizer: mode, lengths or ngram_indexes are none");
    return false;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const fac_ml_ints ints = fac_ml_ints_of(n, g, "pool_int64s"),
                      starts = fac_ml_ints_of(n, g, "ngram_counts");
    const fac_ml_ints places = fac_ml_ints_of(n, g, "ngram_indexes");
    const fac_ml_texts texts = fac_ml_texts_of(n, g, "pool_strings");
    const fac_ml_reals weights = fac_ml_reals_of(n, g, "weights");
    const bool text = x[0]->type.dtype == FAC_TEXT;
    fac_tf_opts o;
    if ((text ? texts.n : ints.n) < 0 || starts.n < 1 || places.n < 1) {
        fac_fail_graph(g, FAC_E_FORMAT,
                       "TfIdfVectorizer lacks its pool, ngram_counts or ngram_indexes");
        return;
    }
    if (!read_opts(n, g, places, &o)) return;
    fac_value *pool = text ? fac_ml_const(g, FAC_TEXT, texts.n, texts.v)
                           : fac_ml_const(g, FAC_I64, ints.n, ints.v);
    y[0] = fac_tf_idf(
        text ? x[0] : fac_cast(x[0], FAC_I64), pool, fac_ml_const(g, FAC_I64, starts.n, starts.v),
        fac_ml_const(g, FAC_I64, places.n, places.v),
        weights.n > 0 ? fac_ml_numbers(g, FAC_F32, fac_shape(weights.n), weights.v) : NULL, &o);
}

static bool put_numbers(const fac_onnx_writer *w, const char *attr, const fac_value *v) {
    fac_tensor *t = NULL;
    const bool real = v->type.dtype == FAC_F32;
    if (!v->tensor || fac_tensor_convert(v->tensor, real ? FAC_F64 : FAC_I64, &t, NULL))
        return false;
    if (real)
        fac_onnx_put_reals(w, attr, (int)v->type.dims.d[0], fac_tensor_data(t));
    else
        fac_onnx_put_ints(w, attr, (int)v->type.dims.d[0], fac_tensor_data(t));
    fac_tensor_free(t);
    return true;
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_tf_opts *o = n->attrs;
    const char *x = fac_onnx_name(w, n->in[X]);
    const bool text = n->in[X]->type.dtype == FAC_TEXT;
    fac_onnx_put(w, "TfIdfVectorizer", 1, &x, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_text(w, "mode", modes[o->mode]);
    fac_onnx_put_int(w, "min_gram_length", o->least);
    fac_onnx_put_int(w, "max_gram_length", o->most);
    fac_onnx_put_int(w, "max_skip_count", o->skip);
    if (n->in[X]->type.dtype != FAC_I32 && n->in[X]->type.dtype != FAC_I64 && !text) return false;
    if (n->in[WEIGHTS] && !put_numbers(w, "weights", n->in[WEIGHTS])) return false;
    return (text ? fac_strings_put(w, "pool_strings", n->in[POOL])
                 : put_numbers(w, "pool_int64s", n->in[POOL])) &&
           put_numbers(w, "ngram_counts", n->in[STARTS]) &&
           put_numbers(w, "ngram_indexes", n->in[PLACES]);
}

static const fac_onnx_attr names[] = { { "min_gram_length", NULL },
                                       { "max_gram_length", NULL },
                                       { "max_skip_count", NULL },
                                       { "mode", NULL },
                                       { 0 } };
static const fac_onnx onnx[] = { { "", "TfIdfVectorizer", 9, 0, names, load, 1 }, { 0 } };
static const fac_case cases[] = {
    { "tf_idf(i64[2,8], i64{1,2,0,1,2,2}, i64{0,2}, i64{0,3,1,2}, -) most=2 skip=1 width=4", 0, 2,
      0 },
    { "tf_idf(text{\"a\",\"b\",\"a\"}, text{\"a\",\"b\",\"a\"}, i64{0,1}, i64{1,0}, f32{2,3}) "
      "most=2 mode=TFIDF width=2",
      0, 0, 0 },
    { "tf_idf(i64[0], i64{1}, i64{0}, i64{0}, f32{3}) mode=IDF width=1", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_tf_idf;
const fac_op fac_op_tf_idf = {
    .name = "tf_idf",
    .doc = "how often n-grams stand in lists",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_tf_opts),
    .is = FAC_OP_NO_GRAD | FAC_OP_TEXTS,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_tf_idf(fac_value *x, fac_value *pool, fac_value *starts, fac_value *places,
                      fac_value *weights, const fac_tf_opts *opts) {
    return fac_emit(&fac_op_tf_idf, opts, 5, (fac_value *[]){ x, pool, starts, places, weights });
}
