/* Mutants of a graph of one node: an attribute, an operand, a constant or the op itself is another
 * one.  Whether a mutant is another function is found without facula/report/verify.h: the reference
 * interpreter runs both in f64 on many inputs. */
#ifndef FACULA_TESTS_MUTANTS_H
#define FACULA_TESTS_MUTANTS_H
#include "random_check.h"
#include "base/memory.h"
#include "facula/edit.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "facula/report/verify.h"
#include "graph/graph_internal.h"
#include "passes/passes.h"
#include "report/verify/verify.h"
#include "ref/ref.h"
#include "tensor/tensor_internal.h"

typedef enum mutation_kind { OF_ATTR, OF_OP, OF_PARAM, OF_CONST, OF_ORDER } mutation_kind;
static const char *const kind_names[] = { "attribute", "op", "weight", "constant", "order" };
enum { MUTATION_KINDS = 5, TURNS = 3 };

/* at: which attribute, op, parameter, constant or operand; element of it; turn: which other value.
 * */
typedef struct mutation {
    mutation_kind kind;
    int at, element, turn;
    const fac_graph *of;
    char what[160];
    bool done;
} mutation;

/* ---- attributes ---- */

static double other_real(double x, int turn) {
    if (turn == 0) return x * 1.5 + 0.1;
    return turn == 1 ? x * 0.5 - 0.2 : x + 1e-3;
}
static int64_t other_int(int64_t x, int turn) {
    if (turn == 0) return x + 1;
    return turn == 1 ? x - 1 : 2 * x + 1;
}

static void change_dims(fac_dims *d, int turn) {
    if (d->n > 1 && turn < 2) {
        const int64_t was = d->d[turn % (d->n - 1)];
        d->d[turn % (d->n - 1)] = d->d[turn % (d->n - 1) + 1];
        d->d[turn % (d->n - 1) + 1] = was;
    } else if (d->n) {
        d->d[0]++;
    }
}

static void change_attr(mutation *m, const fac_attr *a, char *attrs) {
    static const char *const texts[] = { "HardSigmoid Tanh Tanh", "Relu", "Sigmoid Relu Tanh" };
    void *at = attrs + a->at;
    switch (a->kind) {
    case FAC_A_INT:
        ((int64_t *)at)[m->element] = other_int(((int64_t *)at)[m->element], m->turn);
        break;
    case FAC_A_REAL:
        ((double *)at)[m->element] = other_real(((double *)at)[m->element], m->turn);
        break;
    case FAC_A_FLAG:
        *(bool *)at = !*(bool *)at;
        break;
    case FAC_A_ENUM:
        *(int *)at = a->choices[*(int *)at + 1] ? *(int *)at + 1 : 0;
        break;
    case FAC_A_DIMS:
        change_dims(at, m->turn);
        break;
    case FAC_A_TEXT:
        *(const char **)at = texts[m->turn];
        break;
    default:
        break;
    }
    snprintf(m->what, sizeof m->what, "%s[%d], turn %d", a->name, m->element, m->turn);
}

static int turns_of(const fac_attr *a) {
    if (a->kind == FAC_A_FLAG || a->kind == FAC_A_ENUM) return 1;
    return a->kind == FAC_A_DTYPE ? 0 : TURNS;
}

/* ---- making one ---- */

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    mutation *m = self;
    fac_node other = *n;
    fac_value *args[OPERANDS] = { NULL };
    if (n != m->of->last || n->nin > OPERANDS) return false;
    for (int i = 0; i < n->nin; i++) args[i] = in[i];
    if (m->kind == OF_ATTR) {
        char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size + 1);
        memcpy(attrs, n->attrs, n->op->attrs_size);
        change_attr(m, &n->op->attrs[m->at], attrs);
        other.attrs = attrs;
        fac_node_copy(to, &other, args, out);
    } else if (m->kind == OF_ORDER) {
        args[m->at] = in[m->at + 1];
        args[m->at + 1] = in[m->at];
        snprintf(m->what, sizeof m->what, "operands %d and %d exchanged", m->at, m->at + 1);
        fac_node_copy(to, &other, args, out);
    } else if (m->kind == OF_OP) {
        const fac_op *op = fac_ops[m->at];
        snprintf(m->what, sizeof m->what, "%s instead", op->name);
        out[0] = fac_emit(op, op->attrs == n->op->attrs ? n->attrs : NULL, n->nin, args);
    } else {
        return false;
    }
    m->done = true;
    return true;
}

