#include "trace/recorder/facts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "numpy/dtypes.h"
#include "numpy/random.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {
namespace {

std::unordered_set<PyTypeObject*> g_plain, g_simple;
PyTypeObject* g_partial = nullptr;
PyObject *g_func_name = nullptr, *g_call_name = nullptr, *g_init_name = nullptr;  // "func", "__call__", "__init__"
std::unordered_map<PyObject*, CalleeFacts> g_callees;  // keys are immortal in practice: builtins and NumPy's own functions, held

PyTypeObject* type_of_new(PyObject* object) {  // steals
  PyTypeObject* type = object ? Py_TYPE(object) : nullptr;
  Py_XDECREF(object);
  return type;
}

PyTypeObject* iterator_type(PyObject* iterable) {  // steals
  PyTypeObject* type = iterable ? type_of_new(PyObject_GetIter(iterable)) : nullptr;
  Py_XDECREF(iterable);
  return type;
}

void fill_types() {
  g_simple = {&PyLong_Type, &PyFloat_Type, &PyBool_Type, &PyComplex_Type, &PyUnicode_Type, &PyBytes_Type, Py_TYPE(Py_None)};
  g_plain = g_simple;
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i) g_plain.insert(numpy::scalar_type(static_cast<DType>(i)));
  for (PyTypeObject* t :
       {&PyCDoubleArrType_Type, &PyCFloatArrType_Type, &PyHalfArrType_Type, &PyLongDoubleArrType_Type, &PyCLongDoubleArrType_Type})
    g_plain.insert(t);
  for (PyTypeObject* t : {&PyTuple_Type, &PyList_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type, &PySlice_Type, &PyRange_Type,
                          &PyArray_Type, &PyUFunc_Type, &PyMethod_Type, &PyByteArray_Type, Py_TYPE(Py_Ellipsis), &PyCell_Type})
    g_plain.insert(t);
  g_plain.insert(iterator_type(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "i", 1)));
  g_plain.insert(iterator_type(PyList_New(0)));
  g_plain.insert(iterator_type(PyTuple_New(0)));
}

struct Row {
  const char* name;
  CalleeKind kind;
  PyTypeObject* result;
  int index = 0;
};

void add_rows(PyObject* holder, std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    PyObject* callee = PyObject_GetAttrString(holder, row.name);
    if (!callee) {
      PyErr_Clear();
      continue;
    }
    g_callees[callee] = {row.kind, row.result, ArrayFn::none, row.index};  // keeps the reference for good
  }
}

