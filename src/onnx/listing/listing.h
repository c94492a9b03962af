/* What the files of the listing share.
 *
 *   listing.c        the walk over all nodes of a file
 *   listing_arg.c    names, roles, types and bytes of inputs and outputs
 *   listing_attr.c   attributes as text, and ONNX's defaults */
#ifndef FACULA_ONNX_LISTING_H
#define FACULA_ONNX_LISTING_H
#include "onnx/defaults.h"
#include "onnx/import.h"

struct fac_onnx_listing {
    fac_arena arena;
    fac_onnx_listed *nodes;
    size_t n, room;
    fac_onnx_sums sums;
};

/* Where a node stands. */
typedef struct fac_listing_place {
    fac_import *im;
    fac_body *main; /* NULL in functions and subgraphs: only what they declare is known */
    const fac_proto_graph *graph; /* of a subgraph: what it declares; else NULL */
    const fac_proto_opsets *opsets;
    const char *inside;
} fac_listing_place;

/* listing_arg.c */
fac_status fac_listing_args(fac_onnx_listing *l, const fac_listing_place *at,
                            const fac_proto_node *n, fac_onnx_listed *to, fac_error *err);
/* Adds the bytes of the inputs and stored tensors of the main graph. */
fac_status fac_listing_leaves(fac_onnx_listing *l, fac_body *main, fac_error *err);
/* Does a node of ours make its results, or would it, if the types of its inputs were known? */
bool fac_listing_built(const fac_listing_place *at, const fac_proto_node *n);

/* listing_attr.c */
fac_status fac_listing_attrs(fac_onnx_listing *l, const fac_listing_place *at,
                             const fac_proto_node *n, fac_onnx_listed *to, fac_error *err);
#endif
