/* Sums of products by Einstein's convention: labels name the dims of each operand, and what is not
 * in the result is summed.
 *
 * Operands are joined from left to right, two at a time: labels that only one of them has and that
 * nothing needs later are summed at once, those that both have and nothing needs are the sum of a
 * matrix product, those that both have and something needs are its batch. */
#include <ctype.h>
#include <string.h>
#include "graph/onnx_write.h"
#include "ops/fusions.h"
#include "ops/known.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* equation: "bij,bjk->bik"; letters, "..." for any dims in front of which others broadcast, blanks
 * anywhere.  Without "->" the result has the labels that stand once, in the order of the alphabet.
 * Labels of one operand may repeat: its diagonal.  n operands of one dtype, floats or integers. */
fac_value *fac_einsum(const char *equation, fac_value *const x[], int n);
#endif

typedef struct attrs {
    const char *equation;
} attrs;
static const fac_attr table[] = { { "equation", FAC_A_TEXT, offsetof(attrs, equation), 0, 0, 0, 0,
                                    NULL, "labels of the operands, \"->\", of the result" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_NUMBERS, FAC_VARIADIC }, { 0 } };

/* A label is a letter, or the place, counted from the last, of a dim that "..." stands for. */
enum { ELLIPSIS = 1, LETTERS = 'A', LABELS = 128, OPERANDS = 16 };
typedef struct term {
    int n;
    unsigned char label[FAC_DIMS];
} term;
typedef struct plan {
    int nin;
    term in[OPERANDS], out;
    bool met[LABELS];
    int64_t size[LABELS]; /* of labels that were met; the one that dims of 1 broadcast to */
} plan;

/* ---- reading ---- */

/* One term up to a ',' or '-' or the end.  rank -1: of the result, whose "..." has `dots` dims. */
static const char *read_term(const char *s, int rank, int dots, term *t, const char **why) {
    const char *begin = s;
    int letters = 0;
    for (; *s && *s != ',' && *s != '-'; s++) letters += isalpha((unsigned char)*s) != 0;
    if (rank >= 0) dots = rank - letters;
    t->n = 0;
    bool dotted = false;
    for (const char *p = begin; p < s; p++) {
        if (*p == ' ') continue;
        if (!strncmp(p, "...", 3) && !dotted && dots >= 0) {
            for (int k = dots; k > 0 && t->n < FAC_DIMS; k--)
                t->label[t->n++] = (unsigned char)(ELLIPSIS + k - 1);
            p += 2;
            dotted = true;
        } else if (isalpha((unsigned char)*p) && t->n < FAC_DIMS)
            t->label[t->n++] = (unsigned char)*p;
        else
            *why = "has a character that is no label";
    }
    if (rank >= 0 && t->n != rank) *why = "does not name every dim of an operand once";
    return s;
}

static int times(const plan *p, int label) {
    int n = 0;
    for (int i = 0; i < p->nin; i++)
        for (int k = 0; k < p->in[i].n; k++) n += p->in[i].label[k] == label;
    return n;
}

static bool has(const term *t, int label) { return memchr(t->label, label, (size_t)t->n) != NULL; }

static int dots_of(const plan *p) {
    int most = 0;
    for (int i = 0; i < p->nin; i++)
        for (int k = 0; k < p->in[i].n; k++)
            if (p->in[i].label[k] < LETTERS && p->in[i].label[k] > most) most = p->in[i].label[k];
    return most;
}

/* The result that is not written down. */
static void implied(plan *p) {
    p->out.n = 0;
    for (int k = dots_of(p); k > 0; k--)
        p->out.label[p->out.n++] = (unsigned char)(ELLIPSIS + k - 1);
    for (int c = LETTERS; c < LABELS && p->out.n < FAC_DIMS; c++)
        if (times(p, c) == 1) p->out.label[p->out.n++] = (unsigned char)c;
}