void fill_builtins(PyObject* builtins) {
  using enum CalleeKind;
  add_rows(builtins, {{"len", quiet, &PyLong_Type},       {"range", quiet, &PyRange_Type},     {"int", quiet, &PyLong_Type},
                      {"float", quiet, &PyFloat_Type},    {"bool", quiet, &PyBool_Type},       {"ord", quiet, &PyLong_Type},
                      {"chr", quiet, &PyUnicode_Type},    {"divmod", quiet, &PyTuple_Type},    {"list", quiet, &PyList_Type},
                      {"tuple", quiet, &PyTuple_Type},    {"set", quiet, &PySet_Type},         {"dict", quiet, &PyDict_Type},
                      {"sorted", quiet, &PyList_Type},    {"isinstance", quiet, &PyBool_Type}, {"callable", quiet, &PyBool_Type},
                      {"hash", quiet, &PyLong_Type},      {"str", quiet, &PyUnicode_Type},     {"repr", quiet, &PyUnicode_Type},
                      {"bin", quiet, &PyUnicode_Type},    {"hex", quiet, &PyUnicode_Type},     {"oct", quiet, &PyUnicode_Type},
                      {"complex", quiet, &PyComplex_Type}});
  for (const char* name : {"enumerate", "zip", "reversed", "abs", "min", "max", "sum", "type", "round", "pow"})
    add_rows(builtins, {{name, quiet, nullptr}});
  for (const char* name : {"locals", "vars", "dir", "globals", "eval", "exec", "super", "breakpoint"})
    add_rows(builtins, {{name, frame_reader, nullptr}});
  for (PyTypeObject* number : {&PyLong_Type, &PyFloat_Type, &PyComplex_Type})
    add_rows(reinterpret_cast<PyObject*>(number), {{"conjugate", quiet, nullptr},
                                                   {"bit_length", quiet, &PyLong_Type},
                                                   {"bit_count", quiet, &PyLong_Type},
                                                   {"is_integer", quiet, &PyBool_Type},
                                                   {"as_integer_ratio", quiet, &PyTuple_Type}});
  add_rows(reinterpret_cast<PyObject*>(&PyList_Type), {{"append", quiet_write, nullptr},
                                                       {"pop", quiet_write, nullptr, 1},
                                                       {"extend", unknown, nullptr},
                                                       {"reverse", quiet_write, nullptr},
                                                       {"clear", unknown, nullptr},
                                                       {"insert", quiet_write, nullptr, 1},
                                                       {"copy", quiet, &PyList_Type}});
  add_rows(reinterpret_cast<PyObject*>(&PySet_Type),
           {{"add", quiet_write, nullptr}, {"discard", quiet_write, nullptr}, {"remove", quiet_write, nullptr}});
  add_rows(reinterpret_cast<PyObject*>(&PyDict_Type), {{"get", quiet, nullptr},
                                                       {"setdefault", quiet_write, nullptr},
                                                       {"pop", quiet_write, nullptr},
                                                       {"keys", quiet, nullptr},
                                                       {"values", quiet, nullptr},
                                                       {"items", quiet, nullptr},
                                                       {"copy", quiet, &PyDict_Type}});
  add_rows(reinterpret_cast<PyObject*>(&PyUnicode_Type),
           {{"upper", quiet, &PyUnicode_Type},    {"lower", quiet, &PyUnicode_Type},        {"strip", quiet, &PyUnicode_Type},
            {"split", quiet, &PyList_Type},       {"startswith", quiet, &PyBool_Type},      {"endswith", quiet, &PyBool_Type},
            {"replace", quiet, &PyUnicode_Type},  {"format", quiet, &PyUnicode_Type},       {"find", quiet, &PyLong_Type},
            {"rfind", quiet, &PyLong_Type},       {"count", quiet, &PyLong_Type},           {"index", quiet, &PyLong_Type},
            {"lstrip", quiet, &PyUnicode_Type},   {"rstrip", quiet, &PyUnicode_Type},       {"rsplit", quiet, &PyList_Type},
            {"splitlines", quiet, &PyList_Type},  {"partition", quiet, &PyTuple_Type},      {"rpartition", quiet, &PyTuple_Type},
            {"center", quiet, &PyUnicode_Type},   {"ljust", quiet, &PyUnicode_Type},        {"rjust", quiet, &PyUnicode_Type},
            {"title", quiet, &PyUnicode_Type},    {"capitalize", quiet, &PyUnicode_Type},   {"swapcase", quiet, &PyUnicode_Type},
            {"casefold", quiet, &PyUnicode_Type}, {"removeprefix", quiet, &PyUnicode_Type}, {"removesuffix", quiet, &PyUnicode_Type},
            {"isalpha", quiet, &PyBool_Type},     {"isalnum", quiet, &PyBool_Type},         {"isdecimal", quiet, &PyBool_Type},
            {"isnumeric", quiet, &PyBool_Type},   {"isspace", quiet, &PyBool_Type},         {"isupper", quiet, &PyBool_Type},
            {"islower", quiet, &PyBool_Type},     {"join", quiet, &PyUnicode_Type},         {"isdigit", quiet, &PyBool_Type},
            {"zfill", quiet, &PyUnicode_Type}});
}

void fill_math(PyObject* math) {
  using enum CalleeKind;
  for (const char* name :
       {"acos",  "acosh", "asin", "asinh", "atan",    "atan2",     "atanh", "cbrt",  "copysign", "cos",   "cosh",   "degrees",
        "erf",   "erfc",  "exp",  "exp2",  "expm1",   "fabs",      "fmod",  "gamma", "hypot",    "ldexp", "lgamma", "log",
        "log10", "log1p", "log2", "pow",   "radians", "remainder", "sin",   "sinh",  "sqrt",     "tan",   "tanh"})
    add_rows(math, {{name, quiet, &PyFloat_Type}});
  for (const char* name : {"floor", "ceil", "trunc", "comb", "factorial", "isqrt", "perm"}) add_rows(math, {{name, quiet, &PyLong_Type}});
  for (const char* name : {"isclose", "isfinite", "isinf", "isnan"}) add_rows(math, {{name, quiet, &PyBool_Type}});
  for (const char* name : {"frexp", "modf"}) add_rows(math, {{name, quiet, &PyTuple_Type}});
  for (const char* name : {"gcd", "lcm"}) add_rows(math, {{name, quiet, &PyLong_Type}});
}

