#include "replay/machine/rep_types.h"

#include "numpy/dtypes.h"

namespace dalsegno::replay {

using typed::Rep;

namespace {
// NumPy's stand in the table of dtypes (numpy/dtypes.h).
constexpr struct {
  Rep rep;
  PyTypeObject* type;
} kPython[] = {{Rep::kInt, &PyLong_Type},        {Rep::kFloat, &PyFloat_Type},  {Rep::kBool, &PyBool_Type},
               {Rep::kComplex, &PyComplex_Type}, {Rep::kNatural, &PyLong_Type}, {Rep::kWrapped, &PyLong_Type}};
}  // namespace

PyTypeObject* type_of(Rep rep) {
  if (typed::is_numpy_scalar(rep)) return numpy::scalar_type(typed::dtype_of_rep(rep));
  for (const auto& row : kPython)
    if (row.rep == rep) return row.type;
  return nullptr;
}

Rep rep_of(const PyTypeObject* type) {
  for (const auto& row : kPython)
    if (row.type == type) return row.rep;
  DType dtype;
  if (numpy::complex_dtype(type, &dtype)) return typed::rep_of_dtype(dtype);
  return numpy::scalar_dtype(type, &dtype) ? typed::rep_of_dtype(dtype) : Rep::kNone;
}

}  // namespace dalsegno::replay
