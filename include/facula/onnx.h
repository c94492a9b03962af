/* facula/onnx.h: ONNX in and out.  Both are all or nothing, and name everything that cannot be
 * said, not only the first. */
#ifndef FACULA_ONNX_H
#define FACULA_ONNX_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of functions of a file: calls (see fac_call), or their nodes in place of the calls.
 */
typedef enum fac_onnx_functions {
    FAC_ONNX_OURS, /* those that fac_onnx_save wrote stay calls, others are inlined */
    FAC_ONNX_INLINE,
    FAC_ONNX_KEEP /* all are inlined; all stay calls                               */
} fac_onnx_functions;

struct fac_op;

/* An input that is a sequence, or an optional: how many elements it has, and their types.  It
 * becomes an input for each, "x.0", "x.1"...; n -1: an optional that holds nothing, which becomes
 * none.  An optional tensor is a list of one that is no `sequence`; it keeps its name. */
typedef struct fac_onnx_sequence {
    const char *name;
    int n;
    const fac_type *types;
    bool sequence;
} fac_onnx_sequence;

/* What the caller knows better than the file.  Arrays may be NULL when their count is 0. */
typedef struct fac_onnx_opts {
    int n;                     /* inputs whose shapes are given            */
    const char *const *inputs; /* their names                              */
    const fac_dims *dims;
    fac_onnx_functions functions; /* functions of the file                    */
    const char *link_root; /* a folder that links in the model's folder may lead to, for external
                              data; NULL: none */
    bool opaque;           /* for those who only look: nodes whose op is not ours, or whose
                              inputs have no known shape, become nodes of an op "opaque"
                              with the types that the file declares.  Such a graph can be
                              analysed, but neither run nor saved */
    int noverridden;       /* initializers that the file also lists as inputs, and that shall be
                              inputs: others keep their contents. Names of others are ignored */
    const char *const *overridden;
    int nlists; /* inputs that are sequences or optionals     */
    const fac_onnx_sequence *lists;
    int nfixed; /* inputs that become constants: what is known of the contents of those that
                   steer a graph (trip counts, conditions, positions) may make it readable */
    const char *const *fixed;
    fac_tensor *const *contents; /* copied */
    int nops; /* operators of the caller's own: their spellings (fac_op.onnx) are asked before */
    const struct fac_op *const
        *ops; /* the built-in ones, so they may also replace these.  See examples/custom_onnx.c */
} fac_onnx_opts;

enum {
    FAC_ONNX_LATEST = 28
}; /* the newest opset that is read: operators may mean other things later */

/* Reads a model: IR 3 to current, opsets 7 to FAC_ONNX_LATEST of the default domain.  Initializers
 * become parameters (floats) or constants; they borrow the mapped file, so it must not change while
 * the graph or its tensors live.  opts may be NULL. External data are files in the model's folder.
 * Links out of it are refused, but for those of a Hugging Face cache, where the model and its data
 * are links into one folder `blobs`, and those below opts->link_root. FAC_E_UNSUPPORTED names node,
 * op, domain and version of the first node that is not ours and counts the others by op;
 * FAC_E_FORMAT for a malformed file; FAC_E_IO. */
fac_status fac_onnx_load(const char *path, const fac_onnx_opts *opts, fac_graph **out,
                         fac_error *err);

/* What stands on the cover of a model; read without building its graph, so also of models with ops
 * that are not ours. */
typedef struct fac_onnx_about {
    int64_t ir, nodes, initializers, functions;
    char producer[128], opsets[256]; /* "ai.onnx 17, com.microsoft 1" */
} fac_onnx_about;
fac_status fac_onnx_read_about(const char *path, fac_onnx_about *out, fac_error *err);

/* What kind of value each input and output of the model is, in their order: read without building
 * its graph.  Initializers that are also inputs are left out. */
typedef enum fac_onnx_kind {
    FAC_ONNX_TENSOR,
    FAC_ONNX_SEQUENCE,
    FAC_ONNX_OPTIONAL,
    FAC_ONNX_MAP,
    FAC_ONNX_OTHER
} fac_onnx_kind;
fac_status fac_onnx_ports(const char *path,
                          void (*see)(void *self, bool output, const char *name,
                                      fac_onnx_kind kind),
                          void *self, fac_error *err);

/* Which files beside the model hold its initializers: `see` gets each location, relative to the
 * model's folder, as often as it is named.  Nothing but the model itself is opened. */
fac_status fac_onnx_beside(const char *path, void (*see)(void *self, const char *location),
                           void *self, fac_error *err);

/* ---- the operators of a file, as it spells them ------------------------------------------------
 * Read without need of our ops: also of files with operators and domains that are not ours.  Shapes
 * are what the file declares and what follows from it by our own rules; where neither says one, it
 * is unknown.  All texts live as long as the listing, which any number of threads may read. */
typedef struct fac_onnx_listing fac_onnx_listing;

typedef enum fac_onnx_role {
    FAC_ONNX_DATA,
    FAC_ONNX_WEIGHT,
    FAC_ONNX_BIAS,
    FAC_ONNX_STORED
} fac_onnx_role;
const char *fac_onnx_role_name(fac_onnx_role role); /* "data", "weight", "bias", "stored" */

/* size -1: open; name NULL: it has none. */
typedef struct fac_onnx_dim {
    int64_t size;
    const char *name;
} fac_onnx_dim;

/* An input or output of a node. */
typedef struct fac_onnx_arg {
    const char *name;   /* "": an optional one that is absent */
    fac_onnx_role role; /* of inputs: data of a run; what the file stores: a weight
                           (floats), the bias of a product, or something else */
    const char *dtype;  /* ONNX's word: "float"; NULL: unknown */
    int rank;           /* -1: the shape is unknown */
    const fac_onnx_dim *dims;
    double bytes;  /* exactly; an open dim counts once, an unknown shape 0 */
    bool reshaped; /* its shape comes from contents that nodes compute */
} fac_onnx_arg;

