/* The last step of every loss. */
#include "nn/loss/loss_internal.h"
#include "ops/shape.h"

/* The first dim may be known only when the graph runs. */
fac_value *fac_loss_by_batch(fac_value *sum, fac_value *x) {
    return fac_div(sum, fac_cast(fac_dim_of(x, 0), sum->type.dtype));
}

fac_value *fac_loss_reduce(fac_value *each, fac_reduction reduction) {
    static const fac_dims all = { 0 };
    switch (reduction) {
    case FAC_REDUCE_NONE:
        return each;
    case FAC_REDUCE_SUM:
        return fac_sum(each, all, false);
    case FAC_REDUCE_BATCH_MEAN:
        return fac_loss_by_batch(fac_sum(each, all, false), each);
    case FAC_REDUCE_MEAN:
        break;
    }
    return fac_mean(each, all, false);
}
