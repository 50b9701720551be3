/* Private to hook/. What the interpreter runs Python code with (PEP 523); its state's header is C only. */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

struct _PyInterpreterFrame;
typedef PyObject* (*dalsegno_evaluate)(PyThreadState*, struct _PyInterpreterFrame*, int);

/* Where the interpreter keeps it; null there: the usual one. */
dalsegno_evaluate* dalsegno_evaluator(PyThreadState* thread);
/* The usual one. */
PyObject* dalsegno_evaluate_as_usual(PyThreadState* thread, struct _PyInterpreterFrame* frame, int raised);

#ifdef __cplusplus
}
#endif
