// Masks among indices.  Which elements a mask picks is data, and the size of what is read with it
// is too: the host lists the places, and what is read or written at them stays on the device.  What
// one mask writes has a size that is known, so the mask stays as it is (aten/places.py).
#include "lazy.h"
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <torch/library.h>

namespace ocl {
bool takes_masks(const std::string &name) {
    for (auto *known : { "aten::index", "aten::_unsafe_index", "aten::index_put",
                         "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index_put" })
        if (name == known) return true;
    return false;
}
static bool is_mask(const at::Tensor &t) {
    return t.defined() && (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte);
}

using Indices = c10::List<std::optional<at::Tensor>>;
static Indices listed(const at::Tensor &x, const std::vector<at::Tensor> &given) {
    Indices out;
    for (auto &t : given) {
        if (!is_mask(t)) {
            out.push_back(t.defined() ? std::optional<at::Tensor>(t) : std::nullopt);
            continue;
        }
        const int64_t first = (int64_t)out.size();
        for (int64_t k = 0; k < t.dim(); k++)
            TORCH_CHECK_INDEX(first + k < x.dim() && t.size(k) == x.size(first + k),
                              "The shape of the mask ", t.sizes(), " at index ", k,
                              " does not match the shape of the indexed tensor ", x.sizes(),
                              " at index ", first + k);
        for (auto &places : at::nonzero(t).unbind(1)) out.push_back(places);
    }
    TORCH_CHECK_INDEX((int64_t)out.size() <= x.dim(), "too many indices for tensor of dimension ",
                      x.dim(), " (got ", out.size(), ")");
    return out;
}

// As torch's cpu says it; its meta kernels have other errors.
static void check_indices(const at::Tensor &x, const std::vector<at::Tensor> &given) {
    Dims all;
    std::string shapes;
    bool fit = true, outside = false;
    for (size_t i = 0; i < given.size(); i++) {
        auto &t = given[i];
        if (!t.defined()) continue;
        const auto type = t.scalar_type();
        TORCH_CHECK_INDEX(type == at::kLong || type == at::kInt || is_mask(t),
                          "tensors used as indices must be long, int, byte or bool tensors");
        if (is_mask(t)) return;
        outside |= t.numel() && (int64_t)i < x.dim() && !x.size(i);
        shapes += (shapes.empty() ? "" : ", ") + c10::str(t.sizes());
        while ((int64_t)all.size() < t.dim()) all.insert(all.begin(), 1);
        for (int64_t k = 1; k <= t.dim(); k++) {
            int64_t &n = all[all.size() - k], m = t.size(t.dim() - k);
            fit &= n == m || n == 1 || m == 1;
            if (n == 1) n = m;
        }
    }
    TORCH_CHECK_INDEX(
        fit, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
        shapes);
    TORCH_CHECK_INDEX(!outside || !c10::multiply_integers(all),
                      "index is out of bounds for dimension with size 0");
}

// What is written fits what the indices pick: `all` for the indices, and the other dims whole.
static void check_written(const at::Tensor &x, const std::vector<at::Tensor> &given,
                          const at::Tensor &value) {
    Dims picked, all;
    int64_t first = -1, last = -1;
    for (int64_t i = 0; i < (int64_t)given.size(); i++) {
        if (!given[i].defined()) continue;
        if (first < 0) first = i;
        last = i;
        auto both = at::infer_size(all, given[i].sizes());
        all.assign(both.begin(), both.end());
    }
    bool apart = false; // then what they pick comes first
    for (int64_t i = std::max<int64_t>(first, 0); i < last; i++) apart |= !given[i].defined();
    if (apart) picked = all;
    for (int64_t i = 0; i < x.dim(); i++) {
        const bool indexed = i < (int64_t)given.size() && given[i].defined();
        if (i == first && !apart) picked.append(all.begin(), all.end());
        if (!indexed) picked.push_back(x.size(i));
    }
    TORCH_CHECK(at::is_expandable_to(value.sizes(), picked), "shape mismatch: value tensor of shape ",
                value.sizes(), " cannot be broadcast to indexing result of shape ",
                c10::IntArrayRef(picked));
}

// How many places one mask picks is data; that the other dims do not fit is known.
static bool fits_masked(const at::Tensor &x, const std::vector<at::Tensor> &given,
                        const at::Tensor &value) {
    int64_t before = 0;
    while (!given[before].defined()) before++;
    const int64_t dims = given[before].dim();
    if (before + dims > x.dim()) return false; // listed() says so
    Dims picked(x.sizes().begin(), x.sizes().end());
    const int64_t at = before - ((int64_t)picked.size() - dims + 1) + value.dim();
    picked.erase(picked.begin() + before, picked.begin() + before + dims);
    picked.insert(picked.begin() + before, at < 0 ? 1 : value.size(at));
    return at::is_expandable_to(value.sizes(), picked);
}

static void check_device(const at::Tensor &x, const at::Tensor &value) {
    TORCH_CHECK(!value.dim() || value.device() == x.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                x.device(), " and ", value.device(), "!");
}

void plain_indices(const OpInfo &I, c10::IValue *a) {
    std::vector<at::Tensor> given;
    size_t masks = 0, there = 0;
    for (const c10::IValue &v : a[1].toListRef()) {
        given.push_back(v.isTensor() ? v.toTensor() : at::Tensor());
        there += given.back().defined();
        masks += is_mask(given.back());
        if (given.back().defined() && given.back().scalar_type() == at::kByte)
            TORCH_WARN("indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                       "torch.bool instead.");
    }
    const bool writes = I.op.schema().name().find("index_put") != std::string::npos;
    const at::Tensor &x = a[0].toTensor();
    TORCH_CHECK(x.is_privateuseone(), "indices should be either on cpu or on the same device as the "
                                      "indexed tensor (", x.device().type(), ")");
    check_indices(x, given);
    if (writes) check_device(x, a[2].toTensor());
    if (!masks && writes) check_written(x, given, a[2].toTensor());
    if (!masks || (writes && there == 1 && fits_masked(x, given, a[2].toTensor()))) return;
    auto plain = listed(x, given);
    given.clear();
    for (const std::optional<at::Tensor> &t : plain) given.push_back(t.value_or(at::Tensor()));
    check_indices(x, given); // as many places as the other indices have
    if (writes) check_written(x, given, a[2].toTensor());
    a[1] = std::move(plain);
}

static at::Tensor masked_select(const at::Tensor &x, const at::Tensor &mask) {
    TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
    auto both = at::broadcast_tensors({ x, mask });
    return at::index(both[0].reshape({ -1 }), Indices({ both[1].reshape({ -1 }) }));
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("masked_select", TORCH_FN(masked_select)); }
} // namespace ocl
