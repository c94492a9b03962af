/* Sharing out folds, see fold.h. */
#include "backends/opencl/reduce/fold.h"
#include "backends/opencl/device/probe.h"
#include "base/optional.h"
#include "tensor/tensor_internal.h"

enum {
    GROUP = 256,
    LINES_BESIDE = 16,
    SHORT = 64,
    MANY = 32 << 10,
    FEW_UNITS = 8,
    CPU_PARTS = 16,
    ACCESS = 16,
    EACH = 8,          /* accesses of an item at least, before lines are cut, */
    LEAST_PARTS = 4,   /* and so many parts: what fewer save a launch costs */
    ITEMS = 4096,      /* of a compute unit: two waves of all that it can hold; */
    SIDE_ITEMS = 1280, /* fewer where lines lie side by side: each part of them is read again; */
    MANY_ITEMS = 1024,
    MANY_PARTS = 8, /* and of a line in so many parts: their groups take no turns */
    HELD = 64,      /* elements in an item's registers */
    ALONE = 8,      /* so few accesses an item does alone */
    LARGEST = 1024, /* items of a group */
    STORED = 160 << 10
}; /* bytes of local memory for a line */

/* Whether all of x lies in runs of neighbours whose lengths and beginnings are multiples of n
 * elements. */
static bool in_runs_of(const fac_operand *x, int n) {
    const fac_dims *d = &x->type.dims;
    int64_t run = 1;
    for (int done = 0; done < d->n;
         done++) /* a dim that goes on where the run ends makes it longer */
        for (int k = 0; k < d->n; k++)
            if (d->d[k] > 1 && x->layout.stride[k] == run) run *= d->d[k];
    for (int k = 0; k < d->n; k++)
        if (d->d[k] > 1 && x->layout.stride[k] >= run && x->layout.stride[k] % n) return false;
    return run % n == 0 && x->layout.offset % n == 0;
}

int fac_cl_near(const fac_opencl *o, const fac_operand *const *x, int n) {
    int near = ACCESS;
    if (!o->limits.gpu) return 1;
    for (int i = 0; i < n; i++) {
        if (x[i]->type.dtype == FAC_NONE) continue;
        const int most = ACCESS / fac_dtype_get(x[i]->type.dtype)->block_bytes;
        if (most < near) near = most;
    }
    if (near > 8) near = 8; /* i8: computed in long */
    for (int i = 0; i < n && near > 1; i++)
        if (x[i]->type.dtype != FAC_NONE && !in_runs_of(x[i], near)) near = 1;
    return near < 1 ? 1 : near;
}

int fac_cl_near_all(const fac_opencl *o, const fac_problem *p) {
    const fac_operand *x[FAC_CL_BUFFERS];
    const int64_t count = fac_dims_count(&p->in[0].type.dims);
    int n = 0;
    for (int i = 0; i < p->nin + p->nout && n < FAC_CL_BUFFERS; i++) {
        const fac_operand *v = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (v->type.dtype != FAC_NONE && fac_dims_count(&v->type.dims) == count) x[n++] = v;
    }
    return fac_cl_near(o, x, n);
}

fac_dtype fac_cl_folding(fac_dtype t) {
    if (t == FAC_F64 || t == FAC_U64) return t;
    return fac_dtype_get(t)->kind == 'f' ? FAC_F32 : FAC_I64;
}

/* Largest steps first, neighbours merged, dims of one dropped; what has neighbours in memory last.
 */
static void settle(fac_cl_axes *x) {
    int n = 0;
    for (int k = 0; k < x->n; k++)
        if (x->a[k].d != 1) x->a[n++] = x->a[k];
    for (int k = 1; k < n; k++)
        for (int j = k; j > 0 && x->a[j].in > x->a[j - 1].in; j--) {
            const fac_cl_axis t = x->a[j];
            x->a[j] = x->a[j - 1];
            x->a[j - 1] = t;
        }
    x->n = 0;
    for (int k = 0; k < n; k++) {
        fac_cl_axis *last = x->n ? &x->a[x->n - 1] : NULL, now = x->a[k];
        if (last && last->in == now.in * now.d && last->out == now.out * now.d)
            *last = (fac_cl_axis){ last->d * now.d, now.in, now.out };
        else
            x->a[x->n++] = now;
    }
    for (int k = 0; k < x->n - 1; k++)
        if (x->a[k].in == 1) {
            const fac_cl_axis t = x->a[k];
            for (int j = k; j < x->n - 1; j++) x->a[j] = x->a[j + 1];
            x->a[x->n - 1] = t;
        }
    if (!x->n) fac_cl_axes_put(x, 1, 0, 0);
}

