/* What the solver "batch_norm" makes of a problem: see batch_norm_problem.h. */
#include "graph/attr.h"
#include "backends/opencl/norm/batch_norm_problem.h"
#include "backends/opencl/device/probe.h"
#include "op_list.h"
#include "ops/batch_norm_given.h"

enum {
    SUMMING = 256,
    GROUPS = 2,
    EACH = 8, /* items of a group that sums, groups on a unit, accesses of an item at least, */
    HELD_ITEMS = 512,
    MORE_ITEMS =
        768, /* items that a unit holds at once; more where they add up x of 16 bits alone */
    BESIDE = 8,
    SUMS = 4,
    SHORT = 2,
    FEW_BYTES = 32 << 20, /* bytes of x's elements; of all of x, so few that a launch counts */
    MOST_NEAR = 8
}; /* elements that come in one access */

typedef fac_cl_norm_shape shape;

int fac_cl_norm_addend(const fac_problem *p) {
    const int k = fac_cl_norm_is_relu(p->node) ? FAC_NORM_GIVEN
                  : p->node->body[0]           ? p->node->nports
                                               : p->nin;
    return k < p->nin && p->in[k].type.dtype != FAC_NONE ? k : 0;
}

int64_t fac_cl_norm_step(const fac_operand *x) {
    const fac_dims *d = &x->type.dims;
    int64_t step = 0, pixels = 1;
    if (d->n < 3 || x->layout.block || (d->d[1] > 1 && x->layout.stride[1] != 1)) return 0;
    for (int i = d->n - 1; i > 0; i--) {
        const int k = i > 1 ? i : 0; /* images after the pixels */
        if (d->d[k] > 1 && !step) step = x->layout.stride[k];
        if (d->d[k] > 1 && x->layout.stride[k] != step * pixels) return 0;
        pixels *= d->d[k];
    }
    if (!step) step = d->d[1];
    return step == d->d[1] || (step > d->d[1] && d->d[1] > 1) ? step : 0;
}

/* Where the last group adds the parts of a channel, groups are short and wide, so that there are
 * few. */
static void share_sums(const fac_opencl *o, shape *s) {
    fac_cl_fold *f = &s->f;
    if (!f->columns || f->reduced.n > 1) return;
    const int64_t side = (s->channels + f->width - 1) / f->width;
    f->beside = BESIDE;
    while (f->beside > 1 && f->beside >= 2 * side) f->beside /= 2;
    f->team = f->across = SUMMING / f->beside;
    const int64_t groups = (f->units + f->beside - 1) / f->beside,
                  most = f->count / ((int64_t)f->team * EACH);
    f->parts = (int64_t)o->limits.units * GROUPS / (groups ? groups : 1);
    if (f->parts > most) f->parts = most;
    if (f->parts < 1) f->parts = 1;
}

/* Groups do much, so that what they read last is at one end of x: all of them are there at once. */
static void hold_all(const fac_opencl *o, shape *s) {
    fac_cl_fold *f = &s->f;
    const int64_t groups = (f->units + f->beside - 1) / f->beside;
    const int64_t most =
        (int64_t)o->limits.units * s->held / ((int64_t)f->team * f->beside) / (groups ? groups : 1);
    if (f->parts > most) f->parts = most > 1 ? most : 1;
}

static bool is_last(const fac_operand *x) {
    return !fac_layout_is_plain(&x->layout, &x->type.dims) && fac_cl_norm_step(x);
}

int fac_cl_norm_own(const fac_node *n) {
    if (FAC_IS(n, batch_norm_given) || fac_cl_norm_is_relu(n)) return 5;
    return FAC_IS(n, batch_norm_grad_given) ? 3 : 0;
}

