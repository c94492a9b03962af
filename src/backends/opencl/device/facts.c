/* What `facula devices` says of an OpenCL device. */
#include <stdio.h>
#include "backends/opencl/device/probe.h"

_Static_assert(sizeof((fac_opencl *)0)->paths / sizeof(atomic_int) >= FAC_CL_PATHS,
               "fac_opencl has room for what probes find");

static void bytes_of(size_t bytes, char *to, size_t size) {
    const struct {
        double unit;
        const char *name;
    } units[] = { { 1e9, "GB" }, { 1e6, "MB" }, { 1024, "KiB" } };
    for (size_t i = 0; i < 3; i++)
        if ((double)bytes >= units[i].unit || i == 2) {
            snprintf(to, size, "%.4g %s", (double)bytes / units[i].unit, units[i].name);
            return;
        }
}

void fac_cl_facts(fac_device *d, fac_fact *tell, void *self) {
    const fac_opencl *o = fac_opencl_of(d);
    const fac_gpu_limits *l = &o->limits;
    char text[400], a[32], b[32], c[32];
    snprintf(text, sizeof text, "%s, %s", o->place.platform_name, o->place.vendor);
    tell(self, "platform", text);
    snprintf(text, sizeof text, "%s (%s, OpenCL C %d.%d)", o->place.name,
             l->gpu                               ? "GPU"
             : o->place.type & CL_DEVICE_TYPE_CPU ? "CPU"
                                                  : "accelerator",
             l->major, l->minor);
    tell(self, "device", text);
    tell(self, "driver", o->place.driver);
    bytes_of(l->memory, a, sizeof a);
    bytes_of(l->largest, b, sizeof b);
    bytes_of(l->local, c, sizeof c);
    snprintf(text, sizeof text, "%s, largest buffer %s, local memory of a group %s", a, b, c);
    tell(self, "memory", text);
    snprintf(text, sizeof text, "%u compute units, groups of up to %zu items", l->units, l->group);
    tell(self, "work", text);
}

void fac_cl_tell_paths(fac_device *d, fac_fact *tell, void *self) {
    fac_opencl *o = fac_opencl_of(d);
    char text[200];
    for (int k = 0; k < FAC_CL_PATHS; k++) {
        const fac_cl_path path = (fac_cl_path)k;
        const char *by = fac_cl_path_extension(path);
        if (!fac_cl_promises(o, path))
            snprintf(text, sizeof text, "no, without %s", by);
        else if (fac_cl_has_path(o, path))
            snprintf(text, sizeof text, "yes, by %s", by);
        else
            snprintf(text, sizeof text,
                     o->paths[k] == FAC_CL_UNTOLD ? "no, its probe had no memory"
                                                  : "no, its probe failed");
        tell(self, fac_cl_path_name(path), text);
    }
}
