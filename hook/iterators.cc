// Which iterators run nothing but C code of the interpreter's own, and the layouts of those that hold others.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "hook/frame_access.h"

namespace dalsegno::hook {
namespace {

// The beginnings of enumobject, reversedobject (Objects/enumobject.c), zipobject (Python/bltinmodule.c) and seqiterobject
// (Objects/iterobject.c); the same in all versions.
struct Holder {
  PyObject ob_base;
  Py_ssize_t number;
  PyObject* inner;  // enumerate: an iterator; reversed, sequence: a sequence, or null; zip: a tuple of iterators
};

// A type of iterators over what the interpreter holds itself; where they have that, and the tuple they give again and again; 0: nowhere.
struct Own {
  PyTypeObject* type;
  size_t place, result = 0;
  bool (*quiet)(PyObject* iterator, PyObject* held) = nullptr;  // null: always
};
std::vector<Own> g_own;
bool g_enumerate = false, g_reversed = false, g_zip = false, g_sequence = false;  // the layout is this interpreter's
std::vector<PyTypeObject*> g_quiet_sequences;                                     // see add_quiet_sequence

constexpr const char* kIterables =
    "(b'', bytearray(), '', '\\xe9', '\\u20ac', {}, {}.values(), {}.items(), reversed({}), reversed({}.values()), reversed({}.items()), "
    "set(), [], reversed([]), (), range(0), range(1 << 70))";

PyObject* inner_of(PyObject* holder) { return reinterpret_cast<Holder*>(holder)->inner; }

// Where a type stands that was found before: most loops ask for the same few.
Own& found_before(PyTypeObject* type) {
  static std::array<Own, 64> table{};
  return table[reinterpret_cast<uintptr_t>(type) / sizeof(PyTypeObject) % table.size()];
}

const Own* own(PyTypeObject* type) {
  Own& slot = found_before(type);
  if (slot.type == type) [[likely]]
    return &slot;
  const auto found = std::find_if(g_own.begin(), g_own.end(), [&](const Own& one) { return one.type == type; });
  if (found == g_own.end()) return nullptr;
  slot = *found;
  return &slot;
}
bool is_own(PyTypeObject* type) { return own(type) != nullptr; }

PyObject*& word_at(PyObject* o, size_t place) { return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + place); }

int take_first(PyObject* held, void* first) {
  *static_cast<PyObject**>(first) = held;
  return 1;
}

size_t place_of(PyObject* held, PyObject* iterator) {
  for (size_t at = sizeof(PyObject); held && at + sizeof held <= static_cast<size_t>(Py_TYPE(iterator)->tp_basicsize); at += sizeof held)
    if (word_at(iterator, at) == held) return at;
  return 0;
}

// They tell the collector of it first.
size_t place_of_held(PyObject* iterator) {
  PyObject* first = nullptr;
  if (PyType_IS_GC(Py_TYPE(iterator))) Py_TYPE(iterator)->tp_traverse(iterator, take_first, &first);
  return place_of(first, iterator);
}

bool is_plain_sequence(PyObject* o) {
  return PyTuple_CheckExact(o) || PyList_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || PyByteArray_CheckExact(o);
}

bool is_quiet_sequence(PyObject* o) {
  return std::find(g_quiet_sequences.begin(), g_quiet_sequences.end(), Py_TYPE(o)) != g_quiet_sequences.end();
}

PyObject* evaluate(const char* text) {
  PyObject* space = PyDict_New();
  const bool ready = space != nullptr && PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins()) == 0;
  PyObject* value = ready ? PyRun_String(text, Py_eval_input, space, space) : nullptr;
  Py_XDECREF(space);
  return value;
}

// Is what stands in the place of `inner` an object of this type?
bool holds(const char* text, PyTypeObject* type, PyTypeObject* inner) {
  PyObject* made = evaluate(text);
  const bool same = made != nullptr && Py_IS_TYPE(made, type) && type->tp_basicsize >= static_cast<Py_ssize_t>(sizeof(Holder)) &&
                    inner_of(made) != nullptr && Py_IS_TYPE(inner_of(made), inner);
  Py_XDECREF(made);
  return same;
}