void fill_numpy_methods() {
  using enum CalleeKind;
  auto* array = reinterpret_cast<PyObject*>(&PyArray_Type);
  for (const char* name : {"all", "any", "astype", "clip", "conj", "cumprod", "cumsum", "dot", "max", "mean", "min", "prod", "round",
                           "searchsorted", "std", "sum", "tolist", "trace", "var"})
    add_rows(array, {{name, numpy_pure, nullptr}});
  if (PyObject* clip = PyDict_GetItemString(PyArray_Type.tp_dict, "clip")) g_callees[clip].fn = ArrayFn::clip;
  if (PyObject* round = PyDict_GetItemString(PyArray_Type.tp_dict, "round")) g_callees[round].rounds = true;
  // C throughout: they copy elements, move or compare them.
  for (const char* name : {"argmax", "argmin", "argsort", "copy", "diagonal", "flatten", "item", "nonzero", "ravel", "repeat", "reshape",
                           "squeeze", "swapaxes", "take", "tobytes", "transpose"})
    add_rows(array, {{name, numpy_quiet, nullptr}});
  for (const char* name : {"fill", "sort", "partition", "put"}) add_rows(array, {{name, numpy_write, nullptr}});
  add_rows(reinterpret_cast<PyObject*>(&PyUFunc_Type), {{"reduce", numpy_pure, nullptr}});
  add_rows(array, {{"resize", refcount, nullptr}});
}

// NumPy's functions that run nothing but NumPy's own code on arrays, scalars, dtypes, strings and tuples of such. (What prints is not among
// them: print options may hold functions of the user's.)
constexpr const char* kNumpyReaders =
    "all allclose amax amin angle any append arange argmax argmin argpartition argsort argwhere around array array_equal array_equiv "
    "array_split asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d average bartlett "
    "bincount blackman broadcast_arrays broadcast_shapes broadcast_to can_cast choose clip column_stack compress concatenate convolve copy "
    "corrcoef correlate count_nonzero cov cross cumprod cumsum delete diag diag_indices diag_indices_from diagflat diagonal diff digitize "
    "dot dsplit dstack ediff1d einsum empty empty_like expand_dims extract eye fix flatnonzero flip fliplr flipud frombuffer full "
    "full_like "
    "geomspace gradient hamming hanning histogram histogram2d histogram_bin_edges hsplit hstack i0 identity imag in1d indices inner insert "
    "interp intersect1d isclose iscomplex iscomplexobj isin isneginf isposinf isreal isrealobj isscalar ix_ kaiser kron lexsort linspace "
    "logspace max may_share_memory mean median meshgrid min min_scalar_type moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum "
    "nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndim nonzero ones ones_like outer packbits pad "
    "partition percentile polyval prod product promote_types ptp quantile ravel ravel_multi_index real real_if_close repeat reshape "
    "result_type roll rollaxis rot90 round row_stack searchsorted setdiff1d setxor1d shape shares_memory sinc size sometrue sort split "
    "squeeze stack std sum swapaxes take take_along_axis tensordot tile trace transpose trapezoid trapz tri tril tril_indices "
    "tril_indices_from "
    "trim_zeros triu triu_indices triu_indices_from union1d unique unpackbits unravel_index unwrap vander var vdot vsplit vstack where "
    "zeros "
    "zeros_like";
// Of those, written in Python, the ones that are recorded through.
constexpr const char* kNumpyThrough = "around average cross diff ediff1d fix gradient isclose outer polyval round trapezoid tri tril triu";
// Those that are C throughout, with no dispatcher, and neither convert elements nor compute with them.
constexpr const char* kNumpyQuiet = "empty zeros";
constexpr const char* kNumpyWriters = "copyto fill_diagonal place put put_along_axis putmask";

