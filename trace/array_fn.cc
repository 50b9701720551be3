// Look-ups in the table of array functions and in that of element types. Any thread; the strings are static.
#include "trace/array_fn.h"

#include <array>
#include <cstring>
#include <initializer_list>

namespace dalsegno {
namespace {

enum class Treatment : uint8_t { expr, loop };

struct Row {
  const char* name;
  int inputs;
  Treatment treatment;
};

constexpr std::array kRows = {Row{"", 0, Treatment::loop},
#define X(name, inputs, treatment) Row{#name, inputs, Treatment::treatment},
                              DALSEGNO_ARRAY_FNS(X)
#undef X
};
static_assert(kRows.size() == static_cast<size_t>(ArrayFn::kCount));

const Row& row(ArrayFn fn) {
  const auto i = static_cast<size_t>(fn);
  return kRows[i < kRows.size() ? i : 0];
}

struct DTypeRow {
  const char* name;
  int size;
};
constexpr std::array kDTypes = {DTypeRow{"bool", 1},       DTypeRow{"int32", 4},  DTypeRow{"int64", 8},  DTypeRow{"float32", 4},
                                DTypeRow{"float64", 8},    DTypeRow{"int8", 1},   DTypeRow{"uint8", 1},  DTypeRow{"int16", 2},
                                DTypeRow{"uint16", 2},     DTypeRow{"uint32", 4}, DTypeRow{"uint64", 8}, DTypeRow{"complex64", 8},
                                DTypeRow{"complex128", 16}};
static_assert(kDTypes.size() == static_cast<size_t>(DType::kCount));

}  // namespace

const char* array_fn_name(ArrayFn fn) { return row(fn).name; }
int array_fn_inputs(ArrayFn fn) { return row(fn).inputs; }
bool array_fn_is_expr(ArrayFn fn) { return row(fn).treatment == Treatment::expr; }

ArrayFn array_fn_by_name(const char* name) {
  for (size_t i = 1; i < kRows.size(); i++) {
    if (std::strcmp(kRows[i].name, name) == 0) return static_cast<ArrayFn>(i);
  }
  return ArrayFn::none;
}

const char* dtype_name(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  return i < kDTypes.size() ? kDTypes[i].name : "?";
}

int dtype_size(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  return i < kDTypes.size() ? kDTypes[i].size : 0;
}

bool casts_safely(DType from, DType to) {
  if (from == to || from == DType::kBool) return true;
  if (is_complex(to)) return casts_safely(is_complex(from) ? part_of_complex(from) : from, part_of_complex(to));
  if (is_complex(from)) return false;
  if (to == DType::kBool || (is_float(from) && !is_float(to))) return false;
  const int have = dtype_size(from), room = dtype_size(to);
  if (is_float(from) == is_float(to) && is_unsigned(from) == is_unsigned(to)) return have <= room;
  if (to == DType::kFloat64) return true;  // of int64, too
  return !is_unsigned(to) && have < room;
}

DType promoted(DType a, DType b) {
  if (casts_safely(a, b)) return b;
  if (casts_safely(b, a)) return a;
  if (is_int(a) && is_int(b)) {  // one has a sign
    for (DType wider : {DType::kInt16, DType::kInt32, DType::kInt64})
      if (casts_safely(a, wider) && casts_safely(b, wider)) return wider;
  }
  return is_complex(a) || is_complex(b) ? DType::kComplex128 : DType::kFloat64;
}

}  // namespace dalsegno
