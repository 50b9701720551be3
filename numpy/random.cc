#include "numpy/random.h"

#include <numpy/random/distributions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

namespace dalsegno::numpy {
namespace {

// A type, and where its objects keep the functions of their bit generator, and its lock.
struct Random {
  const char *module, *name, *bit_generator, *whole;
  Draws draws_whole;  // what `whole` does
  bool masked;        // of whole numbers too large ones are drawn again; else D. Lemire's way (distributions.c)
  PyTypeObject* type = nullptr;
  Py_ssize_t offset = -1;  // 0: it is not known; below: it has not been looked for
  Py_ssize_t lock = 0;     // 0: it is not known
  Py_ssize_t normals = 0;  // of a RandomState: its NormalsByTwo; 0: it is not known
};

// Normal numbers come by two there: the second one is kept (aug_bitgen_t of legacy-distributions.h).
struct NormalsByTwo {
  const bitgen_t* functions;
  int has_second;
  double second;
};

// Where a lock keeps who holds it.
struct Lock {
  PyTypeObject* type = nullptr;
  Py_ssize_t holder = 0;  // 0: it is not known
};

struct Known {
  std::array<Random, 2> types{{{"numpy.random._generator", "Generator", "bit_generator", "integers", Draws::kInt64, false},
                               {"numpy.random.mtrand", "RandomState", "_bit_generator", "randint", Draws::kInt, true}}};
  Lock lock;
  std::unordered_map<PyObject*, Draws> methods;  // as the types have them, which keep them
};

constexpr const char* kUniform = "rand random random_sample";
constexpr const char* kOther =
    "beta binomial chisquare choice exponential f gamma geometric gumbel hypergeometric laplace logistic lognormal logseries "
    "negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson power randn rayleigh standard_cauchy "
    "standard_exponential standard_gamma standard_normal standard_t triangular vonmises wald weibull zipf";

// ---- what NumPy computes ---------------------------------------------------------------------------------------------------------

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

// low < high. False: it is not known how.
bool next_whole(const bitgen_t* functions, bool masked, int64_t low, int64_t high, int64_t* out) {
  uint64_t most = static_cast<uint64_t>(high) - 1 - static_cast<uint64_t>(low);
  if (most >= UINT32_MAX) return false;
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

// G. Marsaglia's polar method (legacy_gauss() of legacy-distributions.c).
double next_of_two(NormalsByTwo* state, const bitgen_t* functions) {
  if (state->has_second) {
    state->has_second = 0;
    return std::exchange(state->second, 0.0);
  }
  double x, y, square;
  do {
    x = 2.0 * functions->next_double(functions->state) - 1.0;
    y = 2.0 * functions->next_double(functions->state) - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const double factor = std::sqrt(-2.0 * std::log(square) / square);
  state->second = factor * x;
  state->has_second = 1;
  return factor * y;
}

// Scales below zero are refused, and the negative zero, too.
bool is_scale(double scale) { return scale >= 0 && !std::signbit(scale); }

// Of a RandomState (legacy-distributions.c).
bool next_as_before(Draws distribution, NormalsByTwo* normals, const bitgen_t* functions, double a, double b, double* out) {
  const auto exponential = [&] { return -std::log(1.0 - functions->next_double(functions->state)); };
  switch (distribution) {
    case Draws::kNormal:
      return is_scale(b) && (*out = a + b * next_of_two(normals, functions), true);
    case Draws::kExponential:
      return is_scale(a) && (*out = a * exponential(), true);
    case Draws::kStandardNormal:
      return *out = next_of_two(normals, functions), true;
    default:
      return *out = exponential(), true;
  }
}

// Of a Generator (distributions.c, by the library that NumPy has for this), or (normals) of a RandomState.
bool next_by(Draws distribution, NormalsByTwo* normals, bitgen_t* functions, double a, double b, double* out) {
  if (normals && distribution != Draws::kBetween) return next_as_before(distribution, normals, functions, a, b, out);
  switch (distribution) {
    case Draws::kBetween:
      return next_between(functions, a, b, out);
#ifdef DALSEGNO_NPYRANDOM
    case Draws::kNormal:
      return is_scale(b) && (*out = random_normal(functions, a, b), true);
    case Draws::kExponential:
      return is_scale(a) && (*out = random_exponential(functions, a), true);
    case Draws::kStandardNormal:
      return *out = random_standard_normal(functions), true;
    case Draws::kStandardExponential:
      return *out = random_standard_exponential(functions), true;
#endif
    default:
      return false;
  }
}

// What it is called, and what its parameters are where they are not given.
struct Distribution {
  Draws draws;
  const char* name;
  double a = 0, b = 0;
};
constexpr Distribution kDistributions[] = {{Draws::kBetween, "uniform", 0.0, 1.0},
                                           {Draws::kNormal, "normal", 0.0, 1.0},
                                           {Draws::kExponential, "exponential", 1.0},
                                           {Draws::kStandardNormal, "standard_normal"},
                                           {Draws::kStandardExponential, "standard_exponential"}};
const Distribution& distribution_of(Draws draws) {
  return *std::find_if(std::begin(kDistributions), std::end(kDistributions), [&](const Distribution& one) { return one.draws == draws; });
}

// By the generator's method; null, with an exception.
PyObject* call_for(const Distribution& distribution, PyObject* generator, double a, double b) {
  switch (most_parameters(distribution.draws)) {
    case 0:
      return PyObject_CallMethod(generator, distribution.name, nullptr);
    case 1:
      return PyObject_CallMethod(generator, distribution.name, "d", a);
    default:
      return PyObject_CallMethod(generator, distribution.name, "dd", a, b);
  }
}

// ---- where it is in an object ----------------------------------------------------------------------------------------------------

template <class Word>
Word word_at(PyObject* object, Py_ssize_t offset) {
  Word word;
  std::memcpy(&word, reinterpret_cast<const char*>(object) + offset, sizeof word);
  return word;
}

// The one word of an object for which `is_it` holds, behind what all objects have; 0: there is none, or more.
template <class Word, class IsIt>
Py_ssize_t find_word(PyObject* object, IsIt is_it) {
  Py_ssize_t found = 0;
  for (Py_ssize_t at = sizeof(PyObject); at + static_cast<Py_ssize_t>(sizeof(Word)) <= Py_TYPE(object)->tp_basicsize; at += alignof(Word)) {
    if (!is_it(word_at<Word>(object, at))) continue;
    if (found != 0) return 0;
    found = at;
  }
  return found;
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
  return find_word<bitgen_t>(generator, [&](const bitgen_t& word) { return std::memcmp(&word, functions, sizeof word) == 0; });
}

bitgen_t* functions_in(PyObject* generator, Py_ssize_t offset) {
  return reinterpret_cast<bitgen_t*>(reinterpret_cast<char*>(generator) + offset);
}

// Null: it has none, or it is not known where.
NormalsByTwo* normals_in(PyObject* generator, const Random& random) {
  return random.normals > 0 ? reinterpret_cast<NormalsByTwo*>(reinterpret_cast<char*>(generator) + random.normals) : nullptr;
}

// A RandomState draws by distributions of its own.
bool knows(const Random& random, Draws distribution) {
#ifdef DALSEGNO_NPYRANDOM
  constexpr bool kLibrary = true;
#else
  constexpr bool kLibrary = false;  // a NumPy that has come without its library for C code
#endif
  return distribution == Draws::kBetween || (random.masked ? random.normals > 0 : kLibrary);
}

PyTypeObject* type_of_whole(const Random& random) { return random.draws_whole == Draws::kInt ? &PyLong_Type : &PyInt64ArrType_Type; }

bool same_normals(PyObject* one, PyObject* other, const Random& random) {
  const NormalsByTwo *a = normals_in(one, random), *b = normals_in(other, random);
  return !a || (a->has_second == b->has_second && a->second == b->second);
}

// What the next call of each kind gives, as the generator itself says it and as the functions of one that is its like do.
bool draws_same(PyObject* generator, PyObject* like, const Random& random, Py_ssize_t offset, int k) {
  bitgen_t* functions = functions_in(like, offset);
  const int64_t low = -k, high = 5 + 1000000 * k * k;
  PyObject* number = PyObject_CallMethod(generator, "random", nullptr);
  PyObject* whole = number ? PyObject_CallMethod(generator, random.whole, "LL", low, high) : nullptr;
  int64_t own_whole = 0;
  bool same = whole && PyFloat_CheckExact(number) && Py_IS_TYPE(whole, type_of_whole(random)) &&
              functions->next_double(functions->state) == PyFloat_AS_DOUBLE(number) &&
              next_whole(functions, random.masked, low, high, &own_whole) && own_whole == PyLong_AsLongLong(whole);
  for (const Distribution& distribution : kDistributions) {
    if (!same || !knows(random, distribution.draws)) continue;
    const double a = 0.1 + k, b = 1.7 * k + 1.2;
    PyObject* given = call_for(distribution, generator, a, b);
    double own = 0;
    same = given && PyFloat_CheckExact(given) && next_by(distribution.draws, normals_in(like, random), functions, a, b, &own) &&
           own == PyFloat_AS_DOUBLE(given) && same_normals(generator, like, random);
    Py_XDECREF(given);
  }
  for (PyObject* object : {whole, number}) Py_XDECREF(object);
  return same;
}

// ---- its lock: a threading.RLock, which whoever draws holds, also without the GIL --------------------------------------------------

bool call_method(PyObject* object, const char* name) {
  PyObject* done = PyObject_CallMethod(object, name, nullptr);
  Py_XDECREF(done);
  return done != nullptr;
}

// The thread, and 0 while it is nobody's: so much is found out about it.
Lock lock_like(PyObject* lock) {
  const unsigned long self = PyThread_get_thread_ident();
  if (!call_method(lock, "acquire")) return {};
  const Py_ssize_t holder = find_word<unsigned long>(lock, [&](unsigned long word) { return word == self; });
  bool known = holder != 0 && call_method(lock, "acquire") && word_at<unsigned long>(lock, holder) == self;
  known = known && call_method(lock, "release") && word_at<unsigned long>(lock, holder) == self;
  known = call_method(lock, "release") && known && word_at<unsigned long>(lock, holder) == 0;
  return known ? Lock{Py_TYPE(lock), holder} : Lock{};
}

bool may_draw(PyObject* generator, const Random& random, const Lock& lock) {
  if (random.lock == 0 || lock.holder == 0) return false;
  auto* object = word_at<PyObject*>(generator, random.lock);
  if (!object || !Py_IS_TYPE(object, lock.type)) return false;
  const auto holder = word_at<unsigned long>(object, lock.holder);
  return holder == 0 || holder == PyThread_get_thread_ident();
}

// New reference, or null with an exception. (PCG64: one whose state is small.)
PyObject* make_generator(const Random& random) {
  PyObject* bits = PyObject_CallMethod(PyDict_GetItemString(PyImport_GetModuleDict(), "numpy.random._pcg64"), "PCG64", "i", 20221124);
  PyObject* generator = bits ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(random.type), bits) : nullptr;
  Py_XDECREF(bits);
  return generator;
}

constexpr int kChecked = 16;  // rounds of all distributions

// That of a new object, if it draws what its functions give.
Py_ssize_t checked_offset(Random& random, Lock* lock) {
  PyObject* generator = make_generator(random);
  PyObject* like = generator ? make_generator(random) : nullptr;
  Py_ssize_t offset = like ? find_offset(generator, random.bit_generator) : 0;
  if (offset != 0 && random.masked) {
    const bitgen_t* own = functions_in(generator, offset);
    random.normals = find_word<const bitgen_t*>(generator, [&](const bitgen_t* word) { return word == own; });
  }
  for (int k = 0; offset != 0 && k < kChecked; ++k)
    if (!draws_same(generator, like, random, offset, k)) offset = 0;
  PyObject* bits = like ? PyObject_GetAttrString(generator, random.bit_generator) : nullptr;
  if (PyObject* own = bits ? PyObject_GetAttrString(bits, "lock") : nullptr) {
    random.lock = find_word<PyObject*>(generator, [&](PyObject* word) { return word == own; });
    *lock = lock_like(own);
    Py_DECREF(own);
  }
  for (PyObject* object : {bits, like, generator}) Py_XDECREF(object);
  PyErr_Clear();
  return offset;
}

// ---- types and methods -----------------------------------------------------------------------------------------------------------

PyTypeObject* find_type(const char* module, const char* name) {
  PyObject* found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
  PyObject* type = found && PyModule_CheckExact(found) ? PyDict_GetItemString(PyModule_GetDict(found), name) : nullptr;
  return type && PyType_Check(type) && !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE)
             ? reinterpret_cast<PyTypeObject*>(type)
             : nullptr;
}

void add_methods(const Random& random, Known* known) {
  const auto add = [&](const char* names, Draws draws) {
    std::istringstream words(names);
    for (std::string name; words >> name;)
      if (PyObject* method = PyDict_GetItemString(random.type->tp_dict, name.c_str())) known->methods.emplace(method, draws);
  };
  add(kUniform, Draws::kNumber);
  for (const Distribution& distribution : kDistributions) add(distribution.name, distribution.draws);
  add("randn", Draws::kStandardNormal);
  add(random.whole, random.draws_whole);
  add(kOther, Draws::kOther);
}

// Once numpy.random has been imported.
Known& known() {
  static Known found;
  static bool looked = false;
  if (looked) return found;
  std::array<PyTypeObject*, 2> types{};
  for (size_t k = 0; k < types.size(); ++k) types[k] = find_type(found.types[k].module, found.types[k].name);
  if (!types[0] || !types[1]) return found;
  looked = true;
  for (size_t k = 0; k < types.size(); ++k) {
    found.types[k].type = types[k];
    add_methods(found.types[k], &found);
  }
  return found;
}

Random* random_of(PyTypeObject* type) {
  for (Random& random : known().types)
    if (random.type == type) return &random;
  return nullptr;
}

// ---- drawing ---------------------------------------------------------------------------------------------------------------------

// Where a number comes from.
struct Source {
  PyObject* generator = nullptr;  // null: there is none
  const Random* random = nullptr;
  bitgen_t* functions = nullptr;  // null: its method has to be called
};

Source source_of(PyObject* object, bool bound) {
  if (bound) object = PyMethod_Check(object) ? PyMethod_GET_SELF(object) : nullptr;
  Random* random = object ? random_of(Py_TYPE(object)) : nullptr;
  if (!random) return {};
  if (random->offset < 0) [[unlikely]]
    random->offset = checked_offset(*random, &known().lock);
  const PyThreadState* thread = PyThreadState_Get();
  const bool alone = thread->prev == nullptr && thread->next == nullptr;
  const bool may = random->offset > 0 && (alone || may_draw(object, *random, known().lock));  // nobody else has the generator's lock
  return {object, random, may ? functions_in(object, random->offset) : nullptr};
}

// What a call has given, which is taken; false: nothing of this type. A call that has raised is made once more, by the interpreter. But
// what interrupted it while it waited for the generator's lock comes but once.
template <class Value>
bool take(PyObject* result, PyTypeObject* type, Value (*value)(PyObject*), Value* out) {
  const bool ok = result && Py_IS_TYPE(result, type);
  if (ok) *out = value(result);
  Py_XDECREF(result);
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  PyErr_Clear();
  return ok;
}

}  // namespace

bool is_random_type(PyTypeObject* type) { return std::strncmp(type->tp_name, "numpy.random.", 13) == 0 && random_of(type) != nullptr; }

Draws drawn_by(PyObject* callee) {
  PyObject* function = callee;
  if (PyMethod_Check(callee)) {
    if (!is_random_type(Py_TYPE(PyMethod_GET_SELF(callee)))) return Draws::kNothing;
    function = PyMethod_GET_FUNCTION(callee);
  } else if (std::strstr(Py_TYPE(callee)->tp_name, "cython_function_or_method") == nullptr) {
    return Draws::kNothing;
  }
  const auto found = known().methods.find(function);
  return found != known().methods.end() ? found->second : Draws::kNothing;
}

bool draw_number(PyObject* object, bool bound, double* out) {
  const Source source = source_of(object, bound);
  if (!source.generator) return false;
  if (!source.functions) return take(PyObject_CallMethod(source.generator, "random", nullptr), &PyFloat_Type, PyFloat_AsDouble, out);
  *out = source.functions->next_double(source.functions->state);
  return true;
}

bool draw_by(Draws draws, PyObject* object, bool bound, int n, double a, double b, double* out) {
  const Source source = source_of(object, bound);
  if (!source.generator) return false;
  const Distribution& distribution = distribution_of(draws);
  if (n < 1) a = distribution.a;
  if (n < 2) b = distribution.b;
  const bool may = source.functions && knows(*source.random, draws);
  if (may && next_by(draws, normals_in(source.generator, *source.random), source.functions, a, b, out)) return true;
  return take(call_for(distribution, source.generator, a, b), &PyFloat_Type, PyFloat_AsDouble, out);
}

bool draw_whole_number(PyObject* object, bool bound, int64_t low, int64_t high, int64_t* out) {
  const Source source = source_of(object, bound);
  if (!source.generator || low >= high) return false;
  if (source.functions && next_whole(source.functions, source.random->masked, low, high, out)) return true;
  return take(PyObject_CallMethod(source.generator, source.random->whole, "LL", low, high), type_of_whole(*source.random), PyLong_AsLong,
              out);
}

}  // namespace dalsegno::numpy
