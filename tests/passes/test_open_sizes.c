/* Graphs with open sizes, written by hand, mean the same before and after every pass: see
 * open_sizes_check.h. */
#include "open_sizes_check.h"

/* ---- by hand ---- */

static void known_ones(void **state) {
    (void)state;
    static const char *const texts[] = {
        "input x f32[N,6]\ny = squeeze(x)\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = relu(a)\nc = relu(b)\ny = identity(c)\noutput y = "
        "y\n",
        "input x f32[N,6]\na = squeeze(x)\ns = shape(a)\ny = cast(s) to=f32\noutput y = y\n",
        "input x f32[N,M,6]\na = squeeze(x)\ny = sum(a, i64{0})\noutput y = y\n",
        "input x f32[N,M,6]\na = squeeze(x, i64{0})\ny = squeeze(a)\noutput y = y\n",
        "input x f32[N,1,M]\na = unsqueeze(x, i64{0})\nb = squeeze(a)\ny = neg(b)\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = unsqueeze(a, i64{0})\ny = flatten(b) axis=1\noutput "
        "y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = squeeze(x)\nc = add(a, b)\ny = add(c, "
        "f32(0))\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = transpose(a)\ny = transpose(b)\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = cast(a) to=f64\ny = cast(b) to=f32\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\ny = softmax(a) axis=-1\noutput y = y\n",
        "input x f32[N,2,3]\ny = reshape(x, i64{0,-1})\noutput y = y\n",
        "input x f32[N,2,3]\na = reshape(x, i64{-1})\ny = reshape(a, i64{-1,6})\noutput y = y\n",
        "input x f32[N,M,3]\na = flatten(x) axis=2\nb = relu(a)\ns = shape(x)\ny = reshape(b, "
        "s)\noutput y = y\n",
        "input x f32[N,M]\ninput y f32[M,K]\na = matmul(x, y)\nb = add(a, f32(0))\noutput y2 = b\n",
        "input x f32[N,1]\ninput y f32[1,M]\na = add(x, y)\nb = mul(a, f32(1))\noutput b = b\n",
        "input x f32[N,6]\ninput y f32[M,6]\na = add(x, y)\nb = sub(a, a)\noutput b = b\n",
        "input x f32[N]\ninput y f32[3]\na = add(x, y)\nb = expand(x, i64{3})\nc = mul(b, y)\nd = "
        "add(a, c)\noutput d = d\n",
        "input x f32[N,6]\na = slice(x, i64{0}, i64{5}, i64{0})\nb = slice(a, i64{1}, i64{9}, "
        "i64{1})\noutput b = b\n",
        "input x f32[N,6]\na = slice(x, i64{0}, i64{9223372036854775807}, i64{0})\nb = "
        "relu(a)\noutput b = b\n",
        "input x f32[N,6]\na = slice(x, i64{-3}, i64{-1}, i64{0})\nb = concat(a, x)\nc = concat(b, "
        "x)\noutput c = c\n",
        "input x f32[N,6]\np, q = split(x) parts=2\na = concat(p, q)\nb = sum(q, i64{0})\noutput a "
        "= a\noutput b = b\n",
        "input x f32[N,6]\np, q = split(x) parts=2\na = shape(p)\nb = shape(q)\nc = sub(a, b)\nd = "
        "cast(c) to=f32\noutput d = d\n",
        "input x f32[N,M]\na = reduce_max(x, -) keep\nb = sum(x, i64{1})\nc = mean(x, i64{0}) "
        "keep\noutput b = b\noutput c = c\n",
        "input x f32[N,M]\na = tile(x, i64{2,1})\nb = pad(a, i64{1,0,1,0})\nc = tile(b, "
        "i64{1,1})\noutput c = c\n",
        "input x f32[N,M]\ns = shape(x)\nn = gather(s, i64{0})\nm = gather(s, i64{1})\nk = mul(n, "
        "m)\ny = reshape(x, k)\noutput y = y\n",
        "input x f32[N,4]\ns = shape(x)\nn = gather(s, i64{0})\nl = concat(n, i64{2,2})\ny = "
        "reshape(x, l)\noutput y = y\n",
        "input x f32[N,M]\ns = shape(x)\ne = expand(f32(1), s)\ny = add(x, e)\nz = mul(x, "
        "e)\noutput y = y\noutput z = z\n",
        "input x f32[N,M]\nc = greater(x, f32(0))\na = where(c, x, f32(0))\nb = where(bool(1), a, "
        "x)\noutput b = b\n",
        "input x f32[N,4]\nparam w f32[4,3]\nparam b f32[3]\na = matmul(x, w)\ny = add(a, "
        "b)\noutput y = y\n",
        "input x f32[N,2,M,K]\nparam w f32[4,2,1,1]\nparam b f32[4,1,1]\na = conv2d(x, w)\ny = "
        "mul(a, b)\noutput y = y\n",
        "input c f32[N,3]\na = log_softmax(c) axis=0\nb = reduce_log_sum_exp(c, i64{0})\noutput a "
        "= a\noutput b = b\n",
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        assert_true(check_text(texts[k], 0) > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ones),
    };
    return cmocka_run_group_tests_name("open sizes", tests, open_device, close_device);
}
