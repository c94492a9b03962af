/* Log probabilities of an answer's tokens, as OpenAI's clients read them. */
#include "base/quote.h"
#include "serve/reply.h"

/* Its bytes, maybe no whole character; control tokens by their names. */
static size_t piece_of(const fac_reply *y, int32_t id, char to[256]) {
    const size_t n = fac_tokenizer_piece(y->s->t, id, FAC_TEXT_SPECIAL, to, 256);
    return n < 256 ? n : 256;
}

static void add_likely(const fac_reply *y, fac_text *t, const fac_likely *x) {
    char piece[256];
    const size_t n = piece_of(y, x->id, piece);
    fac_text_add(t, "{\"token\":");
    fac_text_quote(t, piece, n);
    fac_text_print(t, ",\"logprob\":%.6g,\"bytes\":[", (double)x->logprob);
    for (size_t k = 0; k < n; k++) fac_text_print(t, "%s%d", k ? "," : "", (unsigned char)piece[k]);
    fac_text_add(t, "]");
}

static void add_chat_records(const fac_reply *y, fac_text *t, const fac_task *k, size_t from) {
    fac_text_add(t, "{\"content\":[");
    for (size_t i = from; i < k->nrecords; i++) {
        const fac_token_record *r = &k->records[i];
        if (i > from) fac_text_add(t, ",");
        add_likely(y, t, &r->chosen);
        fac_text_add(t, ",\"top_logprobs\":[");
        for (int j = 0; j < r->ntop; j++) {
            if (j) fac_text_add(t, ",");
            add_likely(y, t, &r->top[j]);
            fac_text_add(t, "}");
        }
        fac_text_add(t, "]}");
    }
    fac_text_add(t, "]}");
}

static void quote_piece(const fac_reply *y, fac_text *t, int32_t id) {
    char piece[256];
    const size_t n = piece_of(y, id, piece);
    fac_text_quote(t, piece, n);
}

static size_t letters_of(const fac_reply *y, int32_t id) {
    char piece[256];
    size_t letters = 0;
    const size_t n = piece_of(y, id, piece);
    for (size_t k = 0; k < n; k++) letters += ((unsigned char)piece[k] & 0xc0) != 0x80;
    return letters;
}

static void add_tops(const fac_reply *y, fac_text *t, const fac_token_record *r) {
    fac_text_add(t, "{");
    for (int j = 0; j < r->ntop; j++) {
        if (j) fac_text_add(t, ",");
        quote_piece(y, t, r->top[j].id);
        fac_text_print(t, ":%.6g", (double)r->top[j].logprob);
    }
    fac_text_add(t, "}");
}

/* The older form: four lists. */
static void add_text_records(const fac_reply *y, fac_text *t, const fac_task *k, fac_told *d) {
    fac_text_add(t, "{\"tokens\":[");
    for (size_t i = d->records; i < k->nrecords; i++) {
        if (i > d->records) fac_text_add(t, ",");
        quote_piece(y, t, k->records[i].chosen.id);
    }
    fac_text_add(t, "],\"token_logprobs\":[");
    for (size_t i = d->records; i < k->nrecords; i++)
        fac_text_print(t, "%s%.6g", i > d->records ? "," : "",
                       (double)k->records[i].chosen.logprob);
    fac_text_add(t, "],\"top_logprobs\":[");
    for (size_t i = d->records; i < k->nrecords; i++) {
        if (i > d->records) fac_text_add(t, ",");
        add_tops(y, t, &k->records[i]);
    }
    fac_text_add(t, "],\"text_offset\":[");
    for (size_t i = d->records; i < k->nrecords; i++) {
        fac_text_print(t, "%s%zu", i > d->records ? "," : "", d->letters);
        d->letters += letters_of(y, k->records[i].chosen.id);
    }
    fac_text_add(t, "]}");
}

void fac_reply_records(const fac_reply *y, fac_text *t, const fac_task *k, fac_told *d) {
    fac_text_add(t, ",\"logprobs\":");
    if (y->c->wish.logprobs < 0)
        fac_text_add(t, "null");
    else if (y->chat)
        add_chat_records(y, t, k, d->records);
    else
        add_text_records(y, t, k, d);
    d->records = k->nrecords;
}
