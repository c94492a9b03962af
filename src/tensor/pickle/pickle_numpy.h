/* NumPy arrays in pickles: _reconstruct makes an empty one, BUILD gives it (version, sizes, dtype,
 * column-major, bytes). */
#ifndef FACULA_TENSOR_PICKLE_NUMPY_H
#define FACULA_TENSOR_PICKLE_NUMPY_H
#include "tensor/pickle/pickle.h"

enum {
    FAC_PICKLE_ONE_DTYPE = 100
}; /* fac_pickle_value.i of a dtype that has been called: after all that may be named */

/* dtype("u1", ...); dtype FAC_NONE, and text says why, where we have no such elements */
fac_status fac_pickle_numpy_dtype(fac_arena *arena, const fac_pickle_value *a,
                                  fac_pickle_value **out, fac_error *err);
/* The state of a dtype v, whose dtype becomes FAC_NONE where it is big-endian. */
fac_status fac_pickle_numpy_order(fac_pickle_value *v, const fac_pickle_value *state,
                                  fac_error *err);
/* The state of an array v, which becomes FAC_PICKLE_OTHER where its elements or their order are not
 * ours. */
fac_status fac_pickle_numpy_array(fac_arena *arena, fac_pickle_value *v,
                                  const fac_pickle_value *state, fac_error *err);
/* encode(text, "latin1"): how Python 3 says bytes in protocol 2. */
fac_status fac_pickle_latin1(fac_arena *arena, const fac_pickle_value *a, fac_pickle_value **out,
                             fac_error *err);

/* A tuple of sizes, at most FAC_DIMS; false when it holds anything else. */
bool fac_pickle_dims(const fac_pickle_value *t, int64_t d[FAC_DIMS]);
#endif
