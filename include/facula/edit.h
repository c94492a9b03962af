/* facula/edit.h: models out of models.  Every call reads a graph and returns a new one, *out, which
 * stays untouched when it fails; parameter tensors are shared where they stay as they are, and
 * notes (fac_graph_note) are kept.  Values are named as fac_graph_find knows them: inputs, outputs,
 * parameters, and what a file has named; "%7" is what `facula show` calls so. */
#ifndef FACULA_EDIT_H
#define FACULA_EDIT_H

#include "facula/device.h"
#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* The part between values: `inputs` become inputs of their types, `outputs` the outputs; what else
 * the outputs need comes along. ninputs 0: the inputs stay.  FAC_E_ARGUMENT names what is not
 * there, and inputs that no output needs. */
fac_status fac_graph_extract(const fac_graph *g, int ninputs, const char *const inputs[],
                             int noutputs, const char *const outputs[], fac_graph **out,
                             fac_error *err);

/* Open sizes bound: batch (0: 1) to the first dim of the first input, 1 to all others; nodes whose
 * contents are known become constants, those that change nothing disappear, equal ones become one.
 */
fac_status fac_graph_simplified(const fac_graph *g, fac_graph **out, fac_error *err);
/* Sizes alone: what fac_graph_simplified binds is bound, nothing else changes. */
fac_status fac_graph_sized(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err);

/* Floats of another type: parameters, constants, numbers among attributes, ports and bodies. Finite
 * numbers beyond the range of the type become its largest (65504), those too small for it its
 * smallest that is not 0; infinities and NaN stay.  FAC_E_DTYPE unless `to` is a float. */
fac_status fac_graph_floats(const fac_graph *g, fac_dtype to, fac_graph **out, fac_error *err);

/* The same but for some nodes, which keep their types between casts. */
typedef struct fac_float_opts {
    fac_dtype to;
    int nkeep; /* nodes that keep their types, as for fac_graph_removed: "op:softmax", "head.*" */
    const char *const *keep;
    bool keep_ports; /* inputs and outputs of the model stay as they are */
} fac_float_opts;
typedef struct fac_float_report {
    int tensors, kept, casts;     /* converted, nodes that kept their types, casts that were put */
    int64_t overflowed, vanished; /* numbers that became the largest of the type, or the smallest */
} fac_float_report;
fac_status fac_graph_floats_but(const fac_graph *g, const fac_float_opts *opts,
                                fac_float_report *report, fac_graph **out, fac_error *err);

/* A leaf, an output or a value by another name. */
fac_status fac_graph_rename(const fac_graph *g, const char *old, const char *name, fac_graph **out,
                            fac_error *err);

/* The nodes in the order with the lowest peak of memory that fac_analysis_order finds; the order of
 * a written file is that of its nodes. */
fac_status fac_graph_reordered(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err);

/* ---- single nodes ----
 * node: in the language of fac_analysis_selects, the name of an output, or "%7", as `facula show`
 * numbers values without a name.  A module must hold one node alone, unless the text has a * or a
 * comma.  One call may mean many nodes: *n (may be NULL) says how many were changed. FAC_E_ARGUMENT
 * when there is none.  Types of all that follows are inferred anew: where that fails the error
 * names the node.
 *
 * text: ops in the form of graph text, separated by ';'.  _ is the first input (the value after
 * which something is put), x0, x1... are the inputs of a node that is replaced, other names are
 * values of the graph; what is last takes the place, or y0, y1... do. "relu", "clip(_, 0, 6)", "t =
 * exp(_); mul(t, _)", "conv2d(x0, x1) like node stride=2,2". */

/* Its first input (the first that is data) takes the place of its output; FAC_E_SHAPE when they
 * have not the same type. */
fac_status fac_graph_removed(const fac_graph *g, const char *node, int *n, fac_graph **out,
                             fac_error *err);
/* where: a value, all of whose readers see what is put after it; "value->node" or "value->output":
 * this reader alone.  *n: readers. */
fac_status fac_graph_inserted(const fac_graph *g, const char *where, const char *text, int *n,
                              fac_graph **out, fac_error *err);
/* The node named becomes the op of `text`, with its inputs.  *n: readers. */
fac_status fac_graph_replaced(const fac_graph *g, const char *node, const char *text, int *n,
                              fac_graph **out, fac_error *err);
/* attrs: "stride=2,2 pad=1,1,1,1"; others stay. */
fac_status fac_graph_set(const fac_graph *g, const char *node, const char *attrs, int *n,
                         fac_graph **out, fac_error *err);
