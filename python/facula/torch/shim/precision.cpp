// How exactly products of f32 are computed: torch.set_float32_matmul_precision, or torch.ocl.set_precision.
#include <ATen/Context.h>
#include "lazy.h"

namespace ocl {
static std::atomic<int> own_{PRECISION_OPEN};

const char* precision_name(int p) {
  static const char* const names[] = {"default", "highest", "high", "medium"};
  return p < 0 ? names[0] : names[p];
}
void set_precision(int64_t p) {
  TORCH_CHECK(p >= PRECISION_OPEN && p <= PRECISION_MEDIUM, "ocl: no precision ", p);
  own_ = (int)p;
}
// torch's "highest" asks for f32, which the library's default is, by fast algorithms.
Precision precision_now() {
  if (own_ != PRECISION_OPEN) return (Precision)own_.load();
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGH: return PRECISION_HIGH;
    case at::Float32MatmulPrecision::MEDIUM: return PRECISION_MEDIUM;
    default: return PRECISION_DEFAULT;
  }
}

bool is_product(const std::string& name) {
  for (auto* part : {"convolution", "attention"})
    if (name.find(part) != std::string::npos) return true;
  for (auto* op : {"linear", "mm", "bmm", "mv", "dot", "vdot", "addmm", "addmm_", "addbmm", "addbmm_", "baddbmm", "baddbmm_", "addmv", "addmv_",
                   "_addmm_activation"})
    if (name == std::string("aten::") + op) return true;
  return false;
}
}  // namespace ocl
