/* Solver "batch_norm_sums": the two sums that the gradient of a batch norm begins with, by
 * statistics that are operands; with channels last on a GPU, any float type.  See
 * batch_norm_sums.cl. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/norm/batch_norm_dense.h"
#include "backends/opencl/device/probe.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_batch_norm_sums.h"
#include "cl_last.h"
#include "cl_team.h"
#include "op_list.h"

enum {
    X,
    DY,
    MEAN,
    VAR,
    GROUP = 256,
    BESIDE = 8, /* items of a group, and how many of them are side by side at most */
    HELD = 512, /* items that a unit holds at once */
    EACH = 8,
    AHEAD = 4, /* pixels of an item at least; of how many it asks at once */
    JOINING = 64
}; /* items of a group that joins */

/* Items beside each other and down the pixels, groups of lines, parts of these; whether the last
 * group of a line settles it. */
typedef struct shape {
    fac_cl_dense image;
    int beside, down;
    int64_t lines, parts;
    bool settles;
    size_t item;
} shape;

static bool shape_of(fac_opencl *o, fac_problem *p, shape *s) {
    if (!fac_cl_dense_of(o, p, &s->image)) return false;
    const fac_dtype computing = fac_cl_folding(p->in[X].type.dtype);
    s->item = (size_t)fac_dtype_get(computing)->block_bytes;
    s->beside = BESIDE;
    while (s->beside > 1 && s->beside >= 2 * s->image.across) s->beside /= 2;
    s->down = GROUP / s->beside;
    s->lines = (s->image.across + s->beside - 1) / s->beside;
    s->parts = (int64_t)o->limits.units * (HELD / GROUP) / s->lines;
    const int64_t most = s->image.pixels / ((int64_t)s->down * EACH);
    if (s->parts > most) s->parts = most;
    if (s->parts < 1) s->parts = 1;
    s->settles = computing == FAC_F32 && fac_cl_has_path(o, FAC_CL_FENCES);
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    shape s = { .beside = 0 };
    if (!FAC_IS(p->node, batch_norm_sums) || p->node->body[0] || !shape_of(o, p, &s)) return false;
    offer->work = (size_t)(s.parts * 2 * s.image.channels) * s.item;
    offer->seconds = fac_cl_dense_seconds(o, p, s.settles ? 1 : 2);
    *FAC_DRAFT(offer, shape) = s;
    return true;
}

static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const shape *s,
                           bool join, fac_error *err) {
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    fac_cl_dense_options(p, &s->image, &options);
    fac_text_print(&options, " -DCOLUMNS -DG=%d -DC=%d -DAHEAD=%d%s%s", join ? 1 : s->down,
                   join ? 1 : s->beside, AHEAD, fac_text_if(join, " -DJOIN"),
                   fac_text_if(s->settles, " -DSETTLES"));
    fac_text_add(&source, fac_kernel_team);
    if (s->settles) fac_text_add(&source, fac_kernel_last);
    fac_text_add(&source, fac_kernel_batch_norm_sums);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s ? source.s : "", &options,
                                        join ? "join" : "sums", &c, err);
    fac_text_free(&options);
    fac_text_free(&source);
    FAC_TRY(status);
    double epsilon = 0;
    int64_t has = 0;
    for (int k = 0; k < p->nout; k++) has |= p->out[k].type.dtype != FAC_NONE ? k + 1 : 0;
    fac_attr_get_real(p->node, "epsilon", &epsilon);
    for (int i = X; i <= VAR; i++) fac_cl_call_in(c, p, i);
    fac_cl_call_work(c, 0, s->item);
    for (int k = 0; k < 2; k++) fac_cl_call_out(c, p, has & (k + 1) ? k : 1 - k);
    if (s->settles) fac_cl_call_table(c, sizeof(uint32_t));
    const int64_t numbers[] = { s->image.across, s->parts, s->image.pixels, s->image.channels };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_cl_call_real(c, epsilon, fac_cl_folding(p->in[X].type.dtype));
    fac_cl_call_number(c, has);
    if (join)
        fac_cl_call_items(c, (size_t)(s->image.across + JOINING - 1) / JOINING * JOINING, JOINING);
    else
        fac_cl_call_items(c, (size_t)(s->lines * s->parts) * GROUP, GROUP);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const shape *s = p->draft;
    if (s->settles) FAC_TRY(fac_cl_plan_counters(o, plan, (size_t)s->lines, err));
    FAC_TRY(add_call(o, p, plan, s, false, err));
    return s->settles ? FAC_OK : add_call(o, p, plan, s, true, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, out, err);
}

const fac_solver fac_cl_batch_norm_sums = { .name = "batch_norm_sums",
                                            .rank = 220,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_cl_plan_done,
                                            .run = fac_cl_plan_run };
