/* facula op --json: everything that the descriptors say. */
#include "json.h"
#include "op.h"

static cJSON *ports(const fac_port *p) {
    static const struct {
        unsigned bit;
        const char *name;
    } flags[] = { { FAC_OPTIONAL, "optional" },
                  { FAC_VARIADIC, "variadic" },
                  { FAC_SHAPE_ONLY, "shape_only" },
                  { FAC_HOST, "steers_shapes" } };
    cJSON *all = cJSON_CreateArray();
    for (; p && p->name; p++) {
        char takes[80];
        cJSON *one = cJSON_CreateObject();
        op_takes(p->takes, takes, sizeof takes);
        cJSON_AddStringToObject(one, "name", p->name);
        cJSON_AddStringToObject(one, "takes", takes);
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
            cJSON_AddBoolToObject(one, flags[k].name, (p->is & flags[k].bit) != 0);
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

static cJSON *attributes(const fac_attr *a) {
    cJSON *all = cJSON_CreateArray();
    for (; a && a->name; a++) {
        char kind[64];
        cJSON *one = cJSON_CreateObject();
        op_attr_kind(a, kind, sizeof kind);
        cJSON_AddStringToObject(one, "name", a->name);
        cJSON_AddStringToObject(one, "kind", kind);
        if (a->kind == FAC_A_INT || a->kind == FAC_A_REAL)
            json_number(one, "default", a->zero_means, 9);
        cJSON_AddStringToObject(one, "help", a->help ? a->help : "");
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

static cJSON *spellings(const fac_onnx *o) {
    cJSON *all = cJSON_CreateArray();
    for (; o && o->type; o++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "domain", o->domain);
        cJSON_AddStringToObject(one, "type", o->type);
        cJSON_AddNumberToObject(one, "since", o->since);
        if (o->until) cJSON_AddNumberToObject(one, "until", o->until);
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

static cJSON *cases(const fac_case *c) {
    cJSON *all = cJSON_CreateArray();
    for (; c && c->problem; c++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "problem", c->problem);
        json_number(one, "lowest", c->lo, 9);
        json_number(one, "highest", c->hi, 9);
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

static cJSON *whole(const fac_op *op, bool written) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "name", op->name);
    cJSON_AddStringToObject(j, "about", op->doc);
    cJSON_AddStringToObject(j, "meaning", op_meaning(op));
    if (op->map) cJSON_AddStringToObject(j, "formula", op->map->text);
    cJSON_AddItemToObject(j, "inputs", ports(op->in));
    cJSON_AddItemToObject(j, "outputs", ports(op->out));
    cJSON_AddItemToObject(j, "attributes", attributes(op->attrs));
    cJSON_AddItemToObject(j, "onnx", spellings(op->onnx));
    cJSON_AddItemToObject(j, "cases", cases(op->cases));
    if (written) {
        int n, all;
        const int first = op_first_opset(op, &n, &all);
        if (first < 0) json_lose();
        cJSON_AddNumberToObject(j, "written_cases", n);
        if (n) cJSON_AddNumberToObject(j, "written_since", first);
    }
    return j;
}

int op_json(const fac_op *one, bool written) {
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "ops");
    for (const fac_op *const *p = fac_ops; *p; p++)
        if (!one || one == *p) cJSON_AddItemToArray(all, whole(*p, written));
    return json_print(root);
}
