/* Between the files of adapters. */
#ifndef FACULA_LM_LORA_H
#define FACULA_LM_LORA_H
#include "lm/lm.h"

/* Stems of the layers that may have adapters; NULL after the last one. */
const char *fac_lora_stem(int i);
/* The matrix of such a layer; *out NULL: the model has none. */
fac_status fac_lora_matrix(fac_lm *m, const char *stem, int64_t layer, fac_tensor **out,
                           fac_error *err);
/* One of "lora_a" and "lora_b"; put takes the tensor. */
fac_status fac_lora_put(fac_lm *m, const char *stem, int64_t layer, const char *which,
                        fac_tensor *t, fac_error *err);
fac_tensor *fac_lora_get(const fac_lm *m, const char *stem, int64_t layer, const char *which);
#endif
