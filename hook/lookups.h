/* Which look-ups in dicts and sets run no code of the user's. CPython's header for dicts is C only, and so is this interface. */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Not NULL, but an exact dict or a collections.defaultdict, which looks up and stores as a dict does, but for keys that d[k] does not find.
 */
int dalsegno_is_table(PyObject* o);
/* Does such an object make a value under a key that is missing, and runs no code of the user's for it (int(), list() ...)? */
int dalsegno_missing_is_quiet(PyObject* table);

/* 1 if looking `key`, of a type whose own hash and comparison run no code of the user's (int, float, str, bytes, None ...), or a
   tuple, up in such a dict or an exact set or frozenset runs no such code: it is compared with no key of a class written in Python, and a
   tuple holds numbers, str, bytes and None only. 0 if it might. Sets no exception. Needs the GIL. */
int dalsegno_quiet_lookup(PyObject* container, PyObject* key);

/* What an exact dict holds under `key`, of such a type, where that look-up is quiet: borrowed, or NULL. Sets no exception. A few ns where
   the key itself stands in the dict. Needs the GIL. */
PyObject* dalsegno_value_at(PyObject* dict, PyObject* key);

/* Where a key was found in a dict: as long as that has this version (0: none) it is there still, or (index < 0) still missing. */
typedef struct {
  int64_t index, version;
} dalsegno_found;

/* Both at once: looks such a key, or a tuple, up. 1: it is there; *value is what a dict holds under it (borrowed), or NULL of a set. 0: it
   is not there. -1: the look-up is not quiet, or has failed. `found`: of a look-up of the same key in the same container before, or of
   none. Sets no exception. Needs the GIL. */
int dalsegno_find(PyObject* container, PyObject* key, PyObject** value, dalsegno_found* found);
/* The same of any dict, as dict.get() looks it up, whatever its class does. */
int dalsegno_find_in(PyObject* dict, PyObject* key, PyObject** value);
/* Does the exact set or frozenset hold no more than so many things, numbers, str, bytes and None or tuples of such? */
int dalsegno_holds_plain_keys(PyObject* set, Py_ssize_t most);
/* Does joining or comparing `few`, a set that holds no more than so many of these, with the exact set or frozenset `many` run no code? */
int dalsegno_join_quietly(PyObject* few, PyObject* many, Py_ssize_t most);
/* PyDict_SetItem(), behind a look-up of the key. */
int dalsegno_put(PyObject* dict, PyObject* key, PyObject* value, dalsegno_found* found);

#ifdef __cplusplus
}
#endif