static int64_t product(const fac_cl_axes *x) {
    int64_t n = 1;
    for (int k = 0; k < x->n; k++) n *= x->a[k].d;
    return n;
}

static int power_of_2(int64_t most) {
    int n = 1;
    while (n < GROUP && (int64_t)n * 2 <= most) n *= 2;
    return n;
}

static int least(int a, int b) { return a < b ? a : b; }

/* Whether lines, or rows of columns, are whole vectors that begin at multiples of vectors. */
static bool fits(const fac_cl_fold *f) {
    const fac_cl_axis *neighbours =
        f->unit ? &f->reduced.a[f->reduced.n - 1] : &f->kept.a[f->kept.n - 1];
    if ((!f->unit && !f->columns) || neighbours->d % f->near) return false;
    for (int k = 0; k < f->kept.n + f->reduced.n; k++) {
        const fac_cl_axis *a = k < f->kept.n ? &f->kept.a[k] : &f->reduced.a[k - f->kept.n];
        if (a != neighbours && a->d > 1 && a->in % f->near) return false;
    }
    return true;
}

/* Teams on a GPU: neighbouring items take neighbours in memory. */
static void share_wide(const fac_opencl *o, fac_cl_fold *f) {
    const int group = least(GROUP, power_of_2((int64_t)o->limits.group));
    const int64_t inner = f->reduced.a[f->reduced.n - 1].d,
                  side = f->columns ? f->kept.a[f->kept.n - 1].d : f->lines;
    if (f->near > 1 && !fits(f)) f->near = 1;
    f->width = f->near > 1 ? f->near : 1;
    if (f->columns) {
        f->beside =
            least(least(group, SHORT), power_of_2(2 * ((side + f->width - 1) / f->width) - 1));
        f->team = least(group / f->beside, power_of_2(f->count / 8));
    } else {
        const int64_t vectors = f->count / f->width;
        f->team = least(group, power_of_2(vectors < ALONE   ? 1
                                          : vectors < SHORT ? vectors / 2
                                                            : vectors / 4));
        f->beside = least(group / f->team, power_of_2(2 * side - 1));
        f->beside = f->team * f->beside > SHORT && f->team >= SHORT ? 1 : f->beside;
    }
    const int64_t row = f->columns ? inner : (inner + f->width - 1) / f->width;
    f->across = least(f->team, power_of_2(2 * row - 1));
    while (f->across > 32 && (row + f->across - 1) / f->across * f->across * 10 > row * 11)
        f->across /= 2;
}

void fac_cl_fold_settle(const fac_opencl *o, fac_cl_fold *f, fac_dtype computing) {
    settle(&f->kept);
    settle(&f->reduced);
    f->lines = product(&f->kept);
    f->count = product(&f->reduced);
    f->unit = f->reduced.a[f->reduced.n - 1].in == 1;
    f->columns = !f->unit && f->kept.a[f->kept.n - 1].in == 1;
    f->parts = 1;
    if (o->limits.gpu) {
        share_wide(o, f);
    } else {
        f->team = f->across = 1;
        f->width = f->unit || f->columns ? fac_cl_width(o, computing) : 1;
        f->beside = f->count < SHORT ? LINES_BESIDE : 1;
    }
    const int64_t side = f->kept.a[f->kept.n - 1].d, inner = f->reduced.a[f->reduced.n - 1].d;
    f->units = f->lines;
    if (f->columns) f->units = f->lines / (side ? side : 1) * ((side + f->width - 1) / f->width);
    const int64_t groups = (f->units + f->beside - 1) / f->beside,
                  rows = inner ? f->count / inner : 0;
    const int64_t longest = f->columns ? inner : (inner + f->width - 1) / f->width;
    if (!o->limits.gpu && groups < FEW_UNITS && f->count * f->lines >= MANY) f->parts = CPU_PARTS;
    const int64_t units = (int64_t)o->limits.units, group = (int64_t)f->team * f->beside;
    const bool few = groups * MANY_PARTS <= MANY_ITEMS / group * units;
    int64_t items = few ? MANY_ITEMS : ITEMS;
    if (f->columns) items = SIDE_ITEMS;
    const int64_t wanted = items / group * units;
    if (o->limits.gpu && groups && groups < wanted) {
        const int64_t wish = wanted / groups,
                      most = f->count / ((int64_t)f->team * (f->columns ? 1 : f->width) * EACH);
        f->parts = wish < most ? wish : most;
        if (most < LEAST_PARTS) f->parts = 1;
    }
    const int64_t limit = rows > longest ? rows : longest;
    if (f->parts > limit) f->parts = limit;
    if (f->parts < 1) f->parts = 1;
}

