/* A network as files to take away. */
#ifndef FACULA_STUDIO_EXPORT_H
#define FACULA_STUDIO_EXPORT_H
#include "base/text.h"
#include "facula/graph.h"

/* ONNX of its inference form, else safetensors of its parameters and states. */
fac_status fac_export_model(const fac_graph *model, bool onnx, fac_text *to, fac_error *err);
/* One of the files that there are of every network: model.onnx, model.safetensors, and programs in
 * C and Python that run model.onnx, net.c and net.py, which need no model.  *type: its media type.
 * FAC_E_ARGUMENT: there is none of that name. */
fac_status fac_export_file(const fac_graph *model, const char *name, fac_text *to,
                           const char **type, fac_error *err);
#endif
