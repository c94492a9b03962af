/* Nodes that lack something: every operator that the importer knows, without each of its inputs and
 * attributes in turn, and with any inputs and attributes at all.  There is a graph, or one error
 * that says why not; what became a graph runs or says why not. FACULA_SAY=1: each text before it is
 * tried; FACULA_ONLY=NAME: one of the tests. */
#include <unistd.h>
#include "base/rng.h"
#include "fresh_seed.h"
#include "graph/graph_internal.h"
#include "onnx_lacks.h"

static uint64_t seed, drawn;
static int draw(int below) { return (int)(fac_random_bits(seed, 0, drawn++) % (uint64_t)below); }

/* ---- files of our own, each input and attribute taken out in turn ---- */

static void without_each(span model, const char *what) {
    char about[600];
    for (int node = 0, any = 1; any; node++) {
        any = 0;
        for (int k = 0; k < LACKS; k++)
            for (int at = 0, more = 1; more; at++) {
                more = 0;
                for (int kind = 0; kind <= (k == OTHER_KIND ? 9 : 0); kind++) {
                    change c = { node, (lack)k, at, kind, false };
                    bytes b = changed_model(model, &c);
                    more |= c.done;
                    any |= c.done;
                    snprintf(about, sizeof about, "%s: node %d, change %d of %d, kind %d", what,
                             node, k, at, kind);
                    if (c.done)
                        take_any(b, about);
                    else
                        free(b.p);
                }
            }
    }
}

static void save_and_cut(const char *problem) {
    static uint8_t data[1 << 20];
    char path[64];
    fac_graph *g = NULL;
    fac_error err = { 0 };
    snprintf(path, sizeof path, "/tmp/facula-lacks-%d.onnx", (int)getpid());
    if (fac_problem_graph(problem, false, &g, &err)) fail_msg("%s: %s", problem, err.text);
    const fac_status status = fac_onnx_save(g, path, NULL, &err);
    fac_graph_free(g);
    if (status == FAC_E_UNSUPPORTED) return; /* ONNX has no word for it */
    if (status) fail_msg("%s: %s", problem, err.text);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(data, 1, sizeof data, f);
    assert_true(n < sizeof data);
    fclose(f);
    remove(path);
    without_each((span){ data, n }, problem);
}

static void saved_cases(void **state) {
    enum { EACH = 3 };
    (void)state;
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (int k = 0; k < EACH && (*op)->cases && (*op)->cases[k].problem; k++)
            save_and_cut((*op)->cases[k].problem);
    print_message("%ld graphs, %ld errors, %ld runs\n", graphs_made, errors_said, runs_done);
    assert_true(graphs_made > 500 && errors_said > 500 && runs_done > 300);
}

/* ---- nodes of any inputs and attributes ---- */

static const char *const pool[] = { "x", "x", "v", "s", "c", "c2", "n", "b", "m", "", "" };

static bytes small_body(void) {
    bytes g = { 0 };
    add(&g, node("Relu", draw(2) ? "x" : "inner", "y0"));
    if (draw(2)) in(&g, "inner", "2,3,4,4");
    out(&g, draw(4) ? "y0" : "nowhere");
    return g;
}

static bytes any_attribute(const char *name) {
    static const int64_t numbers[] = { 0, 1, -1, 2, 3, 7, 100, INT64_MIN, INT64_MAX, INT32_MIN };
    static const char *const words[] = { "",        "linear",   "SAME_UPPER", "reverse",
                                         "nearest", "constant", "sum",        "asymmetric" };
    const int kind = draw(12), n = draw(5);
    bytes a = w_attr(name, kind);
    if (draw(4)) w_f32(&a, 2, (float)draw(7) - 2.5f);
    if (draw(4)) w_int(&a, 3, numbers[draw(10)]);
    if (draw(4)) w_text(&a, 4, words[draw(8)]);
    if (kind == 4) {
        const char *dims = draw(2) ? "1" : "2";
        bytes t = w_tensor("t", draw(2) ? F32 : I64, dims);
        w_bytes(&t, 9, numbers, (size_t)draw(3) * 4);
        w_sub(&a, 5, t);
    }
    if (kind == 5) w_sub(&a, 6, small_body());
    for (int k = 0; k < n && kind == 6; k++) w_f32(&a, 7, (float)draw(5) - 1);
    for (int k = 0; k < n && kind == 7; k++) w_int(&a, 8, numbers[draw(10)]);
    for (int k = 0; k < n && kind == 8; k++) w_text(&a, 9, words[draw(8)]);
    return a;
}

