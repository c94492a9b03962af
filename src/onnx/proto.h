/* ONNX messages in memory: what onnx.proto describes, read with nanopb's stream functions.
 *
 * Everything large stays where it is: tensor data, and arrays that may be long, are windows on the
 * mapped file.  The structs and names live in an arena.  Memory is proportional to the file: every
 * struct comes from bytes that describe it. */
#ifndef FACULA_ONNX_PROTO_H
#define FACULA_ONNX_PROTO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "facula/status.h"

typedef struct fac_bytes {
    const uint8_t *p;
    size_t n;
} fac_bytes; /* a window on the file; p NULL: absent */

/* Every struct starts with a bit for each field number that was present. */
typedef struct fac_proto_opset {
    uint32_t has;
    const char *domain;
    int64_t version;
} fac_proto_opset;
typedef struct fac_proto_pair {
    uint32_t has;
    const char *key, *value;
} fac_proto_pair;
typedef struct fac_proto_names {
    const char **at;
    size_t n;
} fac_proto_names;

typedef struct fac_proto_tensor {
    uint32_t has;
    const char *name; /* "" when absent, as all texts here */
    int64_t type, location;
    fac_bytes raw, self; /* self: the whole message, in which dims and typed data are found */
    struct {
        fac_proto_pair *at;
        size_t n;
    } external;
} fac_proto_tensor;

typedef struct fac_proto_attr {
    uint32_t has;
    const char *name, *ref;
    int64_t type, i;
    float f;
    fac_bytes s, t, g; /* t: a TensorProto, g: a GraphProto                                */
    struct fac_proto_graph *graph; /* g, once the importer's scan has read it */
    fac_bytes self; /* the whole message, in which floats, ints and strings are found */
} fac_proto_attr;

typedef struct fac_proto_node {
    uint32_t has;
    const char *name, *type, *domain, *overload;
    fac_proto_names in, out;
    fac_proto_names reads; /* in, and what subgraphs read from outside: by the importer's scan */
    struct {
        fac_proto_attr *at;
        size_t n;
    } attrs;
    struct {
        fac_proto_pair *at;
        size_t n;
    } metadata;
} fac_proto_node;

typedef struct fac_proto_nodes {
    fac_proto_node *at;
    size_t n;
} fac_proto_nodes;
typedef struct fac_proto_opsets {
    fac_proto_opset *at;
    size_t n;
} fac_proto_opsets;

typedef struct fac_proto_dim {
    uint32_t has;
    int64_t value;
    const char *param;
} fac_proto_dim;
typedef struct fac_proto_shape {
    uint32_t has;
    struct {
        fac_proto_dim *at;
        size_t n;
    } dims;
} fac_proto_shape;
typedef struct fac_proto_dense {
    uint32_t has;
    int64_t type;
    fac_proto_shape shape;
} fac_proto_dense;
typedef struct fac_proto_type {
    uint32_t has;
    fac_proto_dense dense;
} fac_proto_type;
typedef struct fac_proto_value {
    uint32_t has;
    const char *name;
    fac_proto_type type;
} fac_proto_value;
typedef struct fac_proto_values {
    fac_proto_value *at;
    size_t n;
} fac_proto_values;

typedef struct fac_proto_graph {
    uint32_t has;
    const char *name;
    fac_proto_nodes nodes;
    fac_proto_values in, out,
        infos; /* infos: types of other values, where the file declares them */
    struct {
        fac_proto_tensor *at;
        size_t n;
    } tensors; /* initializers */
} fac_proto_graph;

typedef struct fac_proto_function {
    uint32_t has;
    const char *name, *domain, *overload;
    fac_proto_names in, out, attrs;
    fac_proto_nodes nodes;
    fac_proto_opsets opsets;
    struct {
        fac_proto_attr *at;
        size_t n;
    } defaults;
    int mark; /* for the importer: see scan.c */
} fac_proto_function;

typedef struct fac_proto_model {
    uint32_t has;
    int64_t ir, version;
    const char *producer, *producer_version, *domain, *doc;
    struct {
        fac_proto_pair *at;
        size_t n;
    } metadata;
    fac_proto_graph graph;
    fac_proto_opsets opsets;
    struct {
        fac_proto_function *at;
        size_t n;
    } functions;
} fac_proto_model;

