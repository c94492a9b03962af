/* The expressions of elementwise kernels.  Each node becomes a function of its expression, each
 * value a variable; types of memory, of computing and of rounding between nodes are those of the
 * cpu's chains: what is f16 in the graph is rounded to f16. */
#include <math.h>
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "tensor/dtype.h"
#include "tensor/tensor_internal.h"

enum { VALUES = 160, ARGS = 4 };

/* A value as a variable: what it is in the graph, and the type it is held in. */
typedef struct variable {
    const void *key;
    fac_dtype dtype, as;
} variable;
typedef struct writer {
    fac_text functions, body;
    variable v[VALUES];
    int n, nfunctions;
    bool fp64, doubles;
} writer;

static char kind_of(fac_dtype t) { return fac_dtype_get(t)->kind; }
static bool computable(fac_dtype t) {
    return t != FAC_NONE && t != FAC_BIT && !fac_dtype_is_stored(t) && strchr("fiub", kind_of(t)) &&
           kind_of(t);
}

static fac_dtype natural(fac_dtype t) {
    if (t == FAC_F64 || t == FAC_U64) return t;
    return kind_of(t) == 'f' ? FAC_F32 : FAC_I64;
}

static const char *type_name(fac_dtype as) {
    if (as == FAC_F32) return "float";
    if (as == FAC_F64) return "double";
    return as == FAC_U64 ? "ulong" : "long";
}

static const char *memory_name(fac_dtype t) {
    switch (t) {
    case FAC_F32:
        return "float";
    case FAC_F64:
        return "double";
    case FAC_F16:
    case FAC_BF16:
    case FAC_U16:
        return "ushort";
    case FAC_I8:
        return "char";
    case FAC_U8:
    case FAC_BOOL:
        return "uchar";
    case FAC_I16:
        return "short";
    case FAC_I32:
        return "int";
    case FAC_U32:
        return "uint";
    case FAC_I64:
        return "long";
    case FAC_U64:
        return "ulong";
    default:
        return "";
    }
}

static bool known_type(writer *w, fac_dtype t) {
    if (!computable(t) || !*memory_name(t)) return false;
    if (t == FAC_F64) w->doubles = true;
    return t != FAC_F64 || w->fp64;
}

static bool real(fac_dtype as) { return as == FAC_F32 || as == FAC_F64; }

/* "EXPRESSION as to" where the expression is of type `from`; both are types of computing. */
static void add_cast(fac_text *t, fac_dtype from, fac_dtype to, const char *expression) {
    if (from == to)
        fac_text_add(t, expression);
    else if (real(from) && !real(to))
        fac_text_print(t, "(%s)fac_wrap_%s(%s)", type_name(to), type_name(from), expression);
    else
        fac_text_print(t, "(%s)(%s)", type_name(to), expression);
}

/* An expression of type `from`, brought to the values that elements of `dtype` have, in their
 * natural type. */
static void add_rounded(fac_text *t, fac_dtype from, fac_dtype dtype, const char *expression) {
    fac_text inner = { 0 };
    fac_dtype as = natural(dtype);
    if (dtype == FAC_BOOL) {
        fac_text_print(t, "(long)((%s) != 0)", expression);
        return;
    }
    add_cast(&inner, from, as, expression);
    const char *e = inner.s ? inner.s : "";
    if (dtype == FAC_F16)
        fac_text_print(t, "fac_round_f16(%s)", e);
    else if (dtype == FAC_BF16)
        fac_text_print(t, "fac_round_bf16(%s)", e);
    else if (as == FAC_I64 && dtype != FAC_I64)
        fac_text_print(t, "(long)(%s)(%s)", memory_name(dtype), e);
    else
        fac_text_add(t, e);
    t->failed |= inner.failed;
    fac_text_free(&inner);
}

static int new_variable(writer *w, const void *key, fac_dtype dtype, fac_dtype as) {
    if (w->n == VALUES) return -1;
    if (as == FAC_F64) w->doubles = true;
    w->v[w->n] = (variable){ key, dtype, as };
    return w->n++;
}

