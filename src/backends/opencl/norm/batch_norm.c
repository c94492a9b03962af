/* Solver "batch_norm": inference, training with its body (a residual add, an activation), and the
 * gradient, which may begin with the mask of an activation; any float type.  batch_norm_given,
 * whose statistics are operands, and batch_norm_given_relu, which writes bits beside: only with
 * channels last on a GPU.
 *
 * Statistics are taken in one pass over x (see batch_norm.cl) in parts whose number follows
 * from shapes alone.  With channels last each operand may be a slice of another's channels, as
 * parts of a concat and of its gradient are. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/norm/batch_norm_problem.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/device/probe.h"
#include "backends/gpu/speed.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "op_list.h"
#include "ops/batch_norm_ref.h"
#include "ops/bits.h"
#include "cl_batch_norm.h"
#include "cl_batch_norm_apply.h"
#include "cl_last.h"
#include "cl_team.h"

enum {
    PORTS = 5,
    COEFFICIENTS = 4,
    GROUP = 64,
    LONG_RUN = 4096,
    PIXELS = 4,
    TEAM = 64,
    BESIDE = 8,
    MASK = FAC_CL_NORM_MASK,
    AHEAD = 8, /* accesses of an item that are on their way, at most */
    REGISTERS = 65536
}; /* what a unit has for the items it holds */

typedef fac_cl_norm_shape shape;

/* finish: the text of finish(x0, x1), where there is a body, or relu */
typedef struct draft {
    shape s;
    fac_text finish;
} draft;

static void drop(void *arg) { fac_text_free(&((draft *)arg)->finish); }

/* The body, if any, works on one element and at most one more of the same place. */
static bool simple_body(const fac_problem *p) {
    const int more = p->nin - p->node->nports;
    if (!p->node->body[0]) return true;
    if (fac_cl_norm_is_relu(p->node)) return false;
    const fac_operand *other = &p->in[p->node->nports];
    if (fac_cl_norm_is_grad(p->node) || p->node->nports < PORTS || more > 1) return false;
    if (more && other->type.dtype != p->in[0].type.dtype) return false;
    if (more && !fac_dims_equal(&other->type.dims, &p->in[0].type.dims)) return false;
    return p->out[0].type.dtype == p->in[0].type.dtype;
}

/* finish(x0, x1): what the node's body says, or relu; nothing where there is neither.  False when
 * the body has no expression. */
static bool body_text(const fac_opencl *o, const fac_problem *p, fac_text *to) {
    const char *const in[] = { "x0", "x1" };
    const char *t = fac_cl_computing(p->in[0].type.dtype);
    fac_text statements = { 0 };
    if (fac_cl_norm_is_relu(p->node)) {
        const bool adds = fac_cl_norm_addend(p);
        fac_text_print(to, "static inline %s finish(%s x0%s%s%s) {\n", t, t,
                       fac_text_if(adds, ", "), fac_text_if(adds, t), fac_text_if(adds, " x1"));
        fac_text_print(to, "%s    return x0 > 0 || isnan(x0) ? x0 : 0;\n}\n",
                       adds ? "    x0 += x1;\n" : "");
        return true;
    }
    if (!p->node->body[0]) return true;
    const bool good = fac_cl_body_text(p->node->body[0], in, o->limits.fp64, to, &statements);
    if (good)
        fac_text_print(
            to, "#define T %s\nstatic inline T finish(T x0%s) {\n%s        return result;\n}\n", t,
            fac_text_if(p->nin > p->node->nports, ", T x1"), fac_text_or(statements.s, ""));
    to->failed |= statements.failed;
    fac_text_free(&statements);
    return good;
}

/* How many images are read for the sums. */
static int images_of_sums(const fac_problem *p, const shape *s) {
    if (!s->grad) return 1;
    return fac_cl_norm_is_masked(p->node) ? 3 : 2;
}

