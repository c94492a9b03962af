/* Decoding by table: one table for each message of onnx.proto, one function for all of them. */
#include "onnx/proto.h"
#include <pb_decode.h>
#include <string.h>
#include "base/error.h"

typedef enum kind { INT, REAL, TEXT, WINDOW, SKIP, MESSAGE, TEXTS, MESSAGES } kind;
typedef struct message message;
typedef struct field {
    uint32_t number;
    kind kind;
    size_t at; /* offsetof in the struct; TEXTS and MESSAGES: of a list */
    const message *sub;
} field;
struct message {
    const char *name;
    size_t size, least; /* of the struct; the fewest bytes of a message that means anything */
    size_t self;        /* offsetof the window on the message itself; 0: none wanted        */
    const field *fields;
};
typedef struct list {
    void *at;
    size_t n;
} list; /* as the { T *at; size_t n; } of proto.h */

#define AT(member) offsetof(S, member)

#define S fac_proto_opset
static const field opset_fields[] = { { 1, TEXT, AT(domain), NULL },
                                      { 2, INT, AT(version), NULL },
                                      { 0 } };
static const message opset = { "OperatorSetIdProto", sizeof(S), 0, 0, opset_fields };
#undef S
#define S fac_proto_pair
static const field pair_fields[] = { { 1, TEXT, AT(key), NULL },
                                     { 2, TEXT, AT(value), NULL },
                                     { 0 } };
static const message pair = { "StringStringEntryProto", sizeof(S), 2, 0, pair_fields };
#undef S
#define S fac_proto_tensor
static const field tensor_fields[] = { { FAC_PROTO_TENSOR_DIMS, SKIP, 0, NULL },
                                       { FAC_PROTO_TENSOR_TYPE, INT, AT(type), NULL },
                                       { FAC_PROTO_TENSOR_SEGMENT, SKIP, 0, NULL },
                                       { FAC_PROTO_TENSOR_FLOATS, SKIP, 0, NULL },
                                       { FAC_PROTO_TENSOR_INT32S, SKIP, 0, NULL },
                                       { FAC_PROTO_TENSOR_TEXTS, SKIP, 0, NULL },
                                       { FAC_PROTO_TENSOR_INT64S, SKIP, 0, NULL },
                                       { FAC_PROTO_TENSOR_NAME, TEXT, AT(name), NULL },
                                       { FAC_PROTO_TENSOR_RAW, WINDOW, AT(raw), NULL },
                                       { FAC_PROTO_TENSOR_DOUBLES, SKIP, 0, NULL },
                                       { FAC_PROTO_TENSOR_UINT64S, SKIP, 0, NULL },
                                       { 13, MESSAGES, AT(external), &pair },
                                       { 14, INT, AT(location), NULL },
                                       { 0 } };
static const message tensor = { "TensorProto", sizeof(S), 2, AT(self), tensor_fields };
#undef S
#define S fac_proto_attr
static const field attr_fields[] = { { 1, TEXT, AT(name), NULL },
                                     { FAC_PROTO_ATTR_F, REAL, AT(f), NULL },
                                     { FAC_PROTO_ATTR_I, INT, AT(i), NULL },
                                     { FAC_PROTO_ATTR_S, WINDOW, AT(s), NULL },
                                     { FAC_PROTO_ATTR_T, WINDOW, AT(t), NULL },
                                     { FAC_PROTO_ATTR_G, WINDOW, AT(g), NULL },
                                     { FAC_PROTO_ATTR_FLOATS, SKIP, 0, NULL },
                                     { FAC_PROTO_ATTR_INTS, SKIP, 0, NULL },
                                     { FAC_PROTO_ATTR_TEXTS, SKIP, 0, NULL },
                                     { 20, INT, AT(type), NULL },
                                     { 21, TEXT, AT(ref), NULL },
                                     { 0 } };
