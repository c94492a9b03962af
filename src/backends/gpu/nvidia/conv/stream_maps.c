/* Which x conv/wgmma_stream reads as a matrix, by tensor maps: see stream.h. */
#include "backends/gpu/nvidia/conv/stream.h"

enum { ANY = 16 }; /* the step of a single position: a multiple of 16 bytes */

int32_t fac_nv_stream_step(const fac_nv_conv *c, const fac_nv_phase *f) {
    const int64_t sizes[] = { f->axis[2].in, f->axis[1].in, c->g.N },
                  steps[] = { c->x.column, c->x.row, c->x.image };
    int64_t step = ANY, span = 1;
    if (c->phases > 1 || f->taps != 1) return 0;
    for (int d = 1; d < 3; d++) {
        const fac_nv_axis *a = &f->axis[d];
        if (a->stride != 1 || a->origin || a->in != a->out) return 0;
    }
    for (int k = 0; k < 3; k++) {
        if (sizes[k] == 1) continue;
        if (span == 1)
            step = steps[k];
        else if (steps[k] != step * span)
            return 0;
        span *= sizes[k];
    }
    return step > 0 ? (int32_t)step : 0;
}
