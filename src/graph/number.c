/* Decimal text of numbers.  printf and strtod follow the locale's decimal point, so both are given
 * and asked for a '.'. */
#include "graph/number.h"
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char point(void) {
    const struct lconv *l = localeconv();
    return l && l->decimal_point && l->decimal_point[0] ? l->decimal_point[0] : '.';
}

/* Does y, read as this type, give x?  For the 11 and 8 bits of f16 and bf16: when it is nearer than
 * half the distance to the next number, which below a power of two is half of that above it. */
static bool reads_as(double y, double x, fac_dtype dtype) {
    if (dtype == FAC_F64 || y == x) return y == x;
    if (dtype == FAC_F32) return (float)y == (float)x;
    int exponent;
    const bool power = fabs(frexp(x, &exponent)) == 0.5;
    const double step = dtype == FAC_F16 ? fmax(ldexp(1, exponent - 11), 0x1p-24)
                                         : fmax(ldexp(1, exponent - 8), 0x1p-133);
    return fabs(y - x) < step / (power ? 4 : 2);
}

void fac_real_print(double x, fac_dtype dtype, fac_text *to) {
    char text[40];
    if (isnan(x)) {
        fac_text_add(to, "nan");
        return;
    }
    /* 9 and 17 digits always suffice for f32 and f64. */
    const int fewest = dtype == FAC_F64   ? 15
                       : dtype == FAC_F32 ? 6
                                          : 1,
              most = dtype == FAC_F64 ? 17 : 9;
    for (int digits = fewest; digits <= most; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (reads_as(strtod(text, NULL), x, dtype)) break;
    }
    char *dot = strchr(text, point());
    if (dot) *dot = '.';
    fac_text_add(to, text);
}

bool fac_real_parse(const char **s, const char *end, double *out) {
    char text[64];
    size_t n = 0;
    for (const char *p = *s; p < end && n < sizeof text - 1; p++) {
        if (!*p || !strchr("+-.0123456789eEinfa", *p)) break;
        text[n++] = *p == '.' ? point() : *p;
    }
    text[n] = 0;
    char *stop = text;
    double x = strtod(text, &stop);
    if (stop == text) return false;
    *s += stop - text;
    *out = x;
    return true;
}

bool fac_int_parse(const char **s, const char *end, int64_t *out) {
    const char *p = *s;
    const bool negative = p < end && *p == '-';
    int64_t x = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end || *p < '0' || *p > '9') return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        const int digit = *p - '0';
        /* Towards the negative, so that INT64_MIN fits. */
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_sub_overflow(x, digit, &x)) return false;
    }
    if (!negative && x == INT64_MIN) return false;
    *s = p;
    *out = negative ? x : -x;
    return true;
}

bool fac_unsigned_parse(const char **s, const char *end, uint64_t *out) {
    const char *p = *s;
    uint64_t x = 0;
    if (p == end || *p < '0' || *p > '9') return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *p - '0', &x))
            return false;
    *s = p;
    *out = x;
    return true;
}
