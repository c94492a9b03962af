/* Vectors of words from a text file: "word x1 x2 ... xd" a line, as GloVe (Pennington et al. 2014)
 * and fastText write them; a first line with two integers, count and dims (word2vec's), is passed
 * over.  Words may hold spaces: the numbers are the last. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/text/text_internal.h"
#include "tensor/tensor_internal.h"

enum { DIMS = 1 << 16 };
static const float unknown_range = 0.25f; /* Kim 2014: about the variance of trained vectors */

typedef struct line {
    const char *s, *end;
} line;

static bool next_line(const char **at, const char *end, line *l) {
    if (*at == end) return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *l = (line){ *at, stop ? stop : end };
    *at = stop ? stop + 1 : end;
    while (l->end > l->s && (l->end[-1] == ' ' || l->end[-1] == '\r')) l->end--;
    return true;
}

static int64_t count_spaces(const line *l) {
    int64_t n = 0;
    for (const char *p = l->s; p < l->end; p++) n += *p == ' ';
    return n;
}

static bool digit(const char *p, const char *end) { return p < end && *p >= '0' && *p <= '9'; }

/* [+-]digits[.digits][e[+-]digits] up to `end`: an integer of at most 18 digits times a power of
 * ten. */
static bool number(const char *p, const char *end, float *out) {
    int64_t m = 0, exponent = 0, scale = 0, digits = 0;
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    for (bool fraction = false; digit(p, end) || (p < end && *p == '.' && !fraction); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        digits++;
        if (m < INT64_MAX / 100) {
            m = 10 * m + (*p - '0');
            scale -= fraction;
        } else if (!fraction)
            scale++;
    }
    if (!digits) return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        const bool down = ++p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) p++;
        if (!digit(p, end)) return false;
        for (; digit(p, end); p++)
            exponent = exponent < 10000 ? 10 * exponent + (*p - '0') : exponent;
        scale += down ? -exponent : exponent;
    }
    const double x = (double)m * pow(10, (double)scale);
    *out = (float)(negative ? -x : x);
    return p == end && isfinite(*out);
}

/* The numbers after the word; word_end: where the word ends. */
static bool numbers(const line *l, int64_t dim, float *to, const char **word_end) {
    const char *end = l->end;
    for (int64_t k = dim; k-- > 0;) {
        const char *p = end;
        while (p > l->s && p[-1] != ' ') p--;
        if (p == l->s || (to && !number(p, end, &to[k]))) return false;
        end = p - 1;
    }
    *word_end = end;
    return end > l->s;
}

typedef struct reader {
    const char *at, *end, *name;
    int64_t line, dim;
} reader;

static fac_status read_all(reader *r, const fac_vocab *v, float *to, unsigned char *have,
                           int64_t *found, fac_error *err) {
    line l;
    char word[FAC_TOKEN_ROOM];
    for (; next_line(&r->at, r->end, &l); r->line++) {
        const char *stop;
        if (l.s == l.end) continue;
        if (!numbers(&l, r->dim, NULL, &stop))
            return fac_raise(err, FAC_E_FORMAT, "%s:%lld: needs a word and %lld numbers", r->name,
                             (long long)r->line, (long long)r->dim);
        const size_t n = (size_t)(stop - l.s);
        if (n >= FAC_TOKEN_ROOM || memchr(l.s, 0, n)) continue;
        memcpy(word, l.s, n);
        word[n] = 0;
        const int32_t id = fac_vocab_find(v, word);
        if (id <= FAC_UNK || have[id]) continue;
        if (!numbers(&l, r->dim, to + id * r->dim, &stop))
            return fac_raise(err, FAC_E_FORMAT, "%s:%lld: a vector holds what is no number",
                             r->name, (long long)r->line);
        have[id] = 1;
        ++*found;
    }
    return FAC_OK;
}

/* How many numbers a line has, from the first; a head line is passed over. */
static fac_status find_dim(reader *r, fac_error *err) {
    const char *p = r->at;
    line l = { p, p };
    float x;
    next_line(&p, r->end, &l);
    const char *space =
        memchr(l.s, ' ', (size_t)(l.end - l.s)); /* "400000 50": two whole numbers */
    if (count_spaces(&l) == 1 && number(l.s, space, &x) && number(space + 1, l.end, &x) &&
        x == floorf(x)) {
        r->at = p;
        r->line++;
        l = (line){ p, p };
        next_line(&p, r->end, &l);
    }
    r->dim = count_spaces(&l);
    if (r->dim >= 1 && r->dim <= DIMS) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "%s:%lld: a word and 1 to %d numbers must stand here",
                     r->name, (long long)r->line, DIMS);
}

fac_status fac_vectors_parse(const fac_vocab *v, const char *data, size_t bytes, const char *name,
                             uint64_t seed, fac_tensor **out, int64_t *found, fac_error *err) {
    reader r = { data, data + bytes, name, 1, 0 };
    int64_t seen = 0;
    fac_tensor *t = NULL;
    void *to = NULL;
    FAC_TRY(find_dim(&r, err));
    FAC_TRY(fac_tensor_new(NULL, FAC_F32, fac_shape(v->count, r.dim), &t, err));
    unsigned char *have = fac_alloc((size_t)v->count, 1);
    fac_status status = have ? fac_tensor_begin_write(t, &to, err)
                             : fac_raise(err, FAC_E_NOMEM, "%s: no memory", name);
    if (!status) status = read_all(&r, v, to, have, &seen, err);
    for (int64_t id = FAC_UNK; !status && id < v->count; id++)
        if (!have[id])
            fac_random_fill(seed, (uint64_t)id, -unknown_range, unknown_range, (size_t)r.dim,
                            (float *)to + id * r.dim);
    fac_release(have);
    if (status) {
        fac_tensor_free(t);
        return status;
    }
    if (found) *found = seen;
    *out = t;
    return FAC_OK;
}

fac_status fac_vocab_vectors(const fac_vocab *v, const char *path, uint64_t seed, fac_tensor **out,
                             int64_t *found, fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    fac_status status =
        fac_vectors_parse(v, fac_file_data(f), fac_file_size(f), path, seed, out, found, err);
    fac_file_free(f);
    return status;
}
