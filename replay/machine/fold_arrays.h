// What folds know of arrays: slices of them and what np.roll() makes of them, which are no objects, times a number or as they are; and
// their sum, which is made piece by piece, without the arrays that come between. Part of fold_run.cc.
#pragma once
#include <Python.h>

#include <optional>
#include <vector>

#include "replay/machine/fold_value.h"
#include "replay/machine/span.h"

namespace dalsegno::replay::folds {

struct ArrayView {
  PyArrayObject* array;  // whose memory it is; borrowed
  DType dtype;
  Span span;
  npy_intp shifts[Span::kMaxRank] = {};  // rolled: element i of an axis is i - shift of the span's, modulo its extent
  bool rolled = false;
  bool scaled = false, factor_left = false;
  double factor = 1.0;
};

// Of one fold. Slots with kView say which by number.
class ArrayViews {
 public:
  // What a slot holds, an exact array or a view of one; null: it is neither.
  const ArrayView* of(const Slot& s);
  // a[index]. index: for each of n axes the slots of start, stop and step (-1: there is none); or of a position, and twice kPosition.
  bool item(const Slot& a, const int16_t* index, int n, const Slot* slots, Slot* out);
  // a[at], a row or an element of a row.
  bool row(const Slot& a, const Slot& at, Slot* out);
  // a * b, where one is a number and the other a float64 array.
  bool product(const Slot& a, const Slot& b, Slot* out);

  // np.roll(a, shift, axis); axis: null, where there is one axis alone.
  bool roll(const Slot& a, const Slot& shift, const Slot* axis, Slot* out);

  static constexpr int16_t kPosition = -2;

 private:
  bool give_view(const ArrayView& view, Slot* out);

  static constexpr size_t kMost = 4096;
  std::vector<ArrayView> views_;
  std::optional<ArrayView> whole_;  // of an array that is no view
};

// 0 + views[0] + views[1] ...: views of one dtype and shape, in C order; of truth values it is an array of int64. New reference; null,
// without an exception: refused.
PyObject* sum_of(const std::vector<ArrayView>& views);

}  // namespace dalsegno::replay::folds
