/* facula/report/analyze.h: what a model costs before it runs: parameters, multiply-adds, bytes,
 * memory over time.
 *
 * Counting lives in the ops (fac_op.cost); this sums it up by layer and by module, in the units of
 * other tools too.  One multiply-add is one MAC, two floating-point operations. */
#ifndef FACULA_ANALYZE_H
#define FACULA_ANALYZE_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_analysis fac_analysis;

/* What an operand of a layer is: data of a run; of the model, a weight, the bias of a product or
 * norm, a buffer (the running statistics of a batch norm, any state); or a setting: it says how. */
typedef enum fac_role {
    FAC_ROLE_DATA,
    FAC_ROLE_WEIGHT,
    FAC_ROLE_BIAS,
    FAC_ROLE_BUFFER,
    FAC_ROLE_SETTING
} fac_role;
const char *fac_role_name(fac_role role); /* "data", "weight", "bias", "buffer", "setting" */

typedef struct fac_layer_value {
    const char *name; /* of the value: as the file has it; else of its node */
    const char *port; /* of the op: "x", "w", "b" */
    fac_role role;
    fac_type type; /* dtype FAC_NONE: unknown */
    double bytes;
} fac_layer_value;

/* One node that runs.  Strings and dims live as long as the analysis. */
typedef struct fac_layer {
    const char *name; /* its own: "layer1.0.conv1", "/layer1/layer1.0/conv1/Conv" in ONNX's words,
                         "relu_7" */
    const char
        *module; /* where it stands, components joined with '.': "layer1.0.conv1"; "" at the top */
    const char *op, *kind; /* "conv2d"; "Conv2d", PyTorch's name of such a layer, else
                              the op's own; of an "opaque" one (see facula/onnx.h) the
                              operator as the file calls it */
    const char *node;      /* its name in the ONNX file, letter by letter; "": none */
    int nin, nout;         /* all operands that are there, in the order of the ports */
    const fac_layer_value *inputs, *outputs;
    const char *attrs; /* "stride=2,2 pad=3,3,3,3"; those at their defaults are left out */
    bool
        is_module; /* the module holds nothing else: a layer of its own, not a call inside of one */
    fac_type in, out; /* of the first input that runs, and the first output; dtype
                         FAC_NONE: none, or unknown */
    fac_dims kernel;  /* of the weight, when it has one: its dims */
    double params,
        buffers;   /* elements of parameters (trained) and states that no earlier layer has read; a
                      constant   of the file that is a tensor of floats counts as a parameter */
    double shared; /* elements that it reads and an earlier layer has counted */
    double macs, other;          /* multiply-adds; other operations */
    int weight_bits, input_bits; /* of the two operands of its products, 32 of floats; 0: it has
                                    no weight */
    double binary_ops;  /* multiply-adds of 1 to 4 bits, as kernels that count bits do them: macs
                           weight_bits input_bits ANDs, each counted */
    double spared_bits; /* that the weight would take less if it were packed */
    double read, written, weights; /* bytes: data in, data out, parameters in */
    double alive; /* bytes of all data alive while it runs: its inputs and outputs, and what waits
                     for later */
} fac_layer;

typedef struct fac_totals {
    double params, buffers; /* elements, each tensor once */
    double macs, other;
    double binary_macs, integer_macs; /* of macs: of 1 to 4 bits; of up to 8 bits */
    double binary_ops, spared_bits;   /* see fac_layer */
    double read, written, weights;    /* bytes; weights: each tensor once */
    double param_bytes, buffer_bytes; /* the two parts of weights */
    double activations; /* bytes of all results of all layers; without what follows: */
    double inputs;      /* bytes of the inputs of the graph */
    double shapes;      /* bytes of the integers that nodes compute as sizes, of one
                           dim or more: known before a run, so no layer makes them */
    double peak, bound; /* bytes: the most that is alive at once in this order; no order can be
                           below bound, the largest set of inputs and outputs of one layer */
    int layers, peak_layer;
} fac_totals;