/* One element is another number: a whole one where it was. */
static fac_tensor *changed(const fac_tensor *t, int element) {
    const fac_type type = fac_tensor_type(t);
    fac_tensor *wide = NULL, *own = NULL;
    OK(fac_tensor_convert(t, FAC_F64, &wide, &err));
    double *x = (double *)(uintptr_t)fac_tensor_data(wide);
    x[element] += kind(type.dtype) == 'f'                      ? 0.25 * fabs(x[element]) + 0.25
                  : kind(type.dtype) == 'b' && x[element] != 0 ? -1
                                                               : 1;
    OK(fac_tensor_convert(wide, type.dtype, &own, &err));
    fac_tensor_free(wide);
    return own;
}

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    mutation *m = self;
    const bool param = m->kind == OF_PARAM && v->leaf == FAC_PARAM && v == m->of->params[m->at];
    const bool constant =
        m->kind == OF_CONST && v->leaf == FAC_CONST && v == m->of->consts[m->at] && v->tensor;
    if (!param && !constant) return NULL;
    fac_tensor *t = changed(v->tensor, m->element);
    fac_value *made = param ? fac_param(to, v->name, t) : fac_const(to, t);
    snprintf(m->what, sizeof m->what, "element %d of %s %d", m->element, kind_names[m->kind],
             m->at);
    fac_tensor_free(t);
    m->done = true;
    return made;
}

/* NULL: there is no such graph, or its outputs have other types. */
static fac_graph *mutant(const fac_graph *g, mutation *m) {
    m->of = g;
    m->done = false;
    fac_graph *to = fac_graph_rebuild(
        g, &(fac_rebuild){ .self = m, .visit = visit, .leaf = leaf, .keep_dead = true }, NULL);
    bool good = to && m->done && !fac_graph_check(to, NULL) && to->noutputs == g->noutputs &&
                to->ninputs == g->ninputs;
    for (size_t k = 0; good && k < g->noutputs; k++) {
        const fac_type *x = &g->outputs[k].value->type, *y = &to->outputs[k].value->type;
        good = x->dtype == y->dtype && fac_dims_equal(&x->dims, &y->dims) &&
               fac_dims_count(&y->dims) > 0;
    }
    if (good) return to;
    fac_graph_free(to);
    return NULL;
}

/* ---- are they the same function? ---- */

enum { DRAWS = 36 };

static void draw(const fac_type *type, int round, double lo, double hi, bool infinities,
                 double *x) {
    const int64_t n = fac_dims_count(&type->dims);
    static const double sizes[] = { 0, 1, 1000, 0.01, 0, 10, 0 };
    stream++;
    for (int64_t k = 0; k < n; k++) {
        const double u = fac_random_uniform(seed, stream, (uint64_t)k), s = 2 * u - 1;
        if (kind(type->dtype) == 'b')
            x[k] = u < 0.5;
        else if (kind(type->dtype) != 'f')
            x[k] = round % 2 ? floor(s * 1000) : floor(lo + (hi - lo + 1) * u);
        else if (infinities && k % 3 == 0 && u < 0.3)
            x[k] = NAN;
        else if (infinities && k % 3 == 0)
            x[k] = u < 0.6 ? INFINITY : -INFINITY;
        else if (round % 7 == 0)
            x[k] = lo + (hi - lo) * u;
        else if (round % 7 == 4)
            x[k] = rint(s * 12) / 2;
        else if (round % 7 == 6)
            x[k] = copysign(pow(10, 6 * fabs(s) - 3),
                            fac_random_uniform(seed, stream + 7919, (uint64_t)k) - 0.5);
        else
            x[k] = s * sizes[round % 7];
        if (kind(type->dtype) == 'u') x[k] = fabs(x[k]);
    }
}