// Functions that do no more, given an array with axes alone, than to call its method of the same name, which does not raise. (NumPy:
// fromnumeric.py)
constexpr const char* kByMethod = "argsort nonzero ravel squeeze transpose";

ArrayFn fn_of_ufunc(PyObject* ufunc) {
  PyObject* own = PyObject_GetAttrString(ufunc, "__name__");
  const char* name = own ? PyUnicode_AsUTF8(own) : nullptr;
  const ArrayFn fn = name ? array_fn_by_name(name) : ArrayFn::none;
  Py_XDECREF(own);
  PyErr_Clear();
  return fn;
}

// The Python function that a function of NumPy's is, or that its dispatcher runs; null: none. New reference.
PyFunctionObject* implementation_of(PyObject* function) {
  PyObject* found = PyFunction_Check(function) ? Py_NewRef(function) : PyObject_GetAttrString(function, "_implementation");
  if (!found) PyErr_Clear();
  if (found && !PyFunction_Check(found)) Py_CLEAR(found);
  return reinterpret_cast<PyFunctionObject*>(found);
}

// norm() along axes; of all elements it is a reduction (typed/calls.h).
void fill_linalg(PyObject* linalg) {
  PyObject* norm = PyObject_GetAttrString(linalg, "norm");
  if (!norm) return PyErr_Clear();
  CalleeFacts facts{CalleeKind::numpy_pure};
  facts.through = implementation_of(norm);
  facts.through_with = 2;
  g_callees.try_emplace(norm, facts);
}

void fill_numpy_functions(PyObject* numpy) {
  using enum CalleeKind;
  const auto own_functions = words("where clip roll");  // that array functions are called by, though they are no ufuncs
  const auto axis_behind = words("concatenate stack");
  const auto through = words(kNumpyThrough), by_method = words(kByMethod);
  const auto readers = words(kNumpyReaders), quiet_ones = words(kNumpyQuiet), writers = words(kNumpyWriters);
  PyObject *name, *value;
  Py_ssize_t pos = 0;
  while (PyDict_Next(PyModule_GetDict(numpy), &pos, &name, &value)) {
    if (!utf8_of(name)) continue;
    const std::string text = utf8_of(name);
    const bool ufunc = PyObject_TypeCheck(value, &PyUFunc_Type);
    const bool function =
        !std::strcmp(Py_TYPE(value)->tp_name, "numpy._ArrayFunctionDispatcher") || PyCFunction_Check(value) || PyFunction_Check(value);
    if (!ufunc && !(function && (readers.contains(text) || writers.contains(text)))) continue;
    const bool is_quiet = quiet_ones.contains(text) && PyCFunction_Check(value);
    CalleeFacts facts{writers.contains(text) ? numpy_write : is_quiet ? numpy_quiet : numpy_pure};
    facts.fn = ufunc ? fn_of_ufunc(value) : own_functions.contains(text) ? array_fn_by_name(text.c_str()) : ArrayFn::none;
    facts.reverses = text == "flip" || text == "flipud";
    facts.axis_behind = axis_behind.contains(text);
    facts.same_array = PyCFunction_Check(value) && (text == "asarray" || text == "asanyarray");
    if (function && by_method.contains(text)) facts.method = PyDict_GetItem(PyArray_Type.tp_dict, name);
    if (function && through.contains(text)) facts.through = implementation_of(value);
    if (text == "round" || text == "around") facts.but = Through::kNotOfDouble;
    if (text == "cross") facts.but = Through::kNotOfVector;
    g_callees.try_emplace(Py_NewRef(value), facts);
  }
}

// Methods of types of the standard library written in C that run no code of the user's; found when they are first come across.
struct Method {
  const char *module, *type, *name;
  CalleeKind kind;
  PyTypeObject* result;
};
constexpr Method kMethods[] = {
    {"_random", "Random", "random", CalleeKind::quiet, &PyFloat_Type},
    {"_random", "Random", "getrandbits", CalleeKind::quiet, &PyLong_Type},
    {"collections", "deque", "pop", CalleeKind::quiet_write, nullptr},
    {"collections", "deque", "popleft", CalleeKind::quiet_write, nullptr},
    {"collections", "deque", "append", CalleeKind::unbounded_write, nullptr},
    {"collections", "deque", "appendleft", CalleeKind::unbounded_write, nullptr},
};

