/* The graph as the rest of the library sees it.  Passes read nodes in order (first, next) and
 * change the graph through facula/graph.h, fac_emit and fac_rebuild. */
#ifndef FACULA_GRAPH_INTERNAL_H
#define FACULA_GRAPH_INTERNAL_H
#include <stdatomic.h>
#include <string.h>
#include "base/arena.h"
#include "base/table.h"
#include "base/text.h"
#include "facula/op.h"

typedef struct fac_graph_out {
    const char *name;
    fac_value *value;
} fac_graph_out;
typedef struct fac_note {
    const char *key, *text;
} fac_note;
typedef struct fac_scope fac_scope; /* graph.c: what fac_graph_pop goes back to */

/* Symbols are far below zero, so that the small negative numbers of shape arithmetic (-1 in a
 * reshape, -2 in a slice) can never be taken for one.  They are dense: symbol k of a graph is
 * FAC_SYMBOL - k, its name is symbols[k]. */
#define FAC_SYMBOL (-((int64_t)1 << 40))
static inline int64_t fac_symbol_at(size_t k) { return FAC_SYMBOL - (int64_t)k; }
static inline size_t fac_symbol_index(int64_t symbol) {
    return (size_t)(FAC_SYMBOL - symbol);
} /* of one that is_symbol */

struct fac_graph {
    fac_arena arena; /* nodes, values, names: one free                          */
    fac_error error; /* the first; status FAC_OK while all is well              */
    fac_value *poison;
    fac_node *first, *last; /* in the order of building, which is a topological order  */
    int nodes;
    fac_value **inputs, **params, **consts; /* params: parameters and states */
    size_t ninputs, nparams, nconsts, room_inputs, room_params, room_consts;
    fac_graph_out *outputs;
    size_t noutputs, room_outputs;
    const char **symbols; /* name of symbol k; fresh ones are called "?k"    */
    size_t nsymbols, room_symbols;
    fac_note *notes; /* fac_graph_note */
    size_t nnotes, room_notes;
    fac_note *modules; /* path and class: fac_graph_set_class */
    size_t nmodules, room_modules;
    fac_table module_places; /* path -> its place in modules + 1, as a pointer  */
    fac_table symbol_names;  /* name -> its place in symbols + 1, as a pointer  */
    fac_table names;         /* leaves and named values: name -> fac_value      */
    const char *scope;       /* joined with '.'; NULL at the top                */
    fac_scope *scopes;       /* the open ones, innermost first                  */
    uint32_t ids;            /* next id of a node or value                      */
    uint16_t stage;          /* given to nodes as they are built                */
    uint16_t depth;          /* levels of bodies below                          */
    atomic_int sharers;      /* nodes that have it as a body, but for one: see fac_graph_share */
    uint32_t streams;        /* of noise, given out so far                      */
    fac_source *source;      /* fac_nn_source */
    void *source_self;
    uint64_t seed;
    bool passing; /* between passes, which may change it instead of a copy */
};

/* ---- building ---- */

/* As after fac_graph_new, but with the memory that it had; for a graph that nobody shares.  NULL:
 * there was none, and g is gone. */
fac_graph *fac_graph_clear(fac_graph *g);

/* Sets the graph's error if it has none; returns poison.  fac_fail_graph also says the scope. */
fac_value *fac_graph_raise(fac_graph *g, fac_status status, const char *format, ...)
    FAC_PRINTF(3, 4);
/* fac_graph_check for those who were given a finished graph: the error also says that `user` cannot
 * use it, and why. */
fac_status fac_graph_usable(const fac_graph *g, const char *user, fac_error *err);
/* Is this number a symbol of g? */
static inline bool fac_is_symbol(const fac_graph *g, int64_t d) {
    return d <= FAC_SYMBOL && fac_symbol_index(d) < g->nsymbols;
}
/* Names a value if the name is free (importers do, for every value of the file). */
void fac_value_name_set(fac_value *v, const char *name);
/* A name that no leaf or value of g has: `want` itself, or with a number after it.  NULL: no
 * memory. */
const char *fac_graph_fresh(fac_graph *g, const char *want);
/* The name of a node for people: its own, else "scope.op_7". Written to `to`. */
const char *fac_node_label(const fac_node *n, char *to, size_t size);
/* "f32[N,3,224,224]": symbols by name. */
void fac_type_print(const fac_graph *g, const fac_type *type, fac_text *to);

/* FAC_OPTIONAL, FAC_HOST...: of the port that input i of the node is; 0 for what feeds an epilogue.
 */
static inline unsigned fac_port_flags(const fac_node *n, int i) {
    if (i >= n->nports || !n->op->in) return 0;
    int k = 0;
    while (k < i && n->op->in[k + 1].name) k++; /* a variadic port is the last one */
    return n->op->in[k].is;
}

/* ---- types that may turn out otherwise ---- */

/* Gives v a type of which nothing but the element type is known. */
void fac_rankless(fac_value *v, fac_dtype dtype);
/* What is least known of the inputs and outputs of a node. */
static inline fac_guess fac_node_guess(const fac_node *n) {
    fac_guess most = FAC_CERTAIN;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->guess > most) most = n->in[i]->guess;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k]->guess > most) most = n->out[k]->guess;
    return most;
}

static inline bool fac_contents_equal(const fac_contents *a, const fac_contents *b) {
    if (!a || !b) return a == b;
    return a->n == b->n && a->symbolic == b->symbolic &&
           !memcmp(a->v, b->v, (size_t)a->n * sizeof *a->v);
}

/* ---- what a part of a graph takes and gives ---- */

