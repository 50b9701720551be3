#include "numpy/loops.h"

#include <array>
#include <optional>

#include "numpy/dtypes.h"
#include "numpy/fours.h"

namespace dalsegno::numpy {

static InnerLoop loop_of(PyObject* module, const char* name, DType loop, DType result) {
  InnerLoop found;
  PyObject* function = PyObject_GetAttrString(module, name);
  if (!function) return PyErr_Clear(), found;
  if (PyObject_TypeCheck(function, &PyUFunc_Type)) {
    const auto* ufunc = reinterpret_cast<PyUFuncObject*>(function);
    const int width = ufunc->nargs;
    for (int i = 0; i < ufunc->ntypes && !found.function; ++i) {
      const char* types = ufunc->types + static_cast<Py_ssize_t>(i) * width;
      bool same = ufunc->nout == 1 && types[width - 1] == type_number(result);
      for (int k = 0; k + 1 < width; ++k) same = same && types[k] == type_number(loop);
      if (same) found = {ufunc->functions[i], ufunc->data ? const_cast<void*>(static_cast<const void*>(ufunc->data[i])) : nullptr};
    }
  }
  Py_DECREF(function);  // NumPy's module keeps it
  return found;
}

// (np.clip is no ufunc, but a function that calls one.)
InnerLoop inner_loop(ArrayFn fn, DType loop, DType result) {
  if (fn != ArrayFn::clip) {
    const InnerLoop numpys = loop_of(module(), array_fn_name(fn), loop, result);
    return result == loop ? by_fours(fn, loop, numpys) : numpys;
  }
  PyObject* umath = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy._core.umath");
  return umath ? loop_of(umath, "clip", loop, result) : InnerLoop{};
}
const InnerLoop& kept_loop(ArrayFn fn, DType dtype) {
  static std::array<std::array<std::optional<InnerLoop>, static_cast<size_t>(DType::kCount)>, static_cast<size_t>(ArrayFn::kCount)> loops;
  std::optional<InnerLoop>& loop = loops[static_cast<size_t>(fn)][static_cast<size_t>(dtype)];
  if (!loop) [[unlikely]]
    loop = inner_loop(fn, dtype, dtype);
  return *loop;
}

InnerLoop matmul_loop(DType dtype) { return loop_of(module(), "matmul", dtype, dtype); }

InnerLoop linalg_loop(const char* name, DType dtype) {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy.linalg._umath_linalg");
  return module ? loop_of(module, name, dtype, dtype) : InnerLoop{};
}

}  // namespace dalsegno::numpy
