/* Gradients by kernels whose work items take vectors of neighbours, and more work than a GPU of one
 * compute unit holds.  Skipped where no driver is. */
#include "opencl_neighbours.h"

/* Gradients that have no reference but what they expand to: programs on the device and on the cpu.
 */
static const struct template grads[] = {
    { "softmax_grad", "softmax_grad(T[c,m], T[c,m]) axis=-1", 1e-4 },
    { "softmax_grad", "softmax_grad(T[2,l], T[2,l]) axis=-1", 1e-4 },
    { "softmax_grad", "softmax_grad(T[b,c,h,w], T[b,c,h,w]) axis=1", 1e-4 },
    { "log_softmax_grad", "log_softmax_grad(T[c,m], T[c,m]) axis=-1", 1e-4 },
    { "log_softmax_grad", "log_softmax_grad(T[2,l], T[2,l]) axis=-1", 1e-4 },
    { "log_softmax_grad", "log_softmax_grad(T[b,c,h,w], T[b,c,h,w]) axis=1", 1e-4 },
    { "layer_norm_grad", "layer_norm_grad(T[c,m], T[c,m], T[m]) axis=-1 epsilon=1e-5", 2e-4 },
    { "layer_norm_grad", "layer_norm_grad(T[m,h,c], T[m,h,c], -) axis=1 epsilon=1e-3", 2e-4 },
    { "rms_norm_grad", "rms_norm_grad(T[c,m], T[c,m], T[m]) axis=-1 epsilon=1e-5", 2e-4 },
    { "rms_norm_grad", "rms_norm_grad(T[m,h,c], T[m,h,c], -) axis=1 epsilon=1e-3", 2e-4 }
};
enum { GRADS = sizeof grads / sizeof *grads, RESULTS = 3 };

static void run_on(fac_device *d, const fac_graph *g, fac_tensor *const *in, fac_tensor **out) {
    fac_program *p = NULL;
    OK(fac_program_new(g, d, NULL, &p, &err));
    OK(fac_program_run(p, in, out, &err));
    fac_program_free(p);
}

static void compare_tensors(const char *text, const fac_tensor *x, const fac_tensor *y,
                            double tolerance) {
    fac_tensor *a = NULL, *b = NULL;
    const fac_type t = fac_tensor_type(x);
    OK(fac_tensor_convert(x, FAC_F64, &a, &err));
    OK(fac_tensor_convert(y, FAC_F64, &b, &err));
    const double *u = fac_tensor_data(a), *v = fac_tensor_data(b);
    double top = 0;
    for (int64_t i = 0; i < fac_dims_count(&t.dims); i++) top = fmax(top, fabs(v[i]));
    assert_true(isfinite(top));
    for (int64_t i = 0; i < fac_dims_count(&t.dims); i++)
        if (!(fabs(u[i] - v[i]) <= tolerance * (1 + top)))
            fail_msg("%s: element %lld is %.9g, on the cpu %.9g", text, (long long)i, u[i], v[i]);
    fac_tensor_free(a);
    fac_tensor_free(b);
}

static void try_grad(const struct template *t, const char *type, bool whole) {
    char text[400];
    fac_graph *g = NULL;
    fac_device *cpu = NULL;
    fac_tensor *in[4] = { NULL }, *ours[RESULTS] = { NULL }, *theirs[RESULTS] = { NULL };
    write_problem(t->text, type, whole, text, sizeof text);
    print_message("%s\n", text);
    const double lo =
        !strcmp(t->solver, "log_softmax_grad") ? -3 : -1; /* exp(y) times a sum fits into f16 */
    OK(fac_problem_graph(text, false, &g, &err));
    OK(fac_device_open("cpu", NULL, &cpu, &err));
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        void *flat = contents(g->inputs[i]->type, lo, lo + 3);
        OK(fac_tensor_new(NULL, g->inputs[i]->type.dtype, g->inputs[i]->type.dims, &in[i], &err));
        OK(fac_tensor_write(in[i], flat, fac_type_bytes(&g->inputs[i]->type), &err));
        free(flat);
    }
    run_on(device, g, in, ours);
    run_on(cpu, g, in, theirs);
    for (int k = 0; k < fac_graph_outputs(g); k++)
        compare_tensors(text, ours[k], theirs[k],
                        !strcmp(type, "f32")    ? t->tolerance
                        : !strcmp(type, "bf16") ? 4e-2
                                                : 4e-3);
    for (int k = 0; k < RESULTS; k++) fac_tensor_free(ours[k]), fac_tensor_free(theirs[k]);
    for (int i = 0; i < 4; i++) fac_tensor_free(in[i]);
    fac_device_free(cpu);
    fac_graph_free(g);
}

