// nn.EmbeddingBag: sums, means and largest of rows, by calls that have rows in the table.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>
#include "lazy.h"

namespace ocl {
using OT = std::optional<at::Tensor>;
enum { SUM, MEAN, MAX };
static bool is_there(const OT& t) { return t && t->defined(); }

struct Bags {
  at::Tensor indices, of, real, size;               // of each index: its bag, whether it counts; of each bag: how many do
};
static Bags bags_of(const at::Tensor& indices, const at::Tensor& offsets, bool with_last, int64_t padding) {
  TORCH_CHECK(indices.dim() == 1 && offsets.dim() == 1, "embedding_bag: indices and offsets have one dim, not ", indices.dim(),
              " and ", offsets.dim());
  TORCH_CHECK(!with_last || offsets.size(0), "embedding_bag: include_last_offset needs an offset");
  Bags b;
  const int64_t n = indices.size(0), count = offsets.size(0) - (with_last ? 1 : 0);
  b.indices = indices.to(at::kLong);
  auto places = at::arange(n, b.indices.options());
  b.of = at::searchsorted(offsets.narrow(0, 0, count).to(at::kLong), places, false, true) - 1;
  if (padding >= 0) b.real = b.indices.ne(padding);
  auto ones = at::ones({n}, b.indices.options());
  b.size = at::zeros({count}, b.indices.options()).index_add(0, b.of, b.real.defined() ? ones * b.real : ones);
  return b;
}
static at::Tensor weighted(at::Tensor rows, const Bags& b, const OT& weights) {
  if (is_there(weights)) rows = rows * weights->unsqueeze(1);
  return b.real.defined() ? rows * b.real.unsqueeze(1).to(rows.scalar_type()) : rows;
}
static at::Tensor filled(const Bags& b, const at::Tensor& like) {
  return b.size.clamp_min(1).unsqueeze(1).to(like.scalar_type());
}

using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
static Four forward(const at::Tensor& table, const at::Tensor& indices, const at::Tensor& offsets, bool, int64_t mode, bool,
                    const OT& weights, bool with_last, int64_t padding) {
  TORCH_CHECK(mode != MAX || !is_there(weights), "embedding_bag: per_sample_weights was not None: only mode='sum' has them");
  auto b = bags_of(indices, offsets, with_last, padding);
  const int64_t count = b.size.size(0), dim = table.size(1), n = b.indices.size(0);
  auto rows = table.index_select(0, b.indices);
  auto none = at::zeros({count, dim}, table.options());
  if (mode != MAX) {
    auto y = none.index_add(0, b.of, weighted(rows, b, weights));
    if (mode == MEAN) y = y / filled(b, y);
    return {y, b.of, b.size, at::zeros({count}, b.indices.options())};
  }
  auto of = b.of.unsqueeze(1).expand({n, dim});
  auto real = b.real.defined() ? b.real.unsqueeze(1).expand({n, dim}) : at::ones({n, dim}, rows.options().dtype(at::kBool));
  auto low = at::full({count, dim}, -INFINITY, table.options());
  auto y = low.scatter_reduce(0, of, rows.masked_fill(real.logical_not(), -INFINITY), "amax");
  auto places = at::arange(n, b.indices.options()).unsqueeze(1).expand({n, dim});
  auto hit = real.logical_and(rows.eq(y.gather(0, of)));
  auto first = at::full({count, dim}, n, b.indices.options()).scatter_reduce(0, of, places.masked_fill(hit.logical_not(), n), "amin");
  auto empty = b.size.eq(0).unsqueeze(1);
  auto where = n ? b.indices.index_select(0, first.clamp_max(n - 1).reshape({-1})).view({count, dim}) : first;
  return {y.masked_fill(empty, 0), b.of, b.size, where.masked_fill(empty, 0)};
}

static at::Tensor backward(const at::Tensor& dy, const at::Tensor& indices, const at::Tensor& offsets, const at::Tensor& of,
                           const at::Tensor& size, const at::Tensor& largest, c10::SymInt table_rows, bool by_count, int64_t mode,
                           bool sparse, const OT& weights, int64_t padding) {
  TORCH_CHECK(!sparse, "ocl: embedding_bag(sparse=True) has sparse gradients, which this device does not have");
  const int64_t rows = table_rows.expect_int();
  auto table = at::zeros({rows, dy.size(1)}, dy.options());
  if (mode == MAX) {
    auto some = dy.masked_fill(size.eq(0).unsqueeze(1), 0);
    return table.scatter_add(0, largest, some);
  }
  Bags b;
  b.indices = indices.to(at::kLong);
  b.of = of;
  b.size = size;
  if (padding >= 0) b.real = b.indices.ne(padding);
  auto g = mode == MEAN ? dy / filled(b, dy) : dy;
  auto each = weighted(g.index_select(0, of), b, weights);
  if (by_count) {
    auto ones = at::ones({b.indices.size(0)}, b.indices.options());
    auto seen = at::zeros({rows}, b.indices.options()).index_add(0, b.indices, ones);
    each = each / seen.index_select(0, b.indices).unsqueeze(1).to(each.scalar_type());
  }
  return table.index_add(0, b.indices, each);
}
static at::Tensor weights_backward(const at::Tensor& dy, const at::Tensor& table, const at::Tensor& indices, const at::Tensor&,
                                   const at::Tensor& of, int64_t, int64_t padding) {
  auto rows = indices.to(at::kLong);
  auto d = (dy.index_select(0, of) * table.index_select(0, rows)).sum(1);
  return padding >= 0 ? d.masked_fill(rows.eq(padding), 0) : d;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_embedding_bag", TORCH_FN(forward));
  m.impl("_embedding_bag_forward_only", TORCH_FN(forward));
  m.impl("_embedding_bag_backward", TORCH_FN(backward));
  m.impl("_embedding_bag_per_sample_weights_backward", TORCH_FN(weights_backward));
}
}  // namespace ocl
