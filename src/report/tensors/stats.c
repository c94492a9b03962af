/* Tallies: statistics of tensors that are seen once and not kept.  See facula/report/activations.h.
 *
 * Numbers are taken in blocks that stay in the cache.  Mean and squares are those of the block,
 * joined with what was there by the formula of Chan, Golub and LeVeque (1979), so nothing cancels
 * however far the mean is from zero. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/tensors/stats.h"
#include "tensor/tensor_internal.h"

enum { BLOCK = 512, CHANNELS = 65536 };

fac_status fac_tally_new(fac_tally **out, fac_error *err) {
    fac_tally *t = fac_alloc(1, sizeof *t);
    if (!t) return fac_raise_memory(err, "statistics");
    *out = t;
    return FAC_OK;
}

static void drop_channels(fac_tally *t) {
    fac_release(t->channel);
    fac_release(t->of);
    t->channel = NULL;
    t->of = NULL;
    t->s.channels = 0;
}

void fac_tally_free(fac_tally *t) {
    if (!t) return;
    fac_sketch_clear(&t->sketch);
    drop_channels(t);
    fac_release(t);
}

/* ---- taking in ---- */

static double smallest_normal(fac_dtype d) {
    return d == FAC_F16                    ? 0x1p-14
           : d == FAC_F32 || d == FAC_BF16 ? 0x1p-126
           : d == FAC_F64                  ? 0x1p-1022
                                           : 0;
}

/* The finite ones to the front; how many. */
static int sift(fac_tally *t, double *x, int n) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        if (isfinite(x[i]))
            x[m++] = x[i];
        else if (isnan(x[i]))
            t->s.nan++;
        else
            t->s.infinite++;
    }
    return m;
}

static bool take_block(fac_tally *t, double *x, int n, double normal) {
    double sum = 0, magnitude = 0, squares = 0, lo = INFINITY, hi = -INFINITY;
    bool room = true;
    t->s.count += n;
    n = sift(t, x, n);
    if (!n) return true;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        magnitude += fabs(x[i]);
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
        t->s.zeros += x[i] == 0;
        t->s.negative += x[i] < 0;
        t->s.denormals += x[i] != 0 && fabs(x[i]) < normal;
        room = room && fac_sketch_add(&t->sketch, x[i]);
    }
    const double mean = sum / n, off = mean - t->s.mean, all = (double)t->finite + n;
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    t->squares += squares + off * off * (double)t->finite * n / all;
    t->s.mean += off * n / all;
    t->magnitude += magnitude;
    if (!t->finite || lo < t->s.min) t->s.min = lo;
    if (!t->finite || hi > t->s.max) t->s.max = hi;
    t->finite += n;
    return room;
}

/* Numbers `at`.. of a tensor whose channels change every `inner` of them. */
static void take_channels(fac_tally *t, const double *x, int n, int64_t at, int64_t inner) {
    int64_t c = at / inner % t->s.channels, left = inner - at % inner;
    for (int i = 0; i < n; i++) {
        fac_channel *to = &t->channel[c];
        if (isfinite(x[i])) {
            if (!t->of[c] || x[i] < to->min) to->min = x[i];
            if (!t->of[c] || x[i] > to->max) to->max = x[i];
            to->mean += x[i];
            to->zeros += x[i] == 0;
            t->of[c]++;
        }
        if (--left) continue;
        left = inner;
        if (++c == t->s.channels) c = 0;
    }
}

/* As many channels as in the tensors before, or none from now on. */
static fac_status settle_channels(fac_tally *t, const fac_dims *d, int axis, fac_error *err) {
    const int64_t n = axis >= 0 && axis < d->n ? d->d[axis] : 0;
    if (t->tensors && n == t->s.channels) return FAC_OK;
    if (t->tensors || n < 1 || n > CHANNELS) {
        drop_channels(t);
        return FAC_OK;
    }
    t->channel = fac_alloc((size_t)n, sizeof *t->channel);
    t->of = fac_alloc((size_t)n, sizeof *t->of);
    if (!t->channel || !t->of)
        return fac_raise_memory(err, "statistics of %lld channels", (long long)n);
    t->s.channels = n;
    return FAC_OK;
}

static fac_status take(fac_tally *t, fac_dtype dtype, const char *from, const fac_dims *d, int axis,
                       fac_error *err) {
    const size_t size = (size_t)fac_dtype_get(dtype)->block_bytes;
    const double normal = smallest_normal(dtype);
    const int64_t n = fac_dims_count(d);
    double x[BLOCK];
    int64_t inner = 1;
    for (int k = axis + 1; axis >= 0 && k < d->n; k++) inner *= d->d[k];
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int now = n - at < BLOCK ? (int)(n - at) : BLOCK;
        fac_convert(FAC_F64, x, dtype, from + (size_t)at * size, (size_t)now);
        if (t->s.channels) take_channels(t, x, now, at, inner);
        if (!take_block(t, x, now, normal)) return fac_raise_memory(err, "statistics");
    }
    return FAC_OK;
}

fac_status fac_tally_add(fac_tally *t, const fac_tensor *x, int axis, fac_error *err) {
    const fac_type type = fac_tensor_type(x);
    fac_tensor *plain = NULL;
    fac_status status;
    if (type.dtype == FAC_TEXT)
        return fac_raise(err, FAC_E_UNSUPPORTED, "texts have no statistics");
    FAC_TRY(settle_channels(t, &type.dims, axis, err));
    t->tensors++;
    const bool packed = fac_dtype_get(type.dtype)->block_elements > 1;
    if (!packed && fac_tensor_contiguous(x) && fac_tensor_data(x))
        return take(t, type.dtype, fac_tensor_data(x), &type.dims, axis, err);
    FAC_TRY(packed ? fac_tensor_convert(x, FAC_U8, &plain, err)
                   : fac_tensor_copy_contiguous(x, &plain, err));
    status = take(t, packed ? FAC_U8 : type.dtype, fac_tensor_data(plain), &type.dims, axis, err);
    fac_tensor_free(plain);
    return status;
}

/* ---- asking ---- */

fac_stats fac_tally_stats(const fac_tally *t) {
    fac_stats s = t->s;
    s.abs_mean = t->finite ? t->magnitude / (double)t->finite : 0;
    s.std = t->finite ? sqrt(t->squares / (double)t->finite) : 0;
    for (int64_t c = 0; c < s.channels; c++)
        s.dead += s.count && t->channel[c].zeros == s.count / s.channels;
    return s;
}

bool fac_tally_channel(const fac_tally *t, int64_t c, fac_channel *out) {
    if (c < 0 || c >= t->s.channels) return false;
    *out = t->channel[c];
    if (t->of[c]) out->mean /= (double)t->of[c];
    return true;
}
