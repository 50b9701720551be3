// _core.Encoder: what the fuzzer's oracle makes of values (fuzz/encode.py says what and why), for the kinds of which programs have many:
// most of what a test or a fuzzed program takes is spent here. All others are encoded by the Python class that derives from it.
#include <pybind11/pybind11.h>

#include <array>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "numpy/api.h"

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

using Numbers = std::unordered_map<PyObject*, Py_ssize_t>;

py::object owned(PyObject* object) {
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::object number_object(Py_ssize_t number) { return owned(PyLong_FromSsize_t(number)); }

py::object interned(const char* text) { return owned(PyUnicode_InternFromString(text)); }

template <class... Items>
py::object tuple_of(const Items&... items) {
  return owned(PyTuple_Pack(sizeof...(items), items.ptr()...));
}

// NumPy's own dtype of a type number, of which there is one: its text, and the name of its scalars' class. None of long double (bytes of
// its scalars are padding) nor of what has no fixed size.
struct OwnDType {
  PyArray_Descr* descr = nullptr;
  PyObject* text = nullptr;  // immortal, both
  PyObject* scalar_name = nullptr;
  PyObject* encoded = nullptr;  // itself, as a value
};

const OwnDType* own_dtype(int type) {
  static std::array<OwnDType, NPY_NTYPES_LEGACY> all{};
  const bool fixed = (type >= NPY_BOOL && type < NPY_LONGDOUBLE) || type == NPY_CFLOAT || type == NPY_CDOUBLE || type == NPY_HALF;
  if (!fixed) return nullptr;
  OwnDType& own = all[static_cast<size_t>(type)];
  if (own.descr == nullptr) {
    const py::object descr = owned(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type)));
    own.text = py::object(descr.attr("str")).release().ptr();
    own.scalar_name = py::object(descr.attr("type").attr("__name__")).release().ptr();
    own.encoded = tuple_of(interned("other"), py::type::of(descr).attr("__qualname__"), py::repr(descr)).release().ptr();
    own.descr = reinterpret_cast<PyArray_Descr*>(py::object(descr).release().ptr());
  }
  return &own;
}

// NaNs are all equal: each becomes the one that NumPy stores for np.nan.
template <class Bits>
void same_nan(char* bytes, Py_ssize_t size, Bits infinity, Bits nan) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  for (char* at = bytes; at + sizeof(Bits) <= bytes + size; at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, at, sizeof bits);
    if ((bits & kMagnitude) > infinity) std::memcpy(at, &nan, sizeof nan);
  }
}

py::object with_same_nan(int type, py::object bytes) {
  char* data = PyBytes_AS_STRING(bytes.ptr());
  const Py_ssize_t size = PyBytes_GET_SIZE(bytes.ptr());
  switch (type) {
    case NPY_HALF:
      same_nan<uint16_t>(data, size, 0x7c00, 0x7e00);
      break;
    case NPY_FLOAT:
    case NPY_CFLOAT:
      same_nan<uint32_t>(data, size, 0x7f800000, 0x7fc00000);
      break;
    case NPY_DOUBLE:
    case NPY_CDOUBLE:
      same_nan<uint64_t>(data, size, 0x7ff0000000000000, 0x7ff8000000000000);
      break;
    default:
      break;
  }
  return bytes;
}

// Types' names, as first items, and a method's; objects for ever.
struct Names {
  PyObject *none, *boolean, *whole, *real, *text, *tuple, *list, *dict, *array, *type, *hex;
};

const Names& names() {
  const auto make = [](const char* text) { return interned(text).release().ptr(); };
  static const Names all{make("NoneType"), make("bool"), make("int"),   make("float"), make("str"), make("tuple"),
                         make("list"),     make("dict"), make("array"), make("type"),  make("hex")};
  return all;
}

