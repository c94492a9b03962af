/* What the keys of a GGUF file say: see gguf.h. */
#include <string.h>
#include "base/error.h"
#include "tensor/gguf.h"

size_t fac_gguf_bytes(uint32_t type) {
    static const unsigned char bytes[FAC_GGUF_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return bytes[type];
}

const fac_gguf_key *fac_gguf_find(const fac_gguf *g, const char *name) {
    return fac_table_get(&g->by_name, name);
}

/* The lowest n bytes, as an unsigned number. */
static uint64_t bits_at(const unsigned char *p, size_t n) {
    uint64_t x = 0;
    memcpy(&x, p, n);
    return x;
}

static int64_t integer_at(uint32_t type, const unsigned char *p) {
    const uint64_t x = bits_at(p, fac_gguf_bytes(type));
    switch (type) {
    case FAC_GGUF_I8:
        return (int8_t)x;
    case FAC_GGUF_I16:
        return (int16_t)x;
    case FAC_GGUF_I32:
        return (int32_t)x;
    default:
        return (int64_t)x;
    }
}

static double real_at(uint32_t type, const unsigned char *p) {
    float f;
    double d;
    if (type == FAC_GGUF_F32) return (double)*(float *)memcpy(&f, p, sizeof f);
    if (type == FAC_GGUF_F64) return *(double *)memcpy(&d, p, sizeof d);
    if (type == FAC_GGUF_U64) return (double)bits_at(p, 8);
    return (double)integer_at(type, p);
}

static bool is_real(const fac_gguf_key *k) {
    return k->type == FAC_GGUF_F32 || k->type == FAC_GGUF_F64;
}

/* NULL: there is none, or it is of another kind, which is remembered. */
static const fac_gguf_key *key_of(fac_gguf *g, const char *name, bool text, bool real) {
    const fac_gguf_key *k = fac_gguf_find(g, name);
    if (!k || (!k->array && (k->type == FAC_GGUF_TEXT) == text && (real || !is_real(k)))) return k;
    if (!g->wrong) g->wrong = k;
    return NULL;
}

int64_t fac_gguf_int(fac_gguf *g, const char *name, int64_t missing) {
    const fac_gguf_key *k = key_of(g, name, false, false);
    return k ? integer_at(k->type, k->at) : missing;
}

double fac_gguf_real(fac_gguf *g, const char *name, double missing) {
    const fac_gguf_key *k = key_of(g, name, false, true);
    return k ? real_at(k->type, k->at) : missing;
}

static const char *kind_of(const fac_gguf_key *k) {
    if (k->array) return "a list";
    if (k->type == FAC_GGUF_TEXT) return "a text";
    return is_real(k) ? "a number with a fraction" : "a whole number";
}

fac_status fac_gguf_right(const fac_gguf *g, fac_error *err) {
    if (!g->wrong) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "%.100s: %s, where something else is expected",
                     g->wrong->name, kind_of(g->wrong));
}

double fac_gguf_number(const fac_gguf_key *k, uint64_t i) {
    return real_at(k->type, k->at + i * fac_gguf_bytes(k->type));
}

const char *fac_gguf_next_text(const unsigned char **p, size_t *bytes) {
    uint64_t n;
    memcpy(&n, *p, 8);
    const char *text = (const char *)*p + 8;
    *p += 8 + n;
    *bytes = (size_t)n;
    return text;
}

const char *fac_gguf_text(fac_gguf *g, const char *name, size_t *bytes) {
    const fac_gguf_key *k = key_of(g, name, true, false);
    size_t n;
    if (!k) return NULL;
    const unsigned char *p = k->at;
    const char *text = fac_gguf_next_text(&p, &n);
    char *copy = fac_arena_alloc(&g->arena, n + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    if (bytes) *bytes = n;
    return copy;
}