/* Operands once, and for the batch's own statistics those that these are made of once more. */
static double seconds_of(const fac_opencl *o, const fac_problem *p, const shape *s) {
    int launches = s->given || s->settles ? 2 : 3;
    if (s->straight) launches = 1;
    const double image = (double)fac_type_bytes(&p->in[0].type);
    double bytes = 0;
    if (!s->straight && !s->given) bytes = image * images_of_sums(p, s);
    for (int i = 0; i < p->nin + p->nout; i++) {
        const fac_type *t = i < p->nin ? &p->in[i].type : &p->out[i - p->nin].type;
        if (t->dtype != FAC_NONE) bytes += (double)fac_type_bytes(t);
    }
    return fac_gpu_costs.call * launches + bytes / fac_gpu_bandwidth(&o->limits);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    shape s;
    const int own = fac_cl_norm_own(p->node);
    const fac_dtype computing = fac_cl_norm_computing(p);
    if (!fac_cl_norm_is_grad(p->node) && !own && !FAC_IS(p->node, batch_norm)) return false;
    if (!simple_body(p) || !fac_cl_norm_layouts(o, p)) return false;
    fac_cl_norm_of(o, p, &s);
    if (fac_cl_norm_has_bits(p) && s.near < FAC_BITS) { /* an item writes whole bytes */
        fac_cl_norm_lay_together(p);
        fac_cl_norm_of(o, p, &s);
        if (s.near < FAC_BITS) return false;
    }
    if (s.straight &&
        (!s.last || !s.count || !o->limits.gpu || p->in[own].type.dtype != computing ||
         p->in[own + 1].type.dtype != computing))
        return false;
    offer->work = s.coefficients + (size_t)(COEFFICIENTS * s.channels) * s.item;
    offer->seconds = seconds_of(o, p, &s);
    draft *r = fac_offer_keep(offer, sizeof *r, drop);
    if (!r) return false;
    r->s = s;
    return body_text(o, p, &r->finish);
}

/* ---- kernels ---- */

static void tag(fac_text *to, const char *name, const fac_operand *x) {
    fac_text_print(to, " -D%s=%s", name,
                   x && x->type.dtype != FAC_NONE ? fac_cl_tag(x->type.dtype) : "u8");
}

static fac_status add_kernel(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const shape *s,
                             fac_text *options, const char *front, const char *name,
                             fac_cl_call **out, fac_error *err) {
    fac_text source = { 0 };
    const fac_dtype t = p->in[0].type.dtype;
    fac_text_print(options, " -DT=%s -DX=%s -DCOMPUTED=%s%s", fac_cl_computing(t), fac_cl_tag(t),
                   fac_cl_tag(fac_cl_norm_computing(p)),
                   fac_cl_norm_is_masked(p->node) ? " -DGRAD -DMASK"
                   : s->grad                      ? " -DGRAD"
                                                  : "");
    fac_cl_option_wide(p, options);
    fac_text_add(&source, front);
    fac_text_add(&source, fac_kernel_team);
    if (s->settles) fac_text_add(&source, fac_kernel_last);
    fac_text_add(&source, fac_kernel_batch_norm);
    fac_text_add(&source, fac_kernel_batch_norm_apply);
    if (s->backwards) fac_text_add(options, " -DBACKWARDS");
    options->failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, options, name, out, err);
    fac_text_free(options);
    fac_text_free(&source);
    return status;
}

/* Between which results of the activation a gradient passes.  Where one has no limit the activation
 * passes infinity and NaN. */
static void add_limits(fac_cl_call *c, const fac_problem *p) {
    double lo = 0, hi = 0;
    fac_attr_get_real(p->node, "lo", &lo);
    fac_attr_get_real(p->node, "hi", &hi);
    fac_cl_call_real(c, fac_norm_limit(lo), fac_cl_norm_computing(p));
    fac_cl_call_real(c, fac_norm_limit(hi), fac_cl_norm_computing(p));
}

/* An absent operand is replaced by one that is there and not touched. */
static void add_out(fac_cl_call *c, const fac_problem *p, int k) {
    fac_cl_call_out(c, p, k < p->nout && p->out[k].type.dtype != FAC_NONE ? k : 0);
}

/* scale, bias, mean, var; gradients have a scale alone, and where sums are given dbias and dscale.
 */
static void parameters_of(const shape *s, int *to) {
    static const int forward[4] = { 1, 2, 3, 4 }, grad[4] = { 2, 2, 2, 2 },
                     straight[4] = { 2, 6, 5, 5 };
    const int *from = s->straight ? straight : grad;
    memcpy(to, s->grad ? from : forward, sizeof forward);
}

