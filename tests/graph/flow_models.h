/* Models with call, if, loop and scan, and numbers for them. */
#ifndef FACULA_FLOW_MODELS_H
#define FACULA_FLOW_MODELS_H
#include "opencl_check.h"
#include "flow_check.h"
#include "op_list.h"

static const numbers usual = { 7, 3, true };

#define LOOP(trips, cond, next)                                                                    \
    "%1, %2 = loop(" trips ", " cond ", x, w) carried=1 {(i64[], bool[], f64[2], f64[2]) "         \
    "t0 = mul(x2, x3); t1 = cast(x0) to=f64; t2 = add(t0, t1); " next                              \
    "}\noutput y = %1\noutput rows = %2\n"

static const char *const models[] = {
    "input x f32[N,3]\nparam b f32[3]\ny = call(x, b) name=layer {t0 = add(x0, x1); t1 = relu(t0); "
    "t1} !one\n"
    "z = call(y, b) name=layer {t0 = add(x0, x1); t1 = relu(t0); t1} !two\noutput z = z\n",
    "input x f64[2]\ninput w f64[2]\n" LOOP("i64(3)", "-", "x1, t2, t0"),
    "input x f32[3]\ninput n i64[]\ninput c bool[]\n%1, %2 = loop(n, c, x) carried=1 {(i64[], "
    "bool[], f32[3]) t0 = mul(x2, 0.5); "
    "t1 = less(x0, i64(9)); t1, t0, t0}\noutput a = %1\noutput b = %2\n",
    "input c bool[]\ninput x f32[3]\n%1 = if(c, x) {t0 = exp(x1); t0} {t0 = neg(x1); t0}\noutput y "
    "= %1\n",
    "input s f32[2]\ninput x f32[2,3]\n%1, %2 = scan(s, x) states=1 slices=1 in_axes=1 out_axes=1 "
    "in_back=1 "
    "{(f32[2], f32[2]) t0 = add(x0, x1); t1 = mul(t0, 2); t0, t1}\noutput y = %1\noutput rows = "
    "%2\n",
    "input c bool[]\ninput x f32[3]\n%1 = if(c, x) {t0 = call(x1) name=f {t0 = exp(x0); t1 = "
    "neg(t0); t1}; t0} "
    "{t0, t1 = loop(i64(2), -, x1) carried=1 {(i64[], bool[], f32[3]) t0 = add(x2, x2); x1, t0, "
    "t0}; t0}\noutput y = %1\n"
};
#endif