typedef struct form {
    fac_graph *g;
    fac_host out[OPERANDS];
} form;

static bool open_form(const fac_graph *g, form *f) {
    fac_graph *wide = NULL;
    *f = (form){ NULL };
    fac_graph *quiet = fac_graph_inference(g);
    const fac_status status = quiet ? fac_graph_floats(quiet, FAC_F64, &wide, &err) : FAC_E_NOMEM;
    fac_graph_free(quiet);
    if (status) return false;
    f->g = fac_pass_expand(wide, NULL, NULL);
    fac_graph_free(wide);
    bool good = f->g && !fac_graph_check(f->g, NULL) && f->g->noutputs <= OPERANDS;
    for (const fac_node *n = good ? f->g->first : NULL; n; n = n->next) good &= fac_ref_able(n);
    for (size_t k = 0; good && k < f->g->noutputs; k++) {
        f->out[k] = (fac_host){ f->g->outputs[k].value->type, NULL, NULL };
        f->out[k].data = calloc(1, fac_type_bytes(&f->out[k].type) + 8);
    }
    return good;
}

static void close_form(form *f) {
    for (int k = 0; k < OPERANDS; k++) free(f->out[k].data);
    fac_graph_free(f->g);
}

static bool apart(const fac_host *a, const fac_host *b) {
    const int64_t n = fac_dims_count(&a->type.dims);
    double *x = calloc((size_t)n + 1, sizeof *x), *y = calloc((size_t)n + 1, sizeof *y), size = 0;
    bool differ = false;
    fac_convert(FAC_F64, x, a->type.dtype, a->data, (size_t)n);
    fac_convert(FAC_F64, y, b->type.dtype, b->data, (size_t)n);
    for (int64_t k = 0; k < n; k++)
        if (isfinite(x[k])) size = fmax(size, fabs(x[k]));
    for (int64_t k = 0; k < n; k++) {
        if (x[k] == y[k] || (isnan(x[k]) && isnan(y[k]))) continue;
        differ |= !(fabs(x[k] - y[k]) <= 1e-6 * fabs(y[k]) + 1e-9 * size);
    }
    free(x), free(y);
    return differ;
}

/* 1: they differ on some inputs; 0: on none of many; -1: the interpreter cannot run one of them. */
static int differ(const fac_graph *a, const fac_graph *b, double lo, double hi) {
    form f[2];
    int answer = -1;
    const bool infinities = !strncmp(a->last->op->name, "is", 2);
    const bool good = open_form(a, &f[0]) & open_form(b, &f[1]) && f[0].g->ninputs <= OPERANDS;
    for (int round = 0; good && round < DRAWS && answer < 1; round++) {
        fac_host in[OPERANDS];
        bool ran = true;
        for (size_t i = 0; i < f[0].g->ninputs; i++) {
            const fac_type type = f[0].g->inputs[i]->type;
            const int64_t n = fac_dims_count(&type.dims);
            double *x = calloc((size_t)n + 1, sizeof *x);
            in[i] = (fac_host){ type, calloc(1, fac_type_bytes(&type) + 8), NULL };
            draw(&type, round, lo, hi, infinities, x);
            fac_convert(type.dtype, in[i].data, FAC_F64, x, (size_t)n);
            free(x);
        }
        for (int k = 0; k < 2 && ran; k++) ran = !fac_ref_graph(f[k].g, in, f[k].out, &err);
        for (size_t k = 0; ran && k < f[0].g->noutputs && answer < 1; k++)
            answer = apart(&f[0].out[k], &f[1].out[k]);
        for (size_t i = 0; i < f[0].g->ninputs; i++) free(in[i].data);
    }
    close_form(&f[0]);
    close_form(&f[1]);
    return answer;
}
#endif
