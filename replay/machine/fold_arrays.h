// What folds know of arrays: slices of them, what np.roll() makes of them, and what operators and ufuncs make of those, which are no
// objects: they are computed as they are summed, piece by piece (fold_sums.h). Part of fold.cc.
#pragma once
#include <Python.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "numpy/loops.h"
#include "replay/machine/fold_value.h"
#include "replay/machine/span.h"

namespace dalsegno::replay::folds {

struct ArrayView {
  PyArrayObject* array;  // whose memory it is; borrowed
  DType dtype;
  Span span;                             // of what an operation gives: the extents alone
  npy_intp shifts[Span::kMaxRank] = {};  // rolled: element i of an axis is i - shift of the span's, modulo its extent
  bool rolled = false;
  int32_t op = -1;  // the operation that gives it; -1: it lies in memory
};

// On doubles, element by element, by NumPy's inner loop.
struct ArrayOp {
  struct Operand {
    enum : uint8_t { kView, kResult, kNumber } from;
    int32_t at;  // of `views`, or of the operations
    double number;
  };
  numpy::InnerLoop loop;
  int n;
  Operand operands[2];
  bool exact;  // the same bits wherever it is cut in pieces, and whatever the strides
};

// What is summed, in this order.
struct Summands {
  struct Summand {
    ArrayOp::Operand what;
    size_t behind;  // as many operations come before
  };
  std::vector<ArrayView> views;  // in memory
  std::vector<ArrayOp> ops;      // operands come before
  std::vector<Summand> all;
  bool start = false;  // the last of the views is what is begun with
};

// Of one fold. Slots with kView say which by number.
class ArrayViews {
 public:
  // What a slot holds, an exact array, a view of one, or what an operation gives; null: it is neither.
  const ArrayView* of(const Slot& s);
  // a[index]. index: for each of n axes the slots of start, stop and step (-1: there is none); or of a position, and twice kPosition.
  bool item(const Slot& a, const int16_t* index, int n, const Slot* slots, Slot* out);
  // a[at], a row or an element of a row.
  bool row(const Slot& a, const Slot& at, Slot* out);
  // a (op) b, -a, and what a function gives of n operands: of float64 arrays of one shape, and of numbers.
  bool binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out);
  bool negate(const Slot& a, Slot* out);
  bool call(PyObject* callee, const Slot* const* args, int n, Slot* out);

  // np.roll(a, shift, axis); axis: null, where there is one axis alone.
  bool roll(const Slot& a, const Slot& shift, const Slot* axis, Slot* out);

  // The next summand. False: it is no array.
  bool add(const Slot& item);
  // At the end: the array they are added to, in that order. False: it is none.
  bool added_to(PyObject* start);
  const Summands& summands() const { return summands_; }

  static constexpr int16_t kPosition = -2;

 private:
  bool give_view(const ArrayView& view, Slot* out);
  bool operand(const Slot& s, ArrayOp::Operand* out, Span* shape);
  bool operate(ArrayFn fn, const Slot* const* args, int n, Slot* out);
  bool dot(const Slot& a, const Slot& b, Slot* out);

  static constexpr size_t kMost = 4096, kUsual = 16;
  std::vector<ArrayView> views_;    // by slots
  std::optional<ArrayView> whole_;  // of an array that is no view
  Summands summands_;
};

}  // namespace dalsegno::replay::folds
