/* Solver "stft/fft": short-time spectra by fast transforms, a group of work items for a few frames,
 * whose transforms go from one buffer to the other in local memory; frames too long for it in
 * memory of their own.  Lengths with other prime factors than 2, 3 and 5 are left to the product
 * that the op expands to.
 *
 * Floor: the bytes of the signal and the spectrum; 2.5 N log2 N operations a frame of N samples,
 * where the product has 2 N^2.  Error against f64: some 2^-24 sqrt(log2 N) of the largest bin. */
#include <math.h>
#include "backends/opencl/device/calls.h"
#include "backends/gpu/speed.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/spectrum.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "cl_stft_fft.h"
#include "op_list.h"

enum { GROUP = 256, LONG_GROUP = 1024, LANES = 8, RADIX = 8, BUSY = 2 };
static const size_t most_local = 48 << 10, most_work = 256 << 20;

typedef struct shape {
    fac_stft_sizes sizes;
    int64_t elements; /* of a transform */
    int stages, radix[FAC_FFT_RADICES];
    bool half, in_local;          /* frames of even length; buffers in local memory */
    int width, lanes, items;      /* V, LANES, ITEMS */
    int64_t groups, units, teams; /* frames together of a signal, of all; work groups */
    size_t bytes;                 /* of a work group's buffers */
} shape;

static fac_dtype computing(const fac_problem *p) {
    return p->in[FAC_STFT_X].type.dtype == FAC_F64 ? FAC_F64 : FAC_F32;
}

static void set_lanes(shape *s, size_t size, int lanes) {
    const int together = lanes * s->width, row = lanes > 1 ? lanes + 1 : 1;
    s->lanes = lanes;
    s->groups = (s->sizes.frames + together - 1) / together;
    s->units = s->sizes.batch * s->groups;
    s->bytes = 4 * (size_t)(s->elements * row * s->width) * size;
}

static int power_below(int64_t n, int most) {
    int power = 1;
    while (2 * power <= n && 2 * power <= most) power *= 2;
    return power;
}

/* A vector of frames on CPUs; frames side by side on GPUs, as many as local memory holds and leave
 * no unit idle. */
static void cut(const fac_opencl *o, size_t size, shape *s) {
    const bool gpu = o->limits.gpu;
    const size_t local = gpu && o->limits.local > most_local ? most_local : o->limits.local;
    s->width = 1;
    if (!gpu)
        s->width = power_below(s->sizes.frames, fac_cl_width(o, size == 8 ? FAC_F64 : FAC_F32));
    set_lanes(s, size, gpu ? LANES : 1);
    while (s->lanes > 1 && (s->bytes > local || s->units < o->limits.units))
        set_lanes(s, size, s->lanes / 2);
    s->in_local = s->bytes <= local;
    s->teams = s->units;
    if (!s->in_local) {
        const int64_t room = (int64_t)(most_work / s->bytes),
                      busy = BUSY * (int64_t)o->limits.units;
        if (s->teams > busy) s->teams = busy;
        if (s->teams > room) s->teams = room > 0 ? room : 1;
    }
    const int most = s->in_local ? GROUP : LONG_GROUP;
    const int group = (size_t)most < o->limits.group ? most : (int)o->limits.group;
    s->items = gpu ? power_below((s->elements + RADIX - 1) / RADIX, group / s->lanes) : 1;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    shape s = { .width = 1 };
    if (!fac_cl_settle_plain(o, p) || !fac_stft_sizes_of(p, &s.sizes)) return false;
    s.half = !s.sizes.complex && s.sizes.length % 2 == 0;
    s.elements = s.half ? s.sizes.length / 2 : s.sizes.length;
    s.stages = fac_fft_radices(s.elements, RADIX, 5, s.radix);
    if (s.stages < 0) return false;
    cut(o, computing(p) == FAC_F64 ? sizeof(double) : sizeof(float), &s);
    const double n = (double)s.sizes.length, frames = (double)(s.units * s.lanes * s.width);
    offer->seconds = fac_cl_price(o, p, 1) +
                     frames * n * (2.5 * log2(n + 1) + 10) / (0.1 * fac_gpu_flops(&o->limits));
    offer->work = s.in_local ? 0 : s.bytes * (size_t)s.teams;
    *FAC_DRAFT(offer, shape) = s;
    return true;
}

