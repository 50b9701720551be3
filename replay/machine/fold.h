// Folds: a builtin that uses up a generator expression nobody else sees, or map(): sum(x * x for x in row), min, max, any, all, list,
// tuple, set, frozenset, dict, sorted, str.join; min, max and sorted by a key. The expression's code, and that of small functions and
// methods it calls, is translated once into operations on unboxed numbers, texts, tuples, attributes of instances and slices of arrays,
// which look at lists, tuples, dicts, sets, ranges and arrays, alone or side by side (zip, enumerate), and change nothing. So whatever they
// do not know, an error among it, costs nothing but time: the generator has not begun, and the builtin is called with it as if nothing had
// been.
#pragma once
#include <Python.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "hook/attributes.h"
#include "hook/lookups.h"

namespace dalsegno::replay {

// ---- the translated code -------------------------------------------------------------------------------------------------------------

enum class FoldOp : uint8_t {
  kMove,       // dst = a
  kBinary,     // dst = a (sub: BinaryOp) b; c: 1: in place
  kCompare,    // dst = a (sub: Py_LT ... Py_GE) b
  kPairs,      // dst = (list[b], list[b + 1]) == (list[b + 2], list[b + 3]) (sub: Py_EQ or Py_NE)
  kContains,   // dst = a in b (sub: not)
  kIs,         // dst = a is b (sub: not)
  kNegate,     // dst = -a
  kNot,        // dst = not a
  kItem,       // dst = a[b]
  kPairItem,   // dst = a[b, c]
  kSlice,      // dst = a[index of c parts, three in list from b on] (ArrayViews::item)
  kUnpack,     // list[b], ..., list[b + c - 1] = a
  kAttr,       // dst = a.b, of a module or an instance; target: the number of the place in `attributes`
  kMethod,     // the same, to be called: c: the slot of what it is called with first, empty where it is nothing
  kCall,       // dst = a(list[b] ... list[b + c - 1]); sub: the last one by the name axis; target: what kMethod has for c, or -1
  kCallPairs,  // dst = a(list[b], (list[b + 1], list[b + 2]), (list[b + 3], list[b + 4])); sub as in kCall
  kTuple,      // dst = (list[b], ..., list[b + c - 1])
  kTexts,      // dst = those one behind the other, of an f-string
  kFormat,     // dst = format(a, b); b: -1: ''
  kConvert,    // dst = str(a), repr(a) or ascii(a) (sub: 1, 2, 3)
  kIterate,    // iterator `sub` = iter(a)
  kNext,       // dst = next(iterator `sub`), or to target; c > 0: a kUnpack of it into c follows
  kJump,       // to target
  kJumpTrue,   // if a
  kJumpFalse,
  kYield,   // a
  kReturn,  // a
  kEnd,
};

struct FoldInstr;
namespace folds {
struct Slot;
struct Frame;
}  // namespace folds
// Does an operation, and those behind it. False: not known.
using FoldFn = bool (*)(const FoldInstr* i, folds::Slot* slots, folds::Frame& frame);

struct FoldInstr {
  FoldOp op;
  uint8_t sub = 0;
  int16_t dst = -1, a = -1, b = -1, c = -1;
  int32_t target = -1;  // from here, once the code is translated
  FoldFn fn = nullptr;
};
FoldFn fold_function(const FoldInstr& instr);

// What a slot holds before the code begins: a constant (borrowed from the code), or what a global name means.
struct FoldInput {
  int16_t slot;
  bool global;
  PyObject* object;
  mutable dalsegno_found in_globals{}, in_builtins{};
};

// Of one place that asks for an attribute: what was found there last (fold_objects.h).
struct FoldAttribute {
  dalsegno_attribute_cache cache;
  dalsegno_attribute attribute;  // type: null: nothing yet
  struct {
    PyTypeObject* type;
    PyObject* method;  // both borrowed: the type is one that lasts, and that nobody changes
  } in_c;
};

// Slots: the variables and cells of the code, temporaries, inputs.
struct FoldCode {
  static constexpr int kMostSlots = 48, kMostIterators = 3, kMostArguments = 4;
  std::vector<FoldInstr> instrs;
  std::vector<int16_t> list;
  std::vector<FoldInput> inputs;
  int variables = 0, first_cell = 0, slots = 0, iterators = 1;
  bool makes_tuples = false;  // the same number may be in there more than once
  mutable std::vector<FoldAttribute> attributes;
  int fruitless = 0;  // runs in a row that came to nothing
};

// Of a generator expression (generator), or of a function without branches back; null: it does what no fold knows. Kept with the code
// object.
FoldCode* fold_code(PyCodeObject* code, bool generator);

// ---- running it ----------------------------------------------------------------------------------------------------------------------

constexpr int kMostInRow = 3;       // of what comes side by side
constexpr int kMostFoldLevels = 3;  // of functions that the expression calls

enum class FoldInto : uint8_t { kSum, kMin, kMax, kAny, kAll, kList, kTuple, kSet, kFrozenSet, kDict, kSorted, kJoin };

// The interpreter's own function of that name in builtins; null where that has another.
PyObject* own_builtin(const char* name);
// What one of the interpreter's types in C has under a name; borrowed.
PyObject* own_method(PyTypeObject* type, const char* name);

// What the builtin would give, a new reference; the generator, or map(), will not begin any more. Null, without an exception: call it.
// with: kSum: null, or an array that it begins with; kJoin: the text between the items.
PyObject* fold(FoldInto into, PyObject* generator, PyObject* with = nullptr);
// What a generator of this code would have: it is not made. closure: null, or a tuple of cells. The iterator is its only reference's.
struct Unmade {
  PyCodeObject* code;
  PyObject *globals, *closure, *iterator;
};
PyObject* fold(FoldInto into, const Unmade& generator, PyObject* with = nullptr);
// Of the numbers in a list or tuple.
PyObject* fold_items(FoldInto into, PyObject* sequence);
// The same of min() or max() of what is in one of the interpreter's containers, by the keys that a function gives.
PyObject* fold_by_key(FoldInto into, PyObject* iterable, PyObject* key);
// The same of sorted(iterable, key=key, reverse=reverse); reverse: null: it is not given.
PyObject* fold_sorted(PyObject* iterable, PyObject* key, PyObject* reverse);
// list.sort(); false: nothing was done.
bool fold_sort(PyObject* list, PyObject* key, PyObject* reverse);

}  // namespace dalsegno::replay