// The type of the iterator that it has, if that lies as SequenceIterator.
PyTypeObject* goes_through(const char* text, PyTypeObject* sequence) {
  PyObject* made = evaluate(text);
  PyObject* iterator = made != nullptr ? PyObject_GetIter(made) : nullptr;
  auto* it = reinterpret_cast<SequenceIterator*>(iterator);
  PyTypeObject* type = it != nullptr ? Py_TYPE(iterator) : nullptr;
  bool same = it != nullptr && Py_IS_TYPE(made, sequence) && type->tp_basicsize >= static_cast<Py_ssize_t>(sizeof(SequenceIterator)) &&
              it->position == 0 && it->sequence == made;
  if (same) Py_XDECREF(PyIter_Next(iterator));
  same = same && it->position == 1;
  if (same) it->position = 3;
  PyObject* end = same ? PyIter_Next(iterator) : nullptr;
  same = same && end == nullptr && !PyErr_Occurred() && it->sequence == nullptr;
  Py_XDECREF(end);
  Py_XDECREF(iterator);
  Py_XDECREF(made);
  return same ? type : nullptr;
}

// Does zip have its last argument where HoldingIterator has it?
bool zip_is_strict(const char* text, int strict) {
  PyObject* made = evaluate(text);
  const bool same = made != nullptr && Py_IS_TYPE(made, &PyZip_Type) &&
                    PyZip_Type.tp_basicsize >= static_cast<Py_ssize_t>(sizeof(HoldingIterator)) &&
                    reinterpret_cast<HoldingIterator*>(made)->strict == strict && reinterpret_cast<HoldingIterator*>(made)->number == 2;
  Py_XDECREF(made);
  return same;
}

// Do they give again what stands in the place of `result`?
bool uses_result_again(const char* text) {
  PyObject* made = evaluate(text);
  PyObject* result = made != nullptr ? reinterpret_cast<HoldingIterator*>(made)->result : nullptr;
  PyObject* first = made != nullptr ? PyIter_Next(made) : nullptr;
  const bool same = first != nullptr && first == result && PyTuple_CheckExact(first) && PyTuple_GET_SIZE(first) == 2;
  Py_XDECREF(first);
  Py_XDECREF(made);
  return same;
}

// Does enumerate count where HoldingIterator has it?
bool enumerate_counts() {
  PyObject* made = evaluate("enumerate((7, 8), 5)");
  auto* it = reinterpret_cast<HoldingIterator*>(made);
  bool same = made != nullptr && Py_IS_TYPE(made, &PyEnum_Type) && it->number == 5;
  if (same) Py_XDECREF(PyIter_Next(made));
  same = same && it->number == 6;
  Py_XDECREF(made);
  return same;
}

}  // namespace

bool g_sequence_iterators = false, g_holding_iterators = false;
SequenceIteratorTypes g_iterators_over{};

// Where an iterator has the tuple that it gives again and again.
void find_result(const char* text) {
  PyObject* made = evaluate(text);
  PyObject* iterator = made != nullptr ? PyObject_GetIter(made) : nullptr;
  PyObject* first = iterator != nullptr ? PyIter_Next(iterator) : nullptr;
  const auto known = std::find_if(g_own.begin(), g_own.end(), [&](const Own& one) { return iterator && one.type == Py_TYPE(iterator); });
  if (known != g_own.end() && first != nullptr && PyTuple_CheckExact(first)) known->result = place_of(first, iterator);
  Py_XDECREF(first);
  Py_XDECREF(iterator);
  Py_XDECREF(made);
}

