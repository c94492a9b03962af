/* The graph of a function: an op on its inputs, or the gradient of another function.
 *
 * A gradient is built by emitting the function once more, multiplying its results with the
 * gradients that arrive and differentiating the sum (fac_grad).  The results of the first call take
 * the places of those emitted again, so forward work is not repeated where the gradient reads
 * it. */
#include <string.h>
#include "function.h"

static int results(const fac_value *y, const fac_op *op, int want) {
    int n = 1, nout = y->node && y->node->op == op ? y->node->nout : 1;
    const fac_port *p = op->out;
    for (int k = 1; k < nout; k++) {
        if (p && p[0].name && p[1].name) p++;
        if (!want && p && p->name && (p->is & (FAC_OPTIONAL | FAC_INTERNAL))) break;
        n = k + 1;
    }
    return want && want < n ? want : n;
}

static bool emit_op(const Entry *e, fac_graph *g, fac_value *const in[], fac_value *out[],
                    int *nout) {
    fac_value *given[PY_PORTS];
    const Recipe *how = &e->how;
    for (int i = 0; i < how->n; i++) {
        if (how->absent[i])
            given[i] = NULL;
        else
            given[i] = how->fixed[i] ? fac_const(g, how->fixed[i]) : in[i];
    }
    out[0] = fac_apply(g, how->op, how->attrs, how->n, given);
    if (fac_graph_check(g, NULL)) return false;
    int n = results(out[0], how->op, how->want);
    if (n > PY_PORTS) n = PY_PORTS;
    for (int k = 1; k < n; k++) out[k] = fac_value_other(out[0], k);
    *nout = n;
    return true;
}

static bool is_float(const fac_value *v) {
    return fac_dtype_get(fac_value_type(v).dtype)->kind == 'f';
}

static fac_value *dot(fac_value *y, fac_value *dy) {
    fac_value *all = fac_mul(y, dy);
    return fac_sum(all, (fac_dims){ 0 }, false);
}

/* Gradients of f, whose results are y, times d; d has one value for each result that is a float. */
static bool emit_gradients(const Function *f, uint64_t mask, fac_value *const in[],
                           fac_value *const y[], fac_value *const d[], fac_value *out[]) {
    fac_value *loss = NULL, *wrt[PY_PORTS];
    int n = 0, nd = 0;
    for (int k = 0; k < f->nout; k++)
        if (is_float(y[k])) {
            fac_value *part = dot(y[k], d[nd++]);
            if (loss && fac_value_type(loss).dtype != fac_value_type(part).dtype)
                part = fac_cast(part, fac_value_type(loss).dtype);
            loss = loss ? fac_add(loss, part) : part;
        }
    for (int i = 0; i < f->nin; i++)
        if (mask >> i & 1) wrt[n++] = in[i];
    if (!loss) return false;
    fac_grad(loss, n, wrt, out);
    return !fac_graph_check(fac_value_graph(loss), NULL);
}

static bool emit_vjp(const Entry *e, fac_graph *g, fac_value *const in[], fac_value *out[],
                     fac_value *y[]) {
    const Function *of = e->how.of;
    return py_function_emit(of, g, in, y) &&
           emit_gradients(of, e->how.mask, in, y, in + of->nin, out);
}

bool py_function_emit(const Function *f, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const Entry *e = (const Entry *)f;
    fac_value *y[PY_PORTS];
    int nout;
    return e->how.of ? emit_vjp(e, g, in, out, y) : emit_op(e, g, in, out, &nout);
}

static void declare_inputs(Entry *e, fac_graph *g, fac_value *in[]) {
    char name[16];
    for (int i = 0; i < e->f.nin; i++) {
        PyOS_snprintf(name, sizeof name, "x%d", i);
        fac_type t = e->how.types[i];
        if (t.dtype)
            in[i] = fac_input(g, name, t.dtype, t.dims);
        else
            in[i] = NULL;
    }
}

static void declare_outputs(fac_graph *g, int n, fac_value *const out[]) {
    char name[16];
    for (int k = 0; k < n; k++) {
        PyOS_snprintf(name, sizeof name, "y%d", k);
        fac_output(g, name, out[k]);
    }
}

static bool broken(Entry *e) {
    fac_error err;
    if (!fac_graph_check(e->f.graph, &err)) return false;
    py_raise(&err);
    return true;
}

bool py_function_build_op(Entry *e) {
    fac_value *in[PY_PORTS], *out[PY_PORTS];
    fac_graph *g = e->f.graph = fac_graph_new();
    if (!g) return PyErr_NoMemory() != NULL;
    declare_inputs(e, g, in);
    if (!emit_op(e, g, in, out, &e->f.nout)) return !broken(e);
    declare_outputs(g, e->f.nout, out);
    return !broken(e);
}

static int floats(const Function *f, fac_type to[]) {
    int n = 0;
    for (int k = 0; k < f->nout; k++) {
        fac_type t = fac_value_type(fac_graph_output(f->graph, k));
        if (fac_dtype_get(t.dtype)->kind == 'f') to[n++] = t;
    }
    return n;
}

static void save_results(const Function *of, fac_value *const y[], fac_value *const saved[]) {
    int n = 0;
    for (int k = 0; k < of->nout; k++)
        if (is_float(y[k])) {
            if (y[k]->node) fac_replace(y[k], saved[n]);
            n++;
        }
}

bool py_function_build_vjp(Entry *e, bool saved) {
    const Function *of = e->how.of;
    fac_value *in[PY_PORTS], *out[PY_PORTS], *y[PY_PORTS];
    fac_type d[PY_PORTS];
    int nd = floats(of, d);
    e->f.nin = of->nin + nd * (saved ? 2 : 1);
    if (e->f.nin > PY_PORTS - 2) {
        PyErr_SetString(PyExc_ValueError, "an operator with too many inputs to differentiate it");
        return false;
    }
    for (int i = of->nin; i < e->f.nin; i++) e->how.types[i] = d[(i - of->nin) % nd];
    for (int i = of->nin; i < e->f.nin; i++) e->f.floats_in[i] = true;
    fac_graph *g = e->f.graph = fac_graph_new();
    if (!g) return PyErr_NoMemory() != NULL;
    declare_inputs(e, g, in);
    if (!emit_vjp(e, g, in, out, y)) return !broken(e);
    e->f.nout = __builtin_popcountll(e->how.mask);
    declare_outputs(g, e->f.nout, out);
    if (saved) save_results(of, y, in + of->nin + nd);
    fac_graph_sweep(g);
    return !broken(e);
}
