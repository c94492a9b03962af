/* facula/graph.h: what is computed.
 *
 * A graph is pure: a value never changes, and no op writes to its inputs.  The only state is in its
 * parameters, named leaves bound to tensors.  A graph says with fac_update() what a parameter
 * becomes AFTER a run; inside the run every reader sees the old contents.  Weights, moments,
 * running statistics, random counters and KV caches are all this one thing. Whether the update
 * happens in place is the planner's affair.
 *
 * A graph owns its nodes and values and frees them together.  It is not thread safe while it is
 * being built. */
#ifndef FACULA_GRAPH_H
#define FACULA_GRAPH_H

#include <stdio.h>
#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_graph fac_graph;
typedef struct fac_value fac_value;

fac_graph *fac_graph_new(void); /* NULL only when memory is gone */
fac_graph *fac_graph_clone(
    const fac_graph *g); /* shares the parameter tensors; NULL only when memory is gone */
fac_graph *fac_graph_inference(
    const fac_graph *g); /* a clone without updates; dropout is off, batch norm uses its states */
/* A clone in mixed precision, after PyTorch's autocast: products (convolutions, linear layers,
 * attention) and what lies between them compute in `low` (FAC_BF16 or FAC_F16), with sums in f32;
 * parameters, inputs, outputs and what is sensitive (softmax, norms over dims, losses) stay f32.
 * Apply it to a model before its loss and its gradients are built. */
fac_graph *fac_graph_autocast(const fac_graph *g, fac_dtype low);
/* Frees the graph with its nodes and values; tensors lose one reference.  NULL is fine. */
void fac_graph_free(fac_graph *g);
/* The first error since fac_graph_new.  Whatever uses the graph afterwards (a program, a file, an
 * analysis) fails with that same error and says that the graph is poisoned since then; so does an
 * op of another graph that is given one of its values. */
fac_status fac_graph_check(const fac_graph *g, fac_error *err);

/* Names the nodes built until the matching pop: errors, profiles and ONNX say "encoder.3.conv",
 * parameters are called "encoder.3.conv.weight". */
void fac_graph_push(fac_graph *g, const char *scope);
/* Ends the innermost scope. */
void fac_graph_pop(fac_graph *g);

/* A short list of numbers, for options of ops: n of them. */
enum { FAC_REALS = 16 };
typedef struct fac_reals {
    int n;
    double v[FAC_REALS];
} fac_reals;

/* ---- leaves ---- */

/* A size that is known only when the graph runs.  The same name is the same size; fac_symbol(g,
 * NULL) is a fresh one. */
int64_t fac_symbol(fac_graph *g, const char *name);
const char *fac_symbol_name(const fac_graph *g, int64_t symbol); /* "N", "?3" */

/* What a run is given: dims may hold symbols.  Names of inputs are unique.  Errors are the
 * graph's. */
fac_value *fac_input(fac_graph *g, const char *name, fac_dtype dtype, fac_dims dims);
fac_value *fac_param(fac_graph *g, const char *name,
                     fac_tensor *t); /* trainable; the graph retains t      */
fac_value *fac_state(fac_graph *g, const char *name,
                     fac_tensor *t);               /* a parameter that is not trained     */
fac_value *fac_const(fac_graph *g, fac_tensor *t); /* never changes: may be folded        */
fac_value *fac_number(fac_graph *g, fac_dtype dtype,
                      double x);                     /* a constant scalar, part of the code */
fac_value *fac_ints(fac_graph *g, fac_dims numbers); /* a constant i64[n]; numbers may be symbols */
fac_value *fac_fail_graph(fac_graph *g, fac_status status, const char *format, ...)
    FAC_PRINTF(3, 4); /* records an error; the poison value */

/* Where the layers of nn.h get new parameters from: a tensor of exactly this type (one reference
 * becomes the graph's), or NULL after an error was put into err.  See fac_nn_source. */
typedef fac_tensor *fac_source(void *self, const char *name, fac_type type, fac_error *err);

/* ---- what comes out ---- */

/* Makes v a result of the graph under this name, after those that are there.  Errors are the
 * graph's. */
void fac_output(fac_graph *g, const char *name, fac_value *v);
void fac_update(fac_value *param, fac_value *next); /* same type; at most one for each parameter */

/* ---- gradients ---- */

/* d loss / d wrt[i], as ordinary ops in the same graph; loss is a scalar of a floating-point type.
 * wrt[] may be any values; zeros where loss does not depend on one.  Gradients can be
 * differentiated again.  Ops without a derivative (rounding, comparisons, indices) pass none on; an
 * op that should have one and has not is an error of the graph that names it. */
