/* ONNX files made byte by byte, so that tests need no protobuf library and can write what no
 * library would. Field numbers: src/onnx/onnx.proto.  A buffer that is put into another one is
 * freed by that. */
#ifndef FACULA_TESTS_ONNX_WRITER_H
#define FACULA_TESTS_ONNX_WRITER_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    uint8_t *p;
    size_t n, room;
} bytes;

__attribute__((unused)) static void w_raw(bytes *b, const void *data, size_t n) {
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->p = realloc(b->p, b->room);
        if (!b->p) abort();
    }
    if (n) memcpy(b->p + b->n, data, n);
    b->n += n;
}
__attribute__((unused)) static void w_varint(bytes *b, uint64_t v) {
    do w_raw(b, &(uint8_t){ (uint8_t)(v & 127) | (uint8_t)(v > 127 ? 128 : 0) }, 1);
    while (v >>= 7);
}
__attribute__((unused)) static void w_int(bytes *b, int field, int64_t v) {
    w_varint(b, (uint64_t)field << 3);
    w_varint(b, (uint64_t)v);
}
__attribute__((unused)) static void w_bytes(bytes *b, int field, const void *data, size_t n) {
    w_varint(b, (uint64_t)field << 3 | 2);
    w_varint(b, n);
    w_raw(b, data, n);
}
__attribute__((unused)) static void w_text(bytes *b, int field, const char *s) {
    w_bytes(b, field, s, strlen(s));
}
__attribute__((unused)) static void w_f32(bytes *b, int field, float x) {
    w_varint(b, (uint64_t)field << 3 | 5);
    w_raw(b, &x, 4);
}
__attribute__((unused)) static void w_f64(bytes *b, int field, double x) {
    w_varint(b, (uint64_t)field << 3 | 1);
    w_raw(b, &x, 8);
}
__attribute__((unused)) static void w_sub(bytes *b, int field, bytes sub) {
    w_bytes(b, field, sub.p, sub.n);
    free(sub.p);
}

/* ---- messages ---- */

/* "a,b,,c": one field for each name. */
__attribute__((unused)) static void w_names(bytes *b, int field, const char *names) {
    for (const char *s = names; *names;) {
        size_t n = strcspn(s, ",");
        w_bytes(b, field, s, n);
        if (!s[n]) break;
        s += n + 1;
    }
}
__attribute__((unused)) static bytes w_node(const char *type, const char *in, const char *out) {
    bytes b = { 0 };
    w_names(&b, 1, in);
    w_names(&b, 2, out);
    w_text(&b, 4, type);
    return b;
}
__attribute__((unused)) static bytes w_attr(const char *name, int kind) {
    bytes b = { 0 };
    w_text(&b, 1, name);
    if (kind) w_int(&b, 20, kind);
    return b;
}
__attribute__((unused)) static void w_attr_int(bytes *node, const char *name, int64_t v) {
    bytes a = w_attr(name, 2);
    w_int(&a, 3, v);
    w_sub(node, 5, a);
}
__attribute__((unused)) static void w_attr_f32(bytes *node, const char *name, float v) {
    bytes a = w_attr(name, 1);
    w_f32(&a, 2, v);
    w_sub(node, 5, a);
}
/* dims: "2,N,?": a number, a name, unknown; NULL: no shape at all. */
__attribute__((unused)) static bytes w_value(const char *name, int dtype, const char *dims) {
    bytes value = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    w_int(&tensor, 1, dtype);
    for (const char *s = dims; s && *s;) {
        size_t n = strcspn(s, ",");
        bytes dim = { 0 };
        if ((*s >= '0' && *s <= '9') || *s == '-')
            w_int(&dim, 1, strtoll(s, NULL, 10));
        else if (*s == '=')
            w_bytes(&dim, 2, s + 1, n - 1); /* a name, whatever it is */
        else if (*s != '?')
            w_bytes(&dim, 2, s, n);
        w_sub(&shape, 1, dim);
        s += n + (s[n] == ',');
    }
    if (dims) w_sub(&tensor, 2, shape);
    w_sub(&type, 1, tensor);
    w_text(&value, 1, name);
    w_sub(&value, 2, type);
    return value;
}
/* TensorProto without contents. */
__attribute__((unused)) static bytes w_tensor(const char *name, int dtype, const char *dims) {
    bytes b = { 0 };
    for (const char *s = dims; *s;) {
        w_int(&b, 1, strtoll(s, NULL, 10));
        s += strcspn(s, ",");
        s += *s == ',';
    }
    w_int(&b, 2, dtype);
    if (name) w_text(&b, 8, name);
    return b;
}
__attribute__((unused)) static bytes w_tensor_f32(const char *name, const char *dims,
                                                  const float *data, size_t n) {
    bytes b = w_tensor(name, 1, dims);
    w_bytes(&b, 9, data, n * sizeof *data);
    return b;
}
__attribute__((unused)) static void w_external(bytes *tensor, const char *key, const char *value) {
    bytes e = { 0 };
    w_text(&e, 1, key);
    w_text(&e, 2, value);
    w_sub(tensor, 13, e);
}
__attribute__((unused)) static void w_opset(bytes *b, int field, const char *domain,
                                            int64_t version) {
    bytes o = { 0 };
    if (*domain) w_text(&o, 1, domain);
    w_int(&o, 2, version);
    w_sub(b, field, o);
}
/* A whole model around a graph; functions may be added to it. */
__attribute__((unused)) static bytes w_model(bytes graph, int64_t ir, int64_t opset) {
    bytes b = { 0 };
    w_int(&b, 1, ir);
    w_sub(&b, 7, graph);
    w_opset(&b, 8, "", opset);
    return b;
}
#endif