CalleeFacts facts_of_method(PyObject* callee) {
  if (numpy::is_random_method(callee)) return {CalleeKind::quiet};
  PyObject* descriptor = descriptor_of(callee);
  if (!descriptor) return {};
  const char* name = reinterpret_cast<PyMethodDescrObject*>(descriptor)->d_method->ml_name;
  for (const Method& row : kMethods) {
    if (std::strcmp(row.name, name) != 0 || !is_found_as(PyDescr_TYPE(descriptor), row.module, row.type)) continue;
    CalleeFacts facts{row.kind, row.result};
    facts.any_self = true;
    return facts;
  }
  return {};
}

void fill_cmath(PyObject* cmath) {
  using enum CalleeKind;
  for (const char* name : {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10", "rect", "sin", "sinh",
                           "sqrt", "tan", "tanh"})
    add_rows(cmath, {{name, quiet, &PyComplex_Type}});
  for (const char* name : {"isclose", "isfinite", "isinf", "isnan"}) add_rows(cmath, {{name, quiet, &PyBool_Type}});
  add_rows(cmath, {{"phase", quiet, &PyFloat_Type}, {"polar", quiet, &PyTuple_Type}});
}

// (Its other functions may run methods of their operands.)
void fill_operator(PyObject* operators) { add_rows(operators, {{"index", CalleeKind::quiet, &PyLong_Type}}); }

// What reads clocks.
void fill_time(PyObject* time) {
  using enum CalleeKind;
  for (const char* name : {"monotonic", "perf_counter", "process_time", "thread_time", "time"})
    add_rows(time, {{name, quiet, &PyFloat_Type}, {(std::string(name) + "_ns").c_str(), quiet, &PyLong_Type}});
}

void fill_special(PyObject* sys) {
  add_rows(sys, {{"getrefcount", CalleeKind::refcount, nullptr}, {"_getframe", CalleeKind::frame_reader, nullptr}});
}

}  // namespace

bool is_plain_type(PyTypeObject* type) {
  if (g_plain.contains(type)) return true;
  if (!is_deque_type(type) && !is_array_module_type(type) && !numpy::is_random_type(type)) return false;
  g_plain.insert(type);
  return true;
}
// *known: the type, once it has been seen; held.
static bool is_type_of(PyTypeObject* type, PyTypeObject** known, const char* module, const char* name) {
  if (type == *known) return true;
  const char* own = name_in(type, module);
  if (!own || std::strcmp(own, name) != 0 || !is_found_as(type, module, name)) return false;
  *known = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  return true;
}
bool is_deque_type(PyTypeObject* type) {
  static PyTypeObject* known = nullptr;
  return is_type_of(type, &known, "collections", "deque");
}
bool is_array_module_type(PyTypeObject* type) {
  static PyTypeObject* known = nullptr;
  return is_type_of(type, &known, "array", "array");
}
bool is_simple_type(PyTypeObject* type) { return g_simple.contains(type); }

bool is_whole(PyObject* o) {
  DType dtype;
  if (PyLong_Check(o)) return true;
  return numpy::scalar_dtype(Py_TYPE(o), &dtype) && dtype != DType::kBool && dtype != DType::kFloat32 && dtype != DType::kFloat64;
}

PyObject* descriptor_of(PyObject* callee) {
  if (Py_IS_TYPE(callee, &PyMethodDescr_Type)) return callee;
  if (!PyCFunction_CheckExact(callee) || !PyCFunction_GET_SELF(callee) || PyModule_Check(PyCFunction_GET_SELF(callee))) return nullptr;
  const PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(callee)->m_ml;
  PyObject* name = PyUnicode_InternFromString(definition->ml_name);
  PyObject* found = name ? _PyType_Lookup(Py_TYPE(PyCFunction_GET_SELF(callee)), name) : nullptr;
  Py_XDECREF(name);
  const bool same =
      found && Py_IS_TYPE(found, &PyMethodDescr_Type) && reinterpret_cast<PyMethodDescrObject*>(found)->d_method == definition;
  return same ? found : nullptr;
}

CalleeFacts callee_facts(PyObject* callee) {
  auto found = g_callees.find(callee);
  return found != g_callees.end() ? found->second : callee ? facts_of_method(callee) : CalleeFacts{};
}