int fac_cl_fold_held(const fac_opencl *o, fac_cl_fold *f, int few) {
    const int64_t access = f->columns ? 1 : f->width;
    const int largest = least((int)o->limits.group, LARGEST);
    int team = f->team;
    if (!o->limits.gpu) return 0;
    if (!f->columns) { /* a few elements each; more only when there are no more items */
        while (team * 4 <= largest && f->count > (int64_t)team * few) team *= 2;
        while (team * 2 <= largest && f->count > team * (int64_t)HELD / 2) team *= 2;
        if (team > f->team) f->beside = 1;
        f->team = f->across = team;
    }
    const int64_t held = (f->count + team * access - 1) / (team * access);
    if (held * f->width > (team > LARGEST / 2 ? HELD / 2 : HELD)) return 0;
    return held ? (int)held : 1;
}

void fac_cl_fold_held_options(fac_opencl *o, fac_cl_fold *f, int held, bool stores,
                              fac_text *options) {
    const int64_t access = f->columns ? 1 : f->width, group = (int64_t)f->team * f->beside,
                  units = (int64_t)o->limits.units;
    if (!held) return;
    fac_text_print(options, " -DHELD=%d%s", held,
                   held * f->team * access == f->count ? " -DFULL" : "");
    if (!stores || f->columns || !f->unit || group < LARGEST ||
        f->width * (int64_t)sizeof(float) != ACCESS)
        return;
    if (held * group * ACCESS > STORED || !fac_cl_has_path(o, FAC_CL_LOCAL_163) ||
        f->units < 2 * units)
        return;
    fac_text_add(options, " -DSTORED");
    f->groups = units;
}

void fac_cl_fold_options(const fac_cl_fold *f, fac_text *options) {
    fac_text_print(options, " -DV=%d%s -DG=%d -DC=%d -DKEPT=%d -DREDUCED=%d%s%s", f->width,
                   f->near > 1 ? " -DALIGNED" : "", f->team, f->beside, f->kept.n, f->reduced.n,
                   fac_text_if(f->columns, " -DCOLUMNS"), fac_text_if(f->unit, " -DUNIT"));
}

void fac_cl_fold_numbers(const fac_cl_fold *f, fac_cl_call *c) {
    for (int k = 0; k < f->kept.n; k++) fac_cl_call_number(c, f->kept.a[k].d);
    for (int k = 0; k < f->kept.n; k++) fac_cl_call_number(c, f->kept.a[k].in);
    for (int k = 0; k < f->kept.n; k++) fac_cl_call_number(c, f->kept.a[k].out);
    for (int k = 0; k < f->reduced.n; k++) fac_cl_call_number(c, f->reduced.a[k].d);
    for (int k = 0; k < f->reduced.n; k++) fac_cl_call_number(c, f->reduced.a[k].in);
}

void fac_cl_fold_items(const fac_cl_fold *f, fac_cl_call *c) {
    const size_t group = (size_t)f->team * (size_t)f->beside;
    const int64_t groups =
        f->groups ? f->groups : (f->units + f->beside - 1) / f->beside * f->parts;
    fac_cl_call_items(c, (size_t)groups * group, group);
}
