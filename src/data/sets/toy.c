/* Points of the unit square in two classes: the data sets of MiniTorch
 * (https://minitorch.github.io, module 0). */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/rng.h"
#include "data/sets/dataset_internal.h"

static bool simple(double x, double y) {
    (void)y;
    return x < 0.5;
}
static bool diag(double x, double y) { return x + y < 0.5; }
static bool split(double x, double y) {
    (void)y;
    return x < 0.2 || x > 0.8;
}
static bool xor (double x, double y) {
    return (x < 0.5 && y > 0.5) || (x > 0.5 && y < 0.5);
} static bool circle(double x, double y) {
    return (x - 0.5) * (x - 0.5) + (y - 0.5) * (y - 0.5) > 0.1;
}

static const struct {
    const char *name;
    bool (*label)(double x, double y);
} sets[] = {
    { "simple", simple }, { "diag", diag },     { "split", split },
    { "xor", xor},        { "circle", circle }, { "spiral", NULL },
};

/* Point i of n of an arm: radius t / 20 at angle t, t = 10 (i + 5) / n; the other arm is its mirror
 * image on the diagonal. */
static void spiral(int64_t i, int64_t n, int arm, float *to) {
    double t = 10 * (double)(i + 5) / (double)n * (arm ? -1 : 1);
    double x = t * cos(t) / 20 + 0.5, y = t * sin(t) / 20 + 0.5;
    to[0] = (float)(arm ? y : x);
    to[1] = (float)(arm ? x : y);
}

fac_status fac_dataset_toy(const char *name, int64_t count, uint64_t seed, fac_dataset *out,
                           fac_error *err) {
    enum { SETS = sizeof sets / sizeof *sets };
    int k = 0;
    while (k < SETS && strcmp(sets[k].name, name)) k++;
    if (k == SETS)
        return fac_raise(
            err, FAC_E_ARGUMENT,
            "there is no toy data set \"%s\"; there are simple, diag, split, xor, circle, spiral",
            name);
    if (!sets[k].label && count % 2)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the spiral has two equal arms: an even number of points");
    fac_dataset d = { 0 };
    fac_status status = fac_dataset_new(&d, count, fac_shape(2), true, name, err);
    if (status) {
        fac_dataset_free(&d);
        return status;
    }
    float *p = fac_dataset_values(&d);
    int64_t half = count / 2;
    for (int64_t i = 0; i < count; i++, p += 2) {
        if (!sets[k].label) {
            spiral(i % half, half, i >= half, p);
            fac_dataset_labels(&d)[i] = i >= half;
            continue;
        }
        double x = fac_random_uniform(seed, 0, (uint64_t)(2 * i)),
               y = fac_random_uniform(seed, 0, (uint64_t)(2 * i + 1));
        p[0] = (float)x;
        p[1] = (float)y;
        fac_dataset_labels(&d)[i] = sets[k].label(x, y);
    }
    d.classes = 2;
    *out = d;
    return FAC_OK;
}
