/* Elementwise ops for the reference driver: broadcasting, and the choice of the compute type. */
#ifndef FACULA_RUN_REF_MAP_H
#define FACULA_RUN_REF_MAP_H
#include "ref/ref.h"

size_t fac_ref_map_scratch(int inputs);
fac_status fac_ref_map(const fac_node *n, const fac_host *in, const fac_host *out, void *scratch,
                       fac_error *err);
#endif
