/* Seeds: a graph with every kind of line, and one problem of each op. */
#include <string.h>
#include "facula/op.h"
#include "fuzz.h"

static const char whole[] =
    "input x f32[N,3,8,8]\nparam w f32[4,3,3,3]\nstate s f32[]\nconst c i64{0,-1}\nconst %9 "
    "f32[40]\n"
    "%1 = conv2d(x, w, -) pad=1,1,1,1 {add(_, 0.5) relu} @a.b !n\n%2 = reshape(%1, c)\n"
    "y = add(%2, 0.5) ~2 # f32[?1,?2]\n%3 = add(s, 1)\n\"a b\" = neg(%9)\n"
    "%4 = fused(y, y) {t0 = add(x0, x1); t1 = exp(t0); t1}\n%5, %6 = split(%9, -) parts=2 axis=0\n"
    "output y = %4\noutput t = text{\"a\\n\",\"\\x01\"}\noutput i = i64{N,?3,-1}\nupdate s <- %3\n";

void fac_seeds(fac_seed_taker *take, void *self) {
    take(self, "graph", whole, sizeof whole - 1);
    for (const fac_op *const *op = fac_ops; *op; op++)
        if ((*op)->cases && (*op)->cases->problem)
            take(self, (*op)->name, (*op)->cases->problem, strlen((*op)->cases->problem));
}
