/* Random graphs with open sizes mean the same before and after every pass: see open_sizes_check.h.
 */
#include "open_sizes_check.h"

/* ---- drawn ---- */

typedef struct drawing {
    uint64_t stream, at;
    char text[4096];
    int values;
} drawing;

static int draw(drawing *d, int n) {
    return (int)(fac_random_bits(seed, d->stream, d->at++) % (uint64_t)n);
}

/* A node that reads earlier values; whether it fits them shows when the text is read. */
static void draw_node(drawing *d, char *to, size_t size) {
    const int a = draw(d, d->values), b = draw(d, d->values), axis = draw(d, 3), n = draw(d, 4),
              v = d->values;
    switch (draw(d, 30)) {
    case 0:
    case 1:
        snprintf(to, size, "v%d = squeeze(v%d)\n", v, a);
        break;
    case 2:
        snprintf(to, size, "v%d = squeeze(v%d, i64{%d})\n", v, a, axis);
        break;
    case 3:
        snprintf(to, size, "v%d = unsqueeze(v%d, i64{%d})\n", v, a, axis);
        break;
    case 4:
        snprintf(to, size, "v%d = reshape(v%d, i64{0,-1})\n", v, a);
        break;
    case 5:
        snprintf(to, size, "v%d = reshape(v%d, i64{-1,%d})\n", v, a, n + 1);
        break;
    case 6:
        snprintf(to, size, "v%d = reshape(v%d, i64{-1})\n", v, a);
        break;
    case 7:
        snprintf(to, size, "v%d = flatten(v%d) axis=%d\n", v, a, axis);
        break;
    case 8:
        snprintf(to, size, "v%d = expand(v%d, i64{%d,1})\n", v, a, n + 1);
        break;
    case 9:
        snprintf(to, size, "s%d = shape(v%d)\nv%d = expand(v%d, s%d)\n", v, b, v, a, v);
        break;
    case 10:
    case 11:
        snprintf(to, size, "v%d = add(v%d, v%d)\n", v, a, b);
        break;
    case 12:
        snprintf(to, size, "v%d = mul(v%d, f32(1))\n", v, a);
        break;
    case 13:
        snprintf(to, size, "v%d = slice(v%d, i64{%d}, i64{%d}, i64{%d})\n", v, a, draw(d, 3) - 1,
                 n * 3 - 2, axis);
        break;
    case 14:
        snprintf(to, size, "v%d = slice(v%d, i64{0}, i64{9223372036854775807}, i64{%d})\n", v, a,
                 axis);
        break;
    case 15:
        snprintf(to, size, "v%d = concat(v%d, v%d) axis=%d\n", v, a, b, axis);
        break;
    case 16:
        snprintf(to, size, "v%d = sum(v%d, i64{%d})%s\n", v, a, axis, n % 2 ? " keep" : "");
        break;
    case 17:
        snprintf(to, size, "v%d = transpose(v%d)\n", v, a);
        break;
    case 18:
        snprintf(to, size, "v%d = tile(v%d, i64{%d,1})\n", v, a, n);
        break;
    case 19:
        snprintf(to, size, "v%d = pad(v%d, i64{%d,0,%d,0})\n", v, a, n - 1, draw(d, 2));
        break;
    case 20:
        snprintf(to, size, "v%d, p%d = split(v%d) axis=%d parts=2\n", v, v, a, axis);
        break;
    case 21:
        snprintf(to, size,
                 "s%d = shape(v%d)\ng%d = gather(s%d, i64{%d})\nl%d = concat(g%d, i64{-1})\nv%d = "
                 "reshape(v%d, l%d)\n",
                 v, b, v, v, axis, v, v, v, a, v);
        break;
    case 22:
        snprintf(to, size, "s%d = shape(v%d)\nv%d = reshape(v%d, s%d)\n", v, b, v, a, v);
        break;
    case 23:
        snprintf(to, size, "s%d = shape(v%d)\nv%d = cast(s%d) to=f32\n", v, a, v, v);
        break;
    case 24:
        snprintf(to, size, "c%d = greater(v%d, v%d)\nv%d = where(c%d, v%d, v%d)\n", v, a, b, v, v,
                 a, b);
        break;
    case 25:
        snprintf(to, size, "v%d = gather(v%d, i64{0}) axis=%d\n", v, a, axis);
        break;
    case 26:
        snprintf(to, size,
                 "s%d = shape(v%d)\nr%d = gather(s%d, i64(%d))\nq%d = range(i64(0), r%d, "
                 "i64(1))\nv%d = cast(q%d) to=f32\n",
                 v, a, v, v, axis, v, v, v, v);
        break;
    case 27:
        snprintf(
            to, size,
            "s%d = shape(v%d)\nt%d = shape(v%d)\nu%d = equal(s%d, t%d)\nv%d = cast(u%d) to=f32\n",
            v, a, v, b, v, v, v, v, v);
        break;
    case 28:
        snprintf(to, size, "v%d = softmax(v%d) axis=-1\n", v, a);
        break;
    default:
        snprintf(to, size, "v%d = relu(v%d)\n", v, a);
        break;
    }
}

static bool readable(const char *text) {
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    fac_graph *g = NULL;
    fac_error e = { 0 };
    const bool ok = !fac_graph_read(f, &g, &e);
    fclose(f);
    fac_graph_free(g);
    return ok;
}

static void draw_graph(drawing *d) {
    static const char *const dims[] = { "N,6", "N,M",   "M,6", "N,1,M", "1,M,6",
                                        "K",   "N,6,K", "3",   "2,6" };
    size_t n = 0;
    for (d->values = 0; d->values < 3; d->values++)
        n += (size_t)snprintf(d->text + n, sizeof d->text - n, "input v%d f32[%s]\n", d->values,
                              dims[draw(d, 9)]);
    for (int tries = 0; tries < 40 && d->values < 11; tries++) {
        draw_node(d, d->text + n, sizeof d->text - n);
        if (!readable(d->text)) {
            d->text[n] = 0;
            continue;
        }
        n = strlen(d->text);
        d->values++;
    }
    snprintf(d->text + n, sizeof d->text - n, "output y = v%d\noutput z = v%d\n", d->values - 1,
             d->values - 2);
}

static void drawn_ones(void **state) {
    (void)state;
    const char *asked = getenv("FACULA_GRAPHS");
    const int graphs = asked ? atoi(asked) : 150;
    int ran = 0;
    for (int k = 0; k < graphs; k++) {
        drawing d = { .stream = (uint64_t)k + 1000 };
        draw_graph(&d);
        ran += check_text(d.text, 5);
    }
    print_message("%d graphs, %d runs compared\n", graphs, ran);
    assert_true(ran > graphs / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_ones),
    };
    return cmocka_run_group_tests_name("open sizes drawn", tests, open_device, close_device);
}
