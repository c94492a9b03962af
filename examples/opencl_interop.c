/* A program with OpenCL code of its own runs a network in its own context and queue, on its own
 * buffers: a kernel of ours makes the input, facula runs a small classifier on it, another kernel
 * of ours reads the scores.  Nothing goes through host memory between, and nothing waits before the
 * end.
 *   cc opencl_interop.c $(pkg-config --cflags --libs facula) -lOpenCL */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include "facula/facula.h"
#include "facula/opencl.h"

enum { BATCH = 4, SIDE = 28, CLASSES = 10, NO_DEVICE = 77 };

static const char kernels[] = "kernel void draw(global float *x) { size_t i = get_global_id(0); "
                              "x[i] = sin((float)i * 0.1f); }\n"
                              "kernel void best(global const float *scores, global int *to) { "
                              "size_t n = get_global_id(0); int k = 0;\n"
                              "  for (int j = 1; j < 10; j++) if (scores[n * 10 + j] > scores[n * "
                              "10 + k]) k = j; to[n] = k; }\n";

static void check(cl_int code, const char *what) {
    if (!code) return;
    fprintf(stderr, "%s: OpenCL error %d\n", what, (int)code);
    exit(1);
}

static void checked(fac_status status, const fac_error *err) {
    if (!status) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int code;
    cl_uint found = 0;
    if (clGetPlatformIDs(1, &platform, &found) || !found ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL)) {
        printf("there is no OpenCL device\n");
        return NO_DEVICE;
    }
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    check(code, "context");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    check(code, "queue");
    const char *text = kernels;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    check(code, "program");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "compiler");
    cl_kernel draw = clCreateKernel(program, "draw", &code),
              best = clCreateKernel(program, "best", &code);
    const size_t pixels = BATCH * SIDE * SIDE, images = BATCH;
    cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, pixels * sizeof(float), NULL, &code);
    cl_mem scores =
        clCreateBuffer(context, CL_MEM_READ_WRITE, BATCH * CLASSES * sizeof(float), NULL, &code);
    cl_mem classes =
        clCreateBuffer(context, CL_MEM_READ_WRITE, BATCH * sizeof(cl_int), NULL, &code);
    check(code, "buffers");

    /* facula on the same context and queue, and tensors over the buffers */
    fac_error err = { 0 };
    fac_device *d = NULL;
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_tensor *in = NULL, *out = NULL;
    checked(fac_opencl_device(context, queue, NULL, &d, &err), &err);
    checked(fac_zoo_new("lenet", NULL, 1, &g, &err), &err);
    checked(fac_program_new(g, d, NULL, &p, &err), &err);
    checked(fac_opencl_tensor(d, x, 0, FAC_F32, fac_shape(BATCH, 1, SIDE, SIDE), &in, &err), &err);
    checked(fac_opencl_tensor(d, scores, 0, FAC_F32, fac_shape(BATCH, CLASSES), &out, &err), &err);

    check(clSetKernelArg(draw, 0, sizeof x, &x), "argument");
    check(clEnqueueNDRangeKernel(queue, draw, 1, NULL, &pixels, NULL, 0, NULL, NULL), "draw");
    checked(fac_program_run(p, &in, &out, &err),
            &err); /* after the kernel: the queue is in order */
    check(clSetKernelArg(best, 0, sizeof scores, &scores), "argument");
    check(clSetKernelArg(best, 1, sizeof classes, &classes), "argument");
    check(clEnqueueNDRangeKernel(queue, best, 1, NULL, &images, NULL, 0, NULL, NULL), "best");
    cl_int result[BATCH];
    check(clEnqueueReadBuffer(queue, classes, CL_TRUE, 0, sizeof result, result, 0, NULL, NULL),
          "reading");
    for (int i = 0; i < BATCH; i++) printf("image %d: class %d\n", i, (int)result[i]);

    fac_tensor_free(in);
    fac_tensor_free(out);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
    clReleaseMemObject(x), clReleaseMemObject(scores), clReleaseMemObject(classes);
    clReleaseKernel(draw), clReleaseKernel(best);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
