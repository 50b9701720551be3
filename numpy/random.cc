#include "numpy/random.h"

#include <numpy/random/bitgen.h>

#include <array>
#include <cstring>
#include <unordered_set>

namespace dalsegno::numpy {
namespace {

// A type, and where its objects keep the functions of their bit generator; 0: it is not known where.
struct Random {
  const char *module, *name, *bit_generator;
  PyTypeObject* type = nullptr;
  Py_ssize_t offset = -1;  // not looked for yet
};

struct Known {
  std::array<Random, 2> types{
      {{"numpy.random._generator", "Generator", "bit_generator"}, {"numpy.random.mtrand", "RandomState", "_bit_generator"}}};
  std::unordered_set<PyObject*> methods, uniform;  // as the types have them, which keep them
};

constexpr const char* kMethods[] = {"beta",
                                    "binomial",
                                    "chisquare",
                                    "choice",
                                    "exponential",
                                    "f",
                                    "gamma",
                                    "geometric",
                                    "gumbel",
                                    "hypergeometric",
                                    "integers",
                                    "laplace",
                                    "logistic",
                                    "lognormal",
                                    "logseries",
                                    "negative_binomial",
                                    "noncentral_chisquare",
                                    "noncentral_f",
                                    "normal",
                                    "pareto",
                                    "permutation",
                                    "poisson",
                                    "power",
                                    "rand",
                                    "randint",
                                    "randn",
                                    "random",
                                    "random_sample",
                                    "rayleigh",
                                    "standard_cauchy",
                                    "standard_exponential",
                                    "standard_gamma",
                                    "standard_normal",
                                    "standard_t",
                                    "triangular",
                                    "uniform",
                                    "vonmises",
                                    "wald",
                                    "weibull",
                                    "zipf"};
constexpr const char* kUniform[] = {"rand", "random", "random_sample"};

PyTypeObject* find_type(const char* module, const char* name) {
  PyObject* found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
  PyObject* type = found && PyModule_CheckExact(found) ? PyDict_GetItemString(PyModule_GetDict(found), name) : nullptr;
  return type && PyType_Check(type) && !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE)
             ? reinterpret_cast<PyTypeObject*>(type)
             : nullptr;
}

const bitgen_t* bit_generator_of(PyObject* generator, const char* attribute) {
  PyObject* bits = PyObject_GetAttrString(generator, attribute);
  PyObject* capsule = bits ? PyObject_GetAttrString(bits, "capsule") : nullptr;
  Py_XDECREF(bits);
  const void* found = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : nullptr;
  Py_XDECREF(capsule);  // the bit generator, which lives as long as the object does, keeps it
  return static_cast<const bitgen_t*>(found);
}

// An object has a copy of the functions (_generator.pyx, mtrand.pyx: _bitgen), in one place.
Py_ssize_t find_offset(PyObject* generator, const char* attribute) {
  const bitgen_t* functions = bit_generator_of(generator, attribute);
  if (!functions) return PyErr_Clear(), 0;
  Py_ssize_t offset = 0;
  for (Py_ssize_t at = sizeof(PyObject); at + static_cast<Py_ssize_t>(sizeof(bitgen_t)) <= Py_TYPE(generator)->tp_basicsize;
       at += alignof(bitgen_t)) {
    if (std::memcmp(reinterpret_cast<const char*>(generator) + at, functions, sizeof(bitgen_t)) != 0) continue;
    if (offset != 0) return 0;
    offset = at;
  }
  return offset;
}

const bitgen_t* functions_in(PyObject* generator, Py_ssize_t offset) {
  return reinterpret_cast<const bitgen_t*>(reinterpret_cast<const char*>(generator) + offset);
}

// A new object draws what its functions give.
Py_ssize_t checked_offset(const Random& random) {
  PyObject* bits = PyObject_CallMethod(PyDict_GetItemString(PyImport_GetModuleDict(), "numpy.random._mt19937"), "MT19937", "i", 20221124);
  PyObject* generator = bits ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(random.type), bits) : nullptr;
  const bitgen_t* functions = bits ? bit_generator_of(generator ? generator : bits, random.bit_generator) : nullptr;
  Py_ssize_t offset = functions ? find_offset(generator, random.bit_generator) : 0;
  for (int k = 0; offset != 0 && k < 3; ++k) {
    PyObject* state = PyObject_GetAttrString(bits, "state");
    PyObject* drawn = state ? PyObject_CallMethod(generator, "random", nullptr) : nullptr;
    const bool back = drawn && PyFloat_CheckExact(drawn) && PyObject_SetAttrString(bits, "state", state) == 0;
    const bitgen_t* own = functions_in(generator, offset);
    if (!back || own->next_double(own->state) != PyFloat_AS_DOUBLE(drawn)) offset = 0;
    Py_XDECREF(drawn);
    Py_XDECREF(state);
  }
  Py_XDECREF(generator);
  Py_XDECREF(bits);
  PyErr_Clear();
  return offset;
}

