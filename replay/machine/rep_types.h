// The one table representation <-> Python type.
#pragma once
#include <Python.h>

#include "replay/typed/rep.h"

namespace dalsegno::replay {

// The exact type of the objects that values of this representation are boxed as; null for kNone. Borrowed.
PyTypeObject* type_of(typed::Rep rep);
// kNone: of no other type are values unboxed.
typed::Rep rep_of(const PyTypeObject* type);

}  // namespace dalsegno::replay
