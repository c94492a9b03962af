/* facula.h: everything a user needs.  Writers of ops and backends add facula/op.h and facula/backend.h. */
#ifndef FACULA_H
#define FACULA_H

#include "facula/version.h"
#include "facula/status.h"
#include "facula/tensor.h"
#include "facula/device.h"
#include "facula/graph.h"
#include "facula/ops.h"
#include "facula/nn.h"
#include "facula/loss.h"
#include "facula/optim.h"
#include "facula/zoo.h"
#include "facula/io.h"
#include "facula/read.h"
#include "facula/image.h"
#include "facula/data.h"
#include "facula/onnx.h"
#include "facula/program.h"
#include "facula/recompute.h"
#include "facula/tune.h"
#include "facula/train.h"
#include "facula/view.h"
#include "facula/analyze.h"
#include "facula/activations.h"
#include "facula/diff.h"
#include "facula/tile.h"
#include "facula/reduce.h"
#include "facula/verify.h"
#include "facula/edit.h"

#endif
