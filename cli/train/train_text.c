/* facula train: texts.  The networks are those of facula/nn/sentence.h; the vectors begin random,
 * or as --glove says, and are trained. */
#include <string.h>
#include "facula/nn/sentence.h"
#include "train.h"

enum { LONGEST = 256 };

/* ---- data ---- */

/* The length of the longest, but no more than pays: texts are cut there. */
static int64_t length_of(const fac_texts *t, const fac_vocab *v) {
    int64_t longest = 1;
    for (int64_t i = 0; i < t->count && longest < LONGEST; i++) {
        const int64_t n = fac_vocab_encode(v, t->text[i], NULL, 0);
        if (n > longest) longest = n;
    }
    return longest < LONGEST ? longest : LONGEST;
}

int text_data(train_options *o, fac_dataset *train, fac_dataset *test) {
    fac_error err = { 0 };
    fac_texts a = { 0 }, b = { 0 };
    fac_status status = fac_texts_sst2(o->data, "train", &a, &err);
    if (!status) status = fac_texts_sst2(o->data, "dev", &b, &err);
    if (!status) status = fac_vocab_new(&a, NULL, &o->vocab, &err);
    if (!status) status = fac_dataset_texts(&a, o->vocab, length_of(&a, o->vocab), train, &err);
    if (!status) status = fac_dataset_texts(&b, o->vocab, train->item.d[0], test, &err);
    fac_texts_free(&a);
    fac_texts_free(&b);
    return status ? fail(&err) : EXIT_OK;
}

/* ---- models: tokens N,L -> logits N,classes ---- */

/* "text-cnn:100,3-4-5,0.25": what the network is made of follows the name. */
static const struct {
    const char *name;
    bool any_length;
    fac_value *(*build)(fac_value *, int64_t, const fac_sentence_net *, int);
} nets[] = {
    { "text-cnn", true, fac_nn_sentence_cnn },
    { "text-lstm", false, fac_nn_sentence_lstm },
};
enum { NETS = sizeof nets / sizeof *nets };

static int find(const char *name) {
    const size_t n = strcspn(name, ":");
    int k = 0;
    while (k < NETS && (strlen(nets[k].name) != n || strncmp(nets[k].name, name, n))) k++;
    return k;
}

bool text_is_model(const char *name) { return find(name) < NETS; }
bool text_any_length(const char *name) { return find(name) < NETS && nets[find(name)].any_length; }

/* Vectors from a file become the table; its dims are those of the model. */
static int pretrained(const train_options *o, fac_tensor **out) {
    fac_error err = { 0 };
    int64_t found;
    *out = NULL;
    if (!o->glove) return EXIT_OK;
    if (fac_vocab_vectors(o->vocab, o->glove, (uint64_t)o->seed, out, &found, &err))
        return fail(&err);
    fprintf(stderr, "facula: %s has vectors of %d dims for %lld of %lld words\n", o->glove,
            (int)fac_tensor_type(*out).dims.d[1], (long long)found,
            (long long)fac_vocab_count(o->vocab) - 2);
    return EXIT_OK;
}

static fac_status take_vectors(fac_graph *g, const fac_tensor *from, fac_error *err) {
    const fac_type type = fac_tensor_type(from);
    fac_tensor *to = fac_value_tensor(fac_graph_find(g, "embedding.weight"));
    return fac_tensor_write(to, fac_tensor_data(from), fac_type_bytes(&type), err);
}

int text_model(const train_options *o, const fac_dataset *like, int dim, model *out) {
    fac_error err = { 0 };
    fac_tensor *table = NULL;
    const int net = find(o->model);
    fac_sentence_net s;
    const char *made_of = strchr(o->model, ':');
    if (fac_sentence_parse(made_of ? made_of + 1 : "", &s, &err)) return fail(&err);
    if (!like->tokens && like->count) return fail_text("the model %s needs texts", o->model);
    int code = pretrained(o, &table);
    fac_graph *g = code ? NULL : fac_graph_new();
    if (!g) return code ? code : fail_text("out of memory");
    s.dim = table ? (int)fac_tensor_type(table).dims.d[1] : dim;
    fac_nn_seed(g, (uint64_t)o->seed);
    const fac_dims dims =
        fac_shape(fac_symbol(g, "N"), nets[net].any_length ? fac_symbol(g, "L") : like->item.d[0]);
    fac_value *x = fac_input(g, "tokens", FAC_I64, dims);
    fac_output(g, "logits", nets[net].build(x, fac_vocab_count(o->vocab), &s, like->classes));
    fac_status status = fac_graph_check(g, &err);
    if (!status && table) status = take_vectors(g, table, &err);
    fac_tensor_free(table);
    if (status) {
        fac_graph_free(g);
        return fail(&err);
    }
    out->graph = g;
    return EXIT_OK;
}
