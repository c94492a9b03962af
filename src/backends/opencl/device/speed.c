#include "backends/opencl/device/speed.h"

static const fac_cl_speed gpu = {
    .unit_flops = 4.5e11, .unit_bandwidth = 2.4e10, .calls_bandwidth = 5e11, .launch = 4e-6
};
/* a cpu's unit is a core with two vector units */
static const fac_cl_speed cpu = {
    .unit_flops = 8e10, .bandwidth = 1.5e10, .calls_bandwidth = 1e10, .launch = 1e-5
};

const fac_cl_speed *fac_cl_speed_of(const fac_opencl *o) { return o->limits.gpu ? &gpu : &cpu; }

double fac_cl_flops(const fac_opencl *o) {
    return o->limits.units * fac_cl_speed_of(o)->unit_flops;
}

double fac_cl_bandwidth(const fac_opencl *o) {
    const fac_cl_speed *s = fac_cl_speed_of(o);
    return s->bandwidth > 0 ? s->bandwidth : s->unit_bandwidth * o->limits.units;
}
