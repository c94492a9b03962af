/* See part.h. */
#include "passes/common/part.h"
#include "ops/shape.h"
#include "ops/slice.h"
#include "passes/common/single.h"

enum { STARTS = 1, ENDS, AXES, STEPS };

/* The one number of a constant. */
static bool number(const fac_value *v, int64_t *to) {
    double x;
    if (!fac_const_number(v, &x)) return false;
    *to = (int64_t)x;
    return true;
}

bool fac_part_of(fac_value *const in[], const fac_dims *whole, fac_part_range *r) {
    int64_t start, end, axis = 0, step = 1;
    if (!number(in[STARTS], &start) || !number(in[ENDS], &end)) return false;
    if (in[AXES] && !number(in[AXES], &axis)) return false;
    if (in[STEPS] && !number(in[STEPS], &step)) return false;
    const int along = fac_axis(axis, whole->n);
    if (along < 0 || step != 1 || whole->d[along] < 1) return false;
    const fac_slice_range s = fac_slice_range_of(whole->d[along], start, end, step);
    *r = (fac_part_range){ along, s.first, s.count };
    return s.count > 0;
}