/* A module that does nothing in a run, such as a dropout that is off: no layer stands in it. */
typedef struct fac_idle {
    const char *module; /* its path: "classifier.0"                              */
    const char *kind;   /* its class: "Dropout"; NULL: the model does not say it */
    int before;         /* the layer before which it stands; their number: none  */
    fac_type out;       /* what goes through it; dtype FAC_NONE: unknown         */
} fac_idle;

/* batch (0: 1) is bound to the first dim of the first input, if that is open, wherever its symbol
 * stands; 1 to every other open dim.  A graph whose sizes still cannot be known is analysed as it
 * is: unknown sizes count 0, and fac_analysis_open() says why.  FAC_E_ARGUMENT: batch is negative;
 * FAC_E_NOMEM; errors of the graph itself. */
fac_status fac_analyze(const fac_graph *g, int64_t batch, fac_analysis **out, fac_error *err);
void fac_analysis_free(fac_analysis *a); /* NULL is fine */

/* Sums over all layers; borrowed texts live as long as `a`. */
fac_totals fac_analysis_totals(const fac_analysis *a);
const fac_layer *fac_analysis_layer(const fac_analysis *a,
                                    int i); /* in the order of execution; NULL after the last */
const fac_idle *fac_analysis_idle(const fac_analysis *a,
                                  int i); /* in their order; NULL after the last */
const fac_graph *fac_analysis_graph(
    const fac_analysis *a); /* with its sizes bound; what is counted */
const char *fac_analysis_open(
    const fac_analysis *a); /* why sizes are unknown; NULL: all are known */
/* The first If whose branch follows from the sizes alone, so that other sizes may take the other
 * one; NULL: there is none. */
const char *fac_analysis_decided(const fac_analysis *a);

/* Does a pattern mean layer i?  The one language in which layers are chosen, here as by
 * fac_activations_opts.at, fac_tile_opts.only and the calls of facula/edit.h: "op:conv2d" by
 * facula's operator, "kind:Conv2d" by PyTorch's name of such a layer, or a name as any view prints
 * it: of the layer, of the node in the ONNX file, of a value that it makes, of a module that it is
 * or stands in.  A * stands for any text; several have commas between. */
bool fac_analysis_selects(const fac_analysis *a, int i, const char *pattern);

/* What is alive while layer i runs: the layers that made it (-1: an input of the graph) with bytes,
 * the largest first; at most max are written.  Returns how many there are. */
typedef struct fac_alive {
    int layer;
    const char *name;
    double bytes;
} fac_alive;
int fac_analysis_alive(const fac_analysis *a, int i, fac_alive *to, int max);

/* What layer i reads of the data of a run: the layers that made it (-1: an input of the graph),
 * each value once; at most max are written.  Returns how many there are. */
int fac_analysis_reads(const fac_analysis *a, int i, fac_alive *to, int max);

/* One value while it is alive: from layer `first`, which makes it (-1: an input), to layer `last`;
 * one after the last layer, if the graph gives it back.  k counts all values in the order of their
 * making; false after the last. */
typedef struct fac_lifetime {
    const char *name;
    int first, last;
    double bytes;
} fac_lifetime;
bool fac_analysis_life(const fac_analysis *a, int k, fac_lifetime *out);

/* ---- other tools' numbers
 * ---------------------------------------------------------------------------------------------
 * Each counts something else by the same word.  All of these are integers for sizes that are known.
 */
typedef enum fac_convention {
    FAC_COUNT_CORE,      /* convolutions, products, recurrent cells and attention; no bias      */
    FAC_COUNT_TORCHINFO, /* torchinfo 1.8 "mult-adds": weights times positions, with biases */
    FAC_COUNT_PTFLOPS, /* ptflops 0.7.5, backend pytorch: modules and patched functions, some twice
                        */
    FAC_COUNT_PTFLOPS_MODULES, /* the same with patching off: modules only */
    FAC_COUNT_PTFLOPS_ATEN,    /* ptflops, backend aten: convolutions and products with bias    */
    FAC_COUNT_FVCORE,    /* fvcore: convolutions, products, norms, adaptive pooling          */
    FAC_COUNT_THOP,      /* thop 0.1.1: modules; batch norm four times            */
    FAC_COUNT_ONNX_TOOL, /* onnx-tool 1.0: every op, weighted       */
    FAC_CONVENTIONS
} fac_convention;

