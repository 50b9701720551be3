# Finds Python and what is taken from its environment: NumPy's headers, pybind11, and Halide's CMake package. The interpreter itself is
# asked where they are, so that a virtual environment, pip's isolated build environment and a system install all work the same way.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)

function(_dalsegno_ask variable code)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "${code}"
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE failed ERROR_VARIABLE message)
  if(failed)
    message(FATAL_ERROR "${Python_EXECUTABLE} lacks a package that the build needs (pip install numpy pybind11 halide):\n${message}")
  endif()
  set(${variable} "${answer}" PARENT_SCOPE)
endfunction()

_dalsegno_ask(numpy_include "import numpy; print(numpy.get_include())")
set(numpy_random "${numpy_include}/../../random/lib/libnpyrandom.a")  # NumPy's distributions, for C code
_dalsegno_ask(debug_build "import sysconfig; print(int(bool(sysconfig.get_config_var('Py_DEBUG'))))")
_dalsegno_ask(pybind11_cmake "import pybind11; print(pybind11.get_cmake_dir())")
# Not imported: only its place is asked for.
_dalsegno_ask(halide_root "import importlib.util as u; print(list(u.find_spec('halide').submodule_search_locations)[0])")

find_package(pybind11 3 CONFIG REQUIRED PATHS "${pybind11_cmake}" NO_DEFAULT_PATH)
set(HalideHelpers_DIR "${halide_root}/lib64/cmake/HalideHelpers")
set(Halide_DIR "${halide_root}/lib64/cmake/Halide")
find_package(Halide 21 CONFIG REQUIRED COMPONENTS Halide shared)

# What code that includes Python.h and NumPy's headers links to.
add_library(dalsegno_python INTERFACE)
target_link_libraries(dalsegno_python INTERFACE Python::Module)
target_include_directories(dalsegno_python SYSTEM INTERFACE "${numpy_include}")
target_compile_definitions(dalsegno_python INTERFACE NPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION NPY_TARGET_VERSION=NPY_2_0_API_VERSION)
if(debug_build AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Debian's headers of a debug build are links to the release's, beside which GCC, which prefers a system header's true path, would find
  # the release's pyconfig.h.
  target_compile_options(dalsegno_python INTERFACE -fno-canonical-system-headers)
endif()
