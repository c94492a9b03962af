/* The verdict on two graphs. */
#ifndef FACULA_TESTS_VERIFY_CHECK_H
#define FACULA_TESTS_VERIFY_CHECK_H
#include <math.h>
#include "device_check.h"
#include "graph_of.h"
#include "base/rng.h"
#include "facula/edit.h"
#include "graph/graph_internal.h"
#include "graph/attr.h"
#include "op_list.h"

static inline fac_verdict judge(const fac_graph *a, const fac_graph *b, fac_verify_mode mode) {
    fac_verdict v;
    OK(fac_verify(a, b, device, &(fac_verify_opts){ .mode = mode, .seed = seed, .rounds = 2 }, &v,
                  &err));
    return v;
}

enum { MODES = 4 };
#endif