static const message attr = { "AttributeProto", sizeof(S), 3, AT(self), attr_fields };
#undef S
#define S fac_proto_node
static const field node_fields[] = { { 1, TEXTS, AT(in), NULL },
                                     { 2, TEXTS, AT(out), NULL },
                                     { 3, TEXT, AT(name), NULL },
                                     { 4, TEXT, AT(type), NULL },
                                     { 5, MESSAGES, AT(attrs), &attr },
                                     { 7, TEXT, AT(domain), NULL },
                                     { 8, TEXT, AT(overload), NULL },
                                     { 9, MESSAGES, AT(metadata), &pair },
                                     { 0 } };
static const message node = { "NodeProto", sizeof(S), 3, 0, node_fields };
#undef S
#define S fac_proto_dim
static const field dim_fields[] = { { FAC_PROTO_DIM_VALUE, INT, AT(value), NULL },
                                    { FAC_PROTO_DIM_PARAM, TEXT, AT(param), NULL },
                                    { 0 } };
static const message dim = { "TensorShapeProto.Dimension", sizeof(S), 0, 0, dim_fields };
#undef S
#define S fac_proto_shape
static const field shape_fields[] = { { 1, MESSAGES, AT(dims), &dim }, { 0 } };
static const message shape = { "TensorShapeProto", sizeof(S), 0, 0, shape_fields };
#undef S
#define S fac_proto_dense
static const field dense_fields[] = { { 1, INT, AT(type), NULL },
                                      { FAC_PROTO_DENSE_SHAPE, MESSAGE, AT(shape), &shape },
                                      { 0 } };
static const message dense = { "TypeProto.Tensor", sizeof(S), 0, 0, dense_fields };
#undef S
#define S fac_proto_type
static const field type_fields[] = { { FAC_PROTO_TYPE_DENSE, MESSAGE, AT(dense), &dense },
                                     { FAC_PROTO_TYPE_SEQUENCE, SKIP, 0, NULL },
                                     { FAC_PROTO_TYPE_MAP, SKIP, 0, NULL },
                                     { FAC_PROTO_TYPE_OPAQUE, SKIP, 0, NULL },
                                     { FAC_PROTO_TYPE_SPARSE, SKIP, 0, NULL },
                                     { FAC_PROTO_TYPE_OPTIONAL, SKIP, 0, NULL },
                                     { 0 } };
static const message type = { "TypeProto", sizeof(S), 0, 0, type_fields };
#undef S
#define S fac_proto_value
static const field value_fields[] = { { 1, TEXT, AT(name), NULL },
                                      { FAC_PROTO_VALUE_TYPE, MESSAGE, AT(type), &type },
                                      { 0 } };
static const message value = { "ValueInfoProto", sizeof(S), 3, 0, value_fields };
#undef S
#define S fac_proto_graph
static const field graph_fields[] = {
    { 1, MESSAGES, AT(nodes), &node },         { 2, TEXT, AT(name), NULL },
    { 5, MESSAGES, AT(tensors), &tensor },     { 11, MESSAGES, AT(in), &value },
    { 12, MESSAGES, AT(out), &value },         { 13, MESSAGES, AT(infos), &value },
    { FAC_PROTO_GRAPH_SPARSE, SKIP, 0, NULL }, { 0 }
};
static const message graph = { "GraphProto", sizeof(S), 0, 0, graph_fields };
#undef S
#define S fac_proto_function
static const field function_fields[] = {
    { 1, TEXT, AT(name), NULL },       { 4, TEXTS, AT(in), NULL },
    { 5, TEXTS, AT(out), NULL },       { 6, TEXTS, AT(attrs), NULL },
    { 7, MESSAGES, AT(nodes), &node }, { 9, MESSAGES, AT(opsets), &opset },
    { 10, TEXT, AT(domain), NULL },    { 11, MESSAGES, AT(defaults), &attr },
    { 13, TEXT, AT(overload), NULL },  { 0 }
};
static const message function = { "FunctionProto", sizeof(S), 3, 0, function_fields };
#undef S
#define S fac_proto_model
static const field model_fields[] = { { 1, INT, AT(ir), NULL },
                                      { 2, TEXT, AT(producer), NULL },
                                      { 3, TEXT, AT(producer_version), NULL },
                                      { 4, TEXT, AT(domain), NULL },
                                      { 5, INT, AT(version), NULL },
                                      { 6, TEXT, AT(doc), NULL },
                                      { FAC_PROTO_MODEL_GRAPH, MESSAGE, AT(graph), &graph },
                                      { 14, MESSAGES, AT(metadata), &pair },
                                      { 8, MESSAGES, AT(opsets), &opset },
                                      { 25, MESSAGES, AT(functions), &function },
                                      { 0 } };