/* Field numbers that the importer asks about. */
enum {
    FAC_PROTO_MODEL_GRAPH = 7,
    FAC_PROTO_GRAPH_SPARSE = 15,
    FAC_PROTO_TENSOR_DIMS = 1,
    FAC_PROTO_TENSOR_TYPE = 2,
    FAC_PROTO_TENSOR_SEGMENT = 3,
    FAC_PROTO_TENSOR_FLOATS = 4,
    FAC_PROTO_TENSOR_INT32S = 5,
    FAC_PROTO_TENSOR_TEXTS = 6,
    FAC_PROTO_TENSOR_INT64S = 7,
    FAC_PROTO_TENSOR_NAME = 8,
    FAC_PROTO_TENSOR_RAW = 9,
    FAC_PROTO_TENSOR_DOUBLES = 10,
    FAC_PROTO_TENSOR_UINT64S = 11,
    FAC_PROTO_TENSOR_EXTERNAL = 13,
    FAC_PROTO_TENSOR_LOCATION = 14,
    FAC_PROTO_ATTR_F = 2,
    FAC_PROTO_ATTR_I = 3,
    FAC_PROTO_ATTR_S = 4,
    FAC_PROTO_ATTR_T = 5,
    FAC_PROTO_ATTR_G = 6,
    FAC_PROTO_ATTR_FLOATS = 7,
    FAC_PROTO_ATTR_INTS = 8,
    FAC_PROTO_ATTR_TEXTS = 9,
    FAC_PROTO_VALUE_TYPE = 2,
    FAC_PROTO_TYPE_DENSE = 1,
    FAC_PROTO_TYPE_SEQUENCE = 4,
    FAC_PROTO_TYPE_MAP = 5,
    FAC_PROTO_TYPE_OPAQUE = 7,
    FAC_PROTO_TYPE_SPARSE = 8,
    FAC_PROTO_TYPE_OPTIONAL = 9,
    FAC_PROTO_DENSE_SHAPE = 2,
    FAC_PROTO_DIM_VALUE = 1,
    FAC_PROTO_DIM_PARAM = 2
};
#define FAC_ONNX_FUNCTIONS "facula.local" /* the domain of the functions that the exporter writes  \
                                           */
enum { FAC_PROTO_EXTERNAL = 1 };          /* TensorProto.DataLocation */
enum {                                    /* AttributeProto.AttributeType */
       FAC_PROTO_FLOAT = 1,
       FAC_PROTO_INT,
       FAC_PROTO_STRING,
       FAC_PROTO_TENSOR,
       FAC_PROTO_GRAPH,
       FAC_PROTO_FLOATS,
       FAC_PROTO_INTS,
       FAC_PROTO_STRINGS,
       FAC_PROTO_TENSORS,
       FAC_PROTO_GRAPHS,
       FAC_PROTO_SPARSE,
       FAC_PROTO_SPARSES,
       FAC_PROTO_TYPE,
       FAC_PROTO_TYPES
};

static inline bool fac_proto_has(uint32_t has, int field) { return has >> field & 1; }

/* `out` is zeroed first; texts and arrays go to the arena. */
fac_status fac_proto_read_model(fac_bytes file, fac_arena *arena, fac_proto_model *out,
                                fac_error *err);
fac_status fac_proto_read_tensor(fac_bytes file, fac_arena *arena, fac_proto_tensor *out,
                                 fac_error *err);
fac_status fac_proto_read_graph(fac_bytes file, fac_arena *arena, fac_proto_graph *out,
                                fac_error *err);

/* The repeated field `field` of a message as numbers or byte strings, one call each, packed or not.
 * wire: how one element is stored.  visit gets a number's bits (floats too) or a window, and
 * returns false to stop. */
typedef enum fac_proto_wire {
    FAC_PROTO_VARINTS,
    FAC_PROTO_FIXED32S,
    FAC_PROTO_FIXED64S,
    FAC_PROTO_WINDOWS
} fac_proto_wire;
typedef bool fac_proto_visit(void *self, uint64_t bits, fac_bytes bytes);
fac_status fac_proto_each(fac_bytes bytes, int field, fac_proto_wire wire, fac_proto_visit *visit,
                          void *self, fac_error *err);

/* The window of the one and only packed chunk of a field; p NULL when it is absent, repeated or not
 * packed. */
fac_bytes fac_proto_chunk(fac_bytes bytes, int field);
#endif
