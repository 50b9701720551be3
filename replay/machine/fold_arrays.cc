#include "replay/machine/fold_arrays.h"

#include <algorithm>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "numpy/errstate.h"
#include "numpy/loops.h"
#include "replay/arrays.h"
#include "replay/typed/rep.h"
#include "trace/fault.h"

namespace dalsegno::replay::folds {
namespace {

// None, or no slot: `otherwise`.
bool bound(const Slot* slots, int16_t slot, Py_ssize_t otherwise, Py_ssize_t* out) {
  if (slot < 0) return *out = otherwise, true;
  const Slot& s = slots[slot];
  if (s.tag == Slot::kInt) return *out = s.i, true;
  return *out = otherwise, s.tag == Slot::kObject && s.object == Py_None;
}

bool is_bound(PyObject* o) { return o == Py_None || PyLong_CheckExact(o); }

// A slice that is a constant.
bool unpack(PyObject* slice, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) {
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  if (!is_bound(s->start) || !is_bound(s->stop) || !is_bound(s->step)) return false;
  return PySlice_Unpack(slice, start, stop, step) == 0 || (PyErr_Clear(), false);
}

// One axis of an index. False: NumPy raises, or nothing is known.
bool cut(const int16_t* part, const Slot* slots, npy_intp extent, npy_intp stride, Span* to) {
  Py_ssize_t start, stop, step;
  if (part[1] == ArrayViews::kPosition) {
    const Slot& at = slots[part[0]];
    if (at.tag == Slot::kInt) {
      const int64_t i = at.i < 0 ? at.i + extent : at.i;
      if (i < 0 || i >= extent) return false;
      return to->data += i * stride, true;
    }
    if (at.tag != Slot::kObject || !PySlice_Check(at.object) || !unpack(at.object, &start, &stop, &step)) return false;
  } else {
    if (!bound(slots, part[2], 1, &step) || step == 0 || step == PY_SSIZE_T_MIN) return false;
    if (!bound(slots, part[0], step > 0 ? 0 : PY_SSIZE_T_MAX, &start)) return false;
    if (!bound(slots, part[1], step > 0 ? PY_SSIZE_T_MAX : PY_SSIZE_T_MIN, &stop)) return false;
  }
  const Py_ssize_t length = PySlice_AdjustIndices(extent, &start, &stop, step);
  to->data += start * stride;
  to->shape[to->rank] = length;
  to->strides[to->rank++] = step * stride;
  return true;
}

}  // namespace

const ArrayView* ArrayViews::of(const Slot& s) {
  if (s.tag == Slot::kView) return &views_[static_cast<size_t>(s.i)];
  ArrayFacts facts;
  if (s.tag != Slot::kObject || !numpy::facts_of(s.object, &facts) || facts.rank < 1 || facts.rank > Span::kMaxRank ||
      is_complex(facts.dtype))
    return nullptr;
  whole_.array = reinterpret_cast<PyArrayObject*>(s.object), whole_.dtype = facts.dtype;
  set_of_array(whole_.array, &whole_.span);
  return &whole_;
}

bool ArrayViews::item(const Slot& a, const int16_t* index, int n, const Slot* slots, Slot* out) {
  const ArrayView* from = of(a);
  if (!from || from->scaled || n > from->span.rank) return false;
  ArrayView view = *from;
  view.span.rank = 0;
  for (int d = 0; d < from->span.rank; ++d) {
    constexpr int16_t kAll[] = {-1, -1, -1};
    if (!cut(d < n ? index + 3 * d : kAll, slots, from->span.shape[d], from->span.strides[d], &view.span)) return false;
  }
  return view.span.rank > 0 && give_view(view, out);
}

bool ArrayViews::product(const Slot& a, const Slot& b, Slot* out) {
  const auto is_number = [](const Slot& s) { return s.tag == Slot::kFloat || (s.tag == Slot::kInt && typed::exact_in_double(s.i)); };
  const bool left = is_number(a);
  const Slot& number = left ? a : b;
  const ArrayView* from = of(left ? b : a);
  if (!is_number(number) || !from || from->scaled || from->dtype != DType::kFloat64) return false;
  ArrayView view = *from;
  view.scaled = true, view.factor_left = left;
  view.factor = number.tag == Slot::kFloat ? number.f : static_cast<double>(number.i);
  return give_view(view, out);
}

bool ArrayViews::give_view(const ArrayView& view, Slot* out) {
  if (views_.size() == kMost) return false;
  views_.push_back(view);
  out->tag = Slot::kView, out->i = static_cast<int64_t>(views_.size() - 1), out->object = nullptr;
  return true;
}

namespace {

constexpr npy_intp kPiece = 1024;             // elements of a row that are summed at once: two such pieces stay in the first cache
constexpr npy_intp kMostAdditions = 1 << 22;  // nobody else has the GIL for some milliseconds

class Sum {
 public:
  Sum(const std::vector<ArrayView>& views, PyArrayObject* made)
      : views_(views),
        shape_(views[0].span),
        item_(dtype_size(views[0].dtype)),
        out_(PyArray_BYTES(made)),
        add_(numpy::inner_loop(ArrayFn::add, views[0].dtype, views[0].dtype)),
        multiply_(numpy::inner_loop(ArrayFn::multiply, views[0].dtype, views[0].dtype)) {
    row_ = shape_.shape[shape_.rank - 1];
    if (std::all_of(views.begin(), views.end(), [&](const ArrayView& v) { return is_contiguous(v.span, item_); })) row_ = shape_.size();
  }

