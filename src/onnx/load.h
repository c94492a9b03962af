/* The importer on bytes that need not be a file of the disk: for fuzzing and tests. */
#ifndef FACULA_ONNX_LOAD_H
#define FACULA_ONNX_LOAD_H
#include "facula/onnx.h"
#include "onnx/source.h"

/* fac_onnx_load; takes over what `files` holds, whether or not it succeeds. */
fac_status fac_onnx_load_files(fac_source_files *files, const fac_onnx_opts *opts, fac_graph **out,
                               fac_error *err);
#endif
