/* What the files of the exporter share.
 *
 *   save.c         the road: graph -> one whose every node can be said -> records -> messages ->
 *                  file
 *   save_settle.c  which opset, and what is expanded or computed in a wider type to fit it
 *   save_node.c    one node, by fac_op.save() or by its tables (fac_onnx_plain)
 *   save_put.c     records of nodes and attributes: what fac_op.save() calls
 *   save_value.c   constants, and names of what a node reads
 *   save_name.c    names of values and nodes
 *   save_body.c    bodies of nodes: subgraphs and functions
 *   save_message.c records as messages
 *   encode.c       protobuf */
#ifndef FACULA_ONNX_EXPORT_H
#define FACULA_ONNX_EXPORT_H
#include "base/table.h"
#include "facula/onnx.h"
#include "graph/graph_internal.h"
#include "onnx/encode.h"
#include "onnx/proto.h"

/* AttributeProto; kind is an AttributeProto.AttributeType. */
typedef struct fac_record_attr fac_record_attr;
typedef struct fac_record_graph fac_record_graph;
struct fac_record_attr {
    const char *name, *text;
    int64_t kind, i;
    double f;
    const int64_t *ints; /* n of one of these */
    const double *reals;
    const char **texts;
    int n;
    const fac_tensor *tensor;
    const fac_record_graph *graph;
    fac_record_attr *next;
};

/* NodeProto. */
typedef struct fac_record_out fac_record_out;
struct fac_record_out {
    const char *name;
    fac_record_out *next;
};
typedef struct fac_record_node fac_record_node;
struct fac_record_node {
    const char *type, *name, *domain; /* domain NULL: the default one */
    const char **in;
    int nin;
    fac_record_out out, *last_out;
    fac_record_attr *attrs, **last_attr;
    fac_record_node *next;
};

enum { FAC_EXPORT_SMALL = 1024 }; /* tensors with fewer bytes stay in the model */

/* An initializer, or a Constant node. */
typedef struct fac_record_tensor fac_record_tensor;
struct fac_record_tensor {
    fac_encode_tensor is;
    bool node;
    fac_record_tensor *next;
};

/* GraphProto of an attribute, or FunctionProto. */
struct fac_record_graph {
    const fac_graph *g; /* whose outputs, and whose first nin inputs, have these names */
    const char *name, **in, **out;
    int nin;
    fac_record_node *nodes;
    fac_record_tensor *tensors;
    fac_record_graph *next; /* of functions */
};

typedef struct fac_record_domain {
    const char *name;
    int64_t version;
} fac_record_domain;

typedef struct fac_export {
    const fac_onnx_save_opts *opts; /* never NULL */
    int opset;
    fac_graph *g; /* the graph that is written */
    fac_arena arena;
    fac_table values, labels; /* names that are taken, of values and of nodes */
    fac_table counters;       /* name that is taken -> the number after its last copy */
    fac_table constants;      /* made by the exporter: type and contents -> name      */
    const char **name_of;     /* by id of a value; NULL: has none yet         */
    fac_record_node *nodes, **last_node, *at; /* at: the one put last         */
    fac_record_tensor *tensors, **last_tensor;
    fac_tensor **owned;                                 /* constants that the exporter made */
    size_t nowned, room_owned, nnodes, ntensors, ndata; /* ndata: tensors of the external file */
    const fac_node *node;                               /* the one that is being said */
    fac_table functions, function_names;                /* what a body says -> its record */
    fac_record_graph *written,
        **last_written;            /* functions, those that are called by others first */
    bool dry;                      /* only asking whether it can be: nothing is recorded */
    const char *lacking;           /* an ONNX op that has not the node's element type            */
    bool impossible;               /* what the node reads cannot be said                 */
    fac_record_domain domains[16]; /* other than the default one, whose operators are written */
    int ndomains;
    bool failed; /* memory */
} fac_export;

static inline fac_export *fac_export_of(const fac_onnx_writer *w) {
    return (fac_export *)(uintptr_t)w->self;
}

/* ---- save_settle.c ---- */
/* Chooses the opset and makes the graph that is written; FAC_E_UNSUPPORTED names every op that
 * cannot be. */
fac_status fac_export_settle(fac_export *ex, const fac_graph *from, fac_error *err);

/* Does an ONNX op take the element type of the node's first input? */
bool fac_export_takes(const char *type, int opset, const fac_node *n);

/* ---- save_node.c ---- */
/* The spelling that the op has at the opset; NULL if there is none. */
const fac_onnx *fac_export_spelling(const fac_op *op, int opset);
/* Can the node be said at the opset? */
bool fac_export_can(fac_export *ex, const fac_node *n);
/* Records a node of ex->g. */
fac_status fac_export_node(fac_export *ex, const fac_node *n, fac_error *err);
/* As an initializer; NULL: no memory. */
fac_record_tensor *fac_export_tensor(fac_export *ex, const char *name, const fac_tensor *t);

/* ---- save_message.c ---- */
/* All of the model, as ModelProto; false when the stream takes no more. */
bool fac_export_message(pb_ostream_t *s, const fac_export *ex);

/* ---- save_value.c ---- */
/* The name of x as another element type: a Cast that is put before. */
const char *fac_export_cast(const fac_onnx_writer *w, const char *x, fac_dtype to);

/* What a put needs: memory of the export, which fails when there is none. */
void *fac_export_get(fac_export *ex, size_t n, size_t size);

/* ---- save_body.c ---- */
/* What a graph says, whatever the types of its inputs are: equal functions. */
fac_hash fac_export_meaning(const fac_graph *g);

/* ---- save_name.c ---- */
/* Gives inputs, parameters and outputs their names; FAC_E_ARGUMENT where two of them collide. */
fac_status fac_export_names(fac_export *ex, fac_error *err);
/* `want`, or with a number after it when that is taken; "" when memory is gone. */
const char *fac_export_fresh(fac_export *ex, fac_table *taken, const char *want);
/* "encoder.0.conv": of the node, whether or not it is taken. */
const char *fac_export_label(fac_export *ex, const fac_node *n);
#endif