static const message model = { "ModelProto", sizeof(S), 0, 0, model_fields };
#undef S

/* ---- the wire format ---- */

static pb_istream_t stream_of(fac_bytes b) { return pb_istream_from_buffer(b.p, b.n); }

/* The next field: 1 when there is one, 0 at the end, -1 when malformed. */
static int next(pb_istream_t *s, uint32_t *number, pb_wire_type_t *wire) {
    bool end = false;
    if (!pb_decode_tag(s, wire, number, &end)) return end ? 0 : -1;
    return *number ? 1 : -1;
}

/* A length-delimited field as a window: a stream from a buffer keeps its place in `state`, so
 * nothing is copied. */
static bool window(pb_istream_t *s, fac_bytes *out) {
    pb_istream_t sub;
    if (!pb_make_string_substream(s, &sub)) return false;
    *out = (fac_bytes){ sub.state, sub.bytes_left };
    return pb_close_string_substream(s, &sub);
}

typedef struct reader {
    const uint8_t *start;
    fac_arena *arena;
    fac_error *err;
} reader;

static fac_status broken(const reader *r, const pb_istream_t *s, const message *m,
                         const char *what) {
    size_t at = (size_t)((const uint8_t *)s->state - r->start);
    return fac_raise(r->err, FAC_E_FORMAT, "malformed %s at byte %zu: %s", m->name, at,
                     what        ? what
                     : s->errmsg ? s->errmsg
                                 : "no field number");
}

/* ---- messages ---- */

static const field *find(const message *m, uint32_t number) {
    for (const field *f = m->fields; f->number; f++)
        if (f->number == number) return f;
    return NULL;
}

static const pb_wire_type_t wire_of[] = {
    [INT] = PB_WT_VARINT,     [REAL] = PB_WT_32BIT,     [TEXT] = PB_WT_STRING,
    [WINDOW] = PB_WT_STRING,  [MESSAGE] = PB_WT_STRING, [TEXTS] = PB_WT_STRING,
    [MESSAGES] = PB_WT_STRING
};

static fac_status read_message(const reader *r, const message *m, fac_bytes bytes, char *to);

/* Lists are counted before they are read, so that each is one array. */
static fac_status make_lists(const reader *r, const message *m, fac_bytes bytes, char *to) {
    pb_istream_t s = stream_of(bytes);
    uint32_t number;
    pb_wire_type_t wire;
    int more;
    bool any = false;
    for (const field *f = m->fields; f->number; f++)
        if (f->kind >= TEXTS) {
            memcpy(to + f->at, &(list){ NULL, 0 }, sizeof(list));
            any = true;
        }
    if (!any) return FAC_OK;
    while ((more = next(&s, &number, &wire)) > 0) {
        const field *f = find(m, number);
        if (!pb_skip_field(&s, wire)) return broken(r, &s, m, NULL);
        if (f && f->kind >= TEXTS) {
            list l;
            memcpy(&l, to + f->at, sizeof l);
            l.n++;
            memcpy(to + f->at, &l, sizeof l);
        }
    }
    if (more < 0) return broken(r, &s, m, NULL);
    for (const field *f = m->fields; f->number; f++)
        if (f->kind >= TEXTS) {
            list l;
            memcpy(&l, to + f->at, sizeof l);
            if (l.n &&
                !(l.at = fac_arena_alloc(r->arena, l.n, f->sub ? f->sub->size : sizeof(char *))))
                return fac_raise_memory(r->err, "%zu items of %s", l.n, m->name);
            l.n = 0;
            memcpy(to + f->at, &l, sizeof l);
        }
    return FAC_OK;
}

