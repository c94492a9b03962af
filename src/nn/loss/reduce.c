/* The last step of every loss. */
#include "nn/loss/loss_internal.h"

/* The first dim as a number of x's type; it may be known only when the graph runs. */
static fac_value *batch(fac_value *x) {
    return fac_cast(fac_squeeze(fac_slice(fac_shape_of(x), 0, 0, 1, 1), fac_shape(0)), x->type.dtype);
}

fac_value *fac_loss_reduce(fac_value *each, fac_reduction reduction) {
    static const fac_dims all = { 0 };
    switch (reduction) {
    case FAC_REDUCE_NONE:       return each;
    case FAC_REDUCE_SUM:        return fac_sum(each, all, false);
    case FAC_REDUCE_BATCH_MEAN: return fac_div(fac_sum(each, all, false), batch(each));
    case FAC_REDUCE_MEAN:       break;
    }
    return fac_mean(each, all, false);
}
