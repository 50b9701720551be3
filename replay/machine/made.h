// What makes arrays at once in a step of its own: the rows of steps_made.cc. Each gives a new object, or null where anything is not as
// expected: nothing has happened yet then, and no exception is set.
#pragma once
#include "replay/machine/step.h"

namespace dalsegno::replay {

using Make = PyObject* (*)(const Step& s, const Reg* r);

// -- steps_positions.cc: where a mask of one or two axes is true
PyObject* positions(const Step& s, const Reg* r);         // a.nonzero(), np.where(a)
PyObject* flat_positions(const Step& s, const Reg* r);    // np.flatnonzero(a)
PyObject* position_per_row(const Step& s, const Reg* r);  // np.argwhere(a)
// -- steps_histogram.cc. Takes its arguments by name, too.
PyObject* histogram(const Step& s, const Reg* r);
bool knows_histogram();  // calls NumPy once; until then the other is not to be called
// -- steps_linalg.cc
PyObject* crossed(const Step& s, const Reg* r);      // np.cross(a, b)
PyObject* inverse(const Step& s, const Reg* r);      // np.linalg.inv(a)
PyObject* solved(const Step& s, const Reg* r);       // np.linalg.solve(a, b)
PyObject* determinant(const Step& s, const Reg* r);  // np.linalg.det(a): a number
// -- steps_order.cc: numbers, of lists and tuples of floats ..
PyObject* mean_of_items(const Step& s, const Reg* r);  // np.mean(a)
PyObject* sum_of_items(const Step& s, const Reg* r);
PyObject* largest_item(const Step& s, const Reg* r);
PyObject* least_item(const Step& s, const Reg* r);
// .. and of arrays
PyObject* median(const Step& s, const Reg* r);         // np.median(a)
PyObject* peak_to_peak(const Step& s, const Reg* r);   // np.ptp(a)
PyObject* product_of(const Step& s, const Reg* r);     // np.prod(a)
PyObject* trace_of(const Step& s, const Reg* r);       // np.trace(a)
PyObject* equal_vectors(const Step& s, const Reg* r);  // np.array_equal(a, b): True or False
PyObject* sorted_copy(const Step& s, const Reg* r);    // np.sort(a): a vector
// -- steps_search.cc
PyObject* searched(const Step& s, const Reg* r);      // a.searchsorted(v)
PyObject* digitized(const Step& s, const Reg* r);     // np.digitize(x, bins)
PyObject* interpolated(const Step& s, const Reg* r);  // np.interp(x, xp, fp)

}  // namespace dalsegno::replay