/* ---- making ---- */

/* What stands in front of the kernel's text; of a single element there is one stage that does
 * nothing. */
static void add_stages(const shape *s, fac_text *to) {
    int64_t n = s->elements, step = 1;
    fac_text_add(to, "#define STAGES");
    if (!s->stages) fac_text_add(to, " STAGE(1, 1, 1)");
    for (int k = 0; k < s->stages; k++) {
        n /= s->radix[k];
        fac_text_print(to, " STAGE(%d, %lld, %lld)", s->radix[k], (long long)n, (long long)step);
        step *= s->radix[k];
    }
    fac_text_add(to, "\n");
    fac_text_add(to, fac_kernel_stft_fft);
}

static void add_options(const fac_problem *p, const shape *s, fac_text *to) {
    const fac_dtype x = p->in[FAC_STFT_X].type.dtype, w = p->in[FAC_STFT_WINDOW].type.dtype;
    fac_text_print(to, "-DV=%d -DT=%s -DX=%s -DW=%s -DELEMENTS=%lld -DLANES=%d -DITEMS=%d",
                   s->width, fac_cl_computing(computing(p)), fac_cl_tag(x),
                   fac_cl_tag(s->sizes.windowed ? w : x), (long long)s->elements, s->lanes,
                   s->items);
    fac_text_add(to, s->in_local ? " -DSPACE=local -DIN_LOCAL" : " -DSPACE=global");
    fac_text_add(to, s->sizes.complex ? " -DPARTS=2 -DPAIRS" : " -DPARTS=1");
    if (s->sizes.windowed) fac_text_add(to, " -DWINDOW");
    if (s->half) fac_text_add(to, " -DHALF");
    if (s->bytes * (size_t)s->teams > INT32_MAX)
        fac_text_add(to, " -DWIDE");
    else
        fac_cl_option_wide(p, to);
}

static fac_status add_table(fac_opencl *o, const fac_problem *p, const shape *s, fac_cl_plan *plan,
                            fac_error *err) {
    size_t bytes = 0;
    void *table = fac_fft_table(s->elements, s->stages, s->radix, computing(p), &bytes);
    if (!table) return fac_raise(err, FAC_E_NOMEM, "stft/fft: no memory for its tables");
    const fac_status status = fac_cl_plan_table(o, plan, table, bytes, err);
    fac_release(table);
    return status;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const shape s = *(const shape *)p->draft;
    const fac_stft_sizes *z = &s.sizes;
    const size_t size = computing(p) == FAC_F64 ? sizeof(double) : sizeof(float);
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    if (!s.units) return FAC_OK;
    FAC_TRY(add_table(o, p, &s, plan, err));
    add_options(p, &s, &options);
    add_stages(&s, &source);
    options.failed |= source.failed;
    const fac_status status =
        fac_cl_call_new(o, plan, source.failed ? "" : source.s, &options, "stft", &c, err);
    fac_text_free(&source);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, FAC_STFT_X);
    fac_cl_call_in(c, p, z->windowed ? FAC_STFT_WINDOW : FAC_STFT_X);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_table(c, size);
    if (s.in_local)
        fac_cl_call_table(c, size);
    else
        fac_cl_call_work(c, 0, size);
    const int64_t from = (z->length - z->wide) / 2,
                  numbers[] = { s.units, s.groups, z->samples, z->frames,
                                z->step, from,     z->wide,    z->bins };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_cl_call_items(c, (size_t)(s.teams * s.lanes * s.items), (size_t)(s.lanes * s.items));
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_stft = { .name = "stft/fft",
                                 .op = &fac_op_stft,
                                 .rank = 195,
                                 .offer = offer,
                                 .make = make,
                                 .done = fac_cl_plan_done,
                                 .run = fac_cl_plan_run };