static void add_attributes(bytes *n, const fac_op *op, const fac_onnx *how) {
    const bool few = draw(2);
    for (const fac_onnx_attr *r = how->rename; r && r->onnx; r++)
        if (!draw(few ? 6 : 2)) w_sub(n, ATTRIBUTE, any_attribute(r->onnx));
    for (const fac_attr *a = op->attrs; a && a->name; a++)
        if (!draw(few ? 6 : 2)) w_sub(n, ATTRIBUTE, any_attribute(a->name));
}

static void add_leaves(bytes *g) {
    static const int64_t one[] = { 1 }, two[] = { 2, 3 };
    in(g, "x", "2,3,4,4");
    in(g, "v", "3");
    in(g, "s", "");
    in(g, "n", draw(4) ? "1,3" : "N,3");
    w_sub(g, INPUT, w_value("b", 9, "2,3,4,4"));
    w_sub(g, INPUT, w_value("m", I64, "2,3"));
    ints(g, "c", "1", one, 1);
    ints(g, "c2", "2", two, 2);
}

static void any_node(const fac_op *op, const fac_onnx *how, int inputs, int opset) {
    char names[128] = "", about[200];
    bytes g = { 0 };
    add_leaves(&g);
    for (int k = 0; k < inputs; k++) {
        const char *name = pool[draw(sizeof pool / sizeof *pool)];
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", name,
                 k + 1 < inputs ? "," : "");
    }
    const char *results = "y";
    if (!draw(8)) results = draw(2) ? "y,y1,y2" : ",y";
    bytes n = node(how->type, names, results);
    if (*how->domain) w_text(&n, DOMAIN, how->domain);
    add_attributes(&n, op, how);
    add(&g, n);
    out(&g, "y");
    bytes model = w_model(g, 8, opset);
    if (*how->domain) w_opset(&model, 8, how->domain, opset);
    snprintf(about, sizeof about, "%s (%s), opset %d, after %llu draws", how->type, names, opset,
             (unsigned long long)drawn);
    take_any(model, about);
}

static void any_nodes(void **state) {
    enum { ROUNDS = 40, INPUTS = 9 };
    (void)state;
    graphs_made = errors_said = runs_done = 0;
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_onnx *how = (*op)->onnx; how && how->type; how++)
            for (int k = 0; k < ROUNDS; k++)
                any_node(*op, how, k < INPUTS ? k : draw(INPUTS),
                         draw(2)      ? how->since
                         : how->until ? how->until
                                      : 23);
    print_message("%ld graphs, %ld errors, %ld runs\n", graphs_made, errors_said, runs_done);
    assert_true(graphs_made > 100 && errors_said > 1000);
}

/* ---- words ---- */

static void says_which_input(void **state) {
    (void)state;
    static const struct {
        const char *type, *in, *want;
    } rows[] = { { "Pow", "x", "block.p: Pow lacks its second input" },
                 { "Pow", "x,", "block.p: Pow lacks its second input" },
                 { "Pow", ",x", "block.p: Pow lacks its first input" },
                 { "Pow", "", "block.p: Pow lacks its first input" },
                 { "Conv", "x,", "Conv lacks its second input" },
                 { "InstanceNormalization", "x,v", "lacks its third input" },
                 { "CastLike", "x", "CastLike lacks its second input" },
                 { "TopK", "x", "TopK lacks its second input" },
                 { "LSTM", "x,x", "LSTM lacks its third input" },
                 { "Where", "b,x", "Where lacks its third input" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bytes g = { 0 };
        add_leaves(&g);
        add(&g, named(node(rows[k].type, rows[k].in, "y"), "block/p"));
        out(&g, "y");
        refuses_with(w_model(g, 8, 21), NULL, FAC_E_FORMAT, rows[k].want);
    }
}

static void take_text(const char *text) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    if (getenv("FACULA_SAY")) fprintf(stderr, "%s\n", text);
    if (fac_problem_graph(text, false, &g, &err)) {
        is_fair(&err, text);
        return;
    }
    graphs_made++;
    run_any(g, text);
    fac_graph_free(g);
}