/* What settles: its types, its buffers, its numbers. */
static void add_settled_options(const fac_problem *p, const shape *s, fac_text *options) {
    static const char *const names[] = { "SCALE", "BIAS", "MEAN", "VAR" };
    int from[4];
    parameters_of(s, from);
    for (int k = 0; k < 4; k++) tag(options, names[k], &p->in[from[k]]);
    tag(options, "FIRST", p->nout > 1 ? &p->out[1] : NULL);
    tag(options, "SECOND", p->nout > 2 ? &p->out[2] : NULL);
}

static void add_settled_buffers(fac_cl_call *c, const fac_problem *p, const shape *s) {
    int from[4];
    parameters_of(s, from);
    if (!s->straight) fac_cl_call_work(c, s->coefficients, s->item);
    for (int k = 0; k < 4; k++) fac_cl_call_in(c, p, from[k]);
    add_out(c, p, 1);
    add_out(c, p, 2);
}

static void add_settled_numbers(fac_cl_call *c, const fac_problem *p, const shape *s) {
    double epsilon = 0, momentum = 0;
    int64_t has = 0;
    for (int k = 1; k < p->nout && k < MASK; k++) has |= p->out[k].type.dtype != FAC_NONE ? k : 0;
    fac_attr_get_real(p->node, "epsilon", &epsilon);
    fac_attr_get_real(p->node, "momentum", &momentum);
    fac_cl_call_number(c, s->count);
    fac_cl_call_real(c, epsilon, fac_cl_norm_computing(p));
    fac_cl_call_real(c, s->given ? 1 : momentum, fac_cl_norm_computing(p));
    fac_cl_call_number(c, has);
}

/* From pixel to pixel, where channels lie last; else as x has it. */
static int64_t step_in(const fac_problem *p, const shape *s, const fac_operand *v) {
    if (!s->last) return s->plane;
    return p->in[0].type.dims.n > 2 ? fac_cl_norm_step(v) : s->channels;
}