typedef struct fac_onnx_said {       /* an attribute */
    const char *name, *kind, *value; /* "strides", "ints", "2,2" */
    bool given;                      /* false: the file leaves it out, this is ONNX's default */
} fac_onnx_said;

/* Whose operator it is. */
typedef enum fac_onnx_whose {
    FAC_ONNX_KNOWN,    /* ours, at this opset */
    FAC_ONNX_FUNCTION, /* a function of the file */
    FAC_ONNX_NOT_OURS, /* ONNX's, or one whose attributes or types we do not know */
    FAC_ONNX_UNKNOWN   /* of a domain or name that is not ONNX's */
} fac_onnx_whose;
const char *fac_onnx_whose_name(fac_onnx_whose w); /* "known", "function", "not ours", "unknown" */

typedef struct fac_onnx_listed {
    const char *name, *type, *domain; /* domain "": ONNX's own */
    const char *inside;               /* "": the main graph; else the node and attribute, or the
                                         function, that holds it */
    int64_t opset;                    /* 0: the file imports none of this domain */
    fac_onnx_whose whose;
    int nin, nout, nattrs;
    const fac_onnx_arg *in, *out;
    const fac_onnx_said *attrs;
} fac_onnx_listed;

/* Bytes of all results of the nodes of the main graph, Constants apart, and what is beside them. */
typedef struct fac_onnx_sums {
    double inputs;   /* of the inputs of the graph */
    double results;  /* results of nodes that are data: none of the next three */
    double prepared; /* of nodes that read nothing but what the file stores */
    double shapes;   /* integers of one dim or more that nodes compute as sizes */
    double scalars;  /* integers without dims of the same kind */
    double reshaped; /* part of results: those whose shape follows from contents that
                        nodes compute; onnx.shape_inference does not know them, if
                        it does not propagate data */
    double weights;  /* tensors that the file stores, each once */
    int unknown;     /* results whose shape is unknown: they count 0 */
} fac_onnx_sums;

/* FAC_E_FORMAT for a malformed file; FAC_E_IO; FAC_E_NOMEM.  *out is the caller's to free. */
fac_status fac_onnx_list_nodes(const char *path, fac_onnx_listing **out, fac_error *err);
void fac_onnx_listing_free(fac_onnx_listing *l); /* NULL is fine */
/* How many nodes the file has. */
int fac_onnx_listing_count(const fac_onnx_listing *l);
/* Sums over all nodes. */
fac_onnx_sums fac_onnx_listing_sums(const fac_onnx_listing *l);
/* NULL after the last. */
const fac_onnx_listed *fac_onnx_listing_node(const fac_onnx_listing *l, int i);

enum {
    FAC_ONNX_OLDEST = 13,
    FAC_ONNX_USUAL = 18,
    FAC_ONNX_NEWEST = 26
}; /* opsets that are written */

/* What was written. */
typedef struct fac_onnx_saved {
    int opset, nodes;
    int tensors;        /* initializers: parameters, states and constants              */
    size_t bytes, data; /* of the file, and of the one beside it, 0 if there is none   */
} fac_onnx_saved;

typedef struct fac_onnx_save_opts {
    int opset;     /* 0: FAC_ONNX_USUAL, or the next one that has every op        */
    int64_t batch; /* the first dim of the first input, wherever it stands; 0: as it is */
    const char *name, *producer,
        *doc; /* NULL: as the graph's notes say, else "graph", "facula", none */
    int n;    /* metadata beside the graph's notes, and in place of those of the same key */
    const char *const *keys, *const *values;
    size_t inside; /* more bytes of tensors than this go to a file of their own, PATH.data, which
                      has to stay beside the model; 0: only what protobuf cannot hold, 2 GiB  */
    fac_onnx_saved *saved; /* may be NULL                                                 */
} fac_onnx_save_opts;

/* Writes a graph as an ONNX model that others run and fac_onnx_load reads: parameters and states as
 * initializers under their names, symbols as dim_param, scopes in the names of nodes.  Training is
 * no part of a model: a graph with updates is FAC_E_ARGUMENT, save its fac_graph_inference().  The
 * file appears complete or not at all.  FAC_E_UNSUPPORTED names every op that cannot be written;
 * FAC_E_IO.  opts may be NULL. */
fac_status fac_onnx_save(const fac_graph *g, const char *path, const fac_onnx_save_opts *opts,
                         fac_error *err);

/* A file with one TensorProto.  name (may be NULL) receives its name, at most size bytes. */
fac_status fac_onnx_tensor_load(const char *path, fac_tensor **out, char *name, size_t size,
                                fac_error *err);
/* A file with one SequenceProto, OptionalProto or MapProto, by kind, as ONNX's test suites keep
 * them: *n tensors, each the caller's, in an array that fac_onnx_tensors_free frees.  A map is its
 * keys and its values, a sequence of maps the table of their values.  *n is -1 for an optional that
 * holds nothing; *sequence: it holds a sequence. */
fac_status fac_onnx_tensors_load(const char *path, fac_onnx_kind kind, fac_tensor ***out, int *n,
                                 bool *sequence, fac_error *err);
/* Frees n tensors and their array; NULL is fine. */
void fac_onnx_tensors_free(fac_tensor **tensors, int n);
/* Writes one TensorProto; the file appears whole or not at all. */
fac_status fac_onnx_tensor_save(const fac_tensor *t, const char *name, const char *path,
                                fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