namespace {

// Does it let go of nothing that held_by() does not tell, so that others may go through it?
bool is_plain(PyObject* iterator) {
  const Own* known = own(Py_TYPE(iterator));
  return known != nullptr && known->quiet == nullptr && known->result == 0;
}

// ---- itertools
// ---------------------------------------------------------------------------------------------------------------------------

bool asks_quietly(PyObject*, PyObject* inner) { return inner == nullptr || is_plain(inner); }

// What it adds up are ints.
int is_number_or_counts(PyObject* part, void*) {
  const bool number = PyLong_CheckExact(part) || PyFloat_CheckExact(part) || part == Py_None;
  return !number && !Py_IS_TYPE(part, &PyRangeIter_Type);
}
bool adds_numbers(PyObject* iterator, PyObject*) { return Py_TYPE(iterator)->tp_traverse(iterator, is_number_or_counts, nullptr) == 0; }

bool is_plain_iterable(PyObject* o) { return is_plain_sequence(o) || PyRange_Check(o) || PyDict_CheckExact(o) || PyAnySet_CheckExact(o); }

// Of chain(): an iterator over the tuple of what it goes through.
PyObject* chained(PyObject* source) {
  return g_sequence_iterators && source != nullptr && Py_IS_TYPE(source, &PyTupleIter_Type)
             ? reinterpret_cast<SequenceIterator*>(source)->sequence
             : nullptr;
}
bool goes_through_plain(PyObject*, PyObject* source) {
  if (source == nullptr) return true;
  PyObject* all = chained(source);
  if (all == nullptr) return false;
  PyObject** items = reinterpret_cast<PyTupleObject*>(all)->ob_item;
  return std::all_of(items, items + PyTuple_GET_SIZE(all), is_plain_iterable);
}

struct Tool {
  const char* made;  // with something to hold
  bool (*quiet)(PyObject*, PyObject*);
};
constexpr Tool kTools[] = {{"product((), ())", nullptr},
                           {"combinations((), 2)", nullptr},
                           {"permutations(())", nullptr},
                           {"repeat(1)", nullptr},
                           {"islice((), 2)", asks_quietly},
                           {"cycle(())", asks_quietly},
                           {"pairwise((7, 8))", asks_quietly},
                           {"count()", adds_numbers},
                           {"accumulate(())", adds_numbers},
                           {"chain(())", goes_through_plain},
                           {"combinations_with_replacement((), 2)", nullptr}};

PyTypeObject* g_product = nullptr;  // of the first of them

// What a product says to the collector that it holds: its type, the pools and, once it has begun, the tuple that it gave last.
struct HeldByProduct {
  PyObject* pools = nullptr;
  int others = 0;
};
int note_held(PyObject* object, void* held) {
  auto* to = static_cast<HeldByProduct*>(held);
  if (PyTuple_CheckExact(object) && to->pools == nullptr)
    to->pools = object;
  else
    to->others += !PyType_Check(object);
  return 0;
}

void init_tools() {
  for (const Tool& tool : kTools) {
    PyObject* made = evaluate((std::string("__import__('itertools').") + tool.made).c_str());
    PyErr_Clear();
    PyTypeObject* type = made != nullptr ? Py_TYPE(made) : nullptr;
    const bool fixed = type != nullptr && std::strncmp(type->tp_name, "itertools.", 10) == 0 &&
                       (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE));
    const size_t place = fixed && tool.quiet != nullptr && tool.quiet != adds_numbers ? place_of_held(made) : 0;
    const bool laid_out = tool.quiet == nullptr || tool.quiet == adds_numbers || place != 0;
    if (fixed && laid_out && !is_own(type)) g_own.push_back({reinterpret_cast<PyTypeObject*>(Py_NewRef(type)), place, 0, tool.quiet});
    if (fixed && &tool == kTools) g_product = type;
    Py_XDECREF(made);
  }
  find_result("__import__('itertools').pairwise((7, 8, 9))");
}

}  // namespace

bool init_iterators() {
  PyObject* iterables = evaluate(kIterables);
  if (iterables == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(iterables); i++) {
    PyObject* iterator = PyObject_GetIter(PyTuple_GET_ITEM(iterables, i));
    if (iterator != nullptr && !is_own(Py_TYPE(iterator))) g_own.push_back({Py_TYPE(iterator), place_of_held(iterator)});
    Py_XDECREF(iterator);
  }
  Py_DECREF(iterables);
  if (PyErr_Occurred()) return false;
  for (const char* text : {"{7: 8}.items()", "reversed({7: 8}.items())"}) find_result(text);
  g_enumerate = holds("enumerate(())", &PyEnum_Type, &PyTupleIter_Type);
  g_iterators_over = {goes_through("[7, 8, 9]", &PyList_Type), goes_through("(7, 8, 9)", &PyTuple_Type),
                      goes_through("b'abc'", &PyBytes_Type),   goes_through("bytearray(b'abc')", &PyByteArray_Type),
                      goes_through("'abc'", &PyUnicode_Type),  goes_through("'\\u20acbc'", &PyUnicode_Type)};
  g_sequence_iterators = g_iterators_over.list == &PyListIter_Type && g_iterators_over.tuple == &PyTupleIter_Type;
  g_reversed = holds("reversed(((),))", &PyReversed_Type, &PyTuple_Type);
  g_zip = holds("zip((), ())", &PyZip_Type, &PyTuple_Type);
  g_holding_iterators = g_enumerate && g_zip && enumerate_counts() && zip_is_strict("zip((), ())", 0) &&
                        zip_is_strict("zip((), (), strict=True)", 1) && uses_result_again("enumerate((7, 8))") &&
                        uses_result_again("zip((7,), (8,))");
  PyObject* made = evaluate("(1, 2)");
  PyObject* iterator = made != nullptr ? PySeqIter_New(made) : nullptr;
  g_sequence = iterator != nullptr && PySeqIter_Type.tp_basicsize >= static_cast<Py_ssize_t>(sizeof(Holder)) &&
               reinterpret_cast<Holder*>(iterator)->number == 0 && inner_of(iterator) == made;
  Py_XDECREF(iterator);
  Py_XDECREF(made);
  init_tools();
  return true;
}

