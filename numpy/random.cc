#include "numpy/random.h"

#include <numpy/random/bitgen.h>

#include <array>
#include <cmath>
#include <cstring>
#include <unordered_set>

namespace dalsegno::numpy {
namespace {

// A type, and where its objects keep the functions of their bit generator; 0: it is not known where.
struct Random {
  const char *module, *name, *bit_generator, *whole;
  bool masked;  // of whole numbers too large ones are drawn again; else D. Lemire's way (distributions.c)
  PyTypeObject* type = nullptr;
  Py_ssize_t offset = -1;  // not looked for yet
};

struct Known {
  std::array<Random, 2> types{{{"numpy.random._generator", "Generator", "bit_generator", "integers", false},
                               {"numpy.random.mtrand", "RandomState", "_bit_generator", "randint", true}}};
  std::unordered_set<PyObject*> methods, uniform, whole, between;  // as the types have them, which keep them
};

PyTypeObject* type_of_whole(const Random& random) { return random.masked ? &PyLong_Type : &PyInt64ArrType_Type; }

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

uint32_t next_word(const bitgen_t* functions) { return functions->next_uint32(functions->state); }

// The least number that is drawn there is 0, the largest one `most`. (NumPy: bounded_masked_uint32 and bounded_lemire_uint32.)
uint32_t next_masked(const bitgen_t* functions, uint32_t most) {
  const uint32_t mask = UINT32_MAX >> __builtin_clz(most);
  uint32_t drawn = next_word(functions) & mask;
  while (drawn > most) drawn = next_word(functions) & mask;
  return drawn;
}

uint32_t next_multiplied(const bitgen_t* functions, uint32_t most) {
  const uint32_t count = most + 1;
  uint64_t product = uint64_t{next_word(functions)} * count;
  if (static_cast<uint32_t>(product) < count) {
    const uint32_t least = (UINT32_MAX - most) % count;
    while (static_cast<uint32_t>(product) < least) product = uint64_t{next_word(functions)} * count;
  }
  return static_cast<uint32_t>(product >> 32);
}

// False: it is not known how.
bool next_whole(const bitgen_t* functions, bool masked, int64_t low, int64_t high, int64_t* out) {
  uint64_t most = static_cast<uint64_t>(high) - 1 - static_cast<uint64_t>(low);
  if (low >= high || most >= UINT32_MAX) return false;
  if (most > 0) most = (masked ? next_masked : next_multiplied)(functions, static_cast<uint32_t>(most));
  *out = low + static_cast<int64_t>(most);
  return true;
}

// False: it is not known how. (NumPy: random_uniform; a Generator refuses what goes backwards.)
bool next_between(const bitgen_t* functions, double low, double high, double* out) {
  const double range = high - low;
  if (!(range >= 0) || !std::isfinite(range)) return false;
  *out = low + range * functions->next_double(functions->state);
  return true;
}

// A new object draws what its functions give.
Py_ssize_t checked_offset(const Random& random) {
  PyObject* bits = PyObject_CallMethod(PyDict_GetItemString(PyImport_GetModuleDict(), "numpy.random._mt19937"), "MT19937", "i", 20221124);
  PyObject* generator = bits ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(random.type), bits) : nullptr;
  const bitgen_t* functions = bits ? bit_generator_of(generator ? generator : bits, random.bit_generator) : nullptr;
  Py_ssize_t offset = functions ? find_offset(generator, random.bit_generator) : 0;
  for (int k = 0; offset != 0 && k < 40; ++k) {
    PyObject* state = PyObject_GetAttrString(bits, "state");
    PyObject* drawn = state ? PyObject_CallMethod(generator, "random", nullptr) : nullptr;
    const int64_t low = -k, high = 5 + 1000000 * k * k;
    PyObject* whole = drawn ? PyObject_CallMethod(generator, random.whole, "LL", low, high) : nullptr;
    const int64_t number = whole && Py_IS_TYPE(whole, type_of_whole(random)) ? PyLong_AsLongLong(whole) : high;
    PyObject* between = whole ? PyObject_CallMethod(generator, "uniform", "dd", 0.1 - k, 1.7 * k + 1) : nullptr;
    const bool back =
        drawn && between && PyFloat_CheckExact(between) && PyFloat_CheckExact(drawn) && PyObject_SetAttrString(bits, "state", state) == 0;
    const bitgen_t* own = functions_in(generator, offset);
    int64_t same = 0;
    double other = 0;
    if (!back || own->next_double(own->state) != PyFloat_AS_DOUBLE(drawn) || !next_whole(own, random.masked, low, high, &same) ||
        same != number || !next_between(own, 0.1 - k, 1.7 * k + 1, &other) || other != PyFloat_AS_DOUBLE(between))
      offset = 0;
    Py_XDECREF(between);
    Py_XDECREF(whole);
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
  if (PyObject* method = PyDict_GetItemString(random.type->tp_dict, random.whole)) known->whole.insert(method);
  if (PyObject* method = PyDict_GetItemString(random.type->tp_dict, "uniform")) known->between.insert(method);
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

// The generator that a method is bound to, or the object itself; null: it is none.
PyObject* generator_in(PyObject* object, bool bound) {
  if (bound) object = PyMethod_Check(object) ? PyMethod_GET_SELF(object) : nullptr;
  return object && random_of(Py_TYPE(object)) ? object : nullptr;
}

// Null: it has to be called.
const bitgen_t* functions_of(PyObject* generator, const Random& random) {
  const PyThreadState* thread = PyThreadState_Get();
  const bool alone = thread->prev == nullptr && thread->next == nullptr;  // nobody else has the generator's lock
  return alone && random.offset > 0 ? functions_in(generator, random.offset) : nullptr;
}

// The call is made once more, by the interpreter. But what interrupted it while it waited for the generator's lock comes but once.
void let_go_of_error() {
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  PyErr_Clear();
}

// What a call has given, which is taken; false: no float.
bool drawn(PyObject* result, double* out) {
  const bool ok = result && PyFloat_CheckExact(result);
  if (ok) *out = PyFloat_AS_DOUBLE(result);
  Py_XDECREF(result);
  let_go_of_error();
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

PyTypeObject* draws_whole_numbers(PyObject* callee) {
  if (!is_random_method(callee) || !known().whole.contains(function_of(callee))) return nullptr;
  if (PyMethod_Check(callee)) return type_of_whole(*random_of(Py_TYPE(PyMethod_GET_SELF(callee))));
  const Random& legacy = known().types[1];
  return PyDict_GetItemString(legacy.type->tp_dict, legacy.whole) == callee ? &PyLong_Type : &PyInt64ArrType_Type;
}

bool draws_between(PyObject* callee) { return is_random_method(callee) && known().between.contains(function_of(callee)); }

bool draw_number(PyObject* object, bool bound, double* out) {
  PyObject* generator = generator_in(object, bound);
  if (!generator) return false;
  if (const bitgen_t* functions = functions_of(generator, *random_of(Py_TYPE(generator)))) {
    *out = functions->next_double(functions->state);
    return true;
  }
  return drawn(PyObject_CallMethod(generator, "random", nullptr), out);
}

bool draw_whole_number(PyObject* object, bool bound, int64_t low, int64_t high, int64_t* out) {
  PyObject* generator = generator_in(object, bound);
  if (!generator) return false;
  const Random& random = *random_of(Py_TYPE(generator));
  const bitgen_t* functions = functions_of(generator, random);
  if (functions && next_whole(functions, random.masked, low, high, out)) return true;
  if (low >= high) return false;
  PyObject* drawn = PyObject_CallMethod(generator, random.whole, "LL", static_cast<long long>(low), static_cast<long long>(high));
  const bool ok = drawn && Py_IS_TYPE(drawn, type_of_whole(random));
  if (ok) *out = PyLong_AsLongLong(drawn);
  Py_XDECREF(drawn);
  let_go_of_error();
  return ok;
}

bool draw_between(PyObject* object, bool bound, double low, double high, double* out) {
  PyObject* generator = generator_in(object, bound);
  if (!generator) return false;
  const bitgen_t* functions = functions_of(generator, *random_of(Py_TYPE(generator)));
  return (functions && next_between(functions, low, high, out)) || drawn(PyObject_CallMethod(generator, "uniform", "dd", low, high), out);
}

}  // namespace dalsegno::numpy