bool is_known_method(PyObject* descriptor) {
  const CalleeKind kind = callee_facts(descriptor).kind;
  return kind == CalleeKind::quiet || kind == CalleeKind::quiet_write || kind == CalleeKind::unbounded_write ||
         kind == CalleeKind::numpy_quiet || kind == CalleeKind::numpy_pure || kind == CalleeKind::numpy_write;
}

std::string_view builtin_name(PyObject* callee) {
  return PyCFunction_Check(callee) ? reinterpret_cast<PyCFunctionObject*>(callee)->m_ml->ml_name : "";
}

bool is_extreme(PyObject* callee) { return builtin_name(callee) == "min" || builtin_name(callee) == "max"; }

bool is_no_value(PyObject* object) {
  static PyObject* const kNoValue = PyDict_GetItemString(PyModule_GetDict(numpy::module()), "_NoValue");  // borrowed: NumPy keeps it
  return object == kNoValue;
}

bool is_partial(PyObject* object) { return Py_IS_TYPE(object, g_partial); }

PyObject* partial_function(PyObject* partial) {
  PyObject* function = PyObject_GetAttr(partial, g_func_name);
  if (!function) PyErr_Clear();
  Py_XDECREF(function);  // the partial keeps it
  return function;
}

PyObject* class_call(PyTypeObject* type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL)) return nullptr;
  PyObject* found = type->tp_call ? _PyType_Lookup(type, g_call_name) : nullptr;
  return found && PyFunction_Check(found) ? found : nullptr;
}

PyObject* class_init(PyTypeObject* type) {
  if (!kMethodsOfClasses || !dalsegno_makes_instances(type)) return nullptr;
  PyObject* found = _PyType_Lookup(type, g_init_name);
  return found && PyFunction_Check(found) ? found : nullptr;
}

bool is_given_in_c(PyObject* found) {
  const PyTypeObject* const type = Py_TYPE(found);
  const PyTypeObject* const kinds[] = {&PyFunction_Type, &PyStaticMethod_Type, &PyWrapperDescr_Type, &PyMethodDescr_Type,
                                       &PyClassMethodDescr_Type};
  return !type->tp_descr_get || std::find(std::begin(kinds), std::end(kinds), type) != std::end(kinds);
}

bool counts_references(PyObject* callee) {
  if (callee_facts(callee).kind == CalleeKind::refcount) return true;
  if (!callee || !PyCFunction_Check(callee)) return false;
  const auto* function = reinterpret_cast<PyCFunctionObject*>(callee);
  return function->m_self && PyArray_Check(function->m_self) && !std::strcmp(function->m_ml->ml_name, "resize");
}

bool is_pure_array_attribute(const char* name) {
  static const std::unordered_set<std::string> names = {"shape",  "ndim",    "size", "T",    "dtype", "itemsize",
                                                        "nbytes", "strides", "real", "base", "mT"};
  return names.contains(name);
}

static bool find_partial() {
  PyObject* functools = PyImport_ImportModule("functools");
  g_partial = functools ? reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(functools, "partial")) : nullptr;
  Py_XDECREF(functools);
  g_func_name = PyUnicode_InternFromString("func");
  g_call_name = PyUnicode_InternFromString("__call__");
  g_init_name = PyUnicode_InternFromString("__init__");
  return g_partial && g_func_name && g_call_name && g_init_name;
}

bool init_facts() {
  if (!find_partial()) return false;
  fill_types();
  constexpr std::pair<const char*, void (*)(PyObject*)> kModules[] = {
      {"builtins", fill_builtins},   {"math", fill_math},          {"cmath", fill_cmath},
      {"time", fill_time},           {"_operator", fill_operator}, {"numpy", fill_numpy_functions},
      {"numpy.linalg", fill_linalg}, {"sys", fill_special},        {"builtins", init_in_c}};
  for (const auto& [name, fill] : kModules) {
    PyObject* module = PyImport_ImportModule(name);
    if (!module) return false;
    fill(module);
    Py_DECREF(module);
  }
  fill_numpy_methods();
  hook::add_quiet_sequence(&PyArray_Type);
  PyErr_Clear();
  return true;
}

bool init() { return init_instructions() && init_facts(); }

}  // namespace dalsegno::recorder