static fac_status text_of(const reader *r, const message *m, const pb_istream_t *s, fac_bytes b,
                          const char **out) {
    if (b.n && memchr(b.p, 0, b.n)) return broken(r, s, m, "a text with a zero byte");
    char *text = b.n ? fac_arena_alloc(r->arena, b.n + 1, 1) : "";
    if (!text) return fac_raise_memory(r->err, "a text of %zu bytes", b.n);
    if (b.n) memcpy(text, b.p, b.n);
    *out = text;
    return FAC_OK;
}

static fac_status read_item(const reader *r, const message *m, const field *f,
                            const pb_istream_t *s, fac_bytes b, char *to) {
    list l;
    memcpy(&l, to + f->at, sizeof l);
    if (f->kind == TEXTS)
        FAC_TRY(text_of(r, m, s, b, &((const char **)l.at)[l.n]));
    else {
        if (b.n < f->sub->least) return broken(r, s, f->sub, "it is empty");
        FAC_TRY(read_message(r, f->sub, b, (char *)l.at + l.n * f->sub->size));
    }
    l.n++;
    memcpy(to + f->at, &l, sizeof l);
    return FAC_OK;
}

static fac_status read_field(const reader *r, const message *m, const field *f, pb_istream_t *s,
                             char *to) {
    fac_bytes b;
    uint64_t bits;
    const char *text;
    if (f->kind == INT) {
        if (!pb_decode_varint(s, &bits)) return broken(r, s, m, NULL);
        memcpy(to + f->at, &bits, sizeof bits);
        return FAC_OK;
    }
    if (f->kind == REAL) return pb_decode_fixed32(s, to + f->at) ? FAC_OK : broken(r, s, m, NULL);
    if (!window(s, &b)) return broken(r, s, m, NULL);
    switch (f->kind) {
    case TEXT:
        FAC_TRY(text_of(r, m, s, b, &text));
        memcpy(to + f->at, &text, sizeof text);
        return FAC_OK;
    case WINDOW:
        memcpy(to + f->at, &b, sizeof b);
        return FAC_OK;
    case MESSAGE:
        return read_message(r, f->sub, b, to + f->at);
    default:
        return read_item(r, m, f, s, b, to);
    }
}

/* `to` is zeroed.  The depth is that of the tables: no message among them contains itself. */
static fac_status read_message(const reader *r, const message *m, fac_bytes bytes, char *to) {
    pb_istream_t s = stream_of(bytes);
    uint32_t number, has;
    pb_wire_type_t wire;
    int more;
    const char *none = "";
    memcpy(&has, to, sizeof has);
    for (const field *f = m->fields; f->number; f++) {
        bool absent = !(has >> f->number & 1);
        if (f->kind == TEXT && absent) memcpy(to + f->at, &none, sizeof none);
        if (f->kind == MESSAGE && absent)
            FAC_TRY(read_message(r, f->sub, (fac_bytes){ bytes.p, 0 }, to + f->at));
    }
    if (m->self) memcpy(to + m->self, &bytes, sizeof bytes);
    FAC_TRY(make_lists(r, m, bytes, to));
    while ((more = next(&s, &number, &wire)) > 0) {
        const field *f = find(m, number);
        if (f) has |= (uint32_t)1 << number;
        if (!f || f->kind == SKIP) {
            if (!pb_skip_field(&s, wire)) return broken(r, &s, m, NULL);
            continue;
        }
        if (wire != wire_of[f->kind])
            return broken(r, &s, m, "a field of another type than expected");
        FAC_TRY(read_field(r, m, f, &s, to));
    }
    if (more < 0) return broken(r, &s, m, NULL);
    memcpy(to, &has, sizeof has);
    return FAC_OK;
}