/* Operands in the text of a graph, and of a call: "-" is an absent one. */
static void texts_without_each(void **state) {
    (void)state;
    char cut[4096];
    graphs_made = errors_said = runs_done = 0;
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_case *c = (*op)->cases; c && c->problem; c++) {
            const char *from = strchr(c->problem, '(');
            for (int depth = 0; from && *from; from++) {
                if (strchr("([{", *from)) depth++;
                if (strchr(")]}", *from) && !--depth) break;
                if (depth != 1 || !strchr("(,", *from)) continue;
                const size_t skip = strcspn(from + 1, "(,)["),
                             head = (size_t)(from + 1 - c->problem);
                const char *rest = from + 1 + skip;
                if (*rest == '[' || *rest == '(') rest += strcspn(rest, "])") + 1;
                snprintf(cut, sizeof cut, "%.*s-%s", (int)head, c->problem, rest);
                take_text(cut);
            }
        }
    print_message("%ld graphs, %ld errors, %ld runs\n", graphs_made, errors_said, runs_done);
    assert_true(graphs_made > 50 && errors_said > 500);
}

/* The same texts with another number in one place: a size, an index, a setting. */
static void texts_of_other_numbers(void **state) {
    static const char *const numbers[] = { "0", "1", "2", "3", "4", "7", "-1", "9" };
    char text[4096];
    (void)state;
    graphs_made = errors_said = runs_done = 0;
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_case *c = (*op)->cases; c && c->problem; c++)
            for (const char *at = strchr(c->problem, '['); at && *at; at++) {
                if (!strchr("[{,=", *at) || !strchr("-0123456789", at[1]) || !at[1]) continue;
                const size_t skip = strspn(at + 1, "-0123456789");
                snprintf(text, sizeof text, "%.*s%s%s", (int)(at + 1 - c->problem), c->problem,
                         numbers[draw(8)], at + 1 + skip);
                take_text(text);
            }
    print_message("%ld graphs, %ld errors, %ld runs\n", graphs_made, errors_said, runs_done);
    assert_true(graphs_made > 500 && errors_said > 500 && runs_done > 300);
}

static void calls_without_each(void **state) {
    enum { MOST = 16 };
    (void)state;
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_case *c = (*op)->cases; c && c->problem; c++) {
            fac_error err = { 0 };
            for (int k = 0, n = 1; k <= n; k++) {
                fac_graph *g = NULL;
                fac_value *in[MOST] = { NULL };
                if (fac_problem_graph(c->problem, false, &g, &err))
                    fail_msg("%s: %s", c->problem, err.text);
                const fac_node *last = g->last;
                n = last->nports < MOST ? last->nports : MOST;
                for (int i = 0; i < n; i++) in[i] = i == k ? NULL : last->in[i];
                const fac_value *y = fac_apply(g, *op, NULL, k == n ? n / 2 : n, in);
                assert_non_null(y);
                if (fac_graph_check(g, &err)) is_fair(&err, c->problem);
                fac_graph_free(g);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(says_which_input),
                                        cmocka_unit_test(saved_cases),
                                        cmocka_unit_test(any_nodes),
                                        cmocka_unit_test(texts_without_each),
                                        cmocka_unit_test(texts_of_other_numbers),
                                        cmocka_unit_test(calls_without_each) };
    fac_error err = { 0 };
    seed = fresh_seed();
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, &err)) return 2;
    if (getenv("FACULA_ONLY")) cmocka_set_test_filter(getenv("FACULA_ONLY"));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fac_device_free(device);
    return failed;
}