/* Inputs that nothing reads are no inputs any more. */
static inline void fac_drop_unread_inputs(fac_graph *g) {
    size_t kept = 0;
    for (size_t i = 0; i < g->ninputs; i++)
        if (g->inputs[i]->uses || g->inputs[i]->roots) g->inputs[kept++] = g->inputs[i];
    g->ninputs = kept;
}
/* The graph gives nothing back any more; what it gave is still there. */
static inline void fac_forget_outputs(fac_graph *g) {
    for (size_t k = 0; k < g->noutputs; k++) g->outputs[k].value->roots--;
    g->noutputs = 0;
}

/* ---- bodies ---- */

enum { FAC_BODY_DEPTH = 16 }; /* of bodies in bodies: what walks through them recurses */
/* A body of a FAC_OP_FLOW node is read only, so that copies of the node share it: one more
 * fac_graph_free to come. */
fac_graph *fac_graph_share(fac_graph *body);
/* How many nodes its expansion makes; 0: it has none, or cannot be expanded. */
static inline int64_t fac_node_expands(const fac_node *n) {
    if (!n->op->expand) return 0;
    return n->op->expands ? n->op->expands(n) : 1;
}
/* Does it mean something without an expansion: a formula, or ops that are its body? */
static inline bool fac_op_means(const fac_op *op) {
    return op->map || op->move || op->ref ||
           (op->is & (FAC_OP_BODIES | FAC_OP_FLOW)) == FAC_OP_BODIES;
}
/* Which inputs of a graph steer shapes: reached backwards from FAC_HOST ports, also those in
 * bodies, through small values only. steers has one flag for each input; false when memory is gone.
 */
bool fac_graph_steering(const fac_graph *g, bool *steers);

/* ---- rebuilding: how every pass is written ----
 * Copies a graph node by node into a new one.  For each node of `from`, in order, with its inputs
 * already translated, visit(self, to, node, in, out) may emit whatever it likes into `to` and set
 * out[k] for the outputs; when it returns false the node is copied as it is (attributes, bodies,
 * name, scope, stage; types are inferred anew).  Leaves are copied, sharing tensors; symbols keep
 * their numbers; outputs and updates are translated; names survive on values that have one. visit
 * NULL copies all.  leaf (may be NULL) may return a replacement for a leaf (an input with its size
 * bound, say); a replacement that is not an input makes the input disappear, so keep the count: see
 * specialize.c. Nodes whose types may turn out otherwise (fac_guess) are copied without a visit,
 * unless visit does not judge by types. A graph that is `passing` and is copied as it is (no visit,
 * leaf or map) is swept and comes back itself. NULL only when memory is gone; other errors are the
 * new graph's.  map (may be NULL): for each old value id its new value, an array of from->ids
 * entries owned by the new graph's arena. */
typedef struct fac_rebuild {
    void *self;
    bool (*visit)(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]);
    fac_value *(*leaf)(void *self, fac_graph *to, const fac_value *v);
    bool keep_dead; /* else nodes that no output or update needs are dropped */
    bool blind;     /* visit judges by no dims: it sees all nodes */
} fac_rebuild;
fac_graph *fac_graph_rebuild(const fac_graph *from, const fac_rebuild *how, fac_value ***map);
/* One node copied with other inputs (same count as n->nin); out[k] receives its outputs. */
void fac_node_copy(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]);
/* The nodes of a closed body, of in[] instead of its inputs; out[k] receives what its outputs are.
 */
void fac_body_inline(fac_graph *to, const fac_graph *body, fac_value *const in[], fac_value *out[]);
/* What its op expands to instead, and the epilogue after it. */
void fac_node_expand(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]);

/* ---- attributes by their table ---- */
void fac_attrs_print(const fac_op *op, const void *attrs,
                     fac_text *to); /* " stride=2,2"; defaults are left out */
/* Text ("stride=2,2 ceil_mode") into a zeroed struct; texts and copies go to the arena. */
fac_status fac_attrs_parse(const fac_op *op, const char *text, fac_arena *arena, void *attrs,
                           fac_error *err);
bool fac_attrs_equal(const fac_op *op, const void *a, const void *b);
fac_hash fac_attrs_hash(fac_hash h, const fac_op *op, const void *attrs);

/* ---- hashes ---- */
/* Of what a node computes but for its inputs: op, attributes, bodies, stage, counts. */
fac_hash fac_node_hash(fac_hash h, const fac_node *n);
/* Of a constant: <= 64 bytes by contents, else by storage. */
fac_hash fac_const_hash(fac_hash h, const fac_value *v);
/* Of the whole graph: structure, leaf types with sizes, constants, outputs and updates; not names,
 * scopes or parameter contents. */
fac_hash fac_graph_hash(const fac_graph *g);

/* ---- text ---- */
/* The value that the text of the graph shows as %7; NULL if there is none. */
fac_value *fac_graph_numbered(const fac_graph *g, uint32_t number);

/* The body of a node in one line, read back by fac_body_parse: "relu" for a chain of ops on one
 * value (further operands as "add(_, x1)", "clip(_, 0, 6)": _ is what came before, xk is body input
 * k, numbers are scalar constants of the same type), several separated by spaces; anything else as
 * "t0 = exp(x0); t1 = mul(t0, x1); t1". */
void fac_body_print(const fac_graph *body, fac_text *to);
fac_graph *fac_body_parse(const char *text, size_t n, int ninputs, const fac_type *inputs,
                          fac_error *err); /* or NULL */

/* One use in all: neither read twice nor an output of the graph nor the next contents of a
 * parameter. */
static inline bool fac_used_once(const fac_value *v) {
    return v->uses && !v->uses->next && !v->roots;
}
#endif
