/* facula version, facula zoo, facula op: what there is. */
#include <string.h>
#include "cli.h"
#include "facula/backend.h"
#include "facula/op.h"

static int version(list args) {
    (void)args;
    printf("facula %s\n\n", FACULA_VERSION);
    printf("built      %s, C%ld%s\n", __VERSION__, __STDC_VERSION__ / 100 % 100,
#if defined(__SANITIZE_ADDRESS__)
           ", address sanitizer"
#elif defined(__SANITIZE_THREAD__)
           ", thread sanitizer"
#else
           ""
#endif
    );
    static const struct { const char *name, *version, *use; } found[] = {
#ifdef FAC_HAVE_PNG
        { "libpng", FAC_HAVE_PNG, "PNG images" },
#else
        { "libpng", NULL, "PNG images: install libpng-dev and build again" },
#endif
#ifdef FAC_HAVE_TURBOJPEG
        { "turbojpeg", FAC_HAVE_TURBOJPEG, "JPEG images" },
#else
        { "turbojpeg", NULL, "JPEG images: install libturbojpeg0-dev and build again" },
#endif
#ifdef FAC_HAVE_ZLIB
        { "zlib", FAC_HAVE_ZLIB, "compressed .npz" },
#else
        { "zlib", NULL, "compressed .npz: install zlib1g-dev and build again" },
#endif
#ifdef FAC_HAVE_CAIRO
        { "cairo", FAC_HAVE_CAIRO, "charts as PNG" },
#else
        { "cairo", NULL, "charts as PNG: install libcairo2-dev and build again" },
#endif
#ifdef FAC_HAVE_OPENCL
        { "opencl", FAC_HAVE_OPENCL, "devices (the library is looked for when one is opened)" },
#else
        { "opencl", NULL, "devices: install opencl-c-headers and build again" },
#endif
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        printf("%-10s %-10s %s\n", found[i].name, found[i].version ? found[i].version : "not found", found[i].use);
    fac_device *d;
    fac_error err = { 0 };
    if (fac_device_open("cpu", NULL, &d, &err)) return fail(&err);
    printf("cpu        %s\n", fac_device_about(d));
    fac_device_free(d);
    int ops = 0;
    while (fac_ops[ops]) ops++;
    printf("ops        %d\n", ops);
    return EXIT_OK;
}
const verb verb_version = { .name = "version", .summary = "version, what was found when it was built, CPU features",
                            .usage = "facula version", .run = version };

static int zoo(list args) {
    (void)args;
    for (const fac_zoo *z = fac_zoo_models; z->name; z++)
        printf("zoo:%-18s %dx%dx%d -> %-5d %s\n", z->name, z->channels, z->height, z->width, z->classes, z->help);
    return EXIT_OK;
}
const verb verb_zoo = { .name = "zoo", .summary = "the networks that facula can build itself", .usage = "facula zoo", .run = zoo,
                        .more = "Use one as a model: `facula run zoo:NAME --weights FILE photo.jpg`." };

/* ---- op ---- */

static void takes_text(unsigned takes, char *to, size_t size) {
    static const struct { unsigned bit; const char *name; } kinds[] = { { FAC_FLOATS, "floats" }, { FAC_INTS, "integers" },
                                                                        { FAC_BOOLS, "bool" }, { FAC_TEXTS, "text" } };
    to[0] = 0;
    for (size_t i = 0; i < 4; i++)
        if (takes & kinds[i].bit) snprintf(to + strlen(to), size - strlen(to), "%s%s", *to ? ", " : "", kinds[i].name);
    if (takes == FAC_ANY) snprintf(to, size, "any type");
}

static void ports(const char *title, const fac_port *p) {
    for (; p && p->name; p++) {
        char takes[80];
        takes_text(p->takes, takes, sizeof takes);
        printf("  %-7s %-16s %s%s%s%s%s\n", title, p->name, takes, p->is & FAC_OPTIONAL ? "; optional" : "",
               p->is & FAC_VARIADIC ? "; one or more" : "",
               p->is & FAC_SHAPE_ONLY ? "; only its shape" : "", p->is & FAC_HOST ? "; steers the shape" : "");
    }
}

static const char *meaning(const fac_op *op) {
    return op->map ? "elementwise" : op->move ? "moves elements" : op->ref ? "reference kernel" : op->expand ? "expands into other ops" : "its body";
}

static int op_one(const fac_op *op) {
    printf("%s: %s\n\n", op->name, op->doc);
    ports("input", op->in);
    ports("output", op->out);
    for (const fac_attr *a = op->attrs; a && a->name; a++) {
        char kind[64] = "";
        switch (a->kind) {
        case FAC_A_INT: snprintf(kind, sizeof kind, a->count ? "%d integers" : "integer", a->count); break;
        case FAC_A_REAL: snprintf(kind, sizeof kind, a->count ? "%d numbers" : "number", a->count); break;
        case FAC_A_FLAG: snprintf(kind, sizeof kind, "flag"); break;
        case FAC_A_ENUM:
            for (const char *const *c = a->choices; *c; c++)
                snprintf(kind + strlen(kind), sizeof kind - strlen(kind), "%s%s", *kind ? "|" : "", *c);
            break;
        case FAC_A_DTYPE: snprintf(kind, sizeof kind, "type"); break;
        case FAC_A_DIMS: snprintf(kind, sizeof kind, "sizes"); break;
        case FAC_A_TEXT: snprintf(kind, sizeof kind, "text"); break;
        }
        printf("  attr    %-16s %s", a->name, kind);
        if ((a->kind == FAC_A_INT || a->kind == FAC_A_REAL) && a->zero_means != 0) printf(", default %g", a->zero_means);
        printf("%s%s\n", a->help ? ": " : "", a->help ? a->help : "");
    }
    printf("\n  meaning %s%s%s\n", meaning(op), op->map ? ": " : "", op->map ? op->map->text : "");
    for (const fac_onnx *o = op->onnx; o && o->type; o++) {
        printf("  onnx    %s%s%s, opset %d", o->domain, *o->domain ? "." : "", o->type, o->since);
        if (o->until) printf(" to %d\n", o->until);
        else printf(" on\n");
    }
    for (const fac_case *c = op->cases; c && c->problem; c++) printf("  e.g.    %s\n", c->problem);
    return EXIT_OK;
}

static struct { bool onnx, cases, support; const char *device; } list_of;
static const option op_options[] = {
    { "--onnx", OPTION_FLAG, &list_of.onnx, NULL, "how ONNX files say each op, and from which opset on it is written" },
    { "--cases", OPTION_FLAG, &list_of.cases, NULL, "problems to try the ops with: name, lowest and highest number, problem" },
    { "--support", OPTION_FLAG, &list_of.support, NULL, "how many of those problems each device does with kernels of its own" },
    { "--device", OPTION_TEXT, &list_of.device, "NAME", "for --support, beside the cpu; default opencl" },
    { 0 } };

static int op(list args) {
    if (list_of.onnx || list_of.cases) {
        (list_of.onnx ? op_onnx_list : op_case_list)();
        return EXIT_OK;
    }
    if (list_of.support) return op_support_list(list_of.device ? list_of.device : "opencl");
    if (args.n) {
        const fac_op *o = fac_op_find(args.at[0]);
        return o ? op_one(o) : fail_text("there is no op \"%s\" (see `facula op`)", args.at[0]);
    }
    for (const fac_op *const *o = fac_ops; *o; o++) printf("%-18s %s\n", (*o)->name, (*o)->doc);
    return EXIT_OK;
}
const verb verb_op = { .name = "op", .summary = "the operators; one of them in detail", .usage = "facula op [NAME]",
                       .options = op_options, .run = op };
