// NumPy's own inner loops, by pointer: functions whose bits only NumPy has.
#pragma once
#include "halide_gen/runtime/launch.h"
#include "numpy/api.h"
#include "trace/array_fn.h"

namespace dalsegno::numpy {

struct InnerLoop {
  rt::LoopFunction function = nullptr;  // null: NumPy has no such loop
  void* data = nullptr;
};
// The loop of ufunc `fn` whose operands are all `loop` and whose one result is `result`. Sets no exception.
InnerLoop inner_loop(ArrayFn fn, DType loop, DType result);
// The same of one dtype. Each is asked for as it is needed first, and kept: ours are compared with NumPy's then, which takes a tenth of a
// millisecond. With the GIL.
const InnerLoop& kept_loop(ArrayFn fn, DType dtype);
// matmul's, a generalised one: extents (outer, m, n, p), strides of the three operands, then of their core axes.
InnerLoop matmul_loop(DType dtype);
// One of np.linalg's, by its name in C: generalised ones, too.
InnerLoop linalg_loop(const char* name, DType dtype);

}  // namespace dalsegno::numpy
