/* Between the files of looking. */
#ifndef FACULA_VIEW_INTERNAL_H
#define FACULA_VIEW_INTERNAL_H
#include "facula/view.h"
#include "view/message.h"

uint32_t fac_crc32c(const void *data, size_t bytes);
uint32_t fac_crc32c_masked(const void *data, size_t bytes);

/* A record: length u64, its masked CRC, the payload, its masked CRC; little endian. */
void fac_record_add(fac_text *to, const void *payload, size_t bytes);

/* GraphDef: what TensorBoard's graph page draws. */
void fac_graph_def(const fac_graph *g, fac_proto *to);
#endif