/* NULL, or what is wrong. */
static const char *read(const fac_node *n, plan *p) {
    const char *s = ((const attrs *)n->attrs)->equation, *why = NULL;
    memset(p, 0, sizeof *p);
    if (!s) return "is missing";
    if (n->nports > OPERANDS) return "has too many operands";
    for (p->nin = 0; p->nin < n->nports && !why; p->nin++) {
        s = read_term(s, n->in[p->nin]->type.dims.n, 0, &p->in[p->nin], &why);
        if (p->nin + 1 < n->nports && *s++ != ',') return "has fewer terms than there are operands";
    }
    if (why) return why;
    if (*s == ',') return "has more terms than there are operands";
    if (!*s) return implied(p), NULL;
    if (strncmp(s, "->", 2)) return "has a '-' without '>'";
    s = read_term(s + 2, -1, dots_of(p), &p->out, &why);
    if (*s) return "has something after its result";
    for (int k = 0; k < p->out.n && !why; k++) {
        if (!times(p, p->out.label[k])) why = "has a label in the result that no operand has";
        if (memchr(p->out.label, p->out.label[k], (size_t)k))
            why = "has a label twice in the result";
    }
    return why;
}

/* Sizes of all labels; a dim of 1 broadcasts where "..." stands for it. */
static bool measure(fac_node *n, plan *p) {
    for (int i = 0; i < p->nin; i++)
        for (int k = 0; k < p->in[i].n; k++) {
            const int label = p->in[i].label[k];
            const int64_t d = n->in[i]->type.dims.d[k], have = p->size[label];
            if (!p->met[label] || have == 1)
                p->size[label] = d;
            else if (d == 1 || d == have || d < 0)
                continue; /* broadcasts, or fits as far as is known */
            else if (have < 0)
                p->size[label] = d;
            else
                return fac_fail(n, FAC_E_SHAPE, "operand %d has %lld where another has %lld", i,
                                (long long)d, (long long)have);
            p->met[label] = true;
        }
    return true;
}

static bool infer(fac_node *n) {
    plan p;
    const char *why = read(n, &p);
    if (why) return fac_fail(n, FAC_E_ARGUMENT, "the equation %s", why);
    if (!measure(n, &p)) return false;
    fac_type y = { n->in[0]->type.dtype, { .n = p.out.n } };
    for (int i = 1; i < p.nin; i++)
        if (n->in[i]->type.dtype != y.dtype)
            return fac_fail(n, FAC_E_DTYPE, "operand %d has another dtype", i);
    for (int k = 0; k < y.dims.n; k++) y.dims.d[k] = p.size[p.out.label[k]];
    n->out[0]->type = y;
    return true;
}

/* ---- as products ---- */

typedef struct labelled {
    fac_value *v;
    term t;
} labelled;

static void drop(labelled *x, int k) {
    memmove(&x->t.label[k], &x->t.label[k + 1], (size_t)(x->t.n - k - 1));
    x->t.n--;
}

/* The dims of x in this order, which holds all of its labels. */
static void arrange(labelled *x, const term *order) {
    fac_dims perm = { 0 };
    for (int k = 0; k < order->n; k++)
        for (int j = 0; j < x->t.n; j++)
            if (x->t.label[j] == order->label[k]) perm.d[perm.n++] = j;
    bool same = true;
    for (int k = 0; k < perm.n; k++) same &= perm.d[k] == k;
    if (!same) x->v = fac_transpose(x->v, perm);
    x->t = *order;
}

/* A label that stands twice: two dims of one size become their diagonal. */
static void diagonals(labelled *x) {
    for (int j = 0; j < x->t.n; j++)
        for (int k = j + 1; k < x->t.n; k++) {
            if (x->t.label[j] != x->t.label[k]) continue;
            const fac_dims *d = &x->v->type.dims;
            const int64_t size = d->d[j];
            fac_dims perm = { 0 }, flat = { 0 };
            if (size < 0 || d->d[k] != size) {
                x->v = fac_fail_graph(x->v->graph, FAC_E_UNSUPPORTED,
                                      "einsum: a diagonal of dims that are not known");
                return;
            }
            perm.d[perm.n++] = j;
            perm.d[perm.n++] = k;
            flat.d[flat.n++] = size * size;
            for (int i = 0; i < d->n; i++)
                if (i != j && i != k) {
                    perm.d[perm.n++] = i;
                    flat.d[flat.n++] = d->d[i];
                }
            fac_value *lines = fac_reshape_sizes(fac_transpose(x->v, perm), flat);
            x->v = fac_slice(lines, 0, 0, size * size, size + 1);
            const unsigned char label = x->t.label[j];
            drop(x, k);
            drop(x, j);
            memmove(&x->t.label[1], &x->t.label[0], (size_t)x->t.n++);
            x->t.label[0] = label;
            diagonals(x);
            return;
        }
}

