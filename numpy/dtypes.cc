#include "numpy/dtypes.h"

namespace dalsegno::numpy {
namespace {

constexpr std::array kTypeNumbers = {
#define X(dtype, number, T, scalar) static_cast<int>(number),
    DALSEGNO_DTYPES(X)
#undef X
};
static_assert(kTypeNumbers.size() == static_cast<size_t>(DType::kCount));

bool plain_memory(PyArrayObject* array) { return PyArray_ISALIGNED(array) && PyArray_ISNBO(PyArray_DESCR(array)->byteorder); }

}  // namespace

int type_number(DType dtype) { return kTypeNumbers[static_cast<int>(dtype)]; }

PyArray_Descr* descriptor(DType dtype) {
  static PyArray_Descr* descriptors[kTypeNumbers.size()];
  PyArray_Descr*& found = descriptors[static_cast<int>(dtype)];
  if (!found) found = PyArray_DescrFromType(type_number(dtype));  // a static object of NumPy's
  return found;
}

bool is_another_plain(PyArray_Descr* descr, DType dtype) {
  return descr->type_num == type_number(dtype) && PyArray_ISNBO(descr->byteorder) && PyDataType_METADATA(descr) == nullptr;
}

PyTypeObject* scalar_type(DType dtype) { return descriptor(dtype)->typeobj; }

bool scalar_dtype(const PyTypeObject* type, DType* dtype) {
  for (size_t i = 0; is_known(static_cast<DType>(i)); ++i) {
    if (type != scalar_type(static_cast<DType>(i))) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

bool dtype_of_descr(PyObject* object, DType* dtype) {
  if (!PyArray_DescrCheck(object)) return false;
  for (size_t i = 0; i < kTypeNumbers.size(); ++i) {
    if (reinterpret_cast<PyArray_Descr*>(object)->type_num != kTypeNumbers[i]) continue;
    return *dtype = static_cast<DType>(i), reinterpret_cast<PyObject*>(descriptor(*dtype)) == object;
  }
  return false;
}

bool facts_of(PyObject* object, ArrayFacts* facts) {
  if (!is_exact_array(object)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  if (!plain_memory(array)) return false;
  for (size_t i = 0; i < kTypeNumbers.size(); ++i) {
    if (PyArray_TYPE(array) != kTypeNumbers[i]) continue;
    *facts = {static_cast<DType>(i), PyArray_NDIM(array)};
    return true;
  }
  return false;
}

bool has_facts(PyObject* object, const ArrayFacts& facts) {
  if (!is_exact_array(object)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_NDIM(array) == facts.rank && PyArray_TYPE(array) == type_number(facts.dtype) && plain_memory(array);
}

}  // namespace dalsegno::numpy
