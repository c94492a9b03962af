/* facula/op_onnx.h: how ops are read from and written to ONNX.  UNSTABLE tier, part of op.h. */
#ifndef FACULA_OP_ONNX_H
#define FACULA_OP_ONNX_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_node fac_node;

/* One ONNX spelling of the op.  Plain data: no protobuf type appears in src/ops.
 * load NULL: ports in order, attributes by name through `rename` (pairs, ended by { 0 }), the rest
 * by equal names. An ONNX attribute that is neither renamed nor known makes the importer refuse the
 * node, so list all; ours NULL: ignored. */
typedef struct fac_onnx_attr {
    const char *onnx, *ours;
} fac_onnx_attr;
typedef struct fac_onnx_node fac_onnx_node;
enum { FAC_ONNX_ROOM = 16 };
typedef struct fac_onnx {
    const char *domain, *type;
    int since, until; /* opset versions, both inclusive; until 0 = still */
    const fac_onnx_attr *rename;
    /* out[0..nout) receives values; may return poison after fac_fail_graph.  in[i] NULL: absent. */
    void (*load)(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]);
    /* So many inputs, the first ones, are there whenever load() is called: the importer refuses a
     * node without them.  0: those in front of the first optional port of the op.  in[] and out[]
     * may be read and written up to FAC_ONNX_ROOM in any case. */
    int needs;
} fac_onnx;

/* What load() may ask of the node.  Attributes: the default when it is absent; a wrong kind is an
 * error of the graph. */
struct fac_onnx_node {
    const char *type, *name, *domain;
    int opset, nin, nout;
    const void *self; /* the importer's */
};
bool fac_onnx_has(const fac_onnx_node *n, const char *attr);
const char *fac_onnx_output(const fac_onnx_node *n,
                            int k); /* the name of output k in the file, "" when it has none */
/* Channels of a block in a file with operators of com.microsoft.nchwc. */
int64_t fac_onnx_channel_block(const fac_onnx_node *n);
fac_value *fac_onnx_named(
    const fac_onnx_node *n,
    const char *name); /* a value of the file that is made before; NULL: none */
/* An integer; `missing` when the node has it not. */
int64_t fac_onnx_int(const fac_onnx_node *n, const char *attr, int64_t missing);
/* A number; `missing` when the node has it not. */
double fac_onnx_real(const fac_onnx_node *n, const char *attr, double missing);
/* A text, kept by the graph; `missing` when the node has it not. */
const char *fac_onnx_text(const fac_onnx_node *n, const char *attr, const char *missing);
fac_dims fac_onnx_ints(const fac_onnx_node *n,
                       const char *attr); /* n = 0 when absent; at most FAC_DIMS */
int fac_onnx_count(const fac_onnx_node *n, const char *attr); /* elements of a list; -1 absent */
int fac_onnx_ints_long(const fac_onnx_node *n, const char *attr, int64_t *to,
                       int max); /* how many; -1 absent */
/* Up to `max` numbers of a list; how many it has, -1: absent. */
int fac_onnx_reals(const fac_onnx_node *n, const char *attr, double *to, int max);
int fac_onnx_texts(const fac_onnx_node *n, const char *attr, const char **to,
                   int max); /* the graph keeps them */
fac_tensor *fac_onnx_tensor(const fac_onnx_node *n,
                            const char *attr); /* borrowed; NULL when absent */
fac_dtype fac_onnx_dtype(const fac_onnx_node *n, const char *attr,
                         fac_dtype missing); /* TensorProto.DataType */

/* Writing ONNX.  save() says one node through the calls below: usually one ONNX node, several where
 * ONNX has no such op.  A value is known by its name in the file; NULL is an absent one.  false: it
 * cannot be said at this opset, or not with these types or contents; what was put is dropped, and
 * the exporter goes on to the expansion of the op, to a newer opset, or refuses it by name.  Memory
 * that runs out is the exporter's affair: names are then "". */
typedef struct fac_onnx_writer {
    int opset;
    const void *self; /* the exporter's */
} fac_onnx_writer;
const char *fac_onnx_name(const fac_onnx_writer *w,
                          const fac_value *v); /* NULL for NULL, and for an output nothing reads */
/* The value with this rank, 0 or 1: a scalar from a list of one element, or the other way round. */
const char *fac_onnx_ranked(const fac_onnx_writer *w, const fac_value *v, int rank);
const char *fac_onnx_list_of(const fac_onnx_writer *w, const fac_value *v); /* as a list of i64 */
const char *fac_onnx_indices(const fac_onnx_writer *w, const fac_value *v); /* as i32 or i64  */
const char *fac_onnx_number(const fac_onnx_writer *w, fac_dtype dtype,
                            double x); /* a constant scalar */
const char *fac_onnx_full(const fac_onnx_writer *w, fac_dtype dtype, fac_dims dims,
                          double x); /* full of one number */
const char *fac_onnx_list(const fac_onnx_writer *w, int n,
                          const int64_t *numbers); /* a constant i64[n] */
const char *fac_onnx_reals_list(const fac_onnx_writer *w, int n,
                                const double *numbers); /* a constant f32[n] */
/* Puts an ONNX node; in[n] may have NULLs.  out NULL: a new name.  Returns the name of its first
 * output. type: "Conv", or with a domain in front, "ai.onnx.ml:Scaler". */
const char *fac_onnx_put(const fac_onnx_writer *w, const char *type, int n, const char *const in[],
                         const char *out);
/* Of the node that was put last: a further output, and attributes. */
void fac_onnx_put_out(const fac_onnx_writer *w, const char *out);
/* Attribute of type INT. */
void fac_onnx_put_int(const fac_onnx_writer *w, const char *attr, int64_t x);
/* Attribute of type FLOAT. */
void fac_onnx_put_real(const fac_onnx_writer *w, const char *attr, double x);
/* Attribute of type STRING; the text is copied. */
void fac_onnx_put_text(const fac_onnx_writer *w, const char *attr, const char *text);
/* Attribute of type INTS; the numbers are copied. */
void fac_onnx_put_ints(const fac_onnx_writer *w, const char *attr, int n, const int64_t *numbers);
/* Attribute of type INT with ONNX's number of a dtype. */
void fac_onnx_put_dtype(const fac_onnx_writer *w, const char *attr, fac_dtype dtype);
/* The inverse of load NULL, for the first spelling that has the opset: ports in order, attributes
 * by name through `rename`. It is what fac_op.save NULL does if that spelling has no load() either.
 */
bool fac_onnx_plain(const fac_onnx_writer *w, const fac_node *n);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
