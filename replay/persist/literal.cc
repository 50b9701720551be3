// Simple constants as text and back.
#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>
#include <vector>

#include "hook/error_aside.h"
#include "numpy/dtypes.h"
#include "replay/persist/errors.h"
#include "replay/persist/persist.h"
#include "replay/py_ref.h"
#include "trace/recorder/sources.h"

namespace dalsegno::replay {
namespace {

constexpr int kMaxDepth = 50;  // of tuples in tuples

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (char c : bytes) {
    text.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    text.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return text;
}

bool unhex(std::string_view text, std::string* bytes) {
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t byte = 0;
    const char* end = text.data() + i + 2;
    if (std::from_chars(text.data() + i, end, byte, 16).ptr != end) return false;
    bytes->push_back(static_cast<char>(byte));
  }
  return true;
}

std::string float_bits(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(bits >> shift));
  return hex(bytes);
}

bool read_float(std::string_view text, double* x) {
  uint64_t bits = 0;
  const char* end = text.data() + text.size();
  if (text.size() != 16 || std::from_chars(text.data(), end, bits, 16).ptr != end) return false;
  *x = std::bit_cast<double>(bits);
  return true;
}

bool encode(PyObject* object, std::string* text, int depth);

bool encode_items(PyObject* items, std::string* text, bool sort, int depth) {
  PyRef list(PySequence_List(items));  // exact tuples and frozensets: runs nobody's code
  if (!list) return false;
  std::vector<std::string> parts(static_cast<size_t>(PyList_GET_SIZE(list.get())));
  for (size_t i = 0; i < parts.size(); i++) {
    if (!encode(PyList_GET_ITEM(list.get(), static_cast<Py_ssize_t>(i)), &parts[i], depth + 1)) return false;
  }
  if (sort) std::sort(parts.begin(), parts.end());
  for (const std::string& part : parts) *text += std::to_string(part.size()) + ":" + part;
  return true;
}

// Of the interpreter's or NumPy's: nobody changes it, and its name says where it is found.
bool is_static_type(PyObject* object) {
  if (!PyType_Check(object) || PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE)) return false;
  const std::string path = recorder::type_path(reinterpret_cast<PyTypeObject*>(object));
  return path.starts_with("type:") && type_named(std::string_view(path).substr(5)).get() == object;
}

bool encode_slice(PySliceObject* slice, std::string* text, int depth) {
  const PyRef parts(PyTuple_Pack(3, slice->start, slice->stop, slice->step));
  return parts && encode_items(parts.get(), text, false, depth);
}

bool encode_text(PyObject* object, std::string* text) {
  PyRef bytes(PyUnicode_AsEncodedString(object, "utf-8", "surrogatepass"));
  if (!bytes) return false;
  text->append(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
  return true;
}

bool encode_int(PyObject* object, std::string* text) {
  PyRef digits(PyNumber_ToBase(object, 16));
  const char* ascii = digits ? PyUnicode_AsUTF8(digits.get()) : nullptr;
  if (ascii == nullptr) return false;
  *text += ascii;
  return true;
}

bool encode(PyObject* object, std::string* text, int depth) {
  if (depth > kMaxDepth) return false;
  if (object == Py_None) return *text += "None", true;
  if (object == Py_True) return *text += "True", true;
  if (object == Py_False) return *text += "False", true;
  if (object == Py_Ellipsis) return *text += "Ellipsis", true;
  if (PyLong_CheckExact(object)) return encode_int(object, &(*text += "int:"));
  if (PyFloat_CheckExact(object)) return *text += "float:" + float_bits(PyFloat_AS_DOUBLE(object)), true;
  if (PyComplex_CheckExact(object)) {
    const Py_complex z = PyComplex_AsCComplex(object);
    return *text += "complex:" + float_bits(z.real) + float_bits(z.imag), true;
  }
  if (PyUnicode_CheckExact(object)) return encode_text(object, &(*text += "str:"));
  if (PyBytes_CheckExact(object))
    return *text += "bytes:" + hex({PyBytes_AS_STRING(object), static_cast<size_t>(PyBytes_GET_SIZE(object))}), true;
  if (PyTuple_CheckExact(object)) return encode_items(object, &(*text += "tuple:"), false, depth);
  if (PySlice_Check(object)) return encode_slice(reinterpret_cast<PySliceObject*>(object), &(*text += "slice:"), depth);
  if (depth > 0 && is_static_type(object)) return *text += recorder::type_path(reinterpret_cast<PyTypeObject*>(object)), true;
  if (DType dtype; numpy::dtype_of_descr(object, &dtype)) return *text += std::string("dtype:") + dtype_name(dtype), true;
  if (PyFrozenSet_CheckExact(object)) return encode_items(object, &(*text += "frozenset:"), true, depth);
  return false;
}

// ---- the way back -----------------------------------------------------------------------------------------------------------

PyObject* decode(std::string_view text, int depth);

PyObject* decode_int(std::string_view text, int) {
  const std::string digits(text);
  const bool plain = digits.find_first_not_of("-x0123456789abcdef") == std::string::npos;  // no blanks, no underscores
  return plain ? PyLong_FromString(digits.c_str(), nullptr, 16) : nullptr;
}

PyObject* decode_float(std::string_view text, int) {
  double x = 0;
  return read_float(text, &x) ? PyFloat_FromDouble(x) : nullptr;
}

PyObject* decode_complex(std::string_view text, int) {
  double real = 0, imag = 0;
  if (text.size() != 32 || !read_float(text.substr(0, 16), &real) || !read_float(text.substr(16), &imag)) return nullptr;
  return PyComplex_FromDoubles(real, imag);
}

PyObject* decode_str(std::string_view text, int) {
  return PyUnicode_Decode(text.data(), static_cast<Py_ssize_t>(text.size()), "utf-8", "surrogatepass");
}

PyObject* decode_bytes(std::string_view text, int) {
  std::string bytes;
  return unhex(text, &bytes) ? PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())) : nullptr;
}

