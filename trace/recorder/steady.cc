#include "trace/recorder/steady.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "trace/recorder/text.h"

namespace dalsegno::recorder {
namespace {

constexpr Py_ssize_t kLongText = 1000, kLongTuple = 64;
constexpr int kDeepest = 3;

bool is_plain(PyObject* o, int depth) {
  if (o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o)) return true;
  if (PyUnicode_CheckExact(o)) return PyUnicode_GET_LENGTH(o) <= kLongText;
  if (!PyTuple_CheckExact(o) || depth == kDeepest || PyTuple_GET_SIZE(o) > kLongTuple) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    if (!is_plain(PyTuple_GET_ITEM(o, i), depth + 1)) return false;
  return true;
}

// By the dict's address: where another dict comes to stand there, its names are only looked up once more. Never destroyed.
using Names = std::unordered_map<PyObject*, std::unordered_set<std::string>>;
Names& unsteady() {
  static auto* names = new Names;
  return *names;
}
constexpr size_t kMostDicts = 10'000;

}  // namespace

bool is_plain_value(PyObject* object) { return is_plain(object, 0); }

bool is_steady(PyObject* dict, PyObject* name) {
  const Names& names = unsteady();
  if (names.size() >= kMostDicts) return false;
  const auto found = names.find(dict);
  return found == names.end() || !found->second.contains(text_of(name));
}

void note_unsteady(PyObject* dict, PyObject* name) {
  if (unsteady().size() < kMostDicts) unsteady()[dict].insert(text_of(name));
}

}  // namespace dalsegno::recorder
