// Text of Python strings. CPython encodes most to UTF-8, but not those with lone surrogates, which any name may hold.
#pragma once
#include <Python.h>

#include <string>

#include "hook/error_aside.h"

namespace dalsegno::recorder {

// UTF-8 that lives as long as the string; null for what is no string or cannot be encoded. For names that must be found again.
inline const char* utf8_of(PyObject* string) {
  if (string == nullptr || !PyUnicode_Check(string)) return nullptr;
  const hook::ErrorAside aside;
  return PyUnicode_AsUTF8(string);
}

// For people: surrogates as \udxxx; "" for what is no string.
inline std::string text_of(PyObject* string) {
  if (const char* text = utf8_of(string)) return text;
  if (string == nullptr || !PyUnicode_Check(string)) return "";
  const hook::ErrorAside aside;
  PyObject* bytes = PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace");
  const std::string text = bytes != nullptr ? PyBytes_AS_STRING(bytes) : "?";
  Py_XDECREF(bytes);
  return text;
}

}  // namespace dalsegno::recorder