/* Several at once: types are inferred when all of them are set, so changes may be valid only
 * together. n of each receives how many nodes were changed; of two settings of one attribute the
 * later stays. */
typedef struct fac_graph_setting {
    const char *node, *attrs;
    int n;
} fac_graph_setting;
fac_status fac_graph_set_all(const fac_graph *g, int count, fac_graph_setting *settings,
                             fac_graph **out, fac_error *err);

/* ---- ports ---- */

/* as NULL: its name */
fac_status fac_graph_output_added(const fac_graph *g, const char *value, const char *as,
                                  fac_graph **out, fac_error *err);
/* The output of this name is one no longer; what only it needed goes.  FAC_E_ARGUMENT: there is
 * none. */
fac_status fac_graph_output_removed(const fac_graph *g, const char *name, fac_graph **out,
                                    fac_error *err);
/* dims: "N,3,224,224" or "Nx3x224x224": numbers, and names of open sizes. */
fac_status fac_graph_shaped(const fac_graph *g, const char *input, const char *dims,
                            fac_graph **out, fac_error *err);
/* An open size by its name becomes a number, wherever it stands. */
fac_status fac_graph_bound(const fac_graph *g, const char *symbol, int64_t size, fac_graph **out,
                           fac_error *err);

/* ---- tensors ---- */

/* A parameter or constant gets another tensor of its element type; any other value that has a name
 * (an input, a result) becomes a parameter. */
fac_status fac_graph_tensor_set(const fac_graph *g, const char *name, fac_tensor *t,
                                fac_graph **out, fac_error *err);
/* Named tensors of `least` elements or more become zeros that take no room in a file: nodes under
 * the names of the tensors, so the model is still one that others check and run.  *n: how many. */
fac_status fac_graph_stripped(const fac_graph *g, int64_t least, int *n, fac_graph **out,
                              fac_error *err);
/* The other way round, and for any model: values that depend on no input become the tensors of
 * their names.  FAC_E_SHAPE when a type differs, FAC_E_ARGUMENT when no name is known. */
fac_status fac_graph_restored(const fac_graph *g, int count, const char *const names[],
                              fac_tensor *const tensors[], int *n, fac_graph **out, fac_error *err);
/* Nodes that read nothing but parameters and constants become parameters: weights that rules have
 * scaled, say. */
fac_status fac_graph_baked(const fac_graph *g, int *n, fac_graph **out, fac_error *err);

/* ---- several models ---- */

/* b after a: from[k], an output of a, feeds to[k], an input of b.  n 0: those of equal names, or
 * the only output the only input. Other inputs of b become inputs; names that are taken get a
 * number. */
fac_status fac_graph_appended(const fac_graph *a, const fac_graph *b, int n,
                              const char *const from[], const char *const to[], fac_graph **out,
                              fac_error *err);
/* The part of g between values becomes another graph, whose inputs and outputs are in this order
 * and have these types. */
fac_status fac_graph_part_replaced(const fac_graph *g, int nin, const char *const inputs[],
                                   int nout, const char *const outputs[], const fac_graph *with,
                                   fac_graph **out, fac_error *err);

/* ---- rules: pattern -> replacement; the text form is in docs/ANALYSIS.md ---- */

typedef struct fac_rules fac_rules;
/* name leads errors, which say line and column.  More rules may be added to *rules, which is NULL
 * or of an earlier call. */
fac_status fac_rules_read(const char *text, const char *name, fac_rules **rules, fac_error *err);
/* Frees all rules; NULL is fine. */
void fac_rules_free(fac_rules *r);
/* How many rules there are. */
int fac_rules_count(const fac_rules *r);
/* The name of rule i, 0 <= i < fac_rules_count; it lives as long as r. */
const char *fac_rules_name(const fac_rules *r, int i);

typedef struct fac_rule_report {
    int matches, skipped; /* skipped: the pattern was there, but the replacement has another type */
    char why[200];        /* the first that was skipped */
} fac_rule_report;
/* Applies the rules, in their order at each node, until nothing matches any more;
 * report[fac_rules_count] (may be NULL).  limit: of matches in all, 0: four for each node of the
 * graph; FAC_E_ARGUMENT when it is reached, which names the rule that goes on. */
fac_status fac_graph_rewritten(const fac_graph *g, const fac_rules *r, int limit,
                               fac_rule_report *report, fac_graph **out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
