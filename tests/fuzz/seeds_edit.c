/* What the fuzzer of edits begins with: each edit, each part of a rule, each kind of product that
 * is tiled. */
#include <stdio.h>
#include <string.h>
#include "fuzz.h"

static const char *const seeds[] = {
    "input x f32[N,3,8,8]\nparam w f32[4,3,3,3]\nparam b f32[4]\nc = conv2d(x, w, b) pad=1,1,1,1 "
    "@body\na = relu(c)\n"
    "h = identity(a)\np = max_pool2d(h) kernel=2,2 stride=2,2\n%1 = tanh(p)\noutput y = %1\noutput "
    "z = h\n"
    "---\nrule relu_is_clip\nmatch\n  a = relu(x)\nwhere\n  once(a), rank(x) = 4, not dim(x, 1) in "
    "[5, 9]\nreplace\n"
    "  a = clip(x, 0, 6)\nend\n"
    "---\nremove h\ninsert a clip(_, 0, 6)\ninsert a->p neg\nreplace c conv2d(x0, x1, x2) like "
    "node stride=2,2\n"
    "set c pad=0,0,0,0\n"
    "shape x 2,3,12,S\nbind S 12\noutput c\ndrop z\nrename x image\nrules\nbake\nstrip "
    "4\nsimplify\ntile 3 2\n",
    "input x f32[4,8]\nparam w f32[8,8]\nparam v f32[8,8]\nparam b f32[8]\na = matmul(x, w)\ns = "
    "add(a, b)\n"
    "t = softmax(s) axis=1\n"
    "u = linear(t, v, b)\noutput y = u\n"
    "---\nrule linear\nmatch\n  m = matmul(x, w)\n  y = add(m, b)\nwhere\n  once(m), constant(w, "
    "b), rank(w) = 2\nreplace\n"
    "  t = transpose(w) perm=1,0\n  y = linear(x, t, b)\nend\n"
    "---\nrules\nfloats f16 op:softmax\nappend y x\npart a y\nreplace_part a y\nbatch 3\ntile 4 "
    "3\ntile 5 5\n",
    "input x f32[2,3,5]\na = transpose(x) perm=2,0,1\nr = relu(a)\nb = transpose(r) perm=1,2,0\nm "
    "= mean(b, i64{-1}) keep\n"
    "d = sub(b, m)\n"
    "e = add(d, 1e-5)\nl = leaky_relu(e) slope=0.1\ng, i = top_k(l, i64(2)) axis=-1\noutput y = g\n"
    "---\nrule cancel\nmatch\n  a = transpose(x) perm=$p\n  r = relu(a)\n  y = transpose(r) "
    "perm=$q\nwhere\n  cancels($p, $q)\n"
    "replace\n"
    "  y = relu(x)\nend\nrule eps\nmatch\n  m = mean(x, {-1}) keep\n  d = sub(x, m)\n  y = add(d, "
    "eps)\nwhere\n"
    "  value(eps) in [0, 0.1]\n"
    "replace\n  y = layer_norm(x, -, -) axis=-1 epsilon=$eps\nend\nrule leaky\nmatch\n  y = "
    "leaky_relu(x) slope=$s\nwhere\n"
    "  $s <= 0.3, type(x) = f32, dims(x) = {2,3,5}, same(x, y)\nreplace\n  y = relu(x)\nend\n"
    "rule top\nmatch\n  v, i = top_k(x, _) *\nreplace\n  v, i = top_k(x, i64(1)) like v\nend\n"
    "---\nrules\nset l slope=0.2\ninsert x t = exp(_); mul(t, _) neg\nsimplify\n",
    ("input a f32[2,5,7]\ninput b f32[2,7,6]\nparam k f32[3,2,5]\nm = matmul(a, b)\nc = conv1d(m, "
     "k, -) pad=1,1\noutput y = c\n"
     "---\nrule loops\nmatch\n  y = matmul(a, b)\nreplace\n  y = matmul(a, "
     "b)\nend\n---\nrules\ntile 2 3\ntile 64 64\n")
};

void fac_seeds(fac_seed_taker *take, void *self) {
    char name[24];
    for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++) {
        snprintf(name, sizeof name, "edit_%zu", k);
        take(self, name, seeds[k], strlen(seeds[k]));
    }
}
