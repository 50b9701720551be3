// What need not exist as an object. No Python.h here.
#pragma once
#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

// Finds (Mode::kVirtual)
// - index tuples that nothing but subscripts take: a[i, j], t = (i, j); a[t]
// - rows of arrays of which nothing but elements are read and written: a[i][j], row = a[i]; row[j] = v. An element of a row is one of the
//   array then (element_of). Between a row's birth and the last of them nothing runs that could change the row, and the array lives.
// - tuples of numbers that nothing takes at all, since what is taken out of them was there before, and that die before anything is done
//   that could see them: what a function returns and its caller takes apart, the right side of a, b, c, d = b, c, d, a;
//   lists of numbers likewise: max([a, b, c]) is max(a, b, c)
// - methods bound to objects that nothing takes, likewise: where it is known which they are calls are of the method itself.
// - generator expressions that a builtin uses up at once, with their functions (Mode::kDelayed)
// Ranges that are iterated over at once are found with the forms (infer.cc), as their arguments' uses depend on it.
// All other forms are there already.
void find_virtual(TypedTrace& typed);

// May op i be done while something is not built, as far as its form tells? It shows no frames.
bool leaves_unbuilt(const TypedTrace& typed, ValueId i);

}  // namespace dalsegno::typed