static int find(const writer *w, const void *key) {
    for (int i = w->n - 1; i >= 0; i--)
        if (w->v[i].key == key) return i;
    return -1;
}

static void add_number(fac_text *t, double x, fac_dtype as) {
    if (isnan(x))
        fac_text_print(t, "(%s)NAN", type_name(as));
    else if (isinf(x))
        fac_text_print(t, "(%s)%sINFINITY", type_name(as), x < 0 ? "-" : "");
    else if (as == FAC_F32)
        fac_text_print(t, "%#.9gf", (double)(float)x);
    else
        fac_text_print(t, "(%s)%.17g", type_name(as), x);
}

/* f3(x, y): the op's expression in the type `as`, with its attributes as constants; rough: its
 * result is rounded to 16 bits. */
static int add_function(writer *w, const fac_op *op, const double *attrs, fac_dtype as,
                        bool rough) {
    static const char *const args[] = { "x", "y", "z" };
    fac_text *t = &w->functions;
    int count = 0;
    for (const fac_attr *a = op->attrs; a && a->name; a++) count++;
    fac_text_print(t, "#define T %s\n#define FORM %s\nstatic inline T f%d(", type_name(as),
                   rough ? "rough" : "exact", w->nfunctions);
    for (int i = 0; i < op->map->inputs; i++)
        fac_text_print(t, "%sconst T %s", i ? ", " : "", args[i]);
    fac_text_add(t, ") {");
    for (int i = 0; i < count; i++) {
        fac_text_print(t, " const T p%d = ", i);
        add_number(t, attrs[i], as);
        fac_text_add(t, ";");
    }
    fac_text_print(t, " return (T)(%s); }\n#undef T\n#undef FORM\n", op->map->text);
    return w->nfunctions++;
}

static bool has_loop(const fac_map *m, fac_dtype as) {
    return as == FAC_F32   ? m->f32[0] != NULL
           : as == FAC_F64 ? m->f64[0] != NULL
           : as == FAC_U64 ? m->u64 || m->i64
                           : m->i64 != NULL;
}

static bool add_cast_node(writer *w, const int *arg, const void *key, fac_dtype result) {
    const variable from = w->v[arg[0]];
    char name[16];
    int to = new_variable(w, key, result, natural(result));
    if (to < 0) return false;
    snprintf(name, sizeof name, "v%d", arg[0]);
    fac_text_print(&w->body, "        const %s v%d = ", type_name(natural(result)), to);
    add_rounded(&w->body, from.as, result, name);
    fac_text_add(&w->body, ";\n");
    return true;
}

static bool add_map_node(writer *w, const fac_op *op, const void *attrs, int nin, const int *arg,
                         const void *key, fac_dtype result) {
    bool floats = false, doubles = false, integers = false, words = false;
    if (op->map->inputs != nin || nin > 3) return false;
    for (int i = 0; i < nin; i++) {
        fac_dtype t = w->v[arg[i]].dtype;
        floats |= kind_of(t) == 'f';
        doubles |= t == FAC_F64;
        words |= t == FAC_U64;
        integers |= kind_of(t) == 'i' || kind_of(t) == 'u';
    }
    fac_dtype as = doubles || (floats && integers) ? FAC_F64
                   : floats                        ? FAC_F32
                   : words && op->map->u64         ? FAC_U64
                                                   : FAC_I64;
    if (!has_loop(op->map, as) || (as == FAC_F64 && !w->fp64)) return false;
    bool narrow = result != as && kind_of(result) != 'b';
    const bool rough = as == FAC_F32 && fac_dtype_is_half(result);
    int f = add_function(w, op, attrs, as, rough),
        to = new_variable(w, key, result, narrow ? natural(result) : as);
    if (to < 0) return false;
    fac_text call = { 0 };
    fac_text_print(&call, "f%d(", f);
    for (int i = 0; i < nin; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", arg[i]);
        if (i) fac_text_add(&call, ", ");
        add_cast(&call, w->v[arg[i]].as, as, name);
    }
    fac_text_add(&call, ")");
    fac_text_print(&w->body, "        const %s v%d = ", type_name(w->v[to].as), to);
    if (narrow)
        add_rounded(&w->body, as, result, call.s ? call.s : "");
    else
        fac_text_add(&w->body, call.s ? call.s : "");
    fac_text_add(&w->body, ";\n");
    w->body.failed |= call.failed;
    fac_text_free(&call);
    return true;
}

