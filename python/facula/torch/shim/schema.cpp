// What a schema says of an operator, read once.
#include "lazy.h"

namespace ocl {
static uint8_t kind_of(const c10::Argument& a) {
  auto t = a.real_type();
  auto opt = t->kind() == c10::TypeKind::OptionalType;
  auto inner = opt ? t->castRaw<c10::OptionalType>()->getElementType() : t;
  switch (inner->kind()) {
    case c10::TypeKind::TensorType: return OpInfo::TENSOR;
    case c10::TypeKind::NumberType: return OpInfo::SCALAR;
    case c10::TypeKind::GeneratorType: return OpInfo::GENERATOR;
    case c10::TypeKind::ScalarTypeType: return OpInfo::DTYPE;
    case c10::TypeKind::ListType: {
      auto e = inner->castRaw<c10::ListType>()->getElementType();
      if (e->kind() == c10::TypeKind::TensorType) return OpInfo::LIST;
      if (e->kind() == c10::TypeKind::OptionalType)
        return e->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType
                   ? OpInfo::OPTLIST : OpInfo::OTHER;
      return e->kind() == c10::TypeKind::NumberType ? OpInfo::SCALAR : OpInfo::OTHER;
    }
    default: return OpInfo::OTHER;
  }
}

static bool has_tag(const c10::OperatorHandle& o, at::Tag tag) {
  for (auto t : o.getTags())
    if (t == tag) return true;
  return false;
}
// torch has not given the tag to all variants that write: abs_, eq_.Tensor and others lack it.
static bool is_pointwise(const c10::OperatorHandle& o) {
  if (has_tag(o, at::Tag::pointwise)) return true;
  std::string name = o.schema().name(), overload = o.schema().overload_name();
  const bool out = overload.size() >= 3 && overload.compare(overload.size() - 3, 3, "out") == 0;
  if (out) overload.resize(overload.size() > 4 ? overload.size() - 4 : 0);     // "Tensor_out", "out"
  else if (name.back() == '_') name.pop_back();
  else return false;
  auto plain = c10::Dispatcher::singleton().findSchema({name, overload});
  return plain && has_tag(*plain, at::Tag::pointwise);
}

OpInfo::OpInfo(const c10::OperatorHandle& o) : op(o) {
  auto& sc = o.schema();
  lift = sc.name().rfind("aten::_fused_", 0) == 0;
  name = sc.name() + (sc.overload_name().empty() ? "" : "." + sc.overload_name());
  id = std::hash<std::string>()(name);
  product = is_product(sc.name());
  apart = reads_apart(sc.name());
  repeats = may_repeat(sc.name());
  for (auto& a : sc.arguments()) {
    kind.push_back(kind_of(a));
    random |= kind.back() == GENERATOR;
    writes.push_back(a.alias_info() && a.alias_info()->isWrite());
    has_out |= a.is_out();
    has_writes |= writes.back();
  }
  if (name == "aten::native_batch_norm") {          // its schema does not say so
    writes[3] = true;
    writes[4] = true;
    has_writes = true;
  }
  for (auto& r : sc.returns()) {
    int8_t al = -1;
    auto k = r.type()->kind();
    for (size_t i = 0; r.alias_info() && i < sc.arguments().size(); i++) {
      auto* ai = sc.arguments()[i].alias_info();
      if (ai && ai->beforeSet() == r.alias_info()->beforeSet()) al = (int8_t)i;
    }
    alias.push_back(al);
    retlist.push_back(k == c10::TypeKind::ListType);
    if (al >= 0) continue;
    fresh = true;
    if (k == c10::TypeKind::ListType)
      dynamic |= r.type()->castRaw<c10::ListType>()->getElementType()->kind() != c10::TypeKind::TensorType;
    else dynamic |= k != c10::TypeKind::TensorType;
  }
  pointwise = is_pointwise(o);
  for (auto t : o.getTags()) {
    dynamic |= t == at::Tag::dynamic_output_shape || t == at::Tag::data_dependent_output;
    random |= t == at::Tag::nondeterministic_seeded;
  }
  masks = takes_masks(sc.name());
  dynamic &= !masks;
  for (auto* n : {"aten::fill_", "aten::zero_", "aten::copy_", "aten::add_", "aten::mul_"})
    pointwise |= sc.name() == n;
}

bool is_lifted(const OpInfo& I, size_t i, const c10::IValue& v) {
  return I.kind[i] == OpInfo::SCALAR || ((I.pointwise || I.lift) && v.isDouble());
}
}  // namespace ocl
