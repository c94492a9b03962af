/* Low-rank adapters: which layers have them, how they begin, and taking them into the weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "lm/lm.h"
#include "lm/lora.h"
#include "tensor/tensor_internal.h"

enum { USUAL_RANK = 8, MOST_RANK = 4096 };

static const char *const stems[] = { "blk.%d.attn_q",   "blk.%d.attn_k",      "blk.%d.attn_v",
                                     "blk.%d.attn_qkv", "blk.%d.attn_output", "blk.%d.ffn_gate",
                                     "blk.%d.ffn_up",   "blk.%d.ffn_down" };
enum { STEMS = sizeof stems / sizeof *stems };

const char *fac_lora_stem(int i) { return i >= 0 && i < STEMS ? stems[i] : NULL; }

/* ---- what is asked for ---- */

static bool number(const char *part, const char *key, double *to, bool *good) {
    char *end;
    const size_t n = strlen(key);
    if (strncmp(part, key, n) || part[n] != '=') return false;
    *to = strtod(part + n + 1, &end);
    *good = end > part + n + 1 && !*end;
    return true;
}

static bool add_target(fac_lora *o, const char *name) {
    const size_t have = strlen(o->targets), n = strlen(name);
    if (have + n + 2 > sizeof o->targets) return false;
    snprintf(o->targets + have, sizeof o->targets - have, "%s%s", have ? "," : "", name);
    return true;
}

/* One of "r=8", "q_proj". */
static bool take(fac_lora *o, const char *part) {
    double rank = 0;
    bool good = true;
    if (number(part, "r", &rank, &good)) {
        o->rank = good && rank >= 1 && rank <= MOST_RANK ? (int64_t)rank : 0;
        return o->rank && (double)o->rank == rank;
    }
    if (number(part, "alpha", &o->alpha, &good)) return good && o->alpha > 0 && isfinite(o->alpha);
    if (number(part, "dropout", &o->dropout, &good))
        return good && o->dropout >= 0 && o->dropout < 1;
    return *part && !strchr(part, '=') && add_target(o, part);
}

fac_status fac_lora_parse(const char *text, fac_lora *out, fac_error *err) {
    fac_lora o = { .seed = out->seed };
    char part[64];
    for (const char *s = text; *s;) {
        const size_t n = strcspn(s, ",");
        snprintf(part, sizeof part, "%.*s", (int)(n < sizeof part ? n : sizeof part - 1), s);
        if (n >= sizeof part || !take(&o, part))
            return fac_raise(err, FAC_E_ARGUMENT,
                             "adapters \"%.100s\": \"%.40s\" is none of r=1 to %d, alpha=X, "
                             "dropout=X within [0, 1), and names of layers",
                             text, part, MOST_RANK);
        s += n;
        s += *s == ',';
    }
    *out = o;
    return FAC_OK;
}

/* ---- which layers ---- */

static bool names(const fac_lm *m, const char *stem, const char *target, size_t n) {
    char canonical[64], theirs[256];
    const char *ours = strrchr(stem, '.') + 1;
    if (strlen(ours) == n && !memcmp(ours, target, n)) return true;
    snprintf(canonical, sizeof canonical, "%s.weight", stem);
    const char *name = fac_lm_name_hf(m, canonical, 0, theirs);
    const size_t all = name ? strlen(name) - strlen(".weight") : 0;
    return all > n && name[all - n - 1] == '.' && !memcmp(name + all - n, target, n);
}

static bool is_usual(const char *stem) {
    return strstr(stem, "attn_q") || strstr(stem, "attn_v"); /* attn_qkv, too */
}

/* Is the layer one of the targets?  used: which of them were met. */
static bool wanted(const fac_lm *m, const fac_lora *o, const char *stem, uint64_t *used) {
    bool found = false;
    int k = 0;
    if (!*o->targets) return is_usual(stem);
    for (const char *s = o->targets; *s; k++) {
        const size_t n = strcspn(s, ",");
        if ((n == 10 && !memcmp(s, "all-linear", 10)) || names(m, stem, s, n)) {
            found = true;
            *used |= (uint64_t)1 << (k & 63);
        }
        s += n;
        s += *s == ',';
    }
    return found;
}

static fac_status all_met(const fac_lora *o, uint64_t used, fac_error *err) {
    int k = 0;
    for (const char *s = o->targets; *s; k++) {
        const size_t n = strcspn(s, ",");
        if (!(used >> (k & 63) & 1))
            return fac_raise(err, FAC_E_ARGUMENT,
                             "the model has no linear layer \"%.*s\" for an adapter", (int)n, s);
        s += n;
        s += *s == ',';
    }
    return FAC_OK;
}

/* ---- fresh ones ---- */

fac_status fac_lora_put(fac_lm *m, const char *stem, int64_t layer, const char *which,
                        fac_tensor *t, fac_error *err) {
    char name[128], full[256];
    snprintf(name, sizeof name, "%s.%s", stem, which);
    fac_lm_name_gguf(m, name, layer, full);
    FAC_TRY(fac_lm_keep(m, full, t, err));
    char *copy = fac_arena_text(&m->arena, full);
    if (copy && fac_table_put(&m->adapters, copy, t)) return FAC_OK;
    return fac_raise_memory(err, "an adapter");
}

