/* Decimal text of numbers.  printf and strtod follow the locale's decimal point, so both are given and asked for a '.'. */
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

void fac_real_print(double x, fac_dtype dtype, fac_text *to) {
    /* 9 and 17 digits always suffice for f32 and f64; f16 and bf16 are contained in f32. */
    const bool wide = dtype == FAC_F64;
    const int most = wide ? 17 : 9;
    char text[40];
    if (isnan(x)) {
        fac_text_add(to, "nan");
        return;
    }
    for (int digits = wide ? 15 : 6; digits <= most; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        double back = strtod(text, NULL);
        if (wide ? back == x : (float)back == (float)x) break;
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
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *p - '0', &x)) return false;
    *s = p;
    *out = x;
    return true;
}
