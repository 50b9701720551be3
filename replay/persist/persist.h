// Names for the interpreter's objects that mean the same in another process: keys of functions, fingerprints of objects, and the way
// back from a source path to the object. All need the GIL, run no code of the user's, leave the exception state as it was, and throw
// std::bad_alloc where memory runs out: nothing is then known of the object.
#pragma once
#include <Python.h>

#include <string>

#include "replay/py_ref.h"
#include "trace/trace.h"

namespace dalsegno::replay {

// A simple constant (exact None, bool, int, float, complex, str, bytes, Ellipsis, and tuples and frozensets of such) as text, by bits:
// 1, True and 1.0, or 0.0 and -0.0, differ. False if it is none.
//   None | True | False | Ellipsis | int:<hex> | float:<bits> | complex:<bits><bits> | str:<UTF-8, surrogates passed> | bytes:<hex>
//   | tuple:<items> | frozenset:<items, sorted>       item: <length>:<literal>
bool encode_literal(PyObject* object, std::string* text);
// New reference, or null if it is no literal. Nothing is evaluated.
PyObject* decode_literal(const std::string& text);

// 64 hex digits: SHA-256 over bytecode, constants (by bits, nested code recursively), names, flags, argument counts and exception table.
// Not: file name, line numbers, addresses. "" if a constant cannot be encoded.
std::string code_hash(PyCodeObject* code);

// The store's key of a jitted function (`any`: of all with its code): code, module and qualified name, versions of CPython, NumPy, Halide,
// this build and its formats.
// "" if there is none.
std::string function_key(PyObject* function, bool any = false);

// What must be the same about an object for a trace to mean it (ObjectRef::fingerprint). "" if that cannot be said: such an object
// cannot be kept.
//   function:<code hash and simple defaults>   code:<hash>   const:<literal>   module:<name>   globals:<module name>
//   type:<module.qualname>:<version, or for a class in Python the hash of its content>   c:<module.qualname>:<version>
std::string fingerprint(PyObject* object);

// "numpy.random.Generator": a type of a module that has been imported, or of a type in one; null: there is none.
PyRef type_named(std::string_view name);

// The object a source path leads to, if it has the reference's fingerprint. New reference, or null.
//   self | type:<module.qualname> | module:<name> | const:<literal>     then any of
//   .globals .builtins .code .defaults .const[i] .closure[i] [name] [i] .attr(name)
// Modules must have been imported already. `.closure[i]` is the cell's content; `[..]` an item of a dict by name or of a tuple by number.
// At the end of a path to a function, `.jitted` stands for what is called in its place: `callable`, in that of self, or its companion. At
// the end of a path to a code, for the companion of all functions with that code (and the globals of the function that it stands in).
PyObject* fetch(const ObjectRef& ref, PyObject* self_function, PyObject* callable = nullptr);
// The companion of a function, or of a code (jit.h), whose traces are kept.
extern PyObject* (*companion_kept)(PyObject* function_or_code, PyObject* globals);

}  // namespace dalsegno::replay