/* Sums what nothing needs, and drops dims of 1 that broadcast. */
static void reduce(labelled *x, const plan *p, const term *other, const bool *later) {
    fac_dims sums = { 0 }, ones = { 0 };
    for (int k = 0; k < x->t.n; k++) {
        const int label = x->t.label[k];
        if (x->v->type.dims.d[k] == 1 && p->size[label] != 1)
            ones.d[ones.n++] = k;
        else if (!later[label] && !(other && has(other, label)))
            sums.d[sums.n++] = k;
    }
    if (sums.n) x->v = fac_sum(x->v, sums, true);
    for (int k = 0; k < sums.n; k++) ones.d[ones.n++] = sums.d[k];
    if (ones.n) x->v = fac_squeeze(x->v, ones);
    for (int k = x->t.n - 1; k >= 0; k--)
        for (int i = 0; i < ones.n; i++)
            if (ones.d[i] == k) drop(x, k);
}

static int64_t product(const plan *p, fac_graph *g, const term *t) {
    int64_t size = 1;
    for (int k = 0; k < t->n; k++) size = fac_size_product(g, size, p->size[t->label[k]]);
    return size;
}

static void append(term *to, const term *from) {
    memcpy(&to->label[to->n], from->label, (size_t)from->n);
    to->n += from->n;
}

/* a and b as one, of the labels that something still needs. */
static labelled join(const plan *p, labelled a, labelled b, const bool *later) {
    term batch = { 0 }, rows = { 0 }, columns = { 0 }, sum = { 0 }, left = { 0 }, right = { 0 };
    fac_graph *g = a.v->graph;
    reduce(&a, p, &b.t, later);
    reduce(&b, p, &a.t, later);
    for (int k = 0; k < a.t.n; k++) {
        const unsigned char label = a.t.label[k];
        term *to = later[label] ? &batch : &sum;
        if (!has(&b.t, label)) to = &rows;
        to->label[to->n++] = label;
    }
    for (int k = 0; k < b.t.n; k++)
        if (!has(&a.t, b.t.label[k])) columns.label[columns.n++] = b.t.label[k];
    append(&left, &batch);
    append(&left, &rows);
    append(&left, &sum);
    append(&right, &batch);
    append(&right, &sum);
    append(&right, &columns);
    arrange(&a, &left);
    arrange(&b, &right);
    const int64_t m = product(p, g, &rows), k = product(p, g, &sum), n = product(p, g, &columns),
                  all = product(p, g, &batch);
    labelled y = { .t = batch };
    append(&y.t, &rows);
    append(&y.t, &columns);
    fac_dims dims = { .n = y.t.n };
    for (int i = 0; i < y.t.n; i++) dims.d[i] = p->size[y.t.label[i]];
    fac_value *x = fac_reshape_sizes(a.v, fac_shape(all, m, k));
    fac_value *z = fac_reshape_sizes(b.v, fac_shape(all, k, n));
    y.v = fac_reshape_sizes(fac_matmul(x, z), dims);
    return y;
}

/* The result has its own order, and dims that only broadcast come back. */
static fac_value *finish(const plan *p, labelled y) {
    term have = { 0 };
    fac_dims missing = { 0 };
    for (int k = 0; k < p->out.n; k++) {
        if (has(&y.t, p->out.label[k]))
            have.label[have.n++] = p->out.label[k];
        else
            missing.d[missing.n++] = k;
    }
    arrange(&y, &have);
    return missing.n ? fac_unsqueeze(y.v, missing) : y.v;
}

