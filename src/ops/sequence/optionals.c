/* Optionals, when a file is read: one that holds something is that. */
#include "facula/ops.h"
#include "graph/list.h"

static void optional(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                     fac_value *out[]) {
    out[0] = n->nin > 0 && in[0] ? in[0] : fac_list_nothing(g);
}

static bool holds(const fac_onnx_node *n, fac_value *const in[]) {
    return n->nin > 0 && in[0] && !(fac_is_list(in[0]) && fac_list_is_nothing(in[0]));
}

static void has_element(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                        fac_value *out[]) {
    out[0] = fac_number(g, FAC_BOOL, holds(n, in));
}

static void get_element(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                        fac_value *out[]) {
    if (holds(n, in))
        out[0] = in[0];
    else
        fac_fail_graph(g, FAC_E_ARGUMENT, "OptionalGetElement of an optional that holds nothing");
}

static const fac_onnx_attr type[] = { { "type", NULL }, { 0 } };
const fac_onnx fac_reads_optionals[] = { { "", "Optional", 15, 0, type, optional, 0 },
                                         { "", "OptionalHasElement", 15, 0, NULL, has_element, 0 },
                                         { "", "OptionalGetElement", 15, 0, NULL, get_element, 1 },
                                         { 0 } };