  // The flags that were raised.
  int run() const {
    rt::clear_all_raised();
    npy_intp at[Span::kMaxRank] = {};
    for (npy_intp done = 0, size = shape_.size(); done < size; done += row_) {
      for (npy_intp begin = 0; begin < row_; begin += kPiece)
        add_up(at, begin, std::min(kPiece, row_ - begin), out_ + (done + begin) * item_);
      for (int d = shape_.rank - 2; d >= 0 && ++at[d] == shape_.shape[d]; --d) at[d] = 0;
    }
    return rt::all_raised();
  }

 private:
  void add_up(const npy_intp* at, npy_intp begin, npy_intp length, char* out) const {
    alignas(64) char scaled[kPiece * sizeof(double)];
    static constexpr double kZero = 0;  // of every dtype
    const size_t n = views_.size() - (planted(Fault::lost_summand) && views_.size() > 2 ? 1 : 0);
    for (size_t k = 0; k < n; ++k) {
      const ArrayView& view = views_[k];
      npy_intp stride = view.span.strides[view.span.rank - 1];
      char* from = view.span.data + begin * stride;
      for (int d = 0; d + 1 < view.span.rank; ++d) from += at[d] * view.span.strides[d];
      if (view.scaled) {
        char* factor = reinterpret_cast<char*>(const_cast<double*>(&view.factor));
        call(multiply_, view.factor_left ? factor : from, view.factor_left ? 0 : stride, view.factor_left ? from : factor,
             view.factor_left ? stride : 0, scaled, length);
        from = scaled, stride = item_;
      }
      char* zero = reinterpret_cast<char*>(const_cast<double*>(&kZero));
      call(add_, k == 0 ? zero : out, k == 0 ? 0 : item_, from, stride, out, length);
    }
  }

  void call(const numpy::InnerLoop& loop, char* a, npy_intp a_stride, char* b, npy_intp b_stride, char* out, npy_intp length) const {
    char* data[] = {a, b, out};
    const npy_intp strides[] = {a_stride, b_stride, item_};
    loop.function(data, &length, strides, loop.data);
  }

  const std::vector<ArrayView>& views_;
  const Span& shape_;
  const npy_intp item_;
  char* out_;
  const numpy::InnerLoop add_, multiply_;
  npy_intp row_;
};

// What an addition of a bool is, is not its own dtype.
bool suit(const std::vector<ArrayView>& views) {
  return views[0].dtype != DType::kBool && views[0].span.size() > 0 && std::all_of(views.begin(), views.end(), [&](const ArrayView& v) {
           return v.dtype == views[0].dtype && same_shape(v.span, views[0].span) && is_c_like(v.span);
         });
}

}  // namespace

PyObject* sum_of(const std::vector<ArrayView>& views) {
  if (!suit(views)) return nullptr;
  const Span& shape = views[0].span;
  if (shape.size() > kMostAdditions / static_cast<npy_intp>(views.size())) return nullptr;
  PyObject* made = new_array(views[0].dtype, shape.rank, shape.shape);
  if (!made) return nullptr;
  const Sum sum(views, reinterpret_cast<PyArrayObject*>(made));
  const int raised = sum.run();
  if (raised != 0 && !numpy::errstate_ignores(raised)) Py_CLEAR(made);
  return made;
}

}  // namespace dalsegno::replay::folds
