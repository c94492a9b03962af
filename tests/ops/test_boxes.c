/* non_max_suppression against its definition: boxes in the order of their scores, of equal ones the
 * lower number, each compared with all that are left already. */
#include "flow_check.h"
#include "fresh_seed.h"

enum { BOXES = 150, CLASSES = 3, SIDES = 4 };
static uint64_t seed;

/* Few scores, so that many are equal, and boxes on a grid, so that some overlap by just as much. */
static float drawn(uint64_t stream, int64_t k, int steps) {
    return (float)(fac_random_bits(seed, stream, (uint64_t)k) % (uint64_t)steps) / (float)steps;
}

static double span(double a0, double a1, double b0, double b1) {
    return fmax(0, fmin(a1, b1) - fmax(a0, b0));
}
static double shared(const float *a, const float *b) {
    const double both = span(a[0], a[2], b[0], b[2]) * span(a[1], a[3], b[1], b[3]);
    const double all = (double)(a[2] - a[0]) * (double)(a[3] - a[1]) +
                       (double)(b[2] - b[0]) * (double)(b[3] - b[1]) - both;
    return both > 0 ? both / all : 0;
}

static bool is_free(const float *boxes, const int64_t *left, int64_t n, int64_t k, double iou) {
    for (int64_t i = 0; i < n; i++)
        if (shared(boxes + SIDES * left[i], boxes + SIDES * k) > iou) return false;
    return true;
}

/* Of one class; how many are left. */
static int64_t by_hand(const float *boxes, const float *scores, int64_t most, double least,
                       int64_t *left) {
    bool seen[BOXES] = { false };
    int64_t n = 0;
    while (n < most) {
        int64_t best = -1;
        for (int64_t k = 0; k < BOXES; k++)
            if (!seen[k] && (double)scores[k] > least && (best < 0 || scores[k] > scores[best]))
                best = k;
        if (best < 0) return n;
        seen[best] = true;
        if (is_free(boxes, left, n, best, 0.3)) left[n++] = best;
    }
    return n;
}

static fac_tensor *floats(fac_dims d, const float *x) {
    fac_tensor *t;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    OK(fac_tensor_write(t, x, (size_t)fac_dims_count(&d) * sizeof *x, err));
    return t;
}

static void boxes_by_score(void **state) {
    (void)state;
    static float boxes[BOXES * SIDES], scores[CLASSES * BOXES];
    for (int round = 0; round < 20; round++, seed++) {
        char text[300];
        const int most = round % 4 ? 1 + round : BOXES;
        for (int64_t k = 0; k < BOXES; k++)
            for (int s = 0; s < 2; s++) {
                boxes[SIDES * k + s] = drawn(1, 2 * k + s, 16);
                boxes[SIDES * k + 2 + s] = boxes[SIDES * k + s] + 0.0625f + drawn(2, 2 * k + s, 8);
            }
        for (int64_t k = 0; k < CLASSES * BOXES; k++) scores[k] = drawn(3, k, 32);
        snprintf(text, sizeof text,
                 "input b f32[1,150,4]\ninput s f32[1,3,150]\n%%1, %%2 = non_max_suppression(b, s, "
                 "i64(%d), f32(0.3), f32(0.1))\noutput all = %%1\noutput count = %%2\n",
                 most);
        fac_graph *g = read_text(text);
        fac_program *p = NULL;
        fac_tensor *in[] = { floats(fac_shape(1, BOXES, SIDES), boxes),
                             floats(fac_shape(1, CLASSES, BOXES), scores) },
                   *out[2] = { NULL };
        OK(fac_program_new(g, device, NULL, &p, err));
        OK(fac_program_run(p, in, out, err));
        const int64_t *got = fac_tensor_data(out[0]);
        int64_t left[BOXES], rows = 0;
        for (int64_t c = 0; c < CLASSES; c++) {
            const int64_t n = by_hand(boxes, scores + c * BOXES, most, (double)0.1f, left);
            for (int64_t k = 0; k < n; k++, rows++) {
                assert_int_equal(got[3 * rows + 1], c);
                assert_int_equal(got[3 * rows + 2], left[k]);
            }
        }
        assert_int_equal(*(const int64_t *)fac_tensor_data(out[1]), rows);
        for (int k = 0; k < 2; k++) fac_tensor_free(in[k]);
        for (int k = 0; k < 2; k++) fac_tensor_free(out[k]);
        fac_program_free(p);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(boxes_by_score) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, open_device, close_device);
}
