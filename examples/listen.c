/* What is heard in a sound: listen MODEL.onnx SOUND
 * The model takes waveforms, as those that `facula train sound-folder` writes; it says at which
 * rate, and what its classes are called.  The beginning of the sound is heard, as much as the model
 * takes at once. */
#include <facula/facula.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    fac_graph *model = NULL;
    fac_device *device = NULL;
    fac_program *program = NULL;
    fac_labels *labels = NULL;
    fac_sound sound = { 0 };
    fac_tensor *wave = NULL, *x = NULL, *y = NULL;
    fac_class best;
    int n = 0;
    if (argc != 3) return fprintf(stderr, "usage: listen MODEL.onnx SOUND\n"), 2;

    fac_status s = fac_onnx_load(argv[1], NULL, &model, &err);
    const char *rate = s ? NULL : fac_graph_note(model, FAC_NOTE_RATE);
    const char *names = s ? NULL : fac_graph_note(model, FAC_NOTE_LABELS);
    if (!s && names) s = fac_labels_parse(names, strlen(names), FAC_NOTE_LABELS, &labels, &err);
    if (!s) s = fac_device_open("cpu", NULL, &device, &err);
    if (!s) s = fac_program_new(model, device, NULL, &program, &err);
    if (!s) s = fac_sound_load(argv[2], &sound, &err);
    if (!s) s = fac_sound_mono(&sound, rate ? atoi(rate) : 16000, &wave, &err);
    if (!s) {
        const int64_t have = fac_tensor_type(wave).dims.d[0];
        const int64_t want = fac_value_type(fac_graph_input(model, 0)).dims.d[1];
        float *samples = calloc((size_t)want + 1, sizeof *samples);
        memcpy(samples, fac_tensor_data(wave),
               (size_t)(have < want ? have : want) * sizeof *samples);
        s = fac_tensor_new(NULL, FAC_F32, fac_shape(1, want), &x, &err);
        if (!s) s = fac_tensor_write(x, samples, (size_t)want * sizeof *samples, &err);
        free(samples);
    }
    if (!s) s = fac_program_run(program, &x, &y, &err);
    if (!s) s = fac_top(y, 0, labels, 1, &best, &n, &err);
    if (s)
        fprintf(stderr, "listen: %s\n", err.text);
    else
        printf("%.2f %% %s\n", 100 * best.probability, best.name ? best.name : "");

    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_tensor_free(wave);
    fac_sound_free(&sound);
    fac_program_free(program);
    fac_device_free(device);
    fac_labels_free(labels);
    fac_graph_free(model);
    return s != FAC_OK;
}
