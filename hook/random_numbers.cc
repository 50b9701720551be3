// M. Matsumoto and T. Nishimura's Mersenne Twister, on the state that Modules/_randommodule.c keeps in its objects.
#include "hook/random_numbers.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hook/error_aside.h"

namespace dalsegno::hook {
namespace {

constexpr size_t kWords = 624, kMiddle = 397;

struct Generator {
  PyObject_HEAD int index;
  uint32_t words[kWords];
};

void make_words(uint32_t* mt) {
  constexpr uint32_t kUpper = 0x80000000U, kLower = 0x7fffffffU, kMatrix = 0x9908b0dfU;
  const auto make = [mt](size_t k, size_t next, size_t other) {
    const uint32_t y = (mt[k] & kUpper) | (mt[next] & kLower);
    mt[k] = mt[other] ^ (y >> 1) ^ ((0U - (y & 1U)) & kMatrix);
  };
  for (size_t k = 0; k < kWords - kMiddle; ++k) make(k, k + 1, k + kMiddle);
  for (size_t k = kWords - kMiddle; k < kWords - 1; ++k) make(k, k + 1, k + kMiddle - kWords);
  make(kWords - 1, 0, kMiddle - 1);
}

uint32_t next_word(Generator* g) {
  if (g->index >= static_cast<int>(kWords)) {
    make_words(g->words);
    g->index = 0;
  }
  uint32_t y = g->words[g->index++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

double next_number(Generator* g) {
  const uint32_t a = next_word(g) >> 5, b = next_word(g) >> 6;
  return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
}

// The lowest 32 bits come first; of the last word, its upper bits.
int64_t next_bits(Generator* g, int64_t bits) {
  if (bits <= 32) return next_word(g) >> (32 - bits);
  const uint64_t low = next_word(g);
  return static_cast<int64_t>(low | static_cast<uint64_t>(next_word(g) >> (64 - bits)) << 32);
}

// The type, and its methods.
struct Known {
  PyTypeObject* type = nullptr;
  const PyMethodDef *number = nullptr, *bits = nullptr;
};

// A new generator draws what is computed here from its memory, through two makings of its words.
bool is_laid_out(PyTypeObject* type) {
  if (type->tp_basicsize < static_cast<Py_ssize_t>(sizeof(Generator))) return false;
  PyObject* generator = PyObject_CallFunction(reinterpret_cast<PyObject*>(type), "i", 20221124);
  bool same = generator != nullptr;
  Generator own{};
  if (same) std::memcpy(&own, generator, sizeof own);
  same = same && own.index == static_cast<int>(kWords);
  for (size_t k = 0; same && k < kWords + 1; ++k) {
    PyObject* drawn = PyObject_CallMethod(generator, "random", nullptr);
    same = drawn && PyFloat_CheckExact(drawn) && PyFloat_AS_DOUBLE(drawn) == next_number(&own);
    Py_XDECREF(drawn);
  }
  for (const int bits : {1, 31, 32, 33, 63}) {
    PyObject* drawn = same ? PyObject_CallMethod(generator, "getrandbits", "i", bits) : nullptr;
    same = drawn && PyLong_CheckExact(drawn) && PyLong_AsLongLong(drawn) == next_bits(&own, bits);
    Py_XDECREF(drawn);
  }
  const size_t from = offsetof(Generator, index);
  same = same && std::memcmp(reinterpret_cast<char*>(generator) + from, reinterpret_cast<char*>(&own) + from, sizeof own - from) == 0;
  Py_XDECREF(generator);
  return same;
}

const PyMethodDef* method_of(PyObject* type, const char* name) {
  PyObject* method = PyDict_GetItemString(reinterpret_cast<PyTypeObject*>(type)->tp_dict, name);
  return method && Py_IS_TYPE(method, &PyMethodDescr_Type) ? reinterpret_cast<PyMethodDescrObject*>(method)->d_method : nullptr;
}

const Known& known() {
  static const Known found = [] {
    const ErrorAside keep;
    Known out;
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "_random");
    PyObject* type = module && PyModule_CheckExact(module) ? PyDict_GetItemString(PyModule_GetDict(module), "Random") : nullptr;
    if (!type || !PyType_Check(type) || !is_laid_out(reinterpret_cast<PyTypeObject*>(type))) return PyErr_Clear(), out;
    out.number = method_of(type, "random");
    out.bits = method_of(type, "getrandbits");
    if (out.number && out.bits) out.type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
    return out;
  }();
  return found;
}

}  // namespace

Drawn drawn_by(PyObject* callee) {
  const bool method = Py_IS_TYPE(callee, &PyMethodDescr_Type);
  if (!method && !PyCFunction_CheckExact(callee)) return Drawn::kNothing;
  const PyMethodDef* definition =
      method ? reinterpret_cast<PyMethodDescrObject*>(callee)->d_method : reinterpret_cast<PyCFunctionObject*>(callee)->m_ml;
  if (std::strcmp(definition->ml_name, "random") != 0 && std::strcmp(definition->ml_name, "getrandbits") != 0) return Drawn::kNothing;
  if (!PyDict_GetItemString(PyImport_GetModuleDict(), "_random")) return PyErr_Clear(), Drawn::kNothing;
  if (!known().type) return Drawn::kNothing;
  return definition == known().number ? Drawn::kNumber : definition == known().bits ? Drawn::kBits : Drawn::kNothing;
}

namespace {

// Null: it is none.
Generator* generator_of(PyObject* object, bool bound) {
  PyTypeObject* const type = known().type;
  if (bound) object = PyCFunction_CheckExact(object) ? PyCFunction_GET_SELF(object) : nullptr;
  const bool is_generator = object && type && (Py_TYPE(object)->tp_base == type || PyObject_TypeCheck(object, type));  // (mostly the first)
  return is_generator ? reinterpret_cast<Generator*>(object) : nullptr;
}

}  // namespace

bool draw_random_number(PyObject* object, bool bound, double* out) {
  Generator* generator = generator_of(object, bound);
  if (generator) *out = next_number(generator);
  return generator != nullptr;
}

bool draw_random_bits(PyObject* object, bool bound, int64_t bits, int64_t* out) {
  Generator* generator = bits > 0 && bits < 64 ? generator_of(object, bound) : nullptr;
  if (generator) *out = next_bits(generator, bits);
  return generator != nullptr;
}

}  // namespace dalsegno::hook
