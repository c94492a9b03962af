#include "backends/gpu/speed.h"

static const fac_gpu_speed gpu = { .unit_flops = 4.5e11,
                                   .unit_bandwidth = 2.4e10,
                                   .calls_bandwidth = 5e11,
                                   .launch = 4e-6,
                                   .scattered = 1e-12 };
/* a cpu's unit is a core with two vector units */
static const fac_gpu_speed cpu = { .unit_flops = 8e10,
                                   .bandwidth = 1.5e10,
                                   .calls_bandwidth = 1e10,
                                   .launch = 1e-5,
                                   .scattered = 3e-10 };

const fac_gpu_cost fac_gpu_costs = { .call = 5e-6,
                                     .quads_call = 3e-6,
                                     .product_launch = 4e-6,
                                     .vector_launch = 1e-5,
                                     .second_launch = 4e-6,
                                     .winograd_slice = 8e-6,
                                     .winograd_grads = 15e-6,
                                     .wave = 1.5e-6,
                                     .direct_turn = 2.6e-7,
                                     .nothing = 1e-9 };

const fac_gpu_speed *fac_gpu_speed_of(const fac_gpu_limits *l) { return l->gpu ? &gpu : &cpu; }

double fac_gpu_flops(const fac_gpu_limits *l) { return l->units * fac_gpu_speed_of(l)->unit_flops; }

double fac_gpu_bandwidth(const fac_gpu_limits *l) {
    const fac_gpu_speed *s = fac_gpu_speed_of(l);
    return s->bandwidth > 0 ? s->bandwidth : s->unit_bandwidth * l->units;
}