fac_status fac_proto_read_model(fac_bytes file, fac_arena *arena, fac_proto_model *out,
                                fac_error *err) {
    *out = (fac_proto_model){ 0 };
    return read_message(&(reader){ file.p, arena, err }, &model, file, (char *)out);
}

fac_status fac_proto_read_tensor(fac_bytes file, fac_arena *arena, fac_proto_tensor *out,
                                 fac_error *err) {
    *out = (fac_proto_tensor){ 0 };
    return read_message(&(reader){ file.p, arena, err }, &tensor, file, (char *)out);
}

fac_status fac_proto_read_graph(fac_bytes file, fac_arena *arena, fac_proto_graph *out,
                                fac_error *err) {
    *out = (fac_proto_graph){ 0 };
    return read_message(&(reader){ file.p, arena, err }, &graph, file, (char *)out);
}

/* ---- repeated numbers ---- */

static bool number_of(pb_istream_t *s, fac_proto_wire wire, uint64_t *bits) {
    uint32_t word;
    if (wire == FAC_PROTO_VARINTS) return pb_decode_varint(s, bits);
    if (wire == FAC_PROTO_FIXED64S) return pb_decode_fixed64(s, bits);
    if (!pb_decode_fixed32(s, &word)) return false;
    *bits = word;
    return true;
}

fac_status fac_proto_each(fac_bytes bytes, int want, fac_proto_wire wire, fac_proto_visit *visit,
                          void *self, fac_error *err) {
    static const pb_wire_type_t one[] = { PB_WT_VARINT, PB_WT_32BIT, PB_WT_64BIT, PB_WT_STRING };
    pb_istream_t s = stream_of(bytes);
    uint32_t number;
    pb_wire_type_t got;
    int more;
    while ((more = next(&s, &number, &got)) > 0) {
        fac_bytes b = { NULL, 0 };
        uint64_t bits = 0;
        if (number != (uint32_t)want) {
            if (!pb_skip_field(&s, got)) break;
            continue;
        }
        if (got == PB_WT_STRING) {
            if (!window(&s, &b)) break;
            if (wire == FAC_PROTO_WINDOWS && !visit(self, 0, b)) return FAC_OK;
            if (wire == FAC_PROTO_WINDOWS) continue;
            for (pb_istream_t packed = stream_of(b); packed.bytes_left;) {
                if (!number_of(&packed, wire, &bits))
                    return fac_raise(err, FAC_E_FORMAT, "malformed packed numbers");
                if (!visit(self, bits, (fac_bytes){ NULL, 0 })) return FAC_OK;
            }
            continue;
        }
        if (got != one[wire] || !number_of(&s, wire, &bits)) break;
        if (!visit(self, bits, b)) return FAC_OK;
    }
    return more ? fac_raise(err, FAC_E_FORMAT, "malformed field %d", want) : FAC_OK;
}

fac_bytes fac_proto_chunk(fac_bytes bytes, int want) {
    pb_istream_t s = stream_of(bytes);
    uint32_t number;
    pb_wire_type_t wire;
    fac_bytes found = { NULL, 0 };
    while (next(&s, &number, &wire) > 0) {
        bool ours = number == (uint32_t)want;
        if (ours && (found.p || wire != PB_WT_STRING)) return (fac_bytes){ NULL, 0 };
        if (ours ? !window(&s, &found) : !pb_skip_field(&s, wire)) return (fac_bytes){ NULL, 0 };
    }
    return found;
}
