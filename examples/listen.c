/* What is heard in a sound: listen MODEL.onnx SOUND
 * The model takes waveforms, as those that `facula train sound-folder` writes; it says at which
 * rate, and what its classes are called.  A line for each window, one every half of its length. */
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
    fac_tensor *x = NULL, *y = NULL;
    if (argc != 3) return fprintf(stderr, "usage: listen MODEL.onnx SOUND\n"), 2;
    fac_status s = fac_onnx_load(argv[1], NULL, &model, &err);
    const char *names = s ? NULL : fac_graph_note(model, FAC_NOTE_LABELS);
    const char *rate = s ? NULL : fac_graph_note(model, FAC_NOTE_RATE);
    const int hz = rate ? atoi(rate) : 16000;
    const int64_t length = s ? 1 : fac_value_type(fac_graph_input(model, 0)).dims.d[1];
    if (names) s = fac_labels_parse(names, strlen(names), FAC_NOTE_LABELS, &labels, &err);
    if (!s) s = fac_device_open("cpu", NULL, &device, &err);
    if (!s) s = fac_program_new(model, device, NULL, &program, &err);
    if (!s) s = fac_sound_load(argv[2], &sound, &err);
    if (!s) s = fac_sound_windows(&sound, hz, length, length / 2, &x, &err);
    if (!s) s = fac_program_run(program, &x, &y, &err);
    for (int64_t k = 0; !s && k < fac_tensor_type(x).dims.d[0]; k++) {
        fac_class best;
        int n = 0;
        s = fac_top(y, k, labels, 1, &best, &n, &err);
        if (!s)
            printf("%6.2f s %6.2f %% %s\n", (double)(k * (length / 2)) / hz, 100 * best.probability,
                   best.name ? best.name : "");
    }
    if (s) fprintf(stderr, "listen: %s\n", err.text);
    return s != FAC_OK; /* the system takes the memory back */
}
