/* A node of the file that cannot be built: its op is not ours, or the shapes of its inputs are not
 * known.  Those who only look at a model go on with what the file says of its results. */
#ifndef FACULA_ONNX_OPAQUE_H
#define FACULA_ONNX_OPAQUE_H
#include "onnx/import.h"

/* May the import go on after this error?  Where something is not ours, yes, but not where the file
 * contradicts itself; and not inside of a subgraph, which is a body of a node. */
bool fac_import_forgives(const fac_body *b, fac_status status);
/* Forgets the error and builds the node; out[] receives its results, with the types that the file
 * declares. */
fac_status fac_import_opaque(fac_body *b, const fac_proto_node *n, fac_value *out[],
                             fac_error *err);
/* An input of a type that is not ours. */
fac_status fac_import_opaque_input(fac_body *b, const fac_proto_value *v, fac_value **out,
                                   fac_error *err);
/* A result of such a node of which nothing is known. */
bool fac_value_opaque(const fac_value *v);
/* name -> what the file declares of a value: fills im->declared. */
fac_status fac_import_declared(fac_import *im, fac_error *err);
#endif
