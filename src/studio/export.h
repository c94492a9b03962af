/* A network as the bytes of a file. */
#ifndef FACULA_STUDIO_EXPORT_H
#define FACULA_STUDIO_EXPORT_H
#include "base/text.h"
#include "facula/graph.h"

/* ONNX of its inference form, else safetensors of its parameters and states. */
fac_status fac_export_model(const fac_graph *model, bool onnx, fac_text *to, fac_error *err);
#endif
