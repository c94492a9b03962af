/* Solver "cache_write": rows written into a cache, in place where the planner lets it. */
#include "backends/opencl/device/calls.h"
#include "backends/opencl/move/copy.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_cache_write.h"
#include "cl_index.h"
#include "op_list.h"

enum { GROUP = 64, CACHE = 0, ROWS, AT };
enum { KEEP, WRITE }; /* calls */

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!fac_cl_settle_plain(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 2);
    return true;
}

static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const char *name,
                           int64_t count, fac_error *err) {
    const int64_t *cache = p->in[CACHE].type.dims.d, *rows = p->in[ROWS].type.dims.d;
    const size_t bytes = (size_t)fac_dtype_get(p->in[CACHE].type.dtype)->block_bytes;
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    fac_text_print(&options, "-DV=1 -DT=float -DM=%s -DI=%s", fac_cl_bits(bytes),
                   fac_cl_tag(p->in[AT].type.dtype));
    fac_cl_option_wide(p, &options);
    fac_text_add(&source, fac_kernel_index);
    fac_text_add(&source, fac_kernel_cache_write);
    options.failed |= source.failed;
    const fac_status status = fac_cl_call_new(o, plan, source.s, &options, name, &c, err);
    fac_text_free(&source);
    fac_text_free(&options);
    FAC_TRY(status);
    for (int k = 0; k < 3; k++) fac_cl_call_in(c, p, k);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_complaint(c);
    const int64_t numbers[] = { count, cache[1], cache[2], rows[2], cache[3] };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    FAC_TRY(add_call(o, p, plan, "keep", fac_dims_count(&p->in[CACHE].type.dims), err));
    return add_call(o, p, plan, "rows", fac_dims_count(&p->in[ROWS].type.dims), err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, out, err);
}

/* Where the cache lies at its place already, there is nothing to keep. */
static fac_status run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const bool there =
        in[CACHE].memory == out[0].memory && fac_cl_at(in[CACHE]) == fac_cl_at(out[0]);
    return fac_cl_plan_run_from(plan, there ? WRITE : KEEP, d, in, out, work, err);
}

const fac_solver fac_cl_cache_write = { .name = "cache_write",
                                        .op = &fac_op_cache_write,
                                        .rank = 131,
                                        .offer = offer,
                                        .make = make,
                                        .done = fac_cl_plan_done,
                                        .run = run };
