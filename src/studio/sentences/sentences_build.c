/* The page of texts: data, network, programs. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/nn.h"
#include "studio/server/data.h"
#include "studio/sentences/sentences.h"

enum { TRIM = 8 }; /* as in facula train: few lengths, each planned once */

/* ---- data ---- */

static int64_t longest(const fac_texts *t, const fac_vocab *v) {
    int64_t most = 1;
    for (int64_t i = 0; i < t->count && most < SENTENCES_LENGTH; i++) {
        const int64_t n = fac_vocab_encode(v, t->text[i], NULL, 0);
        if (n > most) most = n;
    }
    return most < SENTENCES_LENGTH ? most : SENTENCES_LENGTH;
}

static fac_status read_texts(sentences *p, fac_error *err) {
    fac_texts train = { 0 };
    fac_status status = fac_texts_sst2(p->folder, "train", &train, err);
    if (!status) status = fac_texts_sst2(p->folder, "dev", &p->texts, err);
    if (!status && (!train.count || !p->texts.count))
        status =
            fac_raise(err, FAC_E_FORMAT, "%s: train.tsv or dev.tsv has no sentences", p->folder);
    if (!status) status = fac_vocab_new(&train, NULL, &p->vocab, err);
    if (!status)
        status = fac_dataset_texts(&train, p->vocab, longest(&train, p->vocab), &p->all, err);
    if (!status) status = fac_dataset_texts(&p->texts, p->vocab, p->all.item.d[0], &p->test, err);
    fac_texts_free(&train);
    if (!status && !(p->chance = fac_alloc((size_t)p->test.count, sizeof *p->chance)))
        status = fac_raise_memory(err, "a page");
    return status;
}

void fac_sentences_open(sentences *p, const char *data) {
    static const char *const more[] = { "sst2", "text/sst2", NULL }, *const names[] = { "train.tsv",
                                                                                        NULL };
    const fac_device_opts how = { .threads = p->threads };
    fac_status status = FAC_OK;
    if (!fac_data_find(data, more, names, p->folder, sizeof p->folder))
        status = fac_raise(&p->lacks, FAC_E_IO,
                           "start facula studio --data DIR with train.tsv and dev.tsv in DIR, "
                           "DIR/sst2 or DIR/text/sst2; each line is a sentence, a tab and 0 (bad) "
                           "or 1 (good), as in the Stanford Sentiment Treebank (SST-2)");
    if (!status) status = read_texts(p, &p->lacks);
    if (!status) fac_device_open("cpu", &how, &p->device, &p->lacks);
}

/* ---- the network ---- */

static void release_net(sentences *p) {
    fac_loader_free(p->loader);
    fac_trainer_free(p->trainer);
    fac_program_free(p->looker);
    fac_graph_free(p->model);
    p->loader = NULL;
    p->trainer = NULL;
    p->looker = NULL;
    p->model = NULL;
}

void fac_sentences_release(sentences *p) {
    release_net(p);
    fac_release(p->chance);
    fac_dataset_free(&p->all);
    fac_dataset_free(&p->test);
    fac_texts_free(&p->texts);
    fac_vocab_free(p->vocab);
    fac_device_free(p->device);
}

static fac_status new_model(sentences *p, fac_error *err) {
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a network");
    fac_nn_seed(g, (uint64_t)p->setup.seed);
    fac_value *x =
        fac_input(g, "tokens", FAC_I64, fac_shape(fac_symbol(g, "N"), fac_symbol(g, "L")));
    fac_output(g, "logits",
               fac_nn_sentence_cnn(x, fac_vocab_count(p->vocab), &p->setup.net, p->all.classes));
    p->model = g;
    return fac_graph_check(g, err);
}

static fac_status build(sentences *p, const sentences_setup *s, fac_error *err) {
    const fac_trainer_opts o = { .optimizer = "adam", .optim = { .ema_warmup = true } };
    p->setup = *s;
    p->train = p->all;
    if (s->samples < p->all.count) p->train.count = s->samples;
    FAC_TRY(new_model(p, err));
    FAC_TRY(fac_sentences_looker(p, err));
    FAC_TRY(fac_trainer_new(p->model, p->device, &o, &p->trainer, err));
    p->order =
        (fac_batches){ .size = s->batch, .shuffle = true, .seed = (uint64_t)s->seed, .trim = TRIM };
    p->in_epoch = fac_batches_count(&p->train, &p->order);
    return fac_trainer_continues(p->trainer, &p->train, &p->order, err);
}

fac_status fac_sentences_build(sentences *p, const sentences_setup *s, fac_error *err) {
    release_net(p);
    const fac_status status = build(p, s, err);
    p->generation++;
    p->done.step = 0;
    p->playing = false;
    p->fresh_setup = true;
    p->dirty = true;
    p->judged = false;
    p->fresh_table = false;
    p->judging = -1;
    p->judged_at = 0;
    p->done.loss = 0;
    p->done.accuracy = 0;
    p->done.seconds = 0;
    p->done.stopped = (fac_error){ 0 };
    p->unjudged = (fac_error){ 0 };
    p->unseen = (fac_error){ 0 };
    if (status) release_net(p);
    return status;
}
