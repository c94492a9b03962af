/* The five best classes of a photo: classify MODEL.onnx PHOTO
 * The model takes one photo.  How it wants it prepared, and what its classes are called, stands in
 * its metadata (`facula edit --set-preset`, `--set-labels`); of a model that does not say,
 * torchvision's way and ImageNet's names are assumed. */
#include <facula/facula.h>
#include <stdio.h>
#include <string.h>

static int report(const fac_error *err) {
    fprintf(stderr, "classify: %s\n", err->text);
    return 1;
}

/* What the model says of photos: their preparation, their size and type, its classes. */
static fac_status ask(const fac_graph *model, fac_preprocess *how, fac_labels **labels,
                      fac_error *err) {
    const char *preset = fac_graph_note(model, FAC_NOTE_PRESET);
    const char *names = fac_graph_note(model, FAC_NOTE_LABELS);
    const fac_status status = fac_preprocess_parse(preset ? preset : "imagenet", how, err);
    /* f16 models take f16 */
    if (fac_graph_inputs(model)) how->dtype = fac_value_type(fac_graph_input(model, 0)).dtype;
    if (!preset)
        fprintf(stderr, "classify: the model does not say how it wants its photos; imagenet is a "
                        "guess\n");
    if (status || !names) return status;
    return fac_labels_parse(names, strlen(names), FAC_NOTE_LABELS, labels, err);
}

static int print_best(const fac_tensor *scores, const fac_labels *labels, fac_error *err) {
    fac_class best[5];
    int n;
    if (fac_top(scores, 0, labels, 5, best, &n, err)) return report(err);
    for (int k = 0; k < n; k++)
        printf("%6.2f %%  %4d  %s\n", 100 * best[k].probability, (int)best[k].index,
               best[k].name ? best[k].name : "");
    return 0;
}

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    fac_graph *model = NULL;
    fac_device *device = NULL;
    fac_program *program = NULL;
    fac_labels *labels = NULL;
    fac_image photo = { 0, 0, NULL };
    fac_tensor *x = NULL, *y = NULL;
    fac_preprocess how;
    int code;
    if (argc != 3) {
        fprintf(stderr, "usage: classify MODEL.onnx PHOTO\n");
        return 2;
    }

    /* One check serves the whole chain: a call that fails leaves its results alone. */
    if (fac_onnx_load(argv[1], NULL, &model, &err) || ask(model, &how, &labels, &err) ||
        fac_device_open("cpu", NULL, &device, &err) ||
        fac_program_new(model, device, NULL, &program, &err) ||
        fac_image_load(argv[2], &photo, &err) || fac_image_tensor(&photo, &how, &x, &err) ||
        fac_program_run(program, &x, &y, &err))
        code = report(&err);
    else
        code = print_best(y, labels, &err);

    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_image_free(&photo);
    fac_labels_free(labels);
    fac_program_free(program);
    fac_device_free(device);
    fac_graph_free(model);
    return code;
}
