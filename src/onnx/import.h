/* What the files of the importer share.
 *
 *   load.c       the road: file -> messages -> scan -> leaves and nodes -> graph
 *   scan.c       is every op, opset and element type ours?  All that is missing in one message
 *   body.c       the nodes of a graph or a function: who defines which name, in which order,
 *                building
 *   outer.c      what a subgraph reads from outside
 *   subgraph.c   subgraphs and functions as closed graphs: bodies of nodes
 *   attribute.c  what a node says of itself: fac_onnx_int() and its sisters, references to a
 *                function's attributes
 *   node.c       one node through the tables of an op's descriptor, or through its load()
 *   constant.c   one Constant
 *   opaque.c     nodes that cannot be built, for those who only look
 *   module.c     the module that PyTorch's exporter says a node stands in */
#ifndef FACULA_ONNX_IMPORT_H
#define FACULA_ONNX_IMPORT_H
#include <string.h>
#include "base/table.h"
#include "facula/onnx.h"
#include "graph/graph_internal.h"
#include "graph/onnx_flow.h"
#include "onnx/proto.h"
#include "onnx/source.h"

/* Every spelling of one ONNX type, in a list. */
typedef struct fac_spelling fac_spelling;
struct fac_spelling {
    const fac_op *op;
    const fac_onnx *how;
    fac_spelling *next;
};

typedef struct fac_body fac_body;
typedef struct fac_import {
    const fac_onnx_opts *opts;
    fac_arena arena;
    fac_source_files files;
    fac_proto_model model;
    fac_table spellings; /* "Conv", "com.acme:Foo" -> fac_spelling              */
    fac_table functions; /* "domain:name:overload" -> fac_proto_function        */
    fac_table bound;     /* dim_param -> int64_t, from the caller's sizes       */
    fac_table declared;  /* value -> fac_proto_value; only for opts->opaque     */
    fac_table labels;    /* of nodes by their module -> how many, as a pointer */
    fac_graph *g;
    fac_tensor **tensors; /* of attributes, until the import is over             */
    size_t ntensors, room_tensors;
    /* May be NULL: sees the names of the main graph before they are forgotten. */
    fac_status (*look)(void *self, fac_body *main, fac_error *err);
    void *look_self;
    size_t budget; /* nodes that may still be built inside of calls: these multiply them */
    bool spent;    /* one more was needed */
} fac_import;

/* The main graph, one call of a function, or a subgraph. */
struct fac_body {
    fac_import *im;
    const fac_proto_nodes *nodes;
    const fac_proto_opsets *opsets;
    const fac_proto_function *function; /* NULL in the main graph, as are the two that follow */
    const fac_proto_node *call;         /* whose attributes the function's refer to           */
    const fac_body *outer;              /* where the call stands                              */
    int depth;
    fac_table names;       /* -> fac_definition                                  */
    fac_graph *g;          /* where the nodes go                                 */
    fac_body *around;      /* of a subgraph: whose names it may read             */
    fac_onnx_outer *reads; /* and which values of it it did; NULL where its nodes stand in the graph
                              around it */
};

/* Who makes the value of a name. */
typedef enum fac_maker { FAC_MADE_OUTSIDE, FAC_MADE_BY_TENSOR, FAC_MADE_BY_NODE } fac_maker;
typedef struct fac_definition {
    fac_maker maker;
    bool ready;
    size_t node; /* MADE_BY_NODE: which, and which output of it */
    int output;
    const fac_proto_tensor *tensor; /* MADE_BY_TENSOR: an initializer              */
    fac_value *value; /* NULL although ready: an absent input of a function, an output that we do
                         not have */
} fac_definition;

/* Far above what any real model has, and low enough that looking through a list is quick. */
enum { FAC_FUNCTION_DEPTH = 64, FAC_MANY = 1 << 10 };

/* "conv1" or, for a node without a name, its first output; never NULL. */
const char *fac_import_label(const fac_proto_node *n);
static inline const char *fac_import_domain(
    const char *domain) { /* "ai.onnx" is the default domain's other name */
    return domain[0] == 'a' && !strcmp(domain, "ai.onnx") ? "" : domain;
}

