// Objects in folds: texts and tuples that are made on the way, and attributes of instances. Nothing runs code of the user's; false: it
// might, or it would raise. Part of fold.cc.
#pragma once
#include <Python.h>

#include <vector>

#include "hook/attributes.h"
#include "replay/machine/fold.h"
#include "replay/machine/fold_value.h"

namespace dalsegno::replay::folds {

// What a turn has made: it dies with the turn, or with the fold, unless somebody else holds it by then. All that is in there are numbers,
// texts, and tuples and lists of what others hold, so nobody sees it die.
class Made {
 public:
  Made() = default;
  ~Made() { clear(); }
  Made(const Made&) = delete;

  // Takes the reference; null: an exception, which is cleared.
  bool keep(PyObject* made, Slot* to);
  // The object that a number is, from now on.
  bool box(Slot* s);
  void clear();
  bool any() const { return !objects_.empty(); }

  bool tuple(Slot* slots, const int16_t* items, int n, Slot* out);
  bool texts(const Slot* slots, const int16_t* parts, int n, Slot* out);  // one behind the other
  bool format(const Slot& value, const Slot* spec, Slot* out);
  bool convert(int how, const Slot& value, Slot* out);                // 1: str(), 2: repr(), 3: ascii()
  bool binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out);  // of texts
  bool slice(const Slot& a, const Slot* const* bounds, Slot* out);    // a[start:stop:step] of a text, list or tuple; null: none
  bool letter(const Slot& a, const Slot& at, Slot* out);              // a[at] of a text

 private:
  static constexpr size_t kMost = size_t{1} << 16;
  std::vector<PyObject*> objects_;
};

// Numbers of the language's own, texts, None, and tuples of such: hashing and comparing them runs nothing.
bool is_plain(PyObject* o);
bool is_plain(const Slot& s);
inline bool is_text(const Slot& s) { return s.tag == Slot::kObject && PyUnicode_CheckExact(s.object); }

// Is it the class that was seen there, and is that as it was?
inline bool is_as_before(const PyTypeObject* type, const FoldAttribute& place) {
  return type == place.attribute.type && uint64_t{type->tp_version_tag} + 1 == place.cache.version;
}
// What the object keeps itself under that name; borrowed. Null: not known.
PyObject* own_attribute(PyObject* o, FoldAttribute* place);

enum class Attribute { kUnknown, kOwn, kOfClass, kMethod, kProperty };
// What an object has under an interned name, borrowed. kMethod: a function, or a method in C, that takes the object first. kProperty: the
// function that is called with it.
Attribute attribute_of(PyObject* o, PyObject* name, FoldAttribute* place, PyObject** value);

}  // namespace dalsegno::replay::folds
