/* Frames of the page of texts: numbers, the selected sentence, the table of test sentences. */
#include <math.h>
#include <stdlib.h>
#include "base/memory.h"
#include "studio/sentences/sentences.h"

static void put_setup(sentences *p, frames *to) {
    fac_text t = { 0 };
    char net[128];
    fac_sentence_text(&p->setup.net, net, sizeof net);
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    if (p->lacks.status) fac_json_put_pair_text(&t, "lacks", p->lacks.text);
    fac_json_put_pair_text(&t, "folder", p->folder);
    fac_json_put_pair(&t, "samples", (double)p->setup.samples);
    fac_json_put_pair(&t, "all", (double)p->all.count);
    fac_json_put_pair(&t, "test", (double)p->test.count);
    fac_json_put_pair(&t, "vocabulary", p->vocab ? (double)fac_vocab_count(p->vocab) : 0);
    fac_json_put_pair(&t, "batch", (double)p->setup.batch);
    fac_json_put_pair(&t, "epochs", (double)p->setup.epochs);
    fac_json_put_pair(&t, "seed", (double)p->setup.seed);
    fac_json_put_pair(&t, "lr", p->setup.lr);
    fac_json_put_pair_text(&t, "net", net);
    fac_json_put_pair(&t, "filters", p->setup.net.filters);
    fac_json_put_pair(&t, "dropout", p->setup.net.dropout);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_SETUP, &t);
    p->fresh_setup = false;
}

static void put_state(const sentences *p, frames *to) {
    fac_text t = { 0 };
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_pair(&t, "step", (double)p->done.step);
    fac_json_put_pair(&t, "in_epoch", (double)p->in_epoch);
    fac_json_put_pair(&t, "epochs", (double)p->setup.epochs);
    fac_json_put_pair_bool(&t, "playing", p->playing);
    fac_json_put_pair(&t, "seconds", p->done.seconds);
    fac_json_put_pair(&t, "loss", p->done.step ? p->done.loss : NAN);
    fac_json_put_pair(&t, "accuracy", p->done.step ? p->done.accuracy : NAN);
    fac_json_put_pair(&t, "test_loss", p->judged ? p->test_loss : NAN);
    fac_json_put_pair(&t, "test_accuracy", p->judged ? p->test_accuracy : NAN);
    const fac_error *of[] = { &p->done.stopped, &p->unseen, &p->unjudged };
    int k = 0;
    while (k < 2 && !of[k]->status) k++;
    if (of[k]->status) fac_json_put_pair_text(&t, "stopped", of[k]->text);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_STATE, &t);
}

static void put_sentence(sentences *p, frames *to) {
    fac_text t = { 0 };
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    p->unseen = (fac_error){ 0 };
    t.failed |= fac_sentences_look(p, p->text, &t, &p->unseen) != FAC_OK;
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_PANELS, &t);
}

/* ---- the table ---- */

typedef struct row {
    double key; /* the smaller, the earlier in the table */
    int64_t i;
} row;

static int earlier(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Sorts by the probability of the true class: smallest or largest first, or as in the file. */
static int64_t sort(const sentences *p, row *rows) {
    const int64_t n = p->test.count;
    for (int64_t i = 0; i < n; i++) {
        double of = p->test.labels[i] ? p->chance[i] : 1 - p->chance[i];
        if (isnan(of)) of = -1; /* worst of all: NaN has no order */
        rows[i] = (row){ 0, i };
        if (p->rows == SENTENCES_WRONG) rows[i].key = of;
        if (p->rows == SENTENCES_SURE) rows[i].key = -of;
    }
    qsort(rows, (size_t)n, sizeof *rows, earlier);
    return n < SENTENCES_ROWS ? n : SENTENCES_ROWS;
}

static void put_table(sentences *p, frames *to) {
    fac_text t = { 0 };
    row *rows = fac_alloc((size_t)p->test.count, sizeof *rows);
    const int64_t n = rows ? sort(p, rows) : 0;
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_key(&t, "rows");
    fac_text_add(&t, "[");
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = rows[k].i;
        fac_text_add(&t, k ? ",{" : "{");
        fac_json_put_pair_text(&t, "text", p->texts.text[i]);
        fac_json_put_pair(&t, "label", (double)p->test.labels[i]);
        fac_json_put_pair(&t, "chance", p->chance[i]);
        fac_text_add(&t, "}");
    }
    fac_text_add(&t, "]}");
    t.failed |= !rows;
    p->fresh_table = t.failed;
    fac_release(rows);
    fac_frames_put(to, FRAME_WRONG, &t);
}

void fac_sentences_show(void *self, frames *to) {
    sentences *p = self;
    if (p->fresh_setup) put_setup(p, to);
    if (!p->model || !p->dirty) return;
    put_sentence(p, to);
    put_state(p, to);
    p->dirty = p->unseen.status != FAC_OK; /* after an error, try again */
    if (p->fresh_table) put_table(p, to);
}