PyObject* decode_tuple(std::string_view text, int depth) {
  PyRef list(PyList_New(0));
  while (list && !text.empty()) {
    size_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end == text.data() + text.size() || *end != ':') return nullptr;
    text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
    if (size > text.size()) return nullptr;
    PyRef item(decode(text.substr(0, size), depth + 1));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
    text.remove_prefix(size);
  }
  return list ? PyList_AsTuple(list.get()) : nullptr;
}

PyObject* decode_frozenset(std::string_view text, int depth) {
  PyRef items(decode_tuple(text, depth));
  return items ? PyFrozenSet_New(items.get()) : nullptr;
}

PyObject* decode_slice(std::string_view text, int depth) {
  const PyRef parts(decode_tuple(text, depth));
  if (!parts || PyTuple_GET_SIZE(parts.get()) != 3) return nullptr;
  return PySlice_New(PyTuple_GET_ITEM(parts.get(), 0), PyTuple_GET_ITEM(parts.get(), 1), PyTuple_GET_ITEM(parts.get(), 2));
}

PyObject* decode_type(std::string_view text, int) { return type_named(text).release(); }

PyObject* decode_dtype(std::string_view text, int) {
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i)
    if (text == dtype_name(static_cast<DType>(i))) return Py_NewRef(reinterpret_cast<PyObject*>(numpy::descriptor(static_cast<DType>(i))));
  return nullptr;
}

struct Word {
  std::string_view text;
  PyObject* object;
};
struct Kind {
  std::string_view prefix;
  PyObject* (*decode)(std::string_view rest, int depth);
};
constexpr Kind kKinds[] = {{"int:", decode_int},     {"float:", decode_float}, {"complex:", decode_complex},     {"str:", decode_str},
                           {"bytes:", decode_bytes}, {"tuple:", decode_tuple}, {"frozenset:", decode_frozenset}, {"slice:", decode_slice},
                           {"dtype:", decode_dtype}, {"type:", decode_type}};

PyObject* decode(std::string_view text, int depth) {
  if (depth > kMaxDepth) return nullptr;
  const Word words[] = {{"None", Py_None}, {"True", Py_True}, {"False", Py_False}, {"Ellipsis", Py_Ellipsis}};
  for (const Word& word : words) {
    if (text == word.text) return Py_NewRef(word.object);
  }
  for (const Kind& kind : kKinds) {
    if (text.starts_with(kind.prefix)) return kind.decode(text.substr(kind.prefix.size()), depth);
  }
  return nullptr;
}

}  // namespace

bool encode_literal(PyObject* object, std::string* text) {
  const hook::ErrorAside keep;
  text->clear();
  const bool ok = encode(object, text, 0);
  drop_error();
  return ok;
}

PyObject* decode_literal(const std::string& text) {
  const hook::ErrorAside keep;
  PyObject* object = decode(text, 0);
  drop_error();
  return object;
}

}  // namespace dalsegno::replay
