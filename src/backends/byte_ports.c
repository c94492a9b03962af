#include "backends/byte_ports.h"
#include "op_list.h"

enum { NONE = -1 };
static const fac_byte_ports of_conv = { .b = 2,
                                        .x_scale = NONE,
                                        .x_zero = 3,
                                        .w_scale = NONE,
                                        .w_zero = 4,
                                        .y_scale = NONE,
                                        .y_zero = NONE };
static const fac_byte_ports of_matmul = { .b = NONE,
                                          .x_scale = NONE,
                                          .x_zero = 2,
                                          .w_scale = NONE,
                                          .w_zero = 3,
                                          .y_scale = NONE,
                                          .y_zero = NONE };
static const fac_byte_ports of_qlinear = {
    .b = 2, .x_scale = 3, .x_zero = 4, .w_scale = 5, .w_zero = 6, .y_scale = 7, .y_zero = 8
};

const fac_byte_ports *fac_byte_ports_of(const fac_node *n) {
    if (FAC_IS(n, qlinear_conv_add) || FAC_IS(n, qlinear_conv) || FAC_IS(n, qlinear_matmul))
        return &of_qlinear;
    return FAC_IS(n, matmul_integer) ? &of_matmul : &of_conv;
}

int64_t fac_byte_count(const fac_problem *p, int port) {
    if (port < 0 || port >= p->nin || p->in[port].type.dtype == FAC_NONE) return 0;
    return fac_dims_count(&p->in[port].type.dims);
}

bool fac_byte_numbers_fit(const fac_problem *p, const fac_byte_ports *at, int64_t outputs) {
    const int scales[] = { at->x_scale, at->w_scale, at->y_scale };
    const int single[] = { at->x_scale, at->x_zero, at->y_scale, at->y_zero };
    const int each[] = { at->b, at->w_scale, at->w_zero };
    for (int k = 0; k < 3; k++)
        if (scales[k] >= 0 && p->in[scales[k]].type.dtype != FAC_F32) return false;
    for (int k = 0; k < 4; k++)
        if (fac_byte_count(p, single[k]) > 1) return false;
    for (int k = 0; k < 3; k++)
        if (fac_byte_count(p, each[k]) > 1 && fac_byte_count(p, each[k]) != outputs) return false;
    return true;
}
