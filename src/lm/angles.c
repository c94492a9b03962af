/* How far pairs of a head are rotated at each position.
 *
 *   f_k = base^(-2 k / rotary);  angle = position f_k / divisor_k
 *
 * The divisors are a tensor, as GGUF files have it: rope_freqs (Llama 3 slows down the long waves),
 * or rope_factors_short and _long, of which the context decides (longrope of Phi-3, Ding et al.
 * 2024, https://arxiv.org/abs/2402.13753); then cosines and sines are stretched, too.  From
 * config.json such tensors are made when a model is loaded. */
#include <math.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/build.h"
#include "tensor/tensor_internal.h"

static const double pi = 3.14159265358979323846;

static double plain(const fac_lm_config *c, double base, int64_t k) {
    return pow(base, -2 * (double)k / (double)c->rotary);
}

/* ---- tables ---- */

/* cos or sin of all positions, angles in f64. */
static fac_value *table(fac_lm_building *b, double base, double factor, bool sine, int64_t rows,
                        const float *divide) {
    const int64_t half = b->c->rotary / 2;
    const double stretch = b->c->stretch > 0 ? b->c->stretch : 1;
    fac_tensor *t;
    float *x = fac_alloc((size_t)(rows * half), sizeof *x);
    if (!x) b->status = fac_raise_memory(b->err, "the angles of %lld positions", (long long)rows);
    if (!x) return NULL;
    for (int64_t k = 0; k < half; k++) {
        const double f = plain(b->c, base, k) / factor / (divide ? (double)divide[k] : 1);
        for (int64_t p = 0; p < rows; p++) {
            const double angle = (double)p * f;
            x[p * half + k] = (float)(stretch * (sine ? sin(angle) : cos(angle)));
        }
    }
    b->status =
        fac_tensor_borrow(FAC_F32, fac_shape(rows, half), NULL, x, fac_release, x, &t, b->err);
    if (b->status) {
        fac_release(x);
        return NULL;
    }
    fac_value *v = fac_const(b->g, t);
    fac_tensor_free(t);
    return v;
}

/* Others would make every logit NaN. */
static fac_status check_divisors(const char *name, const float *x, int64_t n, fac_error *err) {
    for (int64_t k = 0; k < n; k++)
        if (!(x[k] > 0) || !isfinite(x[k]))
            return fac_raise(err, FAC_E_FORMAT,
                             "%s: number %lld is %g: positive numbers are expected", name,
                             (long long)k, (double)x[k]);
    return FAC_OK;
}

/* NULL: none, or an error. */
static const float *divisors(fac_lm_building *b) {
    fac_tensor *t = NULL;
    const char *name = "rope_freqs.weight";
    if (b->c->before > 0)
        name =
            b->m->context > b->c->before ? "rope_factors_long.weight" : "rope_factors_short.weight";
    b->status = fac_lm_weight(b->m, name, 0, true, &t, b->err);
    if (b->status || !t) return NULL;
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    if (n == b->c->rotary / 2)
        b->status = check_divisors(name, fac_tensor_data(t), n, b->err);
    else
        b->status = fac_raise(b->err, FAC_E_FORMAT, "%s: %lld numbers, expected %lld", name,
                              (long long)n, (long long)b->c->rotary / 2);
    return b->status ? NULL : fac_tensor_data(t);
}

void fac_lm_angles(fac_lm_building *b, int64_t rows) {
    const fac_lm_config *c = b->c;
    if (c->is & FAC_LM_LEARNED) return;
    const float *divide = divisors(b);
    const bool two = !strcmp(c->family, "gemma3");
    for (int k = 0; k < 1 + two && !b->status; k++) {
        const double base = k ? c->local_base : c->base;
        const double factor = k ? 1 : c->factor;
        b->cos[k] = table(b, base, factor, false, rows, divide);
        if (!b->status) b->sin[k] = table(b, base, factor, true, rows, divide);
    }
}

/* ---- from config.json ---- */

/* Llama 3: waves longer than the old context / low are divided by the factor, those shorter than
 * context / high stay, those between are blended. */
static double slowed(const fac_lm_config *c, double factor, int64_t k) {
    const double f = plain(c, c->base, k), wave = 2 * pi / f;
    if (wave > c->original / c->low) return factor;
    if (wave < c->original / c->high) return 1;
    const double s = (c->original / wave - c->low) / (c->high - c->low);
    return 1 / ((1 - s) / factor + s);
}

static fac_status keep(fac_lm *m, const char *name, fac_tensor **out, fac_error *err) {
    FAC_TRY(fac_tensor_new(NULL, FAC_F32, fac_shape(m->c.rotary / 2), out, err));
    return fac_lm_keep(m, name, *out, err);
}

static fac_status keep_slowed(fac_lm *m, fac_error *err) {
    fac_tensor *t;
    const double factor = m->c.factor;
    FAC_TRY(keep(m, "rope_freqs.weight", &t, err));
    float *x = fac_tensor_storage(t)->host;
    for (int64_t k = 0; k < m->c.rotary / 2; k++) x[k] = (float)slowed(&m->c, factor, k);
    m->c.factor = 1;
    return FAC_OK;
}

static fac_status keep_list(fac_lm *m, const cJSON *list, const char *theirs, const char *ours,
                            fac_error *err) {
    fac_tensor *t;
    const int64_t half = m->c.rotary / 2;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != half)
        return fac_raise(err, FAC_E_FORMAT, "config.json: %s: a list of %lld numbers is expected",
                         theirs, (long long)half);
    FAC_TRY(keep(m, ours, &t, err));
    float *x = fac_tensor_storage(t)->host;
    const cJSON *j;
    cJSON_ArrayForEach(j, list) {
        *x = cJSON_IsNumber(j) ? (float)j->valuedouble : 0;
        if (!(*x > 0) || !isfinite(*x))
            return fac_raise(err, FAC_E_FORMAT, "config.json: %s: positive numbers are expected",
                             theirs);
        x++;
    }
    return FAC_OK;
}

static fac_status keep_lists(fac_lm *m, const cJSON *root, fac_error *err) {
    const cJSON *s = cJSON_GetObjectItemCaseSensitive(root, "rope_scaling");
    if (!cJSON_IsObject(s)) s = cJSON_GetObjectItemCaseSensitive(root, "rope_parameters");
    FAC_TRY(keep_list(m, cJSON_GetObjectItemCaseSensitive(s, "short_factor"), "short_factor",
                      "rope_factors_short.weight", err));
    return keep_list(m, cJSON_GetObjectItemCaseSensitive(s, "long_factor"), "long_factor",
                     "rope_factors_long.weight", err);
}

fac_status fac_lm_keep_angles(fac_lm *m, fac_error *err) {
    if (m->c.original > 0) return keep_slowed(m, err);
    if (!(m->c.before > 0)) return FAC_OK;
    cJSON *root = cJSON_Parse(m->settings);
    const fac_status status =
        root ? keep_lists(m, root, err) : fac_raise_memory(err, "a language model");
    cJSON_Delete(root);
    return status;
}
