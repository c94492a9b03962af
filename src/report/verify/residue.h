/* Numbers modulo a prime p, as whole numbers of f32 from -(p - 1) / 2 to (p - 1) / 2. */
#ifndef FACULA_REPORT_RESIDUE_H
#define FACULA_REPORT_RESIDUE_H
#include "base/table.h"
#include "facula/tensor.h"

enum { FAC_PRIME_MOST = 64 };

/* A float is m 2^e with whole m and e, so it has a remainder, and sums and products keep it.
 * Infinities and NaN get one, too. */
int fac_residue(double x, int p);
/* Of a tensor of any float type, as f32; *largest: |of them|. */
fac_status fac_residue_tensor(const fac_tensor *t, int p, fac_tensor **out, double *largest,
                              fac_error *err);
/* to[x] for x from 0 to p - 1: a function of remainders that depends on the key alone. */
void fac_residue_function(fac_hash key, int p, float to[FAC_PRIME_MOST]);
/* 1 / x; of 0: 0. */
void fac_residue_inverses(int p, float to[FAC_PRIME_MOST]);
#endif
