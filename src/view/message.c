/* Protobuf fields through nanopb's encoder. */
#include "view/message.h"
#include "facula/text.h"
#include <pb_encode.h>
#include <string.h>

static bool add(pb_ostream_t *s, const pb_byte_t *data, size_t n) {
    fac_proto *m = s->state;
    fac_text_add_bytes(m, (const char *)data, n);
    return !m->failed;
}

/* The only way for a call of the encoder to fail is that of the message, which remembers it. */
static pb_ostream_t start(fac_proto *m, pb_wire_type_t wire, int field) {
    pb_ostream_t s = { .callback = add, .state = m, .max_size = SIZE_MAX };
    if (!pb_encode_tag(&s, wire, (uint32_t)field)) m->failed = true;
    return s;
}

void fac_put_int(fac_proto *m, int field, int64_t x) {
    pb_ostream_t s = start(m, PB_WT_VARINT, field);
    if (!pb_encode_varint(&s, (uint64_t)x)) m->failed = true;
}

void fac_put_float(fac_proto *m, int field, float x) {
    pb_ostream_t s = start(m, PB_WT_32BIT, field);
    if (!pb_encode_fixed32(&s, &x)) m->failed = true;
}

void fac_put_double(fac_proto *m, int field, double x) {
    pb_ostream_t s = start(m, PB_WT_64BIT, field);
    if (!pb_encode_fixed64(&s, &x)) m->failed = true;
}

void fac_put_doubles(fac_proto *m, int field, size_t n, const double *x) {
    pb_ostream_t s = start(m, PB_WT_STRING, field);
    bool fine = pb_encode_varint(&s, (uint64_t)n * sizeof *x);
    for (size_t i = 0; fine && i < n; i++) fine = pb_encode_fixed64(&s, &x[i]);
    if (!fine) m->failed = true;
}

void fac_put_bytes(fac_proto *m, int field, const void *data, size_t n) {
    pb_ostream_t s = start(m, PB_WT_STRING, field);
    if (!pb_encode_string(&s, data, n)) m->failed = true;
}

/* Readers refuse a message whose texts are no UTF-8, and names may be anything. */
void fac_put_text(fac_proto *m, int field, const char *s) {
    fac_text text = { 0 };
    for (size_t n; *s; s += n) {
        uint32_t c;
        n = fac_utf8(s, &c);
        if (n == 1 && c == FAC_NO_LETTER)
            fac_text_add(&text, "?");
        else
            fac_text_add_bytes(&text, s, n);
    }
    fac_put_bytes(m, field, text.s, text.n);
    m->failed |= text.failed;
    fac_text_free(&text);
}

void fac_put_message(fac_proto *m, int field, fac_proto *inner) {
    fac_put_bytes(m, field, inner->s, inner->n);
    m->failed |= inner->failed;
    fac_text_free(inner);
}
