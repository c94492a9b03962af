/* Solver "sum_square_all": the sum of the squares of many tensors, for the norm of all gradients:
 * chunks in few launches, then the sum of what they gave, in a fixed order. */
#include "backends/opencl/device/calls.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_squares.h"
#include "cl_team.h"
#include "op_list.h"

enum { CHUNK = 16384, INPUTS = 24, TEAM = 256, ACCESS = 16 };

static int64_t chunks_of(const fac_operand *x) {
    return (fac_dims_count(&x->type.dims) + CHUNK - 1) / CHUNK;
}

static int64_t all_chunks(const fac_problem *p) {
    int64_t n = 0;
    for (int i = 0; i < p->nin; i++) n += chunks_of(&p->in[i]);
    return n;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!fac_cl_settle_plain(o, p)) return false;
    offer->work = ((size_t)all_chunks(p) + 1) * sizeof(double);
    offer->seconds = fac_cl_price(o, p, 2 + p->nin / INPUTS);
    return true;
}

static int team_of(const fac_opencl *o) {
    return o->limits.gpu && o->limits.group >= TEAM ? TEAM : 1;
}

static fac_dtype computing(const fac_problem *p) { return fac_cl_folding(p->out[0].type.dtype); }
static size_t item(const fac_problem *p) {
    return (size_t)fac_dtype_get(computing(p))->block_bytes;
}

/* Which input a chunk belongs to is asked from the last one on. */
static void pick_text(fac_text *t, const char *type, int n) {
    fac_text_add(t, "#define INPUTS ");
    for (int k = 0; k < n; k++) fac_text_print(t, "%sglobal const %s *x%d", k ? ", " : "", type, k);
    fac_text_add(t, "\n#define PICK ");
    for (int k = n - 1; k >= 0; k--) {
        if (k) fac_text_print(t, "if (chunk >= s.first[%d]) ", k);
        fac_text_print(t, "{ x = x%d + s.at[%d]; n = s.size[%d]; chunk -= s.first[%d]; } ", k, k, k,
                       k);
        if (k) fac_text_add(t, "else ");
    }
    fac_text_add(t, "\n");
}

/* One launch for n inputs of one type, whose chunks follow `before` others. */
static fac_status add_inputs(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const int *in,
                             int n, int64_t before, fac_error *err) {
    const fac_dtype t = p->in[in[0]].type.dtype;
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    int64_t first = 0;
    int near = o->limits.gpu ? ACCESS / fac_dtype_get(t)->block_bytes : 1;
    for (int k = 0; k < n; k++)
        if (p->in[in[k]].layout.offset % near) near = 1;
    fac_text_print(&options, "-DT=%s -DX=%s -DV=%d -DG=%d -DC=1 -DWIDE -DCOUNT=%d -DCHUNK=%d%s",
                   fac_cl_computing(computing(p)), fac_cl_tag(t),
                   o->limits.gpu ? near : fac_cl_width(o, computing(p)), team_of(o), n, CHUNK,
                   near > 1 ? " -DALIGNED -DTAILS" : "");
    pick_text(&source, fac_cl_in_memory(t), n);
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, fac_kernel_squares);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, &options, "squares", &c, err);
    fac_text_free(&options);
    fac_text_free(&source);
    FAC_TRY(status);
    for (int k = 0; k < n; k++) fac_cl_call_in(c, p, in[k]);
    fac_cl_call_work(c, 0, item(p));
    for (int k = 0; k < n; k++) {
        fac_cl_call_number(c, first);
        first += chunks_of(&p->in[in[k]]);
    }
    fac_cl_call_number(c, first);
    for (int k = 0; k < n; k++) fac_cl_call_number(c, fac_dims_count(&p->in[in[k]].type.dims));
    fac_cl_call_number(c, before);
    fac_cl_call_items(c, (size_t)first * (size_t)team_of(o), (size_t)team_of(o));
    return FAC_OK;
}

static fac_status add_sum(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, int64_t chunks,
                          fac_error *err) {
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DT=%s -DX=%s -DV=1 -DG=%d -DC=1", fac_cl_computing(computing(p)),
                   fac_cl_tag(p->out[0].type.dtype), team_of(o));
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, fac_kernel_squares);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, &options, "gather", &c, err);
    fac_text_free(&options);
    fac_text_free(&source);
    FAC_TRY(status);
    fac_cl_call_work(c, 0, item(p));
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, chunks);
    fac_cl_call_items(c, (size_t)team_of(o), (size_t)team_of(o));
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    int64_t before = 0;
    for (fac_dtype t = 0; t < FAC_DTYPES; t++) {
        int in[INPUTS], n = 0;
        int64_t chunks = 0;
        for (int i = 0; i <= p->nin; i++) {
            const bool mine = i < p->nin && p->in[i].type.dtype == t && chunks_of(&p->in[i]);
            if (n && (n == INPUTS || i == p->nin)) {
                FAC_TRY(add_inputs(o, p, plan, in, n, before, err));
                before += chunks;
                n = 0;
                chunks = 0;
            }
            if (mine) {
                in[n++] = i;
                chunks += chunks_of(&p->in[i]);
            }
        }
    }
    return add_sum(o, p, plan, before, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, p->nin + 1, add, out, err);
}

const fac_solver fac_cl_sum_square_all = { .name = "sum_square_all",
                                           .op = &fac_op_sum_square_all,
                                           .rank = 350,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_cl_plan_done,
                                           .run = fac_cl_plan_run };
