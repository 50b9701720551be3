// What the recorder knows of the interpreter's and NumPy's objects: which types are plain, which callees are quiet. Tables.
#pragma once
#include <Python.h>

#include <string>
#include <string_view>
#include <unordered_set>

#include "trace/trace.h"

namespace dalsegno::recorder {

// Types whose behaviour cannot be changed by the user: guarded by guard_type.
bool is_plain_type(PyTypeObject* type);
bool is_deque_type(PyTypeObject* type);         // collections.deque, which is one of them
bool is_array_module_type(PyTypeObject* type);  // array.array, which is, too
// int, float, bool, complex, str, bytes, None: operators between them run no code of the user's.
bool is_simple_type(PyTypeObject* type);
bool is_whole(PyObject* o);  // an int, or one of NumPy's: its __index__ runs no code of the user's

// How calling an object behaves, given that its arguments are of plain types.
enum class CalleeKind : uint8_t {
  unknown,      // may run anything
  quiet,        // builtin that runs no code of the user's on plain arguments
  quiet_write,  // a method that changes its list, given the list and, at `index`, an exact int; or its dict or set where that look-up is
                // quiet
  unbounded_write,  // the same of a deque, where that has no greatest length: nothing is dropped
  numpy_quiet,      // NumPy: changes nothing, and does not warn where it is given arrays of numbers, whole numbers and dtypes
  numpy_pure,       // NumPy: may warn, changes nothing
  numpy_write,      // NumPy: may warn, changes data
  frame_reader,     // locals, exec, super ...: needs to see the frames
  refcount,         // looks at reference counts
};
// A function is recorded through but where it is first given this, which a step of its own does at once.
enum class Through : uint8_t { kAlways, kNotOfDouble, kNotOfVector };
struct CalleeFacts {
  CalleeKind kind = CalleeKind::unknown;
  PyTypeObject* result = nullptr;       // exact type of the result, where certain
  ArrayFn fn = ArrayFn::none;           // the array function it is
  int index = 0;                        // quiet_write: the argument that is used as an index, if it is there
  bool reverses = false;                // of a vector: gives it as a view from its end to its beginning
  PyFunctionObject* through = nullptr;  // what its dispatcher runs, or it itself, where that is recorded through (held)
  Through but = Through::kAlways;
  size_t through_with = 0;     // arguments, or more: with fewer it is not recorded through
  PyObject* method = nullptr;  // that of its one array it calls, and does nothing else (borrowed)
  bool axis_behind = false;    // its second parameter is the axis
  bool rounds = false;         // a method: a.round(), which is three operations on arrays
  bool same_array = false;     // of an array, gives that array
  bool any_self = false;       // a method that asks nothing of its object but that it is one of its own type, or of a class below it
};
CalleeFacts callee_facts(PyObject* callee);
// Of a method descriptor, or what a method written in C was made of that is bound to an object (borrowed); null: it is neither.
PyObject* descriptor_of(PyObject* callee);
// Does calling it ask for no more than its arguments, of which it knows what they are? Then it may be called unbound.
bool is_known_method(PyObject* descriptor);
// What a class has under a name: does asking the class for it give it as it stands, or bound by C code alone?
bool is_given_in_c(PyObject* found);
std::string_view builtin_name(PyObject* callee);  // of a builtin function; "" for anything else
bool is_extreme(PyObject* callee);                // named min or max
// Is it C code of the interpreter's that looks at no frames itself, so that whoever may look at them begins as Python code? first: its
// first argument, or null.
bool looks_at_no_frames(PyObject* callee, PyObject* first = nullptr);
bool is_builtin_in_c(PyObject* callee);  // a builtin among these
// The same of what instances do by themselves: their operators, subscripts, attributes and iteration.
bool is_type_in_c(PyTypeObject* type);
// Types written in C whose instances hold nothing else and run no other code when they are computed with, compared or dropped.
bool is_value_type_in_c(PyTypeObject* type);
bool is_no_value(PyObject* object);  // np._NoValue: a parameter that is not given
// functools.partial itself, no subclass; what it calls (borrowed).
bool is_partial(PyObject* object);
PyObject* partial_function(PyObject* partial);
// The Python function that calls of the type's instances run, or null (borrowed).
PyObject* class_call(PyTypeObject* type);
// Its Python function __init__, where calling the class does no more than make an instance and call that; or null. Borrowed.
PyObject* class_init(PyTypeObject* type);
// Does what the callee does depend on reference counts (ndarray.resize, bound or not)? Replay and a tracing interpreter hold others.
bool counts_references(PyObject* callee);        // may be null
bool is_pure_array_attribute(const char* name);  // shape, T, dtype ...: reading it does nothing else

std::unordered_set<std::string> words(const char* text);
// What the type is called in its module, as it says itself; null: it says another one.
const char* name_in(const PyTypeObject* type, const char* module);
// Is the type what its module, where that is imported, has under this name?
bool is_found_as(PyTypeObject* type, const char* module_name, const char* name);

bool init_facts();                   // the tables; false with an exception set
void init_in_c(PyObject* builtins);  // those of looks_at_no_frames()

}  // namespace dalsegno::recorder