static fac_status add_moments(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                              const shape *s, fac_error *err) {
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const fac_cl_axis *inner = &s->f.reduced.a[s->f.reduced.n - 1];
    const int dy = s->grad ? 1 : 0;
    const int mask = fac_cl_norm_is_masked(p->node) ? 3 : 0;
    fac_text_add(&options, "-DMOMENTS");
    if (s->settles) {
        FAC_TRY(fac_cl_plan_counters(o, plan,
                                     (size_t)((s->f.units + s->f.beside - 1) / s->f.beside), err));
        fac_text_add(&options, " -DSETTLES");
        add_settled_options(p, s, &options);
    }
    fac_cl_fold_options(&s->f, &options);
    int ahead = 1;
    if (s->backwards) ahead = s->grad ? AHEAD / 2 : AHEAD;
    fac_text_print(&options, " -DAHEAD=%d", ahead);
    if (s->backwards && fac_cl_has_path(o, FAC_CL_MMA))
        fac_text_print(&options, " -cl-nv-maxrregcount=%d", REGISTERS / s->held / 8 * 8);
    FAC_TRY(add_kernel(o, p, plan, s, &options, "", "moments", &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, dy);
    fac_cl_call_in(c, p, mask);
    fac_cl_call_work(c, 0, s->item);
    if (s->settles) {
        add_settled_buffers(c, p, s);
        fac_cl_call_table(c, sizeof(uint32_t));
    }
    const int64_t numbers[] = { s->f.units,
                                s->f.parts,
                                s->f.across,
                                s->channels,
                                s->f.count / inner->d,
                                inner->d,
                                inner->in,
                                step_in(p, s, &p->in[dy]),
                                step_in(p, s, &p->in[mask]) };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    add_limits(c, p);
    if (s->settles) add_settled_numbers(c, p, s);
    fac_cl_fold_numbers(&s->f, c);
    fac_cl_fold_items(&s->f, c);
    return FAC_OK;
}

static fac_status add_settle(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const shape *s,
                             fac_error *err) {
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const int team =
        o->limits.gpu && s->f.parts >= BESIDE && o->limits.group >= TEAM * BESIDE ? TEAM : 1;
    const int beside = team > 1 ? BESIDE : GROUP;
    fac_text_print(&options, "-DSETTLE -DV=1 -DG=%d -DC=%d -DCOLUMNS%s", team, beside,
                   s->given ? " -DGIVEN" : "");
    add_settled_options(p, s, &options);
    FAC_TRY(add_kernel(o, p, plan, s, &options, "", "settle", &c, err));
    fac_cl_call_work(c, 0, s->item);
    add_settled_buffers(c, p, s);
    fac_cl_call_number(c, s->channels);
    fac_cl_call_number(c, s->count ? s->f.parts : 0);
    add_settled_numbers(c, p, s);
    fac_cl_call_items(c, (size_t)((s->channels + beside - 1) / beside * beside * team),
                      (size_t)(beside * team));
    return FAC_OK;
}

static fac_status add_apply(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const shape *s,
                            const fac_text *finish, fac_error *err) {
    const int64_t inner = s->last ? s->channels : s->plane,
                  rows = s->images * s->channels * s->plane / inner;
    const bool gpu = o->limits.gpu, body = p->node->body[0] || fac_cl_norm_is_relu(p->node),
               bits = fac_cl_norm_has_bits(p);
    const int addend = fac_cl_norm_addend(p);
    const int sums = s->f.near > 1 ? s->f.near : 1,
              near = sums > 1 && inner % s->near == 0 ? s->near : sums;
    int width = inner < 4 ? 1 : fac_cl_width(o, fac_cl_norm_computing(p));
    if (gpu) width = near;
    int pixels = 0;
    if (s->last && gpu) pixels = width > PIXELS ? PIXELS / 2 : PIXELS;
    const int64_t run = gpu                ? width
                        : inner < LONG_RUN ? inner
                                           : LONG_RUN,
                  runs = (inner + run - 1) / run;
    const int64_t side = s->backwards && 4 * GROUP / runs > 1 ? 4 * GROUP / runs : 1,
                  block = pixels * side; /* of a group */
    const int64_t units = pixels ? (rows + block - 1) / block * side * runs : rows * runs;
    fac_text options = { .failed = finish->failed };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DAPPLY -DV=%d -DG=1 -DC=1%s%s%s%s", width,
                   fac_text_if(near > 1, " -DALIGNED"), fac_text_if(s->last, " -DLAST"),
                   fac_text_if(body, " -DFINISH"), fac_text_if(addend, " -DADDEND"));
    if (bits) fac_text_add(&options, " -DBITS");
    if (pixels) fac_text_print(&options, " -DPIXELS=%d", pixels);
    if (s->straight) {
        fac_text_add(&options, " -DSTRAIGHT");
        add_settled_options(p, s, &options);
    }
    const fac_status status =
        add_kernel(o, p, plan, s, &options, finish->s ? finish->s : "", "apply", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    const int dy = s->grad ? 1 : addend;
    const int mask = fac_cl_norm_is_masked(p->node) ? 3 : 0;
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, dy);
    fac_cl_call_in(c, p, mask);
    fac_cl_call_out(c, p, 0);
    if (bits) fac_cl_call_out(c, p, MASK);
    if (s->straight) {
        add_settled_buffers(c, p, s);
        fac_cl_call_in(c, p, fac_cl_norm_own(p->node));
        fac_cl_call_in(c, p, fac_cl_norm_own(p->node) + 1);
    } else {
        fac_cl_call_work(c, s->coefficients, s->item);
    }
    const int64_t numbers[] = { units,
                                runs,
                                run,
                                inner,
                                s->channels,
                                rows,
                                step_in(p, s, &p->in[0]),
                                step_in(p, s, &p->in[dy]),
                                step_in(p, s, &p->in[mask]),
                                step_in(p, s, &p->out[0]) };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    if (bits) fac_cl_call_number(c, fac_cl_norm_step(&p->out[MASK]));
    add_limits(c, p);
    if (s->straight) add_settled_numbers(c, p, s);
    const size_t group = run < GROUP ? GROUP : 1;
    fac_cl_call_items(c, (size_t)units, gpu ? 4 * GROUP : group);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const draft *r = p->draft;
    const shape *s = &r->s;
    if (!s->channels) return FAC_OK;
    if (!s->given && !s->straight && s->count) FAC_TRY(add_moments(o, p, plan, s, err));
    if (!s->settles && !s->straight && (s->given || s->count || p->nout > 1))
        FAC_TRY(add_settle(o, p, plan, s, err));
    return s->count ? add_apply(o, p, plan, s, &r->finish, err) : FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 3, add, out, err);
}

const fac_solver fac_cl_batch_norm = { .name = "batch_norm",
                                       .rank = 200,
                                       .offer = offer,
                                       .make = make,
                                       .done = fac_cl_plan_done,
                                       .run = fac_cl_plan_run };