void fac_grad(fac_value *loss, int n, fac_value *const wrt[], fac_value *grads[]);
fac_value *fac_stop(fac_value *x); /* x, through which no gradient flows */
fac_value *fac_surrogate(fac_value *y,
                         fac_value *path); /* is y; its gradient goes to path: straight-through
                                              estimators and every custom gradient */

/* ---- reading and changing ---- */

/* Dtype and dims; dims may hold symbols. */
fac_type fac_value_type(const fac_value *v);
const char *fac_value_name(
    const fac_value *v); /* of a leaf, or of what the importer named; may be NULL */
/* The graph that owns v. */
fac_graph *fac_value_graph(const fac_value *v);
fac_value *fac_value_other(const fac_value *v,
                           int index); /* another output of the op that made v */
fac_value *fac_graph_find(fac_graph *g,
                          const char *name); /* leaf, output or value; NULL if there is none */

int fac_graph_inputs(const fac_graph *g); /* how many */
/* Input i, 0 <= i < fac_graph_inputs, in the order in which they were made. */
fac_value *fac_graph_input(const fac_graph *g, int i);
/* How many outputs there are. */
int fac_graph_outputs(const fac_graph *g);
/* The value of output i, 0 <= i < fac_graph_outputs. */
fac_value *fac_graph_output(const fac_graph *g, int i);
/* The name of output i; it lives as long as g. */
const char *fac_graph_output_name(const fac_graph *g, int i);
int fac_graph_params(const fac_graph *g); /* parameters and states */
/* Parameter or state i, 0 <= i < fac_graph_params. */
fac_value *fac_graph_param(const fac_graph *g, int i);
bool fac_value_trains(const fac_value *v); /* a parameter, not a state */
fac_tensor *fac_value_tensor(
    const fac_value *v); /* of a parameter, state or constant, borrowed; else NULL */

/* Every use of `old` uses `with` instead, except the uses that `with` itself is made from: so
 * putting a new op after a value is fac_replace(y, fac_relu(y)), and no cycle can arise.  Types
 * must be equal. */
void fac_replace(fac_value *old, fac_value *with);
void fac_graph_sweep(fac_graph *g); /* drops what no output or update needs; re-sorts */

/* Notes say something of a graph and compute nothing: pairs of a key and a text that passes keep
 * and ONNX files hold as metadata_props.  Six keys are the fields of an ONNX model's cover.  text
 * NULL: the note is deleted. */
#define FAC_NOTE_NAME "onnx:graph_name"
#define FAC_NOTE_DOC "onnx:doc_string"
#define FAC_NOTE_PRODUCER "onnx:producer_name"
#define FAC_NOTE_PRODUCER_VERSION "onnx:producer_version"
#define FAC_NOTE_DOMAIN "onnx:domain"
#define FAC_NOTE_VERSION "onnx:model_version"                    /* an integer */
const char *fac_graph_note(const fac_graph *g, const char *key); /* NULL if there is none */
/* Sets, replaces or (text NULL) deletes a note; both texts are copied. */
void fac_graph_set_note(fac_graph *g, const char *key, const char *text);
int fac_graph_notes(const fac_graph *g); /* how many */
/* The key of note i, 0 <= i < fac_graph_notes. */
const char *fac_graph_note_key(const fac_graph *g, int i);

/* Modules have classes, for people: "layer1.0" is a "BasicBlock".  A path is a scope, "" the whole
 * model; the first class that is said of a path stays.  Passes keep them, in the order in which
 * they were said; graph text and ONNX files do not. */
void fac_graph_set_class(fac_graph *g, const char *path, const char *name);
/* fac_graph_push, with the class of what it opens. */
void fac_graph_push_module(fac_graph *g, const char *scope, const char *name);
const char *fac_graph_class(const fac_graph *g, const char *path); /* NULL if there is none */
int fac_graph_modules(const fac_graph *g);                         /* how many have one */
const char *fac_graph_module(const fac_graph *g, int i);           /* the path of one */

/* Text, one node a line, stable and readable back: the format of golden tests, of diffs and of
 * `facula show`. Parameter contents are not part of it: reading makes zeros. */
fac_status fac_graph_write(const fac_graph *g, FILE *to, fac_error *err);
/* The graph of a text; *out is the caller's.  FAC_E_FORMAT says line and column; FAC_E_NOMEM. */
fac_status fac_graph_read(FILE *from, fac_graph **out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
