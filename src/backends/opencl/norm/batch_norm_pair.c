/* Solver "batch_norm_pair": two batch norms of training that are added, and both their gradients,
 * by statistics that are operands; with channels last on a GPU, any float type.  See
 * batch_norm_pair.cl. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/norm/batch_norm_dense.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "op_list.h"
#include "ops/batch_norm_pair.h"
#include "ops/bits.h"
#include "cl_batch_norm_pair.h"

enum {
    MASK = FAC_NORM_PAIR_OUT,
    GROUP = 256,
    PIXELS = 4,
    SHORT_PIXELS = 2,
    LONG_ACCESS = 4, /* more elements: fewer pixels */
    NORM = 7,
    GRAD_OF = 6
}; /* inputs of one norm */

static bool is_grad(const fac_problem *p) { return FAC_IS(p->node, batch_norm_grad_pair); }
static bool is_relu(const fac_problem *p) { return FAC_IS(p->node, batch_norm_pair_relu); }
static bool has_bits(const fac_problem *p) {
    return is_relu(p) && p->nout > MASK && p->out[MASK].type.dtype != FAC_NONE;
}
static int ports_of(const fac_problem *p) { return is_grad(p) ? 1 + 2 * GRAD_OF : 2 * NORM; }

/* finish: the text of finish(x0), where there is a body, or relu */
typedef struct draft {
    fac_cl_dense s;
    fac_text finish;
} draft;

static void drop(void *arg) { fac_text_free(&((draft *)arg)->finish); }

/* Of one element. */
static bool simple_body(const fac_problem *p) {
    return p->nin == ports_of(p) && !(p->node->body[0] && (is_grad(p) || is_relu(p)));
}

/* finish(x0): relu, or what the node's body says; nothing where there is neither.  False when the
 * body has no expression. */
static bool body_text(const fac_opencl *o, const fac_problem *p, fac_text *to) {
    const char *const in[] = { "x0" };
    fac_text statements = { 0 };
    if (is_relu(p))
        fac_text_add(to, "static inline T finish(T x0) { return x0 > 0 || isnan(x0) ? x0 : 0; }\n");
    if (is_relu(p) || !p->node->body[0]) return true;
    const bool good = fac_cl_body_text(p->node->body[0], in, o->limits.fp64, to, &statements);
    if (good)
        fac_text_print(
            to, "#define T %s\nstatic inline T finish(T x0) {\n%s        return result;\n}\n",
            fac_cl_computing(p->in[0].type.dtype), statements.s ? statements.s : "");
    to->failed |= statements.failed;
    fac_text_free(&statements);
    return good;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    fac_cl_dense s;
    if (!is_grad(p) && !is_relu(p) && !FAC_IS(p->node, batch_norm_pair)) return false;
    if (!simple_body(p) || !fac_cl_dense_of(o, p, &s)) return false;
    if (has_bits(p) && s.near % FAC_BITS) return false; /* an item writes whole bytes */
    offer->seconds = fac_cl_dense_seconds(o, p, 1);
    draft *r = fac_offer_keep(offer, sizeof *r, drop);
    if (!r) return false;
    r->s = s;
    return body_text(o, p, &r->finish);
}

/* An absent result is replaced by one that is there and not touched. */
static void add_out(fac_cl_call *c, const fac_problem *p, int k) {
    fac_cl_call_out(c, p, k < p->nout && p->out[k].type.dtype != FAC_NONE ? k : 0);
}

static void add_buffers(fac_cl_call *c, const fac_problem *p) {
    enum { SCALE = 1, BIAS, OLD_MEAN, OLD_VAR, MEAN, VAR };
    static const int order[] = { SCALE, BIAS, MEAN, VAR, OLD_MEAN, OLD_VAR };
    fac_cl_call_in(c, p, 0);
    if (is_grad(p)) {
        fac_cl_call_in(c, p, 1);
        fac_cl_call_in(c, p, 1 + GRAD_OF);
        fac_cl_call_out(c, p, 0);
        add_out(c, p, 1);
        for (int which = 0; which < 2; which++)
            for (int k = 1; k < GRAD_OF; k++) fac_cl_call_in(c, p, 1 + which * GRAD_OF + k);
        return;
    }
    fac_cl_call_in(c, p, NORM);
    fac_cl_call_out(c, p, 0);
    if (has_bits(p)) fac_cl_call_out(c, p, MASK);
    for (int which = 0; which < 2; which++) {
        for (int k = 0; k < NORM - 1; k++) fac_cl_call_in(c, p, which * NORM + order[k]);
        for (int k = 1; k < 3; k++) add_out(c, p, 2 * which + k);
    }
}

static void add_numbers(fac_cl_call *c, const fac_problem *p, const fac_cl_dense *s, int64_t units,
                        int64_t side) {
    static const char *const reals[] = { "epsilon", "other_epsilon", "momentum", "other_momentum" };
    int64_t has = 0;
    for (int k = 1; k < p->nout && k < MASK; k++)
        has |= p->out[k].type.dtype != FAC_NONE ? 1 << (k - 1) : 0;
    const int64_t numbers[] = { units, s->across, side, s->pixels, s->channels, has };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    for (int k = 0; k < (is_grad(p) ? 2 : 4); k++) {
        double x = 0;
        fac_attr_get_real(p->node, reals[k], &x);
        fac_cl_call_real(c, x, fac_cl_folding(p->in[0].type.dtype));
    }
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const draft *r = p->draft;
    const fac_cl_dense *s = &r->s;
    fac_cl_call *c = NULL;
    fac_text options = { 0 }, source = { 0 };
    const int pixels = s->near > LONG_ACCESS ? SHORT_PIXELS : PIXELS;
    const int64_t side = GROUP / s->across > 1 ? GROUP / s->across : 1, block = pixels * side;
    const int64_t units = (s->pixels + block - 1) / block * side * s->across;
    fac_cl_dense_options(p, s, &options);
    const bool finish = p->node->body[0] || is_relu(p);
    fac_text_print(&options, " -DPIXELS=%d%s%s%s", pixels, fac_text_if(is_grad(p), " -DGRAD"),
                   fac_text_if(finish, " -DFINISH"), fac_text_if(has_bits(p), " -DBITS"));
    if (r->finish.s) fac_text_add(&source, r->finish.s);
    fac_text_add(&source, fac_kernel_batch_norm_pair);
    options.failed |= source.failed | r->finish.failed;
    const fac_status status =
        fac_cl_call_new(o, plan, source.s ? source.s : "", &options, "pair", &c, err);
    fac_text_free(&options);
    fac_text_free(&source);
    FAC_TRY(status);
    add_buffers(c, p);
    add_numbers(c, p, s, units, side);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_batch_norm_pair = { .name = "batch_norm_pair",
                                            .rank = 210,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_cl_plan_done,
                                            .run = fac_cl_plan_run };