PyObject* sequence_of(PyObject* iterator, Py_ssize_t** position) {
  if (!Py_IS_TYPE(iterator, &PySeqIter_Type) || !g_sequence) return nullptr;
  *position = &reinterpret_cast<Holder*>(iterator)->number;
  return inner_of(iterator);
}

// Is there no more? Then it ends, as iter_iternext() of Objects/iterobject.c ends it when the sequence has raised IndexError.
static bool ends_without_error(PyObject* iterator) {
  Py_ssize_t* position;
  PyObject* sequence = sequence_of(iterator, &position);
  if (!sequence || !is_quiet_sequence(sequence)) return false;
  const lenfunc length = Py_TYPE(sequence)->tp_as_sequence ? Py_TYPE(sequence)->tp_as_sequence->sq_length : nullptr;
  const Py_ssize_t n = length ? length(sequence) : -1;
  if (n < 0) return PyErr_Clear(), false;
  if (*position < n) return false;
  reinterpret_cast<Holder*>(iterator)->inner = nullptr;
  Py_DECREF(sequence);
  return true;
}

PyObject* next_of(PyObject* iterator) {
  if (Py_IS_TYPE(iterator, &PySeqIter_Type)) {
    if (ends_without_error(iterator)) return nullptr;
  } else if (Py_IS_TYPE(iterator, &PyEnum_Type) && g_holding_iterators && inner_of(iterator) != nullptr) {
    ends_without_error(inner_of(iterator));
  } else if (Py_IS_TYPE(iterator, &PyZip_Type) && g_holding_iterators && inner_of(iterator) != nullptr) {
    PyObject* all = inner_of(iterator);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(all); ++k) {  // none behind the first that has ended is asked
      PyObject* one = PyTuple_GET_ITEM(all, k);
      if (!Py_IS_TYPE(one, &PySeqIter_Type) || inner_of(one) == nullptr || ends_without_error(one)) break;
    }
  }
  return Py_TYPE(iterator)->tp_iternext(iterator);
}

PyObject* held_by(PyObject* iterator) {
  if (Py_IS_TYPE(iterator, &PySeqIter_Type)) return g_sequence ? inner_of(iterator) : nullptr;
  const Own* known = own(Py_TYPE(iterator));
  PyObject* held = known && known->place ? word_at(iterator, known->place) : nullptr;
  if (held == nullptr || known->quiet == nullptr) return held;
  return known->quiet == goes_through_plain ? chained(held) : held_by(held);
}

PyObject* result_of(PyObject* iterator) {
  if (Py_IS_TYPE(iterator, &PyEnum_Type) || Py_IS_TYPE(iterator, &PyZip_Type))
    return g_holding_iterators ? reinterpret_cast<HoldingIterator*>(iterator)->result : nullptr;
  const Own* known = own(Py_TYPE(iterator));
  return known && known->result ? word_at(iterator, known->result) : nullptr;
}

PyObject* pools_of(PyObject* iterator) {
  if (g_product == nullptr || !Py_IS_TYPE(iterator, g_product)) return nullptr;
  HeldByProduct held;
  g_product->tp_traverse(iterator, note_held, &held);
  return held.others == 0 ? held.pools : nullptr;
}

void add_quiet_sequence(PyTypeObject* type) { g_quiet_sequences.push_back(type); }

// (Those of itertools that hold another one, but for what they hold.)
static bool is_quiet_inside(PyObject* iterator) {
  const Own* known = own(Py_TYPE(iterator));
  return known != nullptr ? known->quiet == nullptr : quiet_iterator(iterator);
}

bool quiet_iterator(PyObject* iterator) {
  PyTypeObject* type = Py_TYPE(iterator);
  if (const Own* known = own(type))
    return known->quiet == nullptr || known->quiet(iterator, known->place ? word_at(iterator, known->place) : nullptr);
  if (type == &PySeqIter_Type) return g_sequence && (inner_of(iterator) == nullptr || is_quiet_sequence(inner_of(iterator)));
  if (type == &PyEnum_Type) return g_enumerate && is_quiet_inside(inner_of(iterator));
  if (type == &PyReversed_Type) return g_reversed && (inner_of(iterator) == nullptr || is_plain_sequence(inner_of(iterator)));
  if (type != &PyZip_Type || !g_zip || inner_of(iterator) == nullptr) return false;
  PyObject* inner = inner_of(iterator);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inner); i++) {
    if (!is_quiet_inside(PyTuple_GET_ITEM(inner, i))) return false;
  }
  return true;
}

}  // namespace dalsegno::hook