void fac_cl_norm_of(fac_opencl *o, const fac_problem *p, shape *s) {
    const fac_dims *d = &p->in[0].type.dims;
    *s = (shape){ .images = d->d[0],
                  .channels = d->n > 1 ? d->d[1] : 1,
                  .plane = 1,
                  .grad = fac_cl_norm_is_grad(p->node),
                  .straight = fac_cl_norm_is_straight(p->node) };
    for (int k = 2; k < d->n; k++) s->plane *= d->d[k];
    s->count = s->images * s->plane;
    s->given = !s->grad && !s->straight && !fac_attr_flag(p->node, "training_mode");
    s->last = d->n == 2 || is_last(&p->in[0]) || (s->straight && fac_cl_norm_step(&p->in[0]));
    const int64_t step = s->last && d->n > 2 ? fac_cl_norm_step(&p->in[0]) : s->channels;
    const int64_t bytes = fac_dtype_get(p->in[0].type.dtype)->block_bytes;
    const bool single = fac_cl_norm_computing(p) == FAC_F32;
    fac_cl_axes_put(&s->f.kept, s->channels, s->last ? 1 : s->plane, 1);
    fac_cl_axes_put(&s->f.reduced, s->images, step * s->plane, 0);
    fac_cl_axes_put(&s->f.reduced, s->plane, s->last ? step : 1, 0);
    s->near = fac_cl_near_all(o, p);
    if (s->last && s->channels % s->near)
        s->near = 1; /* of a single channel the neighbours are pixels, in plain order too */
    s->f.near = s->near < SUMS ? s->near
                               : SUMS; /* four sums of eight lanes would take too many registers */
    fac_cl_fold_settle(o, &s->f, fac_cl_norm_computing(p));
    const bool few = s->count * s->channels * bytes <= FEW_BYTES;
    s->backwards = o->limits.gpu && single && (bytes <= SHORT || (s->last && !few));
    s->held = s->grad || bytes > SHORT ? HELD_ITEMS : MORE_ITEMS;
    s->settles =
        !s->given && !s->straight && s->count && single && fac_cl_has_path(o, FAC_CL_FENCES);
    s->settles &= !s->backwards || few;
    if (s->settles)
        share_sums(o, s);
    else if (s->backwards)
        hold_all(o, s);
    s->item = (size_t)fac_dtype_get(fac_cl_norm_computing(p))->block_bytes;
    s->coefficients = s->given || s->straight ? 0
                                              : (size_t)((s->grad ? 4 : 2) * s->f.parts + 1) *
                                                    (size_t)s->channels * s->item;
}

bool fac_cl_norm_layouts(const fac_opencl *o, fac_problem *p) {
    const fac_operand *x = &p->in[0];
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *v = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (v->type.dtype == FAC_NONE) continue;
        if (!fac_cl_has(o, v->type.dtype)) return false;
        v->layout.halo = 0;
        const bool like_x = fac_dims_equal(&v->type.dims, &x->type.dims) && v->type.dims.n > 1;
        if (fac_cl_norm_has_bits(p) && v == &p->out[FAC_CL_NORM_MASK]) {
            if (!fac_cl_norm_step(v)) v->layout = fac_layout_channels_last(&v->type.dims);
            continue;
        }
        const bool wants_last =
            i == 0 && fac_cl_norm_is_straight(p->node) && v->type.dims.n > 2 && !is_last(v);
        if (wants_last) v->layout = fac_layout_channels_last(&v->type.dims);
        if (like_x && is_last(x) && is_last(v)) continue;
        const bool vector = fac_cl_norm_is_straight(p->node) && i < p->nin &&
                            !like_x; /* read as many at once as of x */
        const bool plain = fac_layout_is_plain(&v->layout, &v->type.dims);
        if (!plain || v->layout.block || (vector && v->layout.offset % MOST_NEAR))
            v->layout = fac_layout_plain(&v->type.dims);
        if (like_x && is_last(x)) v->layout = fac_layout_channels_last(&v->type.dims);
    }
    return true;
}

void fac_cl_norm_lay_together(fac_problem *p) {
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *v = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (v->type.dtype != FAC_NONE && v->type.dims.n > 2)
            v->layout = fac_layout_channels_last(&v->type.dims);
    }
}
