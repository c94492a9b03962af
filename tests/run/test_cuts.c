/* Plans whose rest is cut again: what crosses one cut lies beside what crosses the next, under
 * names of its own, however many values the graph has. */
#include "flow_check.h"

static const numbers usual = { 7, 3, true };

enum { LEVELS = 4, NUMBERS = 9 };

/* `format` with # for k, and @ for the number after it. */
static void put(char *text, const char *format, int k) {
    char *to = text + strlen(text);
    for (const char *c = format; *c; c++)
        if (*c == '#' || *c == '@')
            to += sprintf(to, "%d", *c == '#' ? k : k + 1);
        else
            *to++ = *c;
    *to = 0;
}

/* Each level is where the numbers of the one before it are above 0.5; all levels are read at the
 * end, each of them after `more` nodes. */
static fac_graph *counted(int more) {
    char text[1 << 14] = "input x f32[3,3]\nv = reshape(x, i64{9})\na = abs(v)\nf0 = add(a, 1)\nz "
                         "= sub(f0, f0)\ny0 = sum(z, i64{0})\n";
    for (int k = 0; k < LEVELS; k++) {
        put(text,
            "g# = greater(f#, 0.5)\nc# = cast(g#) to=i64\nn# = sum(c#, i64{0})\n"
            "p# = nonzero(g#, n#)\nr# = squeeze(p#, i64{0})\nf@ = cast(r#) to=f32\n"
            "s0_# = sum(f@, i64{0})\n",
            k);
        for (int i = 0; i < more; i++)
            sprintf(text + strlen(text), "s%d_%d = neg(s%d_%d)\n", i + 1, k, i, k);
        sprintf(text + strlen(text), "y%d = add(y%d, s%d_%d)\n", k + 1, k, more, k);
    }
    put(text, "output y = y#\noutput last = f#\n", LEVELS);
    return read_text(text);
}

static void cuts_of_cuts(void **state) {
    (void)state;
    for (int more = 0; more < 24; more++) {
        fac_graph *g = counted(more);
        fac_tensor *out[MOST];
        run_on(device, g, &usual, out);
        double at[NUMBERS], sum = 0;
        int64_t count = NUMBERS, n, one;
        for (int k = 0; k < NUMBERS; k++) at[k] = 1;
        for (int k = 0; k < LEVELS; k++) {
            n = 0;
            for (int64_t i = 0; i < count; i++)
                if (at[i] > 0.5) at[n++] = (double)i;
            count = n;
            for (int64_t i = 0; i < n; i++) sum += more % 2 ? -at[i] : at[i];
        }
        double *y = doubles(out[0], &one), *last = doubles(out[1], &n);
        assert_true(y[0] == sum);
        assert_int_equal(n, count);
        for (int64_t k = 0; k < n; k++) assert_true(last[k] == at[k]);
        free(last);
        free(y);
        for (int k = 0; k < 2; k++) fac_tensor_free(out[k]);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(cuts_of_cuts) };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