void add_methods(const Random& random, Known* known) {
  for (const char* name : kMethods)
    if (PyObject* method = PyDict_GetItemString(random.type->tp_dict, name)) known->methods.insert(method);
  for (const char* name : kUniform)
    if (PyObject* method = PyDict_GetItemString(random.type->tp_dict, name)) known->uniform.insert(method);
}

// Once numpy.random has been imported.
Known& known() {
  static Known found;
  static bool looked = false;
  if (looked) return found;
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  std::array<PyTypeObject*, 2> types{};
  for (size_t k = 0; k < types.size(); ++k) types[k] = find_type(found.types[k].module, found.types[k].name);
  PyErr_Clear();
  if (types[0] && types[1]) {
    looked = true;
    for (size_t k = 0; k < types.size(); ++k) {
      Random& random = found.types[k];
      random.type = types[k];
      add_methods(random, &found);
    }
  }
  PyErr_Restore(kind, value, traceback);
  return found;
}

const Random* random_of(PyTypeObject* type) {
  for (const Random& random : known().types)
    if (random.type && random.type == type) return &random;
  return nullptr;
}

// The function of a method bound to a generator, or the callee itself.
PyObject* function_of(PyObject* callee) {
  if (!PyMethod_Check(callee)) return callee;
  return random_of(Py_TYPE(PyMethod_GET_SELF(callee))) ? PyMethod_GET_FUNCTION(callee) : nullptr;
}

bool draw_by_call(PyObject* generator, double* out) {
  PyObject* drawn = PyObject_CallMethod(generator, "random", nullptr);
  const bool ok = drawn && PyFloat_CheckExact(drawn);
  if (ok) *out = PyFloat_AS_DOUBLE(drawn);
  Py_XDECREF(drawn);
  if (!drawn) PyErr_Clear();
  return ok;
}

}  // namespace

bool is_random_type(PyTypeObject* type) { return random_of(type) != nullptr; }

bool is_random_method(PyObject* callee) {
  if (!PyMethod_Check(callee) && std::strcmp(Py_TYPE(callee)->tp_name, "cython_function_or_method") != 0 &&
      std::strstr(Py_TYPE(callee)->tp_name, ".cython_function_or_method") == nullptr)
    return false;
  return known().methods.contains(function_of(callee));
}

bool draws_number(PyObject* callee) { return is_random_method(callee) && known().uniform.contains(function_of(callee)); }

void prepare_drawing() {
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  for (Random& random : known().types)
    if (random.type && random.offset < 0) random.offset = checked_offset(random);
  PyErr_Restore(kind, value, traceback);
}

bool draw_number(PyObject* object, bool bound, double* out) {
  if (bound) object = PyMethod_Check(object) ? PyMethod_GET_SELF(object) : nullptr;
  const Random* random = object ? random_of(Py_TYPE(object)) : nullptr;
  if (!random) return false;
  const PyThreadState* thread = PyThreadState_Get();
  const bool alone = thread->prev == nullptr && thread->next == nullptr;  // nobody else has the generator's lock
  if (!alone || random->offset <= 0) return draw_by_call(object, out);
  const bitgen_t* functions = functions_in(object, random->offset);
  *out = functions->next_double(functions->state);
  return true;
}

}  // namespace dalsegno::numpy
