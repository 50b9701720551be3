// dalsegno._core: the extension module. Everything Python reaches in C++ is bound here or in a bind_x.cc beside it.
#include <pybind11/pybind11.h>

PYBIND11_MODULE(_core, m) { m.doc() = "Dal Segno's record-replay machine; dalsegno/ is the interface to it."; }