bool says_address(PyObject* text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_IS_READY(text) && PyUnicode_IS_ASCII(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  return bytes == nullptr || memmem(bytes, static_cast<size_t>(size), "0x", 2) != nullptr;
}

class Encoder {
 public:
  void begin_call() {
    call_numbers_.clear();
    described_.assign(described_.size(), false);
  }

  void forget() {
    numbers_.clear();
    call_numbers_.clear();
    memories_.clear();
    described_.clear();
    alive_.clear();
  }

  Py_ssize_t boxed(py::handle value) { return number(value, call_numbers_); }

  // The number of a mutable object, and whether it is to be described: not yet in this call.
  std::pair<Py_ssize_t, bool> met(py::handle value) {
    const Py_ssize_t known = number(value, numbers_);
    const auto at = static_cast<size_t>(known);
    if (described_.size() <= at) described_.resize(at + 1);
    const bool first = !described_[at];
    described_[at] = true;
    return {known, first};
  }

  // (number of the memory, offset in it): arrays share memory where the first agrees and the second overlaps.
  std::pair<Py_ssize_t, Py_ssize_t> memory(py::handle array) {
    auto* root = reinterpret_cast<PyArrayObject*>(array.ptr());
    while (PyArray_BASE(root) != nullptr && PyArray_Check(PyArray_BASE(root))) root = reinterpret_cast<PyArrayObject*>(PyArray_BASE(root));
    const char* data = static_cast<const char*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
    return {number(reinterpret_cast<PyObject*>(root), memories_), data - static_cast<const char*>(PyArray_DATA(root))};
  }

  py::object encode(py::handle self, py::handle value) {
    if (Py_EnterRecursiveCall(" while a value is encoded")) throw py::error_already_set();
    struct Leave {
      ~Leave() { Py_LeaveRecursiveCall(); }
    } leave;
    PyObject* const object = value.ptr();
    PyTypeObject* const type = Py_TYPE(object);
    if (object == Py_None) return tuple_of(py::handle(names().none), value);
    if (type == &PyBool_Type) return tuple_of(py::handle(names().boolean), value);
    if (type == &PyLong_Type) return whole(value);
    if (type == &PyFloat_Type) {
      const py::object hex = owned(PyObject_CallMethodNoArgs(object, names().hex));
      return tuple_of(py::handle(names().real), hex, number_object(boxed(value)));
    }
    if (type == &PyTuple_Type) return tuple(self, value);
    if (type == &PyList_Type) return list(self, value);
    if (type == &PyDict_Type) return dict(self, value);
    if (type == &PyUnicode_Type && !says_address(object)) return tuple_of(py::handle(names().text), value);
    if (PyArray_CheckExact(object)) return array(self, value);
    if (PyArray_IsScalar(object, Generic)) {
      if (py::object made = scalar(value)) return made;
    }
    if (type == &PyType_Type) return tuple_of(py::handle(names().type), value.attr("__qualname__"));
    if (PyArray_DescrCheck(object)) {
      const OwnDType* const own = own_dtype(reinterpret_cast<PyArray_Descr*>(object)->type_num);
      if (own != nullptr && reinterpret_cast<PyObject*>(own->descr) == object) return py::reinterpret_borrow<py::object>(own->encoded);
    }
    return self.attr("_other")(value);
  }

  // As a tuple, whatever its class.
  py::object tuple(py::handle self, py::handle value) {
    const Py_ssize_t size = PyTuple_GET_SIZE(value.ptr());
    py::tuple made(size > 0 ? size + 2 : 1);
    made[0] = py::handle(names().tuple);
    if (size > 0) made[1] = number_object(boxed(value));
    for (Py_ssize_t i = 0; i < size; ++i)
      PyTuple_SET_ITEM(made.ptr(), i + 2, encode(self, PyTuple_GET_ITEM(value.ptr(), i)).release().ptr());
    return made;
  }

 private:
  Py_ssize_t number(py::handle value, Numbers& numbers) {
    const auto [at, fresh] = numbers.try_emplace(value.ptr(), static_cast<Py_ssize_t>(numbers.size()));
    if (fresh) alive_.push_back(py::reinterpret_borrow<py::object>(value));
    return at->second;
  }

  py::object whole(py::handle value) {
    int overflow = 0;
    const long n = PyLong_AsLongAndOverflow(value.ptr(), &overflow);
    if (!overflow && n >= -5 && n <= 256) return tuple_of(py::handle(names().whole), value);  // CPython keeps one object of each
    return tuple_of(py::handle(names().whole), value, number_object(boxed(value)));
  }

  py::object list(py::handle self, py::handle value) {
    const auto [known, first] = met(value);
    const Py_ssize_t size = first ? PyList_GET_SIZE(value.ptr()) : 0;
    py::tuple made(size + 2);
    made[0] = py::handle(names().list);
    made[1] = number_object(known);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (i >= PyList_GET_SIZE(value.ptr())) throw py::index_error("a list became shorter while it was encoded");
      const auto item = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(value.ptr(), i));
      PyTuple_SET_ITEM(made.ptr(), i + 2, encode(self, item).release().ptr());
    }
    return made;
  }

  py::object dict(py::handle self, py::handle value) {
    const auto [known, first] = met(value);
    std::vector<py::object> pairs;
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t at = 0; first && PyDict_Next(value.ptr(), &at, &key, &item);) {
      const auto kept_key = py::reinterpret_borrow<py::object>(key), kept_item = py::reinterpret_borrow<py::object>(item);
      const py::object left = encode(self, kept_key), right = encode(self, kept_item);
      pairs.push_back(tuple_of(left, right));
    }
    py::tuple made(pairs.size() + 2);
    made[0] = py::handle(names().dict);
    made[1] = number_object(known);
    for (size_t i = 0; i < pairs.size(); ++i) made[i + 2] = pairs[i];
    return made;
  }

  // None if NumPy has no such dtype of its own.
  py::object scalar(py::handle value) {
    PyArray_Descr* const descr = PyArray_DescrFromScalar(value.ptr());
    if (descr == nullptr) throw py::error_already_set();
    const OwnDType* const own = own_dtype(descr->type_num);
    const bool same = own != nullptr && own->descr == descr && Py_TYPE(value.ptr()) == descr->typeobj;
    Py_DECREF(descr);
    if (!same) return {};
    std::array<char, 16> data{};  // complex128 is the longest
    PyArray_ScalarAsCtype(value.ptr(), data.data());
    const py::object bytes = owned(PyBytes_FromStringAndSize(data.data(), PyDataType_ELSIZE(own->descr)));
    const py::object fixed = with_same_nan(own->descr->type_num, bytes);
    if (own->descr->type_num == NPY_BOOL) return tuple_of(py::handle(own->scalar_name), py::handle(own->text), fixed);  // one object
    return tuple_of(py::handle(own->scalar_name), py::handle(own->text), fixed, number_object(boxed(value)));
  }

  py::object array(py::handle self, py::handle value) {
    const auto [known, first] = met(value);
    if (!first) return tuple_of(py::handle(names().array), number_object(known));
    auto* const array = reinterpret_cast<PyArrayObject*>(value.ptr());
    const OwnDType* const own = own_dtype(PyArray_TYPE(array));
    if (own == nullptr || own->descr != PyArray_DESCR(array)) {
      const py::tuple facts = self.attr("_array_facts")(value);
      return owned(PySequence_Concat(tuple_of(py::handle(names().array), number_object(known)).ptr(), facts.ptr()));
    }
    const py::object bytes = owned(PyArray_ToString(array, NPY_CORDER));
    const py::object data = with_same_nan(PyArray_TYPE(array), bytes);
    const int rank = PyArray_NDIM(array);
    const py::object shape = owned(PyArray_IntTupleFromIntp(rank, PyArray_DIMS(array)));
    const py::object strides = owned(PyArray_IntTupleFromIntp(rank, PyArray_STRIDES(array)));
    const auto [root, offset] = memory(value);
    const py::object place = tuple_of(number_object(root), number_object(offset));
    const py::object flags = owned(PyLong_FromLong(PyArray_FLAGS(array)));
    return tuple_of(py::handle(names().array), number_object(known), py::handle(own->text), shape, strides, flags, place, data);
  }

  Numbers numbers_, call_numbers_, memories_;
  std::vector<bool> described_;
  std::vector<py::object> alive_;
};

}  // namespace

// When it is first asked for: it is no work for those who only import the package.
void bind_encoder(py::module_& m) {
  m.def("__getattr__", [](const std::string& name) -> py::object {
    if (name != "Encoder") throw py::attribute_error("module 'dalsegno._core' has no attribute '" + name + "'");
    return py::class_<Encoder>(py::module_::import("dalsegno._core"), "Encoder")
        .def(py::init<>())
        .def("begin_call", &Encoder::begin_call, "Mutable objects keep their numbers but are described afresh.")
        .def("forget", &Encoder::forget, "Lets go of everything: what is met next gets new numbers.")
        .def("encode", [](const py::object& self, const py::object& value) { return self.cast<Encoder&>().encode(self, value); })
        .def("_boxed", &Encoder::boxed)
        .def("_met", &Encoder::met)
        .def("_memory", &Encoder::memory)
        .def("_tuple", [](const py::object& self, const py::tuple& value) { return self.cast<Encoder&>().tuple(self, value); });
  });
}

}  // namespace dalsegno::replay
