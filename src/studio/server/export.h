/* A network as files to export. */
#ifndef FACULA_STUDIO_EXPORT_H
#define FACULA_STUDIO_EXPORT_H
#include "base/text.h"
#include "facula/graph.h"

/* ONNX of its inference form, otherwise safetensors of its parameters and states. */
fac_status fac_export_model(const fac_graph *model, bool onnx, fac_text *to, fac_error *err);
/* One of the files of every network: model.onnx, model.safetensors, and net.c and net.py, programs
 * in C and Python that run model.onnx.  The programs need no model.  *type: its media type.
 * FAC_E_ARGUMENT: unknown name. */
fac_status fac_export_file(const fac_graph *model, const char *name, fac_text *to,
                           const char **type, fac_error *err);
#endif
