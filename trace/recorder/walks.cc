#include "trace/recorder/walks.h"

#include <algorithm>

#include "hook/hook.h"
#include "numpy/dtypes.h"

namespace dalsegno::recorder {
namespace {

// One thing.
bool find_walked(PyObject* iterator, Walked* over, DType* dtype) {
  Py_ssize_t* position;
  if (PyObject* sequence = hook::sequence_of(iterator, &position)) {
    ArrayFacts facts;
    if (!numpy::facts_of(sequence, &facts) || facts.rank != 1 || facts.dtype == DType::kComplex64) return false;
    *over = Walked::kArray;
    *dtype = facts.dtype;
    return true;
  }
  for (const Walked one :
       {Walked::kRange, Walked::kList, Walked::kTuple, Walked::kBytes, Walked::kBytearray, Walked::kAscii, Walked::kText}) {
    if (type_of_walk(one) != Py_TYPE(iterator)) continue;
    *over = one;
    return true;
  }
  return false;
}

}  // namespace

PyTypeObject* type_of_walk(Walked over) {
  const hook::SequenceIteratorTypes& types = hook::g_iterators_over;
  switch (over) {
    case Walked::kRange:
      return hook::g_range_known ? &PyRangeIter_Type : nullptr;
    case Walked::kList:
      return types.list;
    case Walked::kTuple:
      return types.tuple;
    case Walked::kBytes:
      return types.bytes;
    case Walked::kBytearray:
      return types.bytearray;
    case Walked::kAscii:
      return types.ascii;
    case Walked::kText:
      return types.text;
    case Walked::kArray:
      return &PySeqIter_Type;
    default:
      return nullptr;
  }
}

PyTypeObject* type_of_holder(Holder holder) {
  return holder == Holder::kEnumerate ? &PyEnum_Type : holder == Holder::kZip ? &PyZip_Type : nullptr;
}

PyObject* walked(PyObject* iterator, Holder holder, int k) {
  if (holder == Holder::kNone) return iterator;
  PyObject* inner = reinterpret_cast<hook::HoldingIterator*>(iterator)->inner;
  return holder == Holder::kZip ? PyTuple_GET_ITEM(inner, k) : inner;
}

bool walked_apart(PyObject* iterator, Holder holder, int n) {
  if (holder != Holder::kZip) return true;
  for (int k = 1; k < n; ++k)
    for (int j = 0; j < k; ++j)
      if (walked(iterator, holder, j) == walked(iterator, holder, k)) return false;
  return true;
}

Walk walk_of_live(PyObject* iterator) {
  Walk walk;
  for (const Holder holder : {Holder::kEnumerate, Holder::kZip})
    if (Py_IS_TYPE(iterator, type_of_holder(holder))) walk.holder = holder;
  if (walk.holder != Holder::kNone && !hook::g_holding_iterators) return {};
  int first = 0, n = 1;
  if (walk.holder == Holder::kEnumerate) walk.over[first++] = Walked::kCount, n = 2;
  if (walk.holder == Holder::kZip) n = static_cast<int>(reinterpret_cast<hook::HoldingIterator*>(iterator)->number);
  if (n < 1 || n > kMostWalked || !walked_apart(iterator, walk.holder, n)) return {};
  for (int k = first; k < n; ++k)
    if (!find_walked(walked(iterator, walk.holder, k), &walk.over[k], &walk.dtypes[k])) return {};
  // (These are known by their types, and an array by the op's facts.)
  constexpr Walked kAlone[] = {Walked::kBytes, Walked::kBytearray, Walked::kAscii, Walked::kText};
  if (walk.holder == Holder::kNone && std::find(std::begin(kAlone), std::end(kAlone), walk.over[0]) == std::end(kAlone)) return {};
  return walk;
}

}  // namespace dalsegno::recorder
