/* The five best ImageNet classes of a photo: classify MODEL.onnx PHOTO
 * The model takes one photo, f32 [1 or N, 3, 224, 224], prepared as torchvision's classifiers expect it. */
#include <facula/facula.h>
#include <stdio.h>

static int report(const fac_error *err) {
    fprintf(stderr, "classify: %s\n", err->text);
    return 1;
}

/* Prints the five largest of n scores. */
static void print_best(const float *scores, int n) {
    int shown[5];
    for (int k = 0; k < 5 && k < n; k++) {
        int best = -1;
        for (int i = 0; i < n; i++) {
            int taken = 0;
            for (int j = 0; j < k; j++) taken |= shown[j] == i;
            if (!taken && (best < 0 || scores[i] > scores[best])) best = i;
        }
        shown[k] = best;
        const char *name = n == 1000 ? fac_imagenet_name(best) : NULL;
        printf("%9.4f  %4d  %s\n", scores[best], best, name ? name : "");
    }
}

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    fac_graph *model = NULL;
    fac_device *device = NULL;
    fac_program *program = NULL;
    fac_image photo = { 0, 0, NULL };
    fac_tensor *x = NULL, *y = NULL;
    int code = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: classify MODEL.onnx PHOTO\n");
        return 2;
    }

    /* One check serves the whole chain: a call that fails leaves its results alone. */
    const fac_preprocess how = { .resize = 256, .height = 224, .width = 224, .how = FAC_BILINEAR,
                                 .mean = { 0.485, 0.456, 0.406 }, .std = { 0.229, 0.224, 0.225 } };
    if (fac_onnx_load(argv[1], NULL, &model, &err) || fac_device_open("cpu", NULL, &device, &err) ||
        fac_program_new(model, device, NULL, &program, &err) || fac_image_load(argv[2], &photo, &err) ||
        fac_image_tensor(&photo, &how, &x, &err) || fac_program_run(program, &x, &y, &err)) {
        code = report(&err);
    } else {
        fac_type type = fac_tensor_type(y);
        print_best(fac_tensor_data(y), (int)fac_dims_count(&type.dims));
    }

    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_image_free(&photo);
    fac_program_free(program);
    fac_device_free(device);
    fac_graph_free(model);
    return code;
}