/* ---- load.c ---- */
/* The whole road: im has opts, files and what looks on; all of it is freed.  *out may be NULL after
 * an error only. */
fac_status fac_import_run(fac_import *im, fac_graph **out, fac_error *err);
/* The dims of a declared value: the caller's sizes, else numbers and symbols. */
fac_status fac_import_dims(fac_import *im, const fac_proto_value *v, fac_dims *out, fac_error *err);
static inline bool fac_import_lenient(const fac_import *im) { return im->opts && im->opts->opaque; }

/* ---- scan.c ---- */
fac_status fac_import_tables(fac_import *im, fac_error *err); /* fills spellings and functions */
fac_status fac_import_scan(fac_import *im, fac_error *err);
/* The opset of a node's domain; 0 when the model imports none. */
int64_t fac_import_opset(const fac_import *im, const fac_proto_opsets *opsets, const char *domain);
/* One of the domains that QONNX and its exporters use. */
bool fac_onnx_of_qonnx(const char *domain);
fac_proto_function *fac_import_function(const fac_import *im,
                                        const fac_proto_node *n); /* NULL: it is an op */
const fac_spelling *fac_import_spelling(const fac_import *im, const fac_proto_node *n,
                                        int64_t opset);
/* Says that the op of a node is not supported, and for which opsets it would be. */
fac_status fac_import_unsupported(const fac_import *im, const fac_proto_node *n, int64_t opset,
                                  fac_error *err);

/* ---- outer.c ---- */
/* Fills n->reads, once the subgraphs of its attributes are read and their nodes have theirs. */
fac_status fac_import_reads(fac_import *im, fac_proto_node *n, fac_error *err);

/* ---- subgraph.c ---- */
/* A name that a subgraph does not define: an input of its graph. */
fac_status fac_import_outer(fac_body *b, const char *name, fac_value **out, fac_error *err);
/* Does this call stay one? */
bool fac_import_keeps(const fac_body *b, const fac_proto_function *f);
fac_status fac_import_call(fac_body *b, const fac_proto_function *f, const fac_proto_node *n,
                           fac_value *const in[], fac_value *out[], fac_error *err);

/* ---- body.c ---- */
/* Adds a name; FAC_E_FORMAT when it is defined already. */
fac_status fac_body_define(fac_body *b, const char *name, fac_definition d, fac_error *err);
fac_status fac_body_build(fac_body *b, fac_error *err);
/* The body of a function, all of whose outputs are made: `inner` has everything but its names. */
fac_status fac_body_function(fac_body *inner, fac_value *const in[], size_t nin, fac_value *out[],
                             size_t nout, fac_error *err);
/* The value of a name, made when it is asked for first.  user: the node that reads it as its input
 * k, or NULL for an output. */
fac_status fac_body_value(fac_body *b, const char *name, const fac_proto_node *user, size_t k,
                          fac_value **out, fac_error *err);
void fac_body_close(fac_body *b);

/* ---- attribute.c ---- */
/* The attribute, after references to the attributes of calls.  NULL when absent. */
const fac_proto_attr *fac_import_attr(const fac_body *b, const fac_proto_node *n, const char *name);
int64_t fac_import_attr_kind(const fac_proto_attr *a); /* AttributeProto.AttributeType */
const char *fac_import_attr_kind_name(int64_t kind);
/* The tensor of an attribute, borrowed from the importer. */
fac_status fac_import_attr_tensor(fac_import *im, const fac_proto_attr *a, fac_tensor **out,
                                  fac_error *err);

/* What a fac_onnx_node's self is. */
typedef struct fac_import_node {
    fac_onnx_node pub;
    fac_body *body;
    const fac_proto_node *proto;
    bool *asked; /* for each attribute of proto: load() looked at it */
} fac_import_node;

/* ---- node.c ---- */
/* Builds a node that is an op.  in[], out[]: as for fac_onnx.load; out[] is zeroed. */
fac_status fac_import_op(fac_body *b, const fac_proto_node *n, fac_value *const in[],
                         fac_value *out[], fac_error *err);
/* The Constant op. */
fac_status fac_import_constant(const fac_body *b, const fac_proto_node *n, fac_value *out[],
                               fac_error *err);
#endif