static void expand(const fac_node *n, fac_value *out[]) {
    plan p;
    bool later[LABELS] = { false };
    labelled x[OPERANDS];
    if (read(n, &p) || !measure((fac_node *)(uintptr_t)n, &p)) {
        out[0] = fac_fail_graph(n->graph, FAC_E_INTERNAL, "einsum: an equation that does not fit");
        return;
    }
    for (int i = 0; i < p.nin; i++) {
        x[i] = (labelled){ n->in[i], p.in[i] };
        diagonals(&x[i]);
    }
    for (int i = 1; i < p.nin; i++) {
        memset(later, 0, sizeof later);
        for (int k = 0; k < p.out.n; k++) later[p.out.label[k]] = true;
        for (int j = i + 1; j < p.nin; j++)
            for (int k = 0; k < p.in[j].n; k++) later[p.in[j].label[k]] = true;
        x[0] = join(&p, x[0], x[i], later);
    }
    memset(later, 0, sizeof later);
    for (int k = 0; k < p.out.n; k++) later[p.out.label[k]] = true;
    reduce(&x[0], &p, NULL, later);
    out[0] = finish(&p, x[0]);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_einsum(fac_onnx_text(n, "equation", NULL), x, n->nin);
}
static const fac_onnx_attr names[] = { { "equation", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Einsum", 12, 0, names, load, 1 }, { 0 } };

/* ONNX has no "..." that stands for more dims in one operand than in another. */
static bool even(const fac_node *n) {
    const char *text = ((const attrs *)n->attrs)->equation;
    int dots = -1;
    for (int i = 0; i < n->nports; i++) {
        const size_t length = strcspn(text, ",-");
        int letters = 0;
        for (size_t k = 0; k < length; k++) letters += isalpha((unsigned char)text[k]) != 0;
        const int mine = n->in[i]->type.dims.n - letters;
        if (memchr(text, '.', length)) {
            if (dots >= 0 && dots != mine) return false;
            dots = mine;
        }
        text += length + (text[length] == ',');
    }
    return true;
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[OPERANDS];
    if (n->nin > OPERANDS || w->opset < 12 || !even(n)) return false;
    for (int k = 0; k < n->nin; k++) ins[k] = fac_onnx_name(w, n->in[k]);
    fac_onnx_put(w, "Einsum", n->nin, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_text(w, "equation", ((const attrs *)n->attrs)->equation);
    return true;
}

static const fac_case cases[] = {
    { "einsum(f32[2,3,4], f32[2,4,5]) equation=\"bij,bjk->bik\"", -1, 1, 1e-5 },
    { "einsum(f32[3,4], f32[5,4], f32[5,2]) equation=\"ij,kj,kl\"", -1, 1, 1e-5 },
    { "einsum(f32[2,3,4,5], f32[2,6,4,5]) equation=\"bqhd, bkhd -> bhqk\"", -1, 1, 1e-5 },
    { "einsum(f32[2,1,3,4], f32[5,4,6]) equation=\"...ij,...jk->...ik\"", -1, 1, 1e-5 },
    { "einsum(f32[3,4,3]) equation=\"iji->j\"", -1, 1, 1e-5 },
    { "einsum(f32[3,4]) equation=\"ij->ji\"", -1, 1, 0 },
    { "einsum(f32[3], f32[4]) equation=\"i , j\"", -1, 1, 1e-6 },
    { "einsum(f32[3,4]) equation=\"ij->\"", -1, 1, 1e-5 },
    { "einsum(f32[2,3], f32[2,3]) equation=\"ij,ij->ij\"", -1, 1, 1e-6 },
    { "einsum(i32[2,3], i32[3,4]) equation=\"ij,jk\"", -9, 9, 0 },
    { "einsum(f32[0,3], f32[3,2]) equation=\"ij,jk\"", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_einsum = {
    .name = "einsum",
    .doc = "sums of products by labels",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .expand = expand,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_einsum(const char *equation, fac_value *const x[], int n) {
    return fac_emit(&fac_op_einsum, &(attrs){ equation }, n, x);
}
