/* The end of a tile: numbers and codes of counts.  See bits.c, which includes this. */

INLINE vec as_float(ivec v) { return __builtin_convertvector(v, vec); }

INLINE ivec load_counts(const int32_t *p) {
    ivec v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* What a pixel is made of, read once: to the compiler, bits that are written might change it. */
typedef struct counted {
    const int32_t *acc[FAC_BIT_PLANES], *sums;
    const float *halves;
    int64_t pixel, plane;
} counted;

INLINE counted counted_of(const fac_bit_finish *t, const int of_weights) {
    counted c = { .sums = t->sums, .halves = t->halves, .pixel = t->pixel, .plane = t->plane };
    UNROLL
    for (int m = 0; m < of_weights; m++) c.acc[m] = t->acc[m];
    return c;
}

/* The count of plane m of weights with plane j of pixel p. */
INLINE ivec count_of(const counted *c, int m, int j, int p) {
    return load_counts(c->acc[m] + j * c->plane + p * c->pixel);
}

/* Half the product of plane m of weights with plane j of pixel p, pixels of 0 and 1: exact. */
INLINE vec half_product(const counted *c, int m, int j, int p) {
    return as_float(count_of(c, m, j, p)) - c->halves[j * FAC_BIT_RUN + p];
}

/* The product of both.  inside: those of pixel p, NULL for pixels of 0 and 1. */
INLINE ivec product_of(const counted *c, int m, int j, int p, const int32_t *inside) {
    ivec d = count_of(c, m, j, p);
    d = d + d - c->sums[j * FAC_BIT_RUN + p];
    return inside ? d + d - load_counts(inside) : d;
}

/* The bits of a pixel in one plane: a vector is two bytes, one, or half of one. */
INLINE void put_bits(uint8_t *to, int shift, unsigned bits, unsigned valid) {
#if VL == 16
    const uint16_t both = (uint16_t)(bits & valid);
    (void)shift;
    memcpy(to, &both, sizeof both);
#elif VL == 8
    (void)shift;
    *to = (uint8_t)(bits & valid);
#else
    *to = (uint8_t)((*to & ~(LANES << shift)) | (bits & valid) << shift);
#endif
}

static unsigned valid_of(const fac_bit_finish *t) {
    return t->channels < VL ? (1u << t->channels) - 1 : LANES;
}

/* As vector_bits has them. */
INLINE int planes_of(const fac_bit_levels *l, const int kind) {
    if (kind == ANY) return l->planes;
    return kind == TWO ? 2 : 1;
}

enum { NONE = -1 }; /* a kind: no codes */

/* What vector_bits reads of levels, so that it stays in registers. */
INLINE fac_bit_levels levels_of(const fac_bit_levels *l, const int kind) {
    if (kind == NONE || kind == SIGNS) return (fac_bit_levels){ .sign = kind == SIGNS };
    if (kind == ANY) return *l;
    fac_bit_levels few = { .planes = planes_of(l, kind) };
    few.threshold[0] = l->threshold[0];
    if (kind != TWO) return few;
    few.threshold[1] = l->threshold[1];
    few.threshold[2] = l->threshold[2];
    return few;
}

INLINE void finish_as(const fac_bit_finish *t, const int of_weights, const int planes,
                      const bool inside, const int kind) {
    vec f[FAC_BIT_PLANES] = { 0 }, u[FAC_BIT_PLANES] = { 0 };
    const vec b = load(t->b);
    const unsigned valid = valid_of(t);
    const fac_bit_levels l = levels_of(t->codes, kind);
    const counted c = counted_of(t, of_weights);
    const bool relu = t->relu, q_relu = kind != NONE && needs_relu(t->codes);
    const int of_codes = kind == NONE ? 0 : planes_of(&l, kind), n = t->n, shift = t->q_shift;
    const int64_t y_pixel = t->y_pixel, z_pixel = t->z_pixel, q_pixel = t->q_pixel,
                  q_plane = t->q_plane;
    const float *z = t->z;
    float *to = t->y;
    uint8_t *q = t->q;
    UNROLL
    for (int m = 0; m < of_weights; m++) f[m] = load(t->f[m]);
    UNROLL
    for (int j = 0; j < planes; j++) u[j] = all((inside ? 1 : 2) * t->u[j]);
    for (int p = 0; p < n; p++) {
        vec y = b;
        UNROLL
        for (int m = 0; m < of_weights; m++) {
            const int32_t *of = inside ? t->inside[p] + m * t->inside_plane : NULL;
            vec sum = { 0 };
            UNROLL
            for (int j = 0; j < planes; j++)
                sum += u[j] *
                       (inside ? as_float(product_of(&c, m, j, p, of)) : half_product(&c, m, j, p));
            y += f[m] * sum;
        }
        if (z) y += load(z + p * z_pixel);
        if (relu) y = vmax(y, all(0));
        if (to) store(to + p * y_pixel, y);
        if (kind == NONE) continue;
        unsigned bits[FAC_BIT_PLANES];
        vector_bits(&l, q_relu ? vmax(y, all(0)) : y, kind, bits);
        UNROLL
        for (int j = 0; j < of_codes; j++)
            put_bits(q + p * q_pixel + j * q_plane, shift, bits[j], valid);
    }
}

INLINE void finish_of(const fac_bit_finish *t, const int of_weights, const int planes,
                      const bool inside) {
    const int kind = t->codes ? kind_of(t->codes) : NONE;
    if (kind == NONE)
        finish_as(t, of_weights, planes, inside, NONE);
    else if (kind == TWO)
        finish_as(t, of_weights, planes, inside, TWO);
    else if (kind == ONE)
        finish_as(t, of_weights, planes, inside, ONE);
    else if (kind == SIGNS)
        finish_as(t, of_weights, planes, inside, SIGNS);
    else
        finish_as(t, of_weights, planes, inside, ANY);
}

INLINE unsigned at_least(ivec a, ivec b) {
#if defined(__AVX512F__)
    return _mm512_cmpge_epi32_mask((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    const __m256i less = _mm256_cmpgt_epi32((__m256i)b, (__m256i)a);
    return ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(less));
#else
    const ivec more = a >= b;
    unsigned bits = 0;
    for (int k = 0; k < VL; k++) bits |= (unsigned)(more[k] & 1) << k;
    return bits;
#endif
}

/* Of one base of weights, and of pixels whose planes are whole multiples: whole numbers against
 * limits. */
INLINE void limit_of(const fac_bit_finish *t, const int thresholds, const int kind,
                     const bool inside, const int planes) {
    const fac_bit_levels *l = t->codes;
    const ivec invert = load_counts(t->limits);
    const unsigned valid = valid_of(t);
    const counted c = counted_of(t, 1);
    const int of_codes = planes_of(l, kind), n = t->n, shift = t->q_shift;
    const int64_t q_pixel = t->q_pixel, q_plane = t->q_plane;
    uint8_t *q = t->q;
    int times[FAC_BIT_PLANES];
    ivec limit[FAC_BIT_THRESHOLDS];
    for (int k = 0; k < thresholds; k++)
        limit[k] = load_counts(t->limits + (k + 1) * t->limits_row);
    for (int j = 0; j < planes; j++) times[j] = t->times[j];
    for (int p = 0; p < n; p++) {
        ivec d = product_of(&c, 0, 0, p, inside ? t->inside[p] : NULL);
        if (planes > 1) d *= times[0];
        UNROLL
        for (int j = 1; j < planes; j++) d += times[j] * product_of(&c, 0, j, p, NULL);
        d ^= invert;
        unsigned m[FAC_BIT_THRESHOLDS], bits[FAC_BIT_PLANES] = { 0 };
        UNROLL
        for (int k = 0; k < thresholds; k++) m[k] = at_least(d, limit[k]);
        bits_as(l, kind, m, bits);
        UNROLL
        for (int j = 0; j < of_codes; j++)
            put_bits(q + p * q_pixel + j * q_plane, shift, bits[j], valid);
    }
}

static void limit(const fac_bit_finish *t) {
    const int kind = kind_of(t->codes);
    const bool inside = t->inside[0];
    if (kind == ANY)
        limit_of(t, t->codes->thresholds, ANY, inside, t->planes);
    else if (kind == TWO && t->planes == 2)
        limit_of(t, 3, TWO, false, 2);
    else if (kind == TWO)
        limit_of(t, 3, TWO, inside, t->planes);
    else if (t->planes > 1)
        limit_of(t, 1, ONE, false, t->planes);
    else if (inside)
        limit_of(t, 1, ONE, true, 1);
    else
        limit_of(t, 1, ONE, false, 1);
}

static void finish(const fac_bit_finish *t) {
    const bool inside = t->inside[0];
    if (t->codes && t->limits)
        limit(t);
    else if (inside && t->of_weights == 1)
        finish_of(t, 1, 1, true);
    else if (inside)
        finish_of(t, t->of_weights, 1, true);
    else if (t->of_weights == 1 && t->planes == 1)
        finish_of(t, 1, 1, false);
    else if (t->of_weights == 1 && t->planes == 2)
        finish_of(t, 1, 2, false);
    else if (t->of_weights == 2 && t->planes == 2)
        finish_of(t, 2, 2, false);
    else if (t->of_weights == 2 && t->planes == 1)
        finish_of(t, 2, 1, false);
    else
        finish_of(t, t->of_weights, t->planes, false);
}