static bool add_node(writer *w, const fac_op *op, const void *attrs, int nin, const void *const *in,
                     const void *key, fac_dtype result) {
    int arg[ARGS];
    if (nin > ARGS || !known_type(w, result)) return false;
    for (int i = 0; i < nin; i++)
        if (!in[i] || (arg[i] = find(w, in[i])) < 0) return false;
    if (op->map) return add_map_node(w, op, attrs, nin, arg, key, result);
    return nin == 1 && op == &fac_op_cast && add_cast_node(w, arg, key, result);
}

/* ---- operands ---- */

static bool add_load(writer *w, const void *key, int operand, fac_dtype t) {
    if (!known_type(w, t)) return false;
    int v = new_variable(w, key, t, natural(t));
    if (v < 0) return false;
    fac_text_print(&w->body, "        const %s v%d = ", type_name(natural(t)), v);
    if (fac_dtype_is_half(t))
        fac_text_print(&w->body, "fac_from_%s(x%d[a%d]);\n", t == FAC_F16 ? "f16" : "bf16", operand,
                       operand);
    else
        fac_text_print(&w->body, "x%d[a%d];\n", operand, operand);
    return true;
}

static bool add_constant(writer *w, const fac_value *v) {
    union {
        double f;
        int64_t i;
    } x = { .f = 0 };
    fac_dtype t = v->type.dtype, as = computable(t) ? natural(t) : FAC_NONE;
    if (fac_dims_count(&v->type.dims) != 1 || !known_type(w, t) || !v->tensor ||
        !fac_tensor_data(v->tensor))
        return false;
    fac_convert(real(as) ? FAC_F64 : as, &x, t, fac_tensor_data(v->tensor), 1);
    int to = new_variable(w, v, t, as);
    if (to < 0) return false;
    fac_text_print(&w->body, "        const %s v%d = ", type_name(as), to);
    if (real(as))
        add_number(&w->body, x.f, as);
    else
        fac_text_print(&w->body, "(%s)0x%llxUL", type_name(as), (unsigned long long)x.i);
    fac_text_add(&w->body, ";\n");
    return true;
}

static bool add_store(writer *w, const void *key, int operand, fac_dtype t) {
    int v = find(w, key);
    char name[16];
    if (v < 0 || !known_type(w, t)) return false;
    snprintf(name, sizeof name, "v%d", v);
    if (fac_dtype_is_half(t)) {
        const char *how = t == FAC_F16                ? "bits_f16"
                          : w->v[v].dtype == FAC_BF16 ? "top_bf16"
                                                      : "bits_bf16";
        fac_text_print(&w->body, "        x%d[a%d] = fac_%s(", operand, operand, how);
        add_cast(&w->body, w->v[v].as, FAC_F32, name);
        fac_text_add(&w->body, ");\n");
        return true;
    }
    fac_text_print(&w->body, "        x%d[a%d] = (%s)", operand, operand, memory_name(t));
    if (t == FAC_BOOL)
        fac_text_print(&w->body, "(%s != 0)", name);
    else
        add_cast(&w->body, w->v[v].as, natural(t), name);
    fac_text_add(&w->body, ";\n");
    return true;
}