fac_tensor *fac_lora_get(const fac_lm *m, const char *stem, int64_t layer, const char *which) {
    char name[128], full[256];
    snprintf(name, sizeof name, "%s.%s", stem, which);
    return fac_table_get(&m->adapters, fac_lm_name_gguf(m, name, layer, full));
}

/* torch's linear layers begin uniform within 1 / sqrt(in). */
static fac_status add(fac_lm *m, const fac_lora *o, const char *stem, int64_t layer,
                      const fac_dims *d, fac_error *err) {
    char full[256];
    fac_tensor *a, *b;
    fac_lm_name_gguf(m, stem, layer, full);
    const uint64_t stream = fac_hash_text(fac_hash_start(0), full).a;
    const float bound = (float)(1 / sqrt((double)d->d[1]));
    FAC_TRY(fac_tensor_new(NULL, FAC_F32, fac_shape(o->rank, d->d[1]), &a, err));
    fac_random_fill(o->seed, stream, -bound, bound, (size_t)(o->rank * d->d[1]),
                    fac_tensor_storage(a)->host);
    FAC_TRY(fac_lora_put(m, stem, layer, "lora_a", a, err));
    FAC_TRY(fac_tensor_new(NULL, FAC_F32, fac_shape(d->d[0], o->rank), &b, err));
    return fac_lora_put(m, stem, layer, "lora_b", b, err);
}

fac_status fac_lora_matrix(fac_lm *m, const char *stem, int64_t layer, fac_tensor **out,
                           fac_error *err) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", stem);
    return fac_lm_weight(m, name, layer, false, out, err);
}

static fac_status add_all(fac_lm *m, const fac_lora *o, fac_error *err) {
    uint64_t used = 0;
    int64_t n = 0;
    for (int k = 0; k < STEMS; k++) {
        for (int64_t layer = 0; layer < m->c.layers; layer++) {
            fac_tensor *w;
            FAC_TRY(fac_lora_matrix(m, stems[k], layer, &w, err));
            if (!w || !wanted(m, o, stems[k], &used)) continue;
            const fac_dims d = fac_tensor_type(w).dims;
            FAC_TRY(add(m, o, stems[k], layer, &d, err));
            n++;
        }
    }
    if (!n && !*o->targets)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s has no layers that usually get adapters",
                         m->c.family);
    return all_met(o, used, err);
}

fac_status fac_lm_lora_new(fac_lm *m, const fac_lora *how, fac_error *err) {
    fac_lora o = *how;
    if (m->lora.rank) return fac_raise(err, FAC_E_ARGUMENT, "the model has adapters already");
    if (!o.rank) o.rank = USUAL_RANK;
    if (o.alpha == 0) o.alpha = 2 * (double)o.rank;
    if (o.rank < 1 || o.rank > MOST_RANK || !(o.alpha > 0) || !(o.dropout >= 0 && o.dropout < 1))
        return fac_raise(err, FAC_E_ARGUMENT, "adapters of rank %lld, alpha %g, dropout %g",
                         (long long)o.rank, o.alpha, o.dropout);
    FAC_TRY(add_all(m, &o, err));
    m->lora = o;
    m->seed = o.seed;
    return FAC_OK;
}

/* ---- into the weights ---- */

/* w + scale b a, a [rank, in], b [out, rank]. */
static void take_in(float *w, const float *a, const float *b, const fac_dims *d, int64_t rank,
                    double scale) {
    for (int64_t i = 0; i < d->d[0]; i++)
        for (int64_t r = 0; r < rank; r++) {
            const float x = (float)(scale * (double)b[i * rank + r]);
            for (int64_t k = 0; k < d->d[1]; k++) w[i * d->d[1] + k] += x * a[r * d->d[1] + k];
        }
}

static fac_status merge(fac_lm *m, const char *stem, int64_t layer, fac_error *err) {
    char name[64], full[256];
    fac_tensor *w, *floats, *copy;
    const fac_tensor *a = fac_lora_get(m, stem, layer, "lora_a"),
                     *b = fac_lora_get(m, stem, layer, "lora_b");
    if (!a || !b) return FAC_OK;
    FAC_TRY(fac_lora_matrix(m, stem, layer, &w, err));
    FAC_TRY(fac_tensor_convert(w, FAC_F32, &floats, err));
    const fac_status status = fac_tensor_copy_contiguous(floats, &copy, err);
    fac_tensor_free(floats);
    if (status) return status;
    const fac_dims d = fac_tensor_type(copy).dims;
    take_in(fac_tensor_storage(copy)->host, fac_tensor_data(a), fac_tensor_data(b), &d,
            m->lora.rank, m->lora.alpha / (double)m->lora.rank);
    snprintf(name, sizeof name, "%s.weight", stem);
    return fac_lm_keep(m, fac_lm_name_gguf(m, name, layer, full), copy, err);
}

fac_status fac_lm_lora_merge(fac_lm *m, fac_error *err) {
    if (!m->lora.rank) return fac_raise(err, FAC_E_ARGUMENT, "the model has no adapters");
    for (int k = 0; k < STEMS; k++)
        for (int64_t layer = 0; layer < m->c.layers; layer++)
            FAC_TRY(merge(m, stems[k], layer, err));
    m->lora = (fac_lora){ 0 };
    return FAC_OK;
}
