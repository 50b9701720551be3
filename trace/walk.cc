#include "trace/walk.h"

namespace dalsegno {
namespace {

constexpr int kHolderAt = 1, kFirstAt = 3, kBits = 4;  // each thing: what it is, then its dtype
constexpr uint32_t kMask = (1U << kBits) - 1;
static_assert(static_cast<uint32_t>(Walked::kKinds) <= kMask && static_cast<uint32_t>(DType::kCount) <= kMask);

constexpr int at(int k) { return kFirstAt + 2 * kBits * k; }

}  // namespace

int32_t with_walk(int32_t imm, const Walk& walk) {
  uint32_t bits = static_cast<uint32_t>(imm) & 1;
  bits |= static_cast<uint32_t>(walk.holder) << kHolderAt;
  for (int k = 0; k < kMostWalked; ++k)
    bits |= (static_cast<uint32_t>(walk.over[k]) | static_cast<uint32_t>(walk.dtypes[k]) << kBits) << at(k);
  return static_cast<int32_t>(bits);
}

Walk walk_of(int32_t imm) {
  const auto bits = static_cast<uint32_t>(imm);
  Walk walk;
  walk.holder = static_cast<Holder>(bits >> kHolderAt & 3);
  for (int k = 0; k < kMostWalked; ++k) {
    walk.over[k] = static_cast<Walked>(bits >> at(k) & kMask);
    walk.dtypes[k] = static_cast<DType>(bits >> (at(k) + kBits) & kMask);
  }
  return walk;
}

bool is_walk(const Walk& walk) {
  const int n = walk.n();
  if (walk.holder == Holder::kNone && n > 1) return false;
  if (walk.holder == Holder::kEnumerate && (n != 2 || walk.over[0] != Walked::kCount)) return false;
  if (walk.holder > Holder::kZip || (walk.holder == Holder::kZip && n == 0)) return false;
  for (int k = 0; k < kMostWalked; ++k) {
    if (walk.over[k] >= Walked::kKinds || walk.dtypes[k] >= DType::kCount) return false;
    if (k >= n && (walk.over[k] != Walked::kNothing || walk.dtypes[k] != DType{})) return false;
    if (walk.over[k] == Walked::kCount && (walk.holder != Holder::kEnumerate || k > 0)) return false;
  }
  return true;
}

std::string walk_text(const Walk& walk) {
  static constexpr const char* kNames[] = {
#define X(name, text) text,
      DALSEGNO_WALKED(X)
#undef X
  };
  std::string text = walk.holder == Holder::kEnumerate ? "enumerate of" : walk.holder == Holder::kZip ? "zip of" : "";
  for (int k = 0; k < walk.n(); ++k) {
    if (walk.over[k] == Walked::kCount || walk.over[k] >= Walked::kKinds) continue;
    if (!text.empty()) text += " ";
    text += walk.over[k] == Walked::kArray ? dtype_name(walk.dtypes[k]) : kNames[static_cast<int>(walk.over[k])];
  }
  return text;
}

}  // namespace dalsegno
