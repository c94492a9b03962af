/* facula op: the operators, from their descriptors. */
#include <string.h>
#include "op.h"

void op_takes(unsigned takes, char *to, size_t size) {
    static const struct {
        unsigned bit;
        const char *name;
    } kinds[] = { { FAC_FLOATS, "floats" },
                  { FAC_INTS, "integers" },
                  { FAC_BOOLS, "bool" },
                  { FAC_TEXTS, "text" } };
    to[0] = 0;
    for (size_t i = 0; i < 4; i++)
        if (takes & kinds[i].bit)
            snprintf(to + strlen(to), size - strlen(to), "%s%s", *to ? ", " : "", kinds[i].name);
    if (takes == FAC_ANY) snprintf(to, size, "any type");
}

static void ports(const char *title, const fac_port *p) {
    for (; p && p->name; p++) {
        char takes[80];
        op_takes(p->takes, takes, sizeof takes);
        printf("  %-7s %-16s %s%s%s%s%s\n", title, p->name, takes,
               p->is & FAC_OPTIONAL ? "; optional" : "",
               p->is & FAC_VARIADIC ? "; one or more" : "",
               p->is & FAC_SHAPE_ONLY ? "; only its shape" : "",
               p->is & FAC_HOST ? "; steers the shape" : "");
    }
}

const char *op_meaning(const fac_op *op) {
    if (op->map) return "elementwise";
    if (op->move) return "moves elements";
    if (op->ref) return "reference kernel";
    return op->expand ? "expands into other ops" : "its body";
}

void op_attr_kind(const fac_attr *a, char *to, size_t size) {
    to[0] = 0;
    switch (a->kind) {
    case FAC_A_INT:
        snprintf(to, size, a->count ? "%d integers" : "integer", a->count);
        break;
    case FAC_A_REAL:
        snprintf(to, size, a->count ? "%d numbers" : "number", a->count);
        break;
    case FAC_A_FLAG:
        snprintf(to, size, "flag");
        break;
    case FAC_A_ENUM:
        for (const char *const *c = a->choices; *c; c++)
            snprintf(to + strlen(to), size - strlen(to), "%s%s", *to ? "|" : "", *c);
        break;
    case FAC_A_DTYPE:
        snprintf(to, size, "type");
        break;
    case FAC_A_DIMS:
        snprintf(to, size, "sizes");
        break;
    case FAC_A_TEXT:
        snprintf(to, size, "text");
        break;
    case FAC_A_REALS:
        snprintf(to, size, "numbers");
        break;
    }
}

static void op_print(const fac_op *op) {
    printf("%s: %s\n\n", op->name, op->doc);
    ports("input", op->in);
    ports("output", op->out);
    for (const fac_attr *a = op->attrs; a && a->name; a++) {
        char kind[64];
        op_attr_kind(a, kind, sizeof kind);
        printf("  attr    %-16s %s", a->name, kind);
        if (a->kind == FAC_A_INT || a->kind == FAC_A_REAL) printf(", default %g", a->zero_means);
        if (a->help) printf(": %s", a->help);
        putchar('\n');
    }
    printf("\n  meaning %s%s%s\n", op_meaning(op), op->map ? ": " : "",
           op->map ? op->map->text : "");
    for (const fac_onnx *o = op->onnx; o && o->type; o++) {
        printf("  onnx    %s%s%s, opset %d", o->domain, *o->domain ? "." : "", o->type, o->since);
        if (o->until)
            printf(" to %d\n", o->until);
        else
            printf(" on\n");
    }
    for (const fac_case *c = op->cases; c && c->problem; c++) printf("  e.g.    %s\n", c->problem);
}

static struct {
    bool onnx, cases, support, json;
    const char *device;
} o;
static const option options[] = {
    { "--onnx", OPTION_FLAG, &o.onnx, NULL,
      "print how ONNX files spell each op, and from which opset on it is written" },
    { "--cases", OPTION_FLAG, &o.cases, NULL,
      "print problems to try the ops with: name, lowest and highest number, problem" },
    { "--support", OPTION_FLAG, &o.support, NULL,
      "print how many of those problems each device solves with kernels of its own" },
    { "--device", OPTION_TEXT, &o.device, "NAME",
      "with --support: the device beside the cpu; default opencl" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

static int op(list args) {
    const verb *self = verb_find("op");
    if (o.onnx + o.cases + o.support > 1)
        return usage_error(self, "only one of --onnx, --cases and --support");
    if (o.device && !o.support) return usage_error(self, "--device goes with --support");
    const int wrong = arguments_fit(self, args, 0, 1, "");
    if (wrong) return wrong;
    if (args.n && (o.onnx || o.cases || o.support))
        return usage_error(self, "the lists are of all operators");
    const fac_op *one = args.n ? fac_op_find(args.at[0]) : NULL;
    if (args.n && !one) return fail_text("there is no op \"%s\" (see `facula op`)", args.at[0]);
    if (o.support) return op_support_list(o.device ? o.device : "opencl", o.json);
    if (o.json) return op_json(one, o.onnx);
    if (o.onnx) return op_onnx_list();
    if (o.cases)
        op_case_list();
    else if (one)
        op_print(one);
    else
        for (const fac_op *const *p = fac_ops; *p; p++) printf("%-18s %s\n", (*p)->name, (*p)->doc);
    return EXIT_OK;
}
const verb verb_op = { .name = "op",
                       .summary = "list the operators, or describe one of them in detail",
                       .usage = "facula op [NAME] [options]",
                       .options = options,
                       .examples = "op\nop conv2d\nop --onnx",
                       .run = op };
