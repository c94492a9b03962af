/* Numbers as texts and back: floats in the fewest digits that read back as the same number, written
 * as Python does. */
#include "tensor/convert_text.h"
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/point.h"
#include "tensor/tensor_internal.h"

static const char *after_blanks(const char *s) { return s + strspn(s, " \t\r\n"); }

/* Integers of 64 bits exactly; anything else as strtod reads it: "1e-5", "inf", "NaN", "+INF". */
static bool parse(const char *s, fac_dtype dtype, double *f, int64_t *i, bool *integer) {
    char *end;
    *integer = false;
    if (dtype == FAC_BOOL && (!strcasecmp(s, "true") || !strcasecmp(s, "false"))) {
        *f = !strcasecmp(s, "true");
        return true;
    }
    errno = 0;
    if (fac_dtype_get(dtype)->kind != 'f') {
        *i = dtype == FAC_U64 && !strchr(s, '-') ? (int64_t)strtoull(s, &end, 10)
                                                 : (int64_t)strtoll(s, &end, 10);
        *integer = end != s && !*after_blanks(end) && !errno;
        if (*integer) return true;
    }
    *f = dtype == FAC_F32 ? strtof(s, &end) : strtod(s, &end); /* one rounding */
    return end != s && !*after_blanks(end);
}

static fac_status parse_all(fac_dtype dtype, char *to, const char *from, size_t n, fac_error *err) {
    fac_dims one = { 1, { 1 } };
    size_t size = fac_type_bytes(&(fac_type){ dtype, one });
    for (size_t k = 0; k < n; k++, to += size, from += sizeof(char *)) {
        const char *s;
        double f = 0;
        int64_t i = 0;
        bool integer;
        memcpy(&s, from, sizeof s);
        if (!parse(s, dtype, &f, &i, &integer))
            return fac_raise(err, FAC_E_FORMAT, "\"%.40s\" is no number", s);
        if (integer)
            fac_convert(dtype, to, FAC_I64, &i, 1);
        else
            fac_convert(dtype, to, FAC_F64, &f, 1);
    }
    return FAC_OK;
}

fac_status fac_texts_parse(fac_dtype dtype, void *to, const void *from, size_t n, fac_error *err) {
    fac_point p;
    if (dtype == FAC_BIT)
        return fac_raise(err, FAC_E_UNSUPPORTED, "texts to bits: convert to bool first");
    if (!fac_point_begin(&p)) return fac_raise_memory(err, "a locale");
    fac_status status = parse_all(dtype, to, from, n, err);
    fac_point_end(&p);
    return status;
}

/* The value that the digits stand for, in the type that they were printed from. */
static bool reads_back(const char *s, fac_dtype dtype, double x) {
    double back = dtype == FAC_F32 ? strtof(s, NULL) : strtod(s, NULL);
    uint16_t a, b;
    if (dtype == FAC_F64 || dtype == FAC_F32) return back == x;
    fac_convert(dtype, &a, FAC_F64, &back, 1);
    fac_convert(dtype, &b, FAC_F64, &x, 1);
    return a == b;
}

/* repr(x): plain for exponents from -4 to 15, else scientific; a plain number has a point. */
static void print_float(char *to, size_t size, fac_dtype dtype, double x) {
    char digits[40];
    if (!isfinite(x)) {
        const char *infinity = x < 0 ? "-inf" : "inf";
        snprintf(to, size, "%s", isnan(x) ? "nan" : infinity);
        return;
    }
    int places = 0;
    do snprintf(digits, sizeof digits, "%.*e", places, x);
    while (!reads_back(digits, dtype, x) && ++places < 17);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent > 15)
        snprintf(to, size, "%s", digits);
    else
        snprintf(to, size, "%.*f", places - exponent > 1 ? places - exponent : 1,
                 strtod(digits, NULL));
}

static fac_status print_all(fac_dtype dtype, const char *from, char **texts, fac_arena *arena,
                            size_t n, fac_error *err) {
    const fac_dtype_info *info = fac_dtype_get(dtype);
    for (size_t k = 0; k < n; k++, from += info->block_bytes) {
        char text[64];
        double f = 0;
        int64_t i = 0;
        if (info->kind == 'f')
            fac_convert(FAC_F64, &f, dtype, from, 1);
        else
            fac_convert(FAC_I64, &i, dtype, from, 1);
        if (info->kind == 'f')
            print_float(text, sizeof text, dtype, f);
        else if (info->kind == 'b')
            snprintf(text, sizeof text, "%s", i ? "True" : "False");
        else if (dtype == FAC_U64)
            snprintf(text, sizeof text, "%llu", (unsigned long long)i);
        else
            snprintf(text, sizeof text, "%lld", (long long)i);
        texts[k] = fac_arena_text(arena, text);
        if (!texts[k]) return fac_raise_memory(err, "%zu texts", n);
    }
    return FAC_OK;
}

fac_status fac_texts_print(fac_tensor *to, fac_dtype dtype, const void *from, size_t n,
                           fac_error *err) {
    fac_point p;
    if (dtype == FAC_BIT)
        return fac_raise(err, FAC_E_UNSUPPORTED, "bits to texts: convert to bool first");
    if (!fac_point_begin(&p)) return fac_raise_memory(err, "a locale");
    fac_status status = print_all(dtype, from, to->storage->host, &to->storage->texts, n, err);
    fac_point_end(&p);
    return status;
}
