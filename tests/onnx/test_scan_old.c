/* Scan of opset 8, which has a batch: running sums of each row, forwards and backwards; what is
 * refused. */
#include "onnx_check.h"

static bytes scanned(const char *ins, int64_t back) {
    const int64_t cut[] = { 2, 2, 1 }, whole = 4;
    bytes b = { 0 }, g = { 0 }, n = node("Scan", ins, "last,all"), at = w_attr("body", 5);
    in(&b, "sum", "1");
    in(&b, "v", "1");
    add(&b, node("Add", "sum,v", "next"));
    add(&b, node("Identity", "next", "row"));
    w_sub(&b, OUTPUT, w_value("next", F32, "1"));
    w_sub(&b, OUTPUT, w_value("row", F32, "1"));
    w_sub(&at, 6, b);
    w_sub(&n, ATTRIBUTE, at);
    w_attr_int(&n, "num_scan_inputs", 1);
    bytes directions = w_attr("directions", 7);
    w_int(&directions, 8, (uint64_t)back);
    w_sub(&n, ATTRIBUTE, directions);
    in(&g, "x", "4");
    ints(&g, "cut", "3", cut, 3);
    ints(&g, "whole", "1", &whole, 1);
    ints(&g, "lengths", "2", cut, 2);
    w_sub(&g, INITIALIZER, w_tensor_f32("zero", "2,1", (float[]){ 0, 0 }, 2));
    add(&g, node("Reshape", "x,cut", "rows"));
    add(&g, n);
    add(&g, node("Reshape", "all,whole", "y"));
    out(&g, "y");
    return w_model(g, 8, 8);
}

static void each_row_is_a_scan(void **state) {
    const float x[] = { 1, 2, 3, 4 };
    (void)state;
    runs(load_with(scanned(",zero,rows", 0), NULL), x, (float[]){ 1, 3, 3, 7 }, 4);
    runs(load_with(scanned(",zero,rows", 1), NULL), x, (float[]){ 2, 3, 4, 7 }, 4);
}

static void what_is_refused(void **state) {
    (void)state;
    refuses_with(scanned("lengths,zero,rows", 0), NULL, FAC_E_UNSUPPORTED, "with lengths");
    refuses_with(scanned(",zero,rows,rows", 0), NULL, FAC_E_UNSUPPORTED, "with lengths");
    refuses_with(scanned(",zero,rows", 2), NULL, FAC_E_FORMAT, "must be 0 or 1");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_row_is_a_scan),
                                        cmocka_unit_test(what_is_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
