/* The page of sounds: its model and its programs. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/nn.h"
#include "facula/onnx.h"
#include "facula/data/sound.h"
#include "facula/nn/zoo.h"
#include "studio/hearing/hearing.h"

/* ---- a model for sounds ---- */

static int64_t number_in(const fac_graph *g, const char *key, int64_t most) {
    const char *note = fac_graph_note(g, key);
    const long long x = note ? strtoll(note, NULL, 10) : 0;
    return x > 0 && x <= most ? x : 0;
}

/* The input is [N,samples] or [N,1,samples].  An open number of samples is that of the metadata, or
 * one second. */
static fac_status read_input(hearing_model *m, const fac_graph *g, fac_error *err) {
    const fac_type t = fac_value_type(fac_graph_input(g, 0));
    const int last = t.dims.n - 1;
    bool fits = fac_graph_inputs(g) == 1 && t.dtype == FAC_F32 && last >= 1 && last <= 2 &&
                fac_graph_outputs(g) <= HEARING_OUTPUTS;
    for (int k = 0; fits && k < last; k++) fits = t.dims.d[k] < 0 || t.dims.d[k] == 1;
    m->rate = (int)number_in(g, FAC_NOTE_RATE, HEARING_MOST_RATE);
    if (!fits || m->rate < HEARING_LEAST_RATE || t.dims.d[last] == 1)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "this model does not take sounds: it needs one input of f32 [N,samples] "
                         "and a rate in the metadata " FAC_NOTE_RATE ", as facula train "
                         "spoken-digits and sound-folder write them");
    m->dims = t.dims;
    for (int k = 0; k < last; k++) m->dims.d[k] = 1;
    m->window = t.dims.d[last] > 0 ? t.dims.d[last] : number_in(g, FAC_NOTE_WINDOW, 1 << 24);
    if (!m->window) m->window = m->rate;
    m->dims.d[last] = m->window;
    return FAC_OK;
}

static fac_status read_labels(hearing_model *m, fac_error *err) {
    const char *note = fac_graph_note(m->graph, FAC_NOTE_LABELS);
    return note ? fac_labels_parse(note, strlen(note), "the model's labels", &m->labels, err)
                : FAC_OK;
}

static void release_model(hearing_model *m) {
    fac_program_free(m->program);
    fac_labels_free(m->labels);
    fac_graph_free(m->graph);
    *m = (hearing_model){ 0 };
}

void fac_hearing_model(hearing *p, const char *path) {
    hearing_model *m = &p->model;
    const char *bare = path && !strncmp(path, "zoo:", 4) ? path + 4 : path;
    fac_status status = FAC_OK;
    if (!path || fac_zoo_find(bare))
        status =
            fac_raise(&p->deaf, FAC_E_ARGUMENT,
                      "start facula studio model.onnx with a model for sounds to see classes, such "
                      "as facula train spoken-digits --out writes");
    if (!status) status = fac_onnx_load(path, NULL, &m->graph, &p->deaf);
    if (!status) status = read_input(m, m->graph, &p->deaf);
    if (!status) status = read_labels(m, &p->deaf);
    if (!status) status = fac_program_new(m->graph, p->device, NULL, &m->program, &p->deaf);
    if (status) release_model(m);
}

/* ---- the picture ---- */

static void release_picture(hearing *p) {
    fac_program_free(p->spectrum);
    fac_tensor_free(p->block);
    p->spectrum = NULL;
    p->block = NULL;
}

void fac_hearing_release(hearing *p) {
    release_picture(p);
    release_model(&p->model);
    fac_release(p->x);
    fac_device_free(p->device);
}

static fac_status new_spectrum(hearing *p, const hearing_setup *s, fac_error *err) {
    const fac_nn_spectrogram_opts o = { .rate = p->rate,
                                        .length = (int)s->length,
                                        .hop = (int)(s->length / s->part),
                                        .mels = (int)s->mels,
                                        .loudness = FAC_LOUDNESS_POWER,
                                        .no_center = true };
    const int64_t samples = s->length + (HEARING_AT_ONCE - 1) * o.hop;
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    fac_value *x = fac_input(g, "wave", FAC_F32, fac_shape(1, samples));
    fac_output(g, "power", fac_nn_spectrogram(x, &o));
    fac_status status = fac_graph_check(g, err);
    if (!status) status = fac_program_new(g, p->device, NULL, &p->spectrum, err);
    if (!status) status = fac_tensor_new(NULL, FAC_F32, fac_shape(1, samples), &p->block, err);
    fac_graph_free(g);
    p->hop = o.hop;
    p->bins = s->mels ? s->mels : s->length / 2 + 1;
    if (p->bins > HEARING_BINS) p->bins = HEARING_BINS;
    return status;
}

fac_status fac_hearing_build(hearing *p, const hearing_setup *s, fac_error *err) {
    hearing old = *p;
    p->spectrum = NULL;
    p->block = NULL;
    const fac_status status = new_spectrum(p, s, err);
    if (status) {
        release_picture(p);
        p->spectrum = old.spectrum;
        p->block = old.block;
        p->hop = old.hop;
        p->bins = old.bins;
        return status;
    }
    release_picture(&old);
    p->setup = *s;
    p->origin = p->at - HEARING_COLUMNS * p->hop;
    if (p->origin < p->first) p->origin = p->first;
    p->next = p->origin;
    p->columns = 0;
    p->shown = 0;
    p->asked = p->at;
    p->generation++;
    p->fresh_setup = true;
    p->dirty = true;
    return FAC_OK;
}
