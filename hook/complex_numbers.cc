// Nothing but both declarations, which have to agree.
#include "hook/complex_numbers.h"

#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_complexobject.h>
#endif