const char *fac_convention_name(fac_convention c); /* "torchinfo"; what fac_convention_find takes */
const char *fac_convention_about(fac_convention c); /* one line: what it counts */
/* The inverse of fac_convention_name; false: no such convention, *out is untouched. */
bool fac_convention_find(const char *name, fac_convention *out);
double fac_layer_count(const fac_analysis *a, int i, fac_convention c); /* of layer i */
double fac_analysis_count(const fac_analysis *a, fac_convention c);     /* of all */

/* Layers by kind ("Conv2d"), in the order of their first: how many were written, at most
 * `most`.  FAC_KINDS are enough: a kind is an op or a module of PyTorch. */
enum { FAC_KINDS = 512 };
typedef struct fac_kind_row {
    const char *kind;
    int layers;
    double params, count[FAC_CONVENTIONS];
} fac_kind_row;
int fac_analysis_kinds(const fac_analysis *a, fac_kind_row *rows, int most);

/* How many multiply-adds of which bits, in words: "0 multiply-adds of 1 to 4 bits (...".  Returns
 * `to`. */
const char *fac_totals_products(const fac_totals *t, char *to, size_t size);

/* Sizes as people write them: "Nx3x224x224"; "scalar" of none.  Returns `to`. */
const char *fac_dims_text(const fac_graph *g, const fac_dims *dims, char *to, size_t size);

/* ---- the tree of modules ---- */

/* A module: its own layers, and the modules inside. */
typedef struct fac_branch {
    const char *name;       /* the last component of the path; of a call, its kind */
    const fac_layer *layer; /* the first layer of a leaf; NULL for a container */
    const fac_layer *final; /* the last layer inside: it makes what a container makes */
    const char *of_class;   /* of the module, where the model says it */
    const fac_idle *idle;   /* the module does nothing in a run; NULL: it does */
    int calls;              /* how often the leaf runs */
    double params, buffers, shared, macs, counted, activations, weights, read;
    const struct fac_branch *child, *next;
} fac_branch;

/* All layers; counted: the multiply-adds of `convention`.  It lives no longer than `a`.
 * FAC_E_NOMEM. */
typedef struct fac_tree fac_tree;
fac_status fac_analysis_tree(const fac_analysis *a, fac_convention convention, fac_tree **out,
                             fac_error *err);
const fac_branch *fac_tree_root(const fac_tree *t); /* what has no name: the whole */
void fac_tree_free(fac_tree *t);                    /* NULL is fine */

/* ---- the table of modules ----------------------------------------------------------------------
 * The text that torchinfo 1.8 prints of the PyTorch model: a row for each call of a module with its
 * class, the shape of its result and its parameters, then totals and four sizes in MB; after these
 * the exact bytes of parameters, and the buffers, which torchinfo does not know.  Classes are those
 * of fac_graph_class, else PyTorch's name of the layer, else the module's name in brackets.
 *   depth   so many levels of modules; 0: 3
 *   names   the name of a module after its class, as torchinfo's row setting "var_names"
 *   put     gets each line, without its end; what it returns but FAC_OK ends the table
 * FAC_E_NOMEM; what put returned. */
typedef fac_status fac_table_line(void *self, const char *line, fac_error *err);
fac_status fac_analysis_table(const fac_analysis *a, int depth, bool names, fac_table_line *put,
                              void *self, fac_error *err);

/* ---- order ---- */

/* An order of the layers with a lower peak: order[k] is the layer that runs k-th (order has room
 * for all).  Exact for every stretch between two points where a single result is alive as long as
 * its orders can be listed, greedy where not; *exact says which (may be NULL).  *peak: bytes, never
 * above that of the order as it is. */
fac_status fac_analysis_order(const fac_analysis *a, int *order, double *peak, bool *exact,
                              fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