static void gradients(void **state) {
    (void)state;
    if (!device) skip();
    fac_opencl_of(device)->limits.gpu = true;
    for (int k = 0; k < GRADS; k++) try_grad(&grads[k], types[number(0, 2)], number(0, 3));
}

/* More work than a GPU of one compute unit holds: items take several vectors, groups several lines.
 */
static const struct template many[] = {
    { "elementwise", "relu(T[40968])", 1e-6 },
    { "elementwise", "gelu(T[40968])", 1e-6 },
    { "elementwise", "gelu_slope(T[40968])", 1e-6 },
    { "elementwise", "cast(T[40968]) to=f32", 1e-6 },
    { "elementwise", "mul(T[81928], T[])", 1e-6 },
    { "dropout", "dropout(T[81,520], i64[]) ratio=0.3 training", 1e-5 },
    { "dropout", "dropout(T[81,520], i64[]) ratio=0.5 training", 1e-5 },
    { "dropout", "dropout(T[81,520], i64[]) ratio=0 training", 1e-5 },
    { "dropout", "dropout(T[81,520]) ratio=0.3", 1e-5 },
    { "concat", "concat(T[67,1032], T[67,1048]) axis=1", 0 },
    { "copy", "transpose(T[136,200]) perm=1,0", 0 },
    { "copy", "transpose(T[2,48,3,72]) perm=0,3,2,1", 0 },
    { "softmax", "softmax(T[131,512]) axis=-1", 1e-5 },
    { "softmax", "log_softmax(T[131,520]) axis=-1", 1e-5 },
    { "softmax", "softmax(T[601,64]) axis=-1", 1e-5 },
    { "norm", "layer_norm(T[131,512], T[512], T[512]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "rms_norm(T[131,520], T[520]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "group_norm(T[2,24,36,132], f32[24], f32[24]) groups=6 epsilon=1e-5",
      1e-4 }, /* in local memory, if f32 */
    { "norm", "rms_norm(T[9,20000], T[20000]) axis=-1 epsilon=1e-5", 1e-4 }, /* the same */
    { "norm", "layer_norm(T[601,64], T[64], T[64]) axis=-1 epsilon=1e-5", 1e-4 },
    { "reduce", "sum(T[131,2048], i64{1})", 1e-3 },
    { "batch_norm",
      "batch_norm(T[1900,136], f32[136], f32[136], f32[136], f32[136]) epsilon=1e-3 training_mode "
      "{relu}",
      1e-4 },
    { "batch_norm",
      "batch_norm_act_grad(T[1900,136], T[1900,136], f32[136], T[1900,136]) epsilon=1e-3 hi=1",
      1e-3 },
    { "batch_norm_sums", "batch_norm_sums(T[4000,32], T[4000,32], f32[32], f32[32]) epsilon=5",
      1e-3 }
};
enum { MANY = sizeof many / sizeof *many, SOME_OF_MANY = 7, LOCAL = 100 << 10 };

static void one_unit(void **state) {
    (void)state;
    if (!device) skip();
    const bool all = getenv("FACULA_ALL") != NULL;
    const int first = (int)number(0, MANY - 1);
    fac_opencl *o = fac_opencl_of(device);
    const unsigned units = o->limits.units;
    const int room = o->paths[FAC_CL_LOCAL_163], fences = o->paths[FAC_CL_FENCES];
    o->limits.gpu = true;
    o->limits.units = 1;
    channels_last = false;
    if (room != FAC_CL_GOOD && o->limits.local >= LOCAL) o->paths[FAC_CL_LOCAL_163] = FAC_CL_GOOD;
    if (number(0, 1)) o->paths[FAC_CL_FENCES] = FAC_CL_GOOD; /* which a CPU has */
    const int apart = all ? 1 : 3;
    for (int k = 0; k < (all ? MANY : SOME_OF_MANY); k++)
        for (int j = 0; j < (all ? 3 : 1); j++)
            try_one(&many[(first + k * apart) % MANY], types[all ? j : number(0, 2)], true);
    try_grad(
        &(struct template){
            "", "layer_norm_grad(T[67,512], T[67,512], T[512]) axis=-1 epsilon=1e-5", 2e-4 },
        types[number(0, 2)], true);
    try_grad(&(struct template){ "",
                                 "rms_norm_grad(T[67,512], T[67,512], T[512]) axis=-1 epsilon=1e-5",
                                 2e-4 },
             types[number(0, 2)], true);
    o->limits.units = units;
    o->paths[FAC_CL_LOCAL_163] = room;
    o->paths[FAC_CL_FENCES] = fences;
}

int main(void) {
    decide = away_from_zeros;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(one_unit),
    };
    return cmocka_run_group_tests_name("opencl channels last grads", tests, open_device,
                                       close_device);
}
