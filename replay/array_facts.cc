// What guards check of arrays. The only file of the machine that includes NumPy's headers.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL dalsegno_machine_array_api
#include <numpy/arrayobject.h>

#include "replay/program.h"

namespace dalsegno::replay {
namespace {

constexpr int kTypeNumbers[] = {NPY_BOOL, NPY_INT32, NPY_INT64, NPY_FLOAT32, NPY_FLOAT64};
static_assert(std::size(kTypeNumbers) == static_cast<size_t>(DType::kCount));

}  // namespace

bool init_array_facts() { return PyArray_API != nullptr || _import_array() >= 0; }

bool array_has_facts(PyObject* object, const ArrayFacts& facts) {
  if (Py_TYPE(object) != &PyArray_Type) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  PyArray_Descr* descr = PyArray_DESCR(array);
  return PyArray_NDIM(array) == facts.rank && descr->type_num == kTypeNumbers[static_cast<int>(facts.dtype)] && PyArray_ISALIGNED(array) &&
         PyArray_ISNBO(descr->byteorder);
}

bool numpy_scalar_dtype(PyObject* type, DType* dtype) {
  PyTypeObject* types[] = {&PyBoolArrType_Type, &PyInt32ArrType_Type, &PyInt64ArrType_Type, &PyFloat32ArrType_Type, &PyFloat64ArrType_Type};
  for (size_t i = 0; i < std::size(types); ++i) {
    if (type != reinterpret_cast<PyObject*>(types[i])) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace dalsegno::replay
