/* facula/data/points.h: points of the plane in two classes, as data sets (facula/data/data.h). */
#ifndef FACULA_POINTS_H
#define FACULA_POINTS_H

#include "facula/data/data.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_points_opts {
    int64_t count; /* 0: 50 */
    uint64_t seed;
    double noise; /* deviation of what is added to each coordinate after it got its label; the
                     square is 1 wide */
} fac_points_opts;

/* A set of fac_dataset_toy by name, with noise. */
fac_status fac_dataset_points(const char *name, const fac_points_opts *opts, fac_dataset *out,
                              fac_error *err);
/* n points given as x, y, x, y ...; labels 0 or 1, else FAC_E_ARGUMENT.  Copied. */
fac_status fac_dataset_points_of(int64_t n, const float *xy, const int64_t *labels,
                                 fac_dataset *out, fac_error *err);
/* Lines "x,y,label"; the first line may name the columns.  At most 1,000,000 bytes. */
fac_status fac_dataset_points_csv(const char *path, fac_dataset *out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
