#include "replay/machine/fold_arrays.h"

#include <algorithm>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "numpy/errstate.h"
#include "numpy/loops.h"
#include "replay/arrays.h"
#include "replay/machine/fold_numbers.h"
#include "replay/memory/added_rows.h"
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
    if (is_position(at)) {
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
  whole_.emplace();
  whole_->array = reinterpret_cast<PyArrayObject*>(s.object), whole_->dtype = facts.dtype;
  set_of_array(whole_->array, &whole_->span);
  return &*whole_;
}

bool ArrayViews::item(const Slot& a, const int16_t* index, int n, const Slot* slots, Slot* out) {
  const ArrayView* from = of(a);
  if (!from || from->scaled || from->rolled || n > from->span.rank) return false;
  ArrayView view = *from;
  view.span.rank = 0;
  for (int d = 0; d < from->span.rank; ++d) {
    constexpr int16_t kAll[] = {-1, -1, -1};
    if (!cut(d < n ? index + 3 * d : kAll, slots, from->span.shape[d], from->span.strides[d], &view.span)) return false;
  }
  return view.span.rank > 0 ? give_view(view, out) : element(view.array, view.span.data, out);
}

bool ArrayViews::row(const Slot& a, const Slot& at, Slot* out) {
  constexpr int16_t kFirst[] = {0, kPosition, kPosition};
  return is_position(at) && item(a, kFirst, 1, &at, out);
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

bool ArrayViews::roll(const Slot& a, const Slot& shift, const Slot* axis, Slot* out) {
  const ArrayView* from = of(a);
  if (!from || from->scaled || shift.tag != Slot::kInt || (axis ? axis->tag != Slot::kInt : from->span.rank != 1)) return false;
  const int64_t rank = from->span.rank, given = axis ? axis->i : 0, d = given < 0 ? given + rank : given;
  if (d < 0 || d >= rank || from->span.shape[d] == 0) return false;
  ArrayView view = *from;
  const npy_intp n = view.span.shape[d];
  view.rolled = true;
  view.shifts[d] = ((view.shifts[d] + shift.i % n) % n + n) % n;
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

// Of views with the same extents, rolled or not.
class Sum {
 public:
  Sum(const std::vector<ArrayView>& views, PyArrayObject* made)
      : views_(views),
        shape_(views[0].span),
        counts_(views[0].dtype == DType::kBool),
        scaled_(std::any_of(views.begin(), views.end(), [](const ArrayView& v) { return v.scaled; })),
        item_(PyArray_ITEMSIZE(made)),
        add_(numpy::inner_loop(ArrayFn::add, views[0].dtype, views[0].dtype)),
        multiply_(numpy::inner_loop(ArrayFn::multiply, views[0].dtype, views[0].dtype)) {
    set_of_array(made, &out_);
  }

  // The flags that were raised.
  int run() const {
    rt::clear_all_raised();
    const bool rolled = std::any_of(views_.begin(), views_.end(), [](const ArrayView& v) { return v.rolled; });
    const npy_intp item = dtype_size(views_[0].dtype);
    const bool dense = std::all_of(views_.begin(), views_.end(), [&](const ArrayView& v) { return is_contiguous(v.span, item); });
    if (rolled)
      add_boxes();
    else if (dense)
      add_whole(item);
    else
      add_box(Box::of(shape_));
    return rt::all_raised();
  }

 private:
  struct Box {
    npy_intp first[Span::kMaxRank] = {}, extent[Span::kMaxRank] = {};
    static Box of(const Span& whole) {
      Box box;
      std::copy_n(whole.shape, whole.rank, box.extent);
      return box;
    }
  };
  struct Line {
    char* data;
    npy_intp stride;
  };

  void add_whole(npy_intp item) const {
    std::vector<Line> lines;
    for (const ArrayView& view : views_) lines.push_back({view.span.data, item});
    add_line(lines, {out_.data, item_}, shape_.size());
  }

  // In each of them all views are plain ones: they are cut where one of them begins anew.
  void add_boxes() const {
    std::vector<npy_intp> cuts[Span::kMaxRank];
    for (int d = 0; d < shape_.rank; ++d) {
      cuts[d] = {0, shape_.shape[d]};
      for (const ArrayView& view : views_) cuts[d].push_back(view.shifts[d]);
      std::sort(cuts[d].begin(), cuts[d].end());
      cuts[d].erase(std::unique(cuts[d].begin(), cuts[d].end()), cuts[d].end());
    }
    size_t at[Span::kMaxRank] = {};
    for (int d = 0; d >= 0;) {
      Box box;
      for (int k = 0; k < shape_.rank; ++k) box.first[k] = cuts[k][at[k]], box.extent[k] = cuts[k][at[k] + 1] - box.first[k];
      add_box(box);
      for (d = shape_.rank - 1; d >= 0 && ++at[d] + 1 == cuts[d].size(); --d) at[d] = 0;
    }
  }

  static char* begin_of(const ArrayView& view, const Box& box) {
    char* at = view.span.data;
    for (int d = 0; d < view.span.rank; ++d) {
      const npy_intp n = view.span.shape[d];
      at += (box.first[d] - view.shifts[d] + n) % n * view.span.strides[d];
    }
    return at;
  }

  // Along its longest axis, the last one of those.
  void add_box(const Box& box) const {
    int along = shape_.rank - 1;
    for (int d = along; d-- > 0;)
      if (box.extent[d] > box.extent[along]) along = d;
    std::vector<char*> begins;
    for (const ArrayView& view : views_) begins.push_back(begin_of(view, box));
    char* to = out_.data;
    for (int d = 0; d < shape_.rank; ++d) to += box.first[d] * out_.strides[d];
    std::vector<Line> lines(views_.size());
    npy_intp at[Span::kMaxRank] = {};
    for (int d = 0; d >= 0;) {
      Line out{to, out_.strides[along]};
      for (int k = 0; k < shape_.rank; ++k) out.data += at[k] * out_.strides[k];
      for (size_t v = 0; v < views_.size(); ++v) {
        lines[v] = {begins[v], views_[v].span.strides[along]};
        for (int k = 0; k < shape_.rank; ++k) lines[v].data += at[k] * views_[v].span.strides[k];
      }
      add_line(lines, out, box.extent[along]);
      for (d = shape_.rank - 1; d >= 0; --d) {
        if (d == along) continue;
        if (++at[d] < box.extent[d]) break;
        at[d] = 0;
      }
    }
  }

  using AddRows = void (*)(const char* const*, size_t, char*, intptr_t);
  // Null: no plain addition of numbers as the processor has them.
  static AddRows rows_of(DType dtype) {
    if (dtype == DType::kFloat64) return add_rows<double>;
    if (dtype == DType::kFloat32) return add_rows<float>;
    if (!is_int(dtype)) return nullptr;
    const int item = dtype_size(dtype);
    return item == 1 ? add_rows<uint8_t> : item == 2 ? add_rows<uint16_t> : item == 4 ? add_rows<uint32_t> : add_rows<uint64_t>;
  }

  bool add_dense(const std::vector<Line>& lines, size_t n, Line out, npy_intp length) const {
    constexpr size_t kMostRows = 32;
    const AddRows add = scaled_ || counts_ || n > kMostRows || out.stride != item_ ? nullptr : rows_of(views_[0].dtype);
    if (!add) return false;
    const char* rows[kMostRows];
    for (size_t k = 0; k < n; ++k) {
      if (lines[k].stride != item_) return false;
      rows[k] = lines[k].data;
    }
    return add(rows, n, out.data, length), true;
  }

  void add_line(const std::vector<Line>& lines, Line out, npy_intp length) const {
    alignas(64) char scaled[kPiece * sizeof(double)];
    static constexpr double kZero = 0;  // of every dtype
    char* zero = reinterpret_cast<char*>(const_cast<double*>(&kZero));
    const size_t n = views_.size() - (planted(Fault::lost_summand) && views_.size() > 2 ? 1 : 0);
    if (add_dense(lines, n, out, length)) return;
    for (npy_intp begin = 0; begin < length; begin += kPiece) {
      const npy_intp piece = std::min(kPiece, length - begin);
      char* to = out.data + begin * out.stride;
      if (counts_) count_line(lines, n, begin, piece, to, out.stride);
      for (size_t k = 0; k < n && !counts_; ++k) {
        Line from = {lines[k].data + begin * lines[k].stride, lines[k].stride};
        const ArrayView& view = views_[k];
        if (view.scaled) {
          char* factor = reinterpret_cast<char*>(const_cast<double*>(&view.factor));
          call(multiply_, view.factor_left ? factor : from.data, view.factor_left ? 0 : from.stride, view.factor_left ? from.data : factor,
               view.factor_left ? from.stride : 0, scaled, item_, piece);
          from = {scaled, item_};
        }
        call(add_, k == 0 ? zero : to, k == 0 ? 0 : out.stride, from.data, from.stride, to, out.stride, piece);
      }
    }
  }

  // Truth values, of which any byte but 0 is one: in bytes, as long as there are no more of them than a byte can count.
  void count_line(const std::vector<Line>& lines, size_t n, npy_intp begin, npy_intp piece, char* to, npy_intp stride) const {
    using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = int8_t;  // that any x86-64 has
    constexpr npy_intp kLanes = sizeof(Vector);
    alignas(64) int8_t counted[kPiece] = {};
    for (size_t k = 0; k < n; ++k) {
      const npy_intp step = lines[k].stride;
      const char* from = lines[k].data + begin * step;
      npy_intp i = 0;
      for (; step == 1 && i + kLanes <= piece; i += kLanes)
        *reinterpret_cast<Vector*>(counted + i) -= *reinterpret_cast<const Vector*>(from + i) != 0;  // true is -1
      for (; i < piece; ++i) counted[i] = static_cast<int8_t>(counted[i] + (from[i * step] != 0));
    }
    for (npy_intp i = 0; i < piece; ++i) *reinterpret_cast<int64_t*>(to + i * stride) = static_cast<uint8_t>(counted[i]);
  }

  static void call(const numpy::InnerLoop& loop, char* a, npy_intp a_stride, char* b, npy_intp b_stride, char* out, npy_intp out_stride,
                   npy_intp length) {
    char* data[] = {a, b, out};
    const npy_intp strides[] = {a_stride, b_stride, out_stride};
    loop.function(data, &length, strides, loop.data);
  }

  const std::vector<ArrayView>& views_;
  const Span& shape_;
  const bool counts_, scaled_;
  const npy_intp item_;
  Span out_;
  const numpy::InnerLoop add_, multiply_;
};

bool suit(const std::vector<ArrayView>& views) {
  constexpr size_t kMostCounted = 255;  // of truth values
  if (views[0].dtype == DType::kBool && views.size() > kMostCounted) return false;
  return views[0].span.size() > 0 && std::all_of(views.begin(), views.end(), [&](const ArrayView& v) {
           return v.dtype == views[0].dtype && same_shape(v.span, views[0].span) && is_c_like(v.span);
         });
}

}  // namespace

PyObject* sum_of(const std::vector<ArrayView>& views) {
  if (!suit(views)) return nullptr;
  const Span& shape = views[0].span;
  if (shape.size() > kMostAdditions / static_cast<npy_intp>(views.size())) return nullptr;
  const DType dtype = views[0].dtype == DType::kBool ? DType::kInt64 : views[0].dtype;  // 0 + an array of bools is one of ints
  PyObject* made = new_array(dtype, shape.rank, shape.shape);
  if (!made) return nullptr;
  const Sum sum(views, reinterpret_cast<PyArrayObject*>(made));
  const int raised = sum.run();
  if (raised != 0 && !numpy::errstate_ignores(raised)) Py_CLEAR(made);
  return made;
}

}  // namespace dalsegno::replay::folds
