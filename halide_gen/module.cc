// The extension module dalsegno._halide: the kernel compiler. Importing it loads libHalide.
#include <pybind11/pybind11.h>

#include "halide_gen/codegen.h"
#include "halide_gen/compiler_api.h"
#include "halide_gen/plan/llvm_text.h"

namespace py = pybind11;
using namespace dalsegno::halide_gen;

PYBIND11_MODULE(_halide, m) {
  static const CompilerApi api{compile, target_text};
  m.doc() = "The kernel compiler (libHalide).";
  m.attr("compiler") = py::capsule(&api, kCompilerCapsule);
  m.def("target", target_text, "What kernels are compiled for, and by which Halide.");
  m.def(
      "compile",
      [](const std::string& text) {
        std::string object, error;
        bool ok = false;
        {
          py::gil_scoped_release release;
          ok = compile(text, &object, &error);
        }
        if (!ok) throw py::value_error(error);
        return py::bytes(object);
      },
      py::arg("text"), "The object code of a kernel, given as its text.");
  m.def(
      "llvm",
      [](const std::string& text) {
        std::string ir, error;
        if (!to_llvm(text, &ir, &error)) throw py::value_error(error);
        return ir;
      },
      py::arg("text"), "The LLVM IR of a kernel, given as its text.");
}