/* The constants and nodes of a closed graph whose inputs are variables already. */
static bool add_graph(writer *w, const fac_graph *g) {
    for (size_t i = 0; i < g->nconsts; i++)
        if (!add_constant(w, g->consts[i])) return false;
    for (const fac_node *n = g->first; n; n = n->next) {
        const void *in[ARGS];
        if (n->nin > ARGS || n->nout != 1 || n->body[0]) return false;
        for (int i = 0; i < n->nin; i++) in[i] = n->in[i];
        if (!add_node(w, n->op, n->attrs, n->nin, in, n->out[0], n->out[0]->type.dtype))
            return false;
    }
    return true;
}

static bool add_nodes(writer *w, const fac_problem *p) {
    const fac_graph *g = p->node->body[0];
    if (!g) {
        const void *in[ARGS];
        if (p->nin > ARGS || p->nout != 1) return false;
        for (int i = 0; i < p->nin; i++) {
            in[i] = &p->in[i];
            if (!add_load(w, in[i], i, p->in[i].type.dtype)) return false;
        }
        return add_node(w, p->node->op, p->node->attrs, p->nin, in, &p->out[0],
                        p->out[0].type.dtype) &&
               add_store(w, &p->out[0], p->nin, p->out[0].type.dtype);
    }
    if (!FAC_IS(p->node, fused) || (int)g->ninputs != p->nin || (int)g->noutputs != p->nout)
        return false;
    for (int i = 0; i < p->nin; i++)
        if (!add_load(w, g->inputs[i], i, p->in[i].type.dtype)) return false;
    if (!add_graph(w, g)) return false;
    for (int k = 0; k < p->nout; k++)
        if (!add_store(w, g->outputs[k].value, p->nin + k, p->out[k].type.dtype)) return false;
    return true;
}

bool fac_cl_expression_of(const fac_problem *p, bool fp64, fac_cl_expression *e) {
    writer w = { .fp64 = fp64 };
    const bool said = add_nodes(&w, p), lost = w.functions.failed || w.body.failed,
               good = said && !lost;
    *e = (fac_cl_expression){ w.functions, w.body, w.doubles, said && lost };
    if (!good) fac_cl_expression_free(e);
    return good;
}

void fac_cl_expression_free(fac_cl_expression *e) {
    fac_text_free(&e->functions);
    fac_text_free(&e->statements);
}

/* ---- bodies of other kernels ---- */

const char *fac_cl_computing(fac_dtype t) { return type_name(natural(t)); }
const char *fac_cl_in_memory(fac_dtype t) { return computable(t) ? memory_name(t) : ""; }

static bool add_body(writer *w, const fac_graph *g, const char *const *in) {
    for (size_t i = 0; i < g->ninputs; i++) {
        const fac_dtype t = g->inputs[i]->type.dtype;
        const int v = known_type(w, t) ? new_variable(w, g->inputs[i], t, natural(t)) : -1;
        if (v < 0) return false;
        fac_text_print(&w->body, "        const %s v%d = %s;\n", type_name(natural(t)), v, in[i]);
    }
    if (g->noutputs != 1 || !add_graph(w, g)) return false;
    const fac_dtype t = g->outputs[0].value->type.dtype;
    const int v = find(w, g->outputs[0].value);
    char name[16];
    if (v < 0) return false;
    snprintf(name, sizeof name, "v%d", v);
    fac_text_print(&w->body, "        const %s result = ", type_name(natural(t)));
    if (w->v[v].dtype == t && w->v[v].as == natural(t))
        fac_text_add(&w->body, name); /* it was rounded when it was made */
    else
        add_rounded(&w->body, w->v[v].as, t, name);
    fac_text_add(&w->body, ";\n");
    return true;
}

bool fac_cl_body_text(const fac_graph *body, const char *const *in, bool fp64, fac_text *functions,
                      fac_text *statements) {
    writer w = { .fp64 = fp64 };
    bool good = add_body(&w, body, in);
    if (good) {
        fac_text_add(functions, w.functions.s ? w.functions.s : "");
        fac_text_add(statements, w.body.s ? w.body.s : "");
        functions->failed |= w.functions.failed;
        statements->failed |= w.body.failed;
    }
    fac_text_free(&w.functions);
    fac_text_free(&w.body);
    return good;
}
