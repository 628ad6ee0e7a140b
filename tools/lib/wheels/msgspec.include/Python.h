/* Declarations of CPython 3.14's API, as far as the modules that `tools/wheels` builds from C use it. Nothing that the build
 * can fetch carries the interpreter's own headers.
 *
 * Structures are those of the sandbox's interpreter: pointers of 32 bits, with a GIL, without debugging.
 */
#ifndef PERIAPT_PYTHON_H
#define PERIAPT_PYTHON_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define PY_VERSION_HEX 0x030e00f0
extern const unsigned long Py_Version;
#define SIZEOF_VOID_P 4
#define SIZEOF_SIZE_T 4
#define SIZEOF_LONG 4
_Static_assert(sizeof(void *) == SIZEOF_VOID_P && sizeof(long) == SIZEOF_LONG, "the sandbox is wasm32");

typedef ptrdiff_t Py_ssize_t;
typedef Py_ssize_t Py_hash_t;
typedef size_t Py_uhash_t;
typedef uint8_t Py_UCS1;
typedef uint16_t Py_UCS2;
typedef uint32_t Py_UCS4;
#define PY_SSIZE_T_MAX ((Py_ssize_t)(((size_t)-1) >> 1))
#define PY_SSIZE_T_MIN (-PY_SSIZE_T_MAX - 1)

/* --- Small macros ------------------------------------------------------------------------------------------------------- */

#define Py_MIN(x, y) ((x) > (y) ? (y) : (x))
#define Py_MAX(x, y) ((x) > (y) ? (x) : (y))
#define Py_IS_INFINITY(x) isinf(x)
#define Py_IS_NAN(x) isnan(x)
#define Py_UNUSED(name) _unused_##name __attribute__((unused))
#define Py_UNREACHABLE() __builtin_unreachable()
#define PyDoc_STR(text) text
#define PyDoc_VAR(name) static const char name[]
#define PyDoc_STRVAR(name, text) PyDoc_VAR(name) = PyDoc_STR(text)
#define PyMODINIT_FUNC __attribute__((visibility("default"))) PyObject *
#define PyAPI_FUNC(type) extern type
#define PyAPI_DATA(type) extern type

/* --- Objects ------------------------------------------------------------------------------------------------------------ */

typedef struct _object PyObject;
typedef struct _typeobject PyTypeObject;

struct _object {
  Py_ssize_t ob_refcnt;
  PyTypeObject *ob_type;
};

typedef struct {
  PyObject ob_base;
  Py_ssize_t ob_size;
} PyVarObject;

#define PyObject_HEAD PyObject ob_base;
#define PyObject_VAR_HEAD PyVarObject ob_base;

/* An object whose count is at least the minimum is never counted nor freed. */
#define _Py_IMMORTAL_MINIMUM_REFCNT ((Py_ssize_t)(1L << 30))
#define _Py_IMMORTAL_INITIAL_REFCNT ((Py_ssize_t)(5L << 28))
#define _Py_STATIC_IMMORTAL_INITIAL_REFCNT ((Py_ssize_t)(7L << 28))

#define PyObject_HEAD_INIT(type) {_Py_STATIC_IMMORTAL_INITIAL_REFCNT, (type)},
#define PyVarObject_HEAD_INIT(type, size) {PyObject_HEAD_INIT(type)(size)},

#define _PyObject_CAST(op) ((PyObject *)(op))
#define Py_REFCNT(op) (_PyObject_CAST(op)->ob_refcnt)
#define Py_TYPE(op) (_PyObject_CAST(op)->ob_type)
#define Py_SIZE(op) (((PyVarObject *)(op))->ob_size)
#define Py_SET_TYPE(op, type) ((void)(_PyObject_CAST(op)->ob_type = (type)))
#define Py_SET_SIZE(op, size) ((void)(((PyVarObject *)(op))->ob_size = (size)))
#define Py_IS_TYPE(op, type) (Py_TYPE(op) == (type))
#define Py_Is(x, y) ((x) == (y))

extern void _Py_Dealloc(PyObject *);

static inline void periapt_incref(PyObject *op) {
  if (op->ob_refcnt < _Py_IMMORTAL_MINIMUM_REFCNT) op->ob_refcnt++;
}
static inline void periapt_decref(PyObject *op) {
  if (op->ob_refcnt < _Py_IMMORTAL_MINIMUM_REFCNT && --op->ob_refcnt == 0) _Py_Dealloc(op);
}
static inline void periapt_xincref(PyObject *op) {
  if (op != NULL) periapt_incref(op);
}
static inline void periapt_xdecref(PyObject *op) {
  if (op != NULL) periapt_decref(op);
}
static inline PyObject *periapt_newref(PyObject *op) {
  periapt_incref(op);
  return op;
}
static inline PyObject *periapt_xnewref(PyObject *op) {
  periapt_xincref(op);
  return op;
}
#define Py_INCREF(op) periapt_incref(_PyObject_CAST(op))
#define Py_DECREF(op) periapt_decref(_PyObject_CAST(op))
#define Py_XINCREF(op) periapt_xincref(_PyObject_CAST(op))
#define Py_XDECREF(op) periapt_xdecref(_PyObject_CAST(op))
#define Py_NewRef(op) periapt_newref(_PyObject_CAST(op))
#define Py_XNewRef(op) periapt_xnewref(_PyObject_CAST(op))
#define Py_CLEAR(op)                                    \
  do {                                                  \
    PyObject **periapt_place = (PyObject **)&(op);      \
    PyObject *periapt_old = *periapt_place;             \
    if (periapt_old != NULL) {                          \
      *periapt_place = NULL;                            \
      Py_DECREF(periapt_old);                           \
    }                                                   \
  } while (0)
#define Py_SETREF(op, to)                               \
  do {                                                  \
    PyObject **periapt_place = (PyObject **)&(op);      \
    PyObject *periapt_old = *periapt_place;             \
    *periapt_place = _PyObject_CAST(to);                \
    Py_DECREF(periapt_old);                             \
  } while (0)
#define Py_VISIT(op)                                            \
  do {                                                          \
    if (op) {                                                   \
      int periapt_visited = visit(_PyObject_CAST(op), arg);     \
      if (periapt_visited) return periapt_visited;              \
    }                                                           \
  } while (0)

extern PyObject _Py_NoneStruct, _Py_NotImplementedStruct, _Py_EllipsisObject, _Py_TrueStruct, _Py_FalseStruct;
#define Py_None (&_Py_NoneStruct)
#define Py_NotImplemented (&_Py_NotImplementedStruct)
#define Py_Ellipsis (&_Py_EllipsisObject)
#define Py_True (&_Py_TrueStruct)
#define Py_False (&_Py_FalseStruct)
#define Py_RETURN_NONE return Py_None
#define Py_RETURN_TRUE return Py_True
#define Py_RETURN_FALSE return Py_False
#define Py_RETURN_NOTIMPLEMENTED return Py_NotImplemented
#define Py_IsNone(x) Py_Is(x, Py_None)

#define Py_LT 0
#define Py_LE 1
#define Py_EQ 2
#define Py_NE 3
#define Py_GT 4
#define Py_GE 5

/* --- Types -------------------------------------------------------------------------------------------------------------- */

typedef struct {
  void *buf;
  PyObject *obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char *format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void *internal;
} Py_buffer;
#define PyBUF_SIMPLE 0
#define PyBUF_WRITABLE 1
#define PyBUF_FORMAT 4
#define PyBUF_ND 8
#define PyBUF_CONTIG (PyBUF_ND | PyBUF_WRITABLE)
#define PyBUF_CONTIG_RO PyBUF_ND
#define PyBUF_READ 0x100
#define PyBUF_WRITE 0x200

typedef PyObject *(*unaryfunc)(PyObject *);
typedef PyObject *(*binaryfunc)(PyObject *, PyObject *);
typedef PyObject *(*ternaryfunc)(PyObject *, PyObject *, PyObject *);
typedef int (*inquiry)(PyObject *);
typedef Py_ssize_t (*lenfunc)(PyObject *);
typedef PyObject *(*ssizeargfunc)(PyObject *, Py_ssize_t);
typedef int (*ssizeobjargproc)(PyObject *, Py_ssize_t, PyObject *);
typedef int (*objobjargproc)(PyObject *, PyObject *, PyObject *);
typedef int (*objobjproc)(PyObject *, PyObject *);
typedef int (*visitproc)(PyObject *, void *);
typedef int (*traverseproc)(PyObject *, visitproc, void *);
typedef void (*freefunc)(void *);
typedef void (*destructor)(PyObject *);
typedef PyObject *(*getattrfunc)(PyObject *, char *);
typedef PyObject *(*getattrofunc)(PyObject *, PyObject *);
typedef int (*setattrfunc)(PyObject *, char *, PyObject *);
typedef int (*setattrofunc)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*reprfunc)(PyObject *);
typedef Py_hash_t (*hashfunc)(PyObject *);
typedef PyObject *(*richcmpfunc)(PyObject *, PyObject *, int);
typedef PyObject *(*getiterfunc)(PyObject *);
typedef PyObject *(*iternextfunc)(PyObject *);
typedef PyObject *(*descrgetfunc)(PyObject *, PyObject *, PyObject *);
typedef int (*descrsetfunc)(PyObject *, PyObject *, PyObject *);
typedef int (*initproc)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*newfunc)(PyTypeObject *, PyObject *, PyObject *);
typedef PyObject *(*allocfunc)(PyTypeObject *, Py_ssize_t);
typedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *);
typedef int (*getbufferproc)(PyObject *, Py_buffer *, int);
typedef void (*releasebufferproc)(PyObject *, Py_buffer *);
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef PyObject *(*PyCFunctionWithKeywords)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*PyCFunctionFast)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*PyCFunctionFastWithKeywords)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
typedef PyObject *(*getter)(PyObject *, void *);
typedef int (*setter)(PyObject *, PyObject *, void *);

typedef struct {
  binaryfunc nb_add, nb_subtract, nb_multiply, nb_remainder, nb_divmod;
  ternaryfunc nb_power;
  unaryfunc nb_negative, nb_positive, nb_absolute;
  inquiry nb_bool;
  unaryfunc nb_invert;
  binaryfunc nb_lshift, nb_rshift, nb_and, nb_xor, nb_or;
  unaryfunc nb_int;
  void *nb_reserved;
  unaryfunc nb_float;
  binaryfunc nb_inplace_add, nb_inplace_subtract, nb_inplace_multiply, nb_inplace_remainder;
  ternaryfunc nb_inplace_power;
  binaryfunc nb_inplace_lshift, nb_inplace_rshift, nb_inplace_and, nb_inplace_xor, nb_inplace_or;
  binaryfunc nb_floor_divide, nb_true_divide, nb_inplace_floor_divide, nb_inplace_true_divide;
  unaryfunc nb_index;
  binaryfunc nb_matrix_multiply, nb_inplace_matrix_multiply;
} PyNumberMethods;

typedef struct {
  lenfunc sq_length;
  binaryfunc sq_concat;
  ssizeargfunc sq_repeat, sq_item;
  void *was_sq_slice;
  ssizeobjargproc sq_ass_item;
  void *was_sq_ass_slice;
  objobjproc sq_contains;
  binaryfunc sq_inplace_concat;
  ssizeargfunc sq_inplace_repeat;
} PySequenceMethods;

typedef struct {
  lenfunc mp_length;
  binaryfunc mp_subscript;
  objobjargproc mp_ass_subscript;
} PyMappingMethods;

typedef struct {
  unaryfunc am_await, am_aiter, am_anext;
  void *am_send;
} PyAsyncMethods;

typedef struct {
  getbufferproc bf_getbuffer;
  releasebufferproc bf_releasebuffer;
} PyBufferProcs;

typedef struct PyMethodDef {
  const char *ml_name;
  PyCFunction ml_meth;
  int ml_flags;
  const char *ml_doc;
} PyMethodDef;
#define METH_VARARGS 0x1
#define METH_KEYWORDS 0x2
#define METH_NOARGS 0x4
#define METH_O 0x8
#define METH_CLASS 0x10
#define METH_STATIC 0x20
#define METH_FASTCALL 0x80

typedef struct PyMemberDef {
  const char *name;
  int type;
  Py_ssize_t offset;
  int flags;
  const char *doc;
} PyMemberDef;

typedef struct PyGetSetDef {
  const char *name;
  getter get;
  setter set;
  const char *doc;
  void *closure;
} PyGetSetDef;

struct _typeobject {
  PyVarObject ob_base;
  const char *tp_name;
  Py_ssize_t tp_basicsize, tp_itemsize;
  destructor tp_dealloc;
  Py_ssize_t tp_vectorcall_offset;
  getattrfunc tp_getattr;
  setattrfunc tp_setattr;
  PyAsyncMethods *tp_as_async;
  reprfunc tp_repr;
  PyNumberMethods *tp_as_number;
  PySequenceMethods *tp_as_sequence;
  PyMappingMethods *tp_as_mapping;
  hashfunc tp_hash;
  ternaryfunc tp_call;
  reprfunc tp_str;
  getattrofunc tp_getattro;
  setattrofunc tp_setattro;
  PyBufferProcs *tp_as_buffer;
  unsigned long tp_flags;
  const char *tp_doc;
  traverseproc tp_traverse;
  inquiry tp_clear;
  richcmpfunc tp_richcompare;
  Py_ssize_t tp_weaklistoffset;
  getiterfunc tp_iter;
  iternextfunc tp_iternext;
  PyMethodDef *tp_methods;
  PyMemberDef *tp_members;
  PyGetSetDef *tp_getset;
  PyTypeObject *tp_base;
  PyObject *tp_dict;
  descrgetfunc tp_descr_get;
  descrsetfunc tp_descr_set;
  Py_ssize_t tp_dictoffset;
  initproc tp_init;
  allocfunc tp_alloc;
  newfunc tp_new;
  freefunc tp_free;
  inquiry tp_is_gc;
  PyObject *tp_bases, *tp_mro, *tp_cache;
  void *tp_subclasses;
  PyObject *tp_weaklist;
  destructor tp_del;
  unsigned int tp_version_tag;
  destructor tp_finalize;
  vectorcallfunc tp_vectorcall;
  unsigned char tp_watched;
  uint16_t tp_versions_used;
};

typedef struct {
  PyTypeObject ht_type;
  PyAsyncMethods as_async;
  PyNumberMethods as_number;
  PyMappingMethods as_mapping;
  PySequenceMethods as_sequence;
  PyBufferProcs as_buffer;
  PyObject *ht_name, *ht_slots, *ht_qualname;
  void *ht_cached_keys;
  PyObject *ht_module;
  char *_ht_tpname;
  void *ht_token;
  struct {
    PyObject *getitem;
    uint32_t getitem_version;
    PyObject *init;
  } _spec_cache;
} PyHeapTypeObject;

#define Py_TPFLAGS_DEFAULT 0UL
#define Py_TPFLAGS_HEAPTYPE (1UL << 9)
#define Py_TPFLAGS_BASETYPE (1UL << 10)
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#define _Py_TPFLAGS_HAVE_VECTORCALL Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_READY (1UL << 12)
#define Py_TPFLAGS_HAVE_GC (1UL << 14)
#define Py_TPFLAGS_IS_ABSTRACT (1UL << 20)
#define Py_TPFLAGS_LONG_SUBCLASS (1UL << 24)
#define Py_TPFLAGS_LIST_SUBCLASS (1UL << 25)
#define Py_TPFLAGS_TUPLE_SUBCLASS (1UL << 26)
#define Py_TPFLAGS_BYTES_SUBCLASS (1UL << 27)
#define Py_TPFLAGS_UNICODE_SUBCLASS (1UL << 28)
#define Py_TPFLAGS_DICT_SUBCLASS (1UL << 29)
#define Py_TPFLAGS_TYPE_SUBCLASS (1UL << 31)

extern PyTypeObject PyBaseObject_Type, PyType_Type, PyBool_Type, PyLong_Type, PyFloat_Type, PyUnicode_Type, PyBytes_Type,
    PyByteArray_Type, PyMemoryView_Type, PyTuple_Type, PyList_Type, PyDict_Type, PySet_Type, PyFrozenSet_Type, Py_GenericAliasType;

extern int PyType_Ready(PyTypeObject *);
extern int PyType_IsSubtype(PyTypeObject *, PyTypeObject *);
extern PyObject *PyType_GenericNew(PyTypeObject *, PyObject *, PyObject *);
extern PyObject *PyType_GetDict(PyTypeObject *);
extern PyObject *_PyType_Lookup(PyTypeObject *, PyObject *);
extern PyObject *_PyType_LookupRef(PyTypeObject *, PyObject *);
extern PyObject *Py_GenericAlias(PyObject *, PyObject *);
extern void PyType_Modified(PyTypeObject *);

#define PyType_HasFeature(type, feature) (((type)->tp_flags & (feature)) != 0)
#define PyType_FastSubclass(type, flag) PyType_HasFeature(type, flag)
#define PyObject_TypeCheck(op, type) (Py_IS_TYPE(op, type) || PyType_IsSubtype(Py_TYPE(op), type))
#define PyType_Check(op) PyType_FastSubclass(Py_TYPE(op), Py_TPFLAGS_TYPE_SUBCLASS)
#define PyType_CheckExact(op) Py_IS_TYPE(op, &PyType_Type)
#define PyLong_Check(op) PyType_FastSubclass(Py_TYPE(op), Py_TPFLAGS_LONG_SUBCLASS)
#define PyLong_CheckExact(op) Py_IS_TYPE(op, &PyLong_Type)
#define PyFloat_Check(op) PyObject_TypeCheck(op, &PyFloat_Type)
#define PyFloat_CheckExact(op) Py_IS_TYPE(op, &PyFloat_Type)
#define PyUnicode_Check(op) PyType_FastSubclass(Py_TYPE(op), Py_TPFLAGS_UNICODE_SUBCLASS)
#define PyUnicode_CheckExact(op) Py_IS_TYPE(op, &PyUnicode_Type)
#define PyBytes_Check(op) PyType_FastSubclass(Py_TYPE(op), Py_TPFLAGS_BYTES_SUBCLASS)
#define PyBytes_CheckExact(op) Py_IS_TYPE(op, &PyBytes_Type)
#define PyByteArray_Check(op) PyObject_TypeCheck(op, &PyByteArray_Type)
#define PyByteArray_CheckExact(op) Py_IS_TYPE(op, &PyByteArray_Type)
#define PyTuple_Check(op) PyType_FastSubclass(Py_TYPE(op), Py_TPFLAGS_TUPLE_SUBCLASS)
#define PyTuple_CheckExact(op) Py_IS_TYPE(op, &PyTuple_Type)
#define PyList_Check(op) PyType_FastSubclass(Py_TYPE(op), Py_TPFLAGS_LIST_SUBCLASS)
#define PyList_CheckExact(op) Py_IS_TYPE(op, &PyList_Type)
#define PyDict_Check(op) PyType_FastSubclass(Py_TYPE(op), Py_TPFLAGS_DICT_SUBCLASS)
#define PyDict_CheckExact(op) Py_IS_TYPE(op, &PyDict_Type)
#define PyAnySet_Check(op) (PyObject_TypeCheck(op, &PySet_Type) || PyObject_TypeCheck(op, &PyFrozenSet_Type))

/* --- Memory ------------------------------------------------------------------------------------------------------------- */

extern void *PyMem_Malloc(size_t);
extern void *PyMem_Calloc(size_t, size_t);
extern void *PyMem_Realloc(void *, size_t);
extern void PyMem_Free(void *);
#define PyMem_New(type, n) (((size_t)(n) > PY_SSIZE_T_MAX / sizeof(type)) ? NULL : (type *)PyMem_Malloc((n) * sizeof(type)))
extern void PyObject_Free(void *);
extern PyObject *_PyObject_New(PyTypeObject *);
#define PyObject_New(type, kind) ((type *)_PyObject_New(kind))
extern PyObject *_PyObject_GC_New(PyTypeObject *);
extern PyVarObject *_PyObject_GC_NewVar(PyTypeObject *, Py_ssize_t);
#define PyObject_GC_New(type, kind) ((type *)_PyObject_GC_New(kind))
#define PyObject_GC_NewVar(type, kind, n) ((type *)_PyObject_GC_NewVar((kind), (n)))
extern void PyObject_GC_Track(void *);
extern void PyObject_GC_UnTrack(void *);
extern void PyObject_GC_Del(void *);
extern int PyObject_GC_IsTracked(PyObject *);
extern void PyObject_ClearWeakRefs(PyObject *);
extern int PyObject_CallFinalizerFromDealloc(PyObject *);

/* --- Errors ------------------------------------------------------------------------------------------------------------- */

extern PyObject *PyExc_TypeError, *PyExc_ValueError, *PyExc_RuntimeError, *PyExc_AttributeError, *PyExc_OverflowError,
    *PyExc_NotImplementedError, *PyExc_KeyError, *PyExc_IndexError, *PyExc_Exception, *PyExc_RecursionError, *PyExc_SystemError,
    *PyExc_ImportError;
extern void PyErr_SetString(PyObject *, const char *);
extern void PyErr_SetObject(PyObject *, PyObject *);
extern PyObject *PyErr_Format(PyObject *, const char *, ...);
extern PyObject *PyErr_NoMemory(void);
extern PyObject *PyErr_Occurred(void);
extern void PyErr_Clear(void);
extern void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
extern void PyErr_Restore(PyObject *, PyObject *, PyObject *);
extern void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **);
extern int PyErr_ExceptionMatches(PyObject *);
extern int PyErr_GivenExceptionMatches(PyObject *, PyObject *);
extern PyObject *PyErr_NewExceptionWithDoc(const char *, const char *, PyObject *, PyObject *);
extern PyObject *PyErr_GetRaisedException(void);
extern void PyErr_SetRaisedException(PyObject *);
extern void PyErr_WriteUnraisable(PyObject *);
extern int PyException_SetTraceback(PyObject *, PyObject *);
extern void PyException_SetContext(PyObject *, PyObject *);
extern void PyException_SetCause(PyObject *, PyObject *);
extern int Py_EnterRecursiveCall(const char *);
extern void Py_LeaveRecursiveCall(void);
extern int Py_ReprEnter(PyObject *);
extern void Py_ReprLeave(PyObject *);

/* --- Any object --------------------------------------------------------------------------------------------------------- */

extern PyObject *PyObject_GetAttr(PyObject *, PyObject *);
extern PyObject *PyObject_GetAttrString(PyObject *, const char *);
extern int PyObject_HasAttr(PyObject *, PyObject *);
extern int PyObject_HasAttrString(PyObject *, const char *);
extern int PyObject_SetAttr(PyObject *, PyObject *, PyObject *);
extern int PyObject_SetAttrString(PyObject *, const char *, PyObject *);
extern int PyObject_DelAttr(PyObject *, PyObject *);
extern PyObject *PyObject_GenericGetAttr(PyObject *, PyObject *);
extern int PyObject_GenericSetAttr(PyObject *, PyObject *, PyObject *);
extern PyObject *PyObject_GenericGetDict(PyObject *, void *);
extern PyObject *PyObject_GetItem(PyObject *, PyObject *);
extern int PyObject_SetItem(PyObject *, PyObject *, PyObject *);
extern PyObject *PyObject_GetIter(PyObject *);
extern PyObject *PyIter_Next(PyObject *);
extern Py_hash_t PyObject_Hash(PyObject *);
extern Py_hash_t PyObject_HashNotImplemented(PyObject *);
extern PyObject *PyObject_Str(PyObject *);
extern PyObject *PyObject_Repr(PyObject *);
extern int PyObject_IsTrue(PyObject *);
extern int PyObject_IsInstance(PyObject *, PyObject *);
extern int PyObject_IsSubclass(PyObject *, PyObject *);
extern PyObject *PyObject_RichCompare(PyObject *, PyObject *, int);
extern int PyObject_RichCompareBool(PyObject *, PyObject *, int);
extern Py_ssize_t PyObject_Length(PyObject *);
extern int PyCallable_Check(PyObject *);
extern int PyMapping_Check(PyObject *);
extern PyObject *PyObject_Call(PyObject *, PyObject *, PyObject *);
extern PyObject *PyObject_CallNoArgs(PyObject *);
extern PyObject *PyObject_CallOneArg(PyObject *, PyObject *);
extern PyObject *PyObject_CallFunction(PyObject *, const char *, ...);
extern PyObject *PyObject_CallMethod(PyObject *, const char *, const char *, ...);
extern PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
extern PyObject *PyObject_CallMethodObjArgs(PyObject *, PyObject *, ...);
extern PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);
extern PyObject *PyObject_VectorcallMethod(PyObject *, PyObject *const *, size_t, PyObject *);
extern PyObject *PyVectorcall_Call(PyObject *, PyObject *, PyObject *);
#define PY_VECTORCALL_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))
#define PyVectorcall_NARGS(n) ((Py_ssize_t)((size_t)(n) & ~PY_VECTORCALL_ARGUMENTS_OFFSET))
static inline PyObject *PyObject_CallMethodOneArg(PyObject *self, PyObject *name, PyObject *argument) {
  PyObject *arguments[] = {self, argument};
  return PyObject_VectorcallMethod(name, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}
static inline PyObject *PyObject_CallMethodNoArgs(PyObject *self, PyObject *name) {
  return PyObject_VectorcallMethod(name, &self, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

/* --- Buffers ------------------------------------------------------------------------------------------------------------ */

extern int PyObject_CheckBuffer(PyObject *);
extern int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
extern void PyBuffer_Release(Py_buffer *);
extern int PyBuffer_FillInfo(Py_buffer *, PyObject *, void *, Py_ssize_t, int, int);
extern PyObject *PyMemoryView_FromObject(PyObject *);
extern PyObject *PyMemoryView_GetContiguous(PyObject *, int, char);
typedef struct {
  PyVarObject ob_base;
  void *mbuf;
  Py_hash_t hash;
  int flags;
  Py_ssize_t exports;
  Py_buffer view;
} PyMemoryViewObject;
#define PyMemoryView_GET_BUFFER(op) (&((PyMemoryViewObject *)(op))->view)

/* --- Numbers ------------------------------------------------------------------------------------------------------------ */

#define PyLong_SHIFT 30
#define _PyLong_SIGN_MASK 3
#define _PyLong_NON_SIZE_BITS 3
typedef uint32_t digit;
typedef struct {
  PyObject ob_base;
  struct {
    uintptr_t lv_tag;
    digit ob_digit[1];
  } long_value;
} PyLongObject;
#define _PyLong_IsCompact(op) ((op)->long_value.lv_tag < (2 << _PyLong_NON_SIZE_BITS))

extern PyObject *PyBool_FromLong(long);
extern PyObject *PyLong_FromLong(long);
extern PyObject *PyLong_FromLongLong(long long);
extern PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
extern PyObject *PyLong_FromSsize_t(Py_ssize_t);
extern PyObject *PyLong_FromString(const char *, char **, int);
extern PyObject *PyLong_FromNativeBytes(const void *, size_t, int);
extern PyObject *PyLong_FromUnsignedNativeBytes(const void *, size_t, int);
extern PyObject *_PyLong_FromByteArray(const unsigned char *, size_t, int, int);
extern int _PyLong_AsByteArray(PyLongObject *, unsigned char *, size_t, int, int, int);
extern long PyLong_AsLong(PyObject *);
extern long long PyLong_AsLongLong(PyObject *);
extern long long PyLong_AsLongLongAndOverflow(PyObject *, int *);
extern unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
extern Py_ssize_t PyLong_AsSsize_t(PyObject *);
extern double PyLong_AsDouble(PyObject *);
extern Py_ssize_t PyLong_AsNativeBytes(PyObject *, void *, Py_ssize_t, int);
extern int PyLong_GetSign(PyObject *, int *);
extern int _PyLong_Sign(PyObject *);
#define Py_ASNATIVEBYTES_BIG_ENDIAN 0
#define Py_ASNATIVEBYTES_UNSIGNED_BUFFER 4
extern PyObject *PyNumber_Long(PyObject *);
extern PyObject *PyNumber_Float(PyObject *);
extern PyObject *PyNumber_Remainder(PyObject *, PyObject *);

typedef struct {
  PyObject ob_base;
  double ob_fval;
} PyFloatObject;
#define PyFloat_AS_DOUBLE(op) (((PyFloatObject *)(op))->ob_fval)
extern PyObject *PyFloat_FromDouble(double);
extern double PyFloat_AsDouble(PyObject *);

/* --- Text and bytes ----------------------------------------------------------------------------------------------------- */

/* Of the state's bits only the interpreter knows the order. */
typedef struct {
  PyObject ob_base;
  Py_ssize_t length;
  Py_hash_t hash;
  uint32_t state;
} PyASCIIObject;
typedef struct {
  PyASCIIObject _base;
  Py_ssize_t utf8_length;
  char *utf8;
} PyCompactUnicodeObject;
extern const char *PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);
/* Text of ASCII alone is its own UTF-8, and lies behind the short head. */
static inline int PyUnicode_IS_COMPACT_ASCII(PyObject *op) {
  PyASCIIObject *text = (PyASCIIObject *)op;
  const char *utf8 = PyUnicode_AsUTF8AndSize(op, NULL);
  if (utf8 == NULL) PyErr_Clear();
  return utf8 == (const char *)(text + 1);
}
#define PyUnicode_GET_LENGTH(op) (((PyASCIIObject *)(op))->length)
extern PyObject *PyUnicode_New(Py_ssize_t, Py_UCS4);
extern PyObject *PyUnicode_FromString(const char *);
extern PyObject *PyUnicode_FromStringAndSize(const char *, Py_ssize_t);
extern PyObject *PyUnicode_FromFormat(const char *, ...);
extern PyObject *PyUnicode_InternFromString(const char *);
extern PyObject *PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *);
extern int PyUnicode_Compare(PyObject *, PyObject *);
extern int PyUnicode_CompareWithASCIIString(PyObject *, const char *);
extern PyObject *PyUnicode_Join(PyObject *, PyObject *);
extern PyObject *PyUnicode_Concat(PyObject *, PyObject *);
extern PyObject *PyUnicode_Split(PyObject *, PyObject *, Py_ssize_t);
extern PyObject *PyUnicode_RSplit(PyObject *, PyObject *, Py_ssize_t);
extern PyObject *PyUnicode_Replace(PyObject *, PyObject *, PyObject *, Py_ssize_t);
extern PyObject *PyUnicode_Substring(PyObject *, Py_ssize_t, Py_ssize_t);

typedef struct {
  PyVarObject ob_base;
  Py_hash_t ob_shash;
  char ob_sval[1];
} PyBytesObject;
#define PyBytes_AS_STRING(op) (((PyBytesObject *)(op))->ob_sval)
#define PyBytes_GET_SIZE(op) Py_SIZE(op)
extern PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
extern PyObject *PyBytes_FromObject(PyObject *);
extern int _PyBytes_Resize(PyObject **, Py_ssize_t);
extern char *PyByteArray_AsString(PyObject *);
extern PyObject *PyByteArray_FromObject(PyObject *);
extern PyObject *PyByteArray_FromStringAndSize(const char *, Py_ssize_t);
extern int PyByteArray_Resize(PyObject *, Py_ssize_t);
#define PyByteArray_AS_STRING(op) PyByteArray_AsString((PyObject *)(op))
#define PyByteArray_GET_SIZE(op) Py_SIZE(op)

/* --- Collections -------------------------------------------------------------------------------------------------------- */

typedef struct {
  PyVarObject ob_base;
  Py_hash_t ob_hash;
  PyObject *ob_item[1];
} PyTupleObject;
typedef struct {
  PyVarObject ob_base;
  PyObject **ob_item;
  Py_ssize_t allocated;
} PyListObject;
#define PyTuple_GET_SIZE(op) Py_SIZE(op)
#define PyTuple_GET_ITEM(op, i) (((PyTupleObject *)(op))->ob_item[i])
#define PyTuple_SET_ITEM(op, i, v) ((void)(((PyTupleObject *)(op))->ob_item[i] = (v)))
#define PyList_GET_SIZE(op) Py_SIZE(op)
#define PyList_GET_ITEM(op, i) (((PyListObject *)(op))->ob_item[i])
#define PyList_SET_ITEM(op, i, v) ((void)(((PyListObject *)(op))->ob_item[i] = (v)))
extern PyObject *PyTuple_New(Py_ssize_t);
extern PyObject *PyTuple_Pack(Py_ssize_t, ...);
extern PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
extern PyObject *PyTuple_GetSlice(PyObject *, Py_ssize_t, Py_ssize_t);
extern PyObject *PyList_New(Py_ssize_t);
extern int PyList_Append(PyObject *, PyObject *);
extern int PyList_Sort(PyObject *);
extern int PyList_Reverse(PyObject *);
extern PyObject *PyList_AsTuple(PyObject *);
extern PyObject *PySequence_List(PyObject *);
extern PyObject *PySequence_Tuple(PyObject *);
extern PyObject *PySequence_Fast(PyObject *, const char *);
extern int PySequence_Contains(PyObject *, PyObject *);
#define PySequence_Fast_GET_SIZE(op) Py_SIZE(op)
#define PySequence_Fast_ITEMS(op) (PyList_Check(op) ? ((PyListObject *)(op))->ob_item : ((PyTupleObject *)(op))->ob_item)
#define PySequence_Fast_GET_ITEM(op, i) (PySequence_Fast_ITEMS(op)[i])
extern PyObject *PySet_New(PyObject *);
extern PyObject *PyFrozenSet_New(PyObject *);
extern int PySet_Add(PyObject *, PyObject *);
extern int PySet_Discard(PyObject *, PyObject *);
extern int PySet_Contains(PyObject *, PyObject *);
extern Py_ssize_t PySet_Size(PyObject *);
#define PySet_GET_SIZE(op) PySet_Size((PyObject *)(op))
extern PyObject *PyDict_New(void);
extern PyObject *PyDict_Copy(PyObject *);
extern PyObject *PyDict_Keys(PyObject *);
extern PyObject *PyDict_GetItem(PyObject *, PyObject *);
extern PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
extern PyObject *PyDict_GetItemString(PyObject *, const char *);
extern int PyDict_GetItemRef(PyObject *, PyObject *, PyObject **);
extern PyObject *_PyDict_GetItem_KnownHash(PyObject *, PyObject *, Py_hash_t);
extern int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
extern int PyDict_SetItemString(PyObject *, const char *, PyObject *);
extern int PyDict_DelItem(PyObject *, PyObject *);
extern int PyDict_Contains(PyObject *, PyObject *);
extern int PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **);
extern int PyDict_Merge(PyObject *, PyObject *, int);
extern int PyDict_Update(PyObject *, PyObject *);
extern Py_ssize_t PyDict_Size(PyObject *);
#define PyDict_GET_SIZE(op) PyDict_Size((PyObject *)(op))

/* --- Arguments and modules ---------------------------------------------------------------------------------------------- */

extern int PyArg_ParseTuple(PyObject *, const char *, ...);
extern int PyArg_ParseTupleAndKeywords(PyObject *, PyObject *, const char *, char *const *, ...);
extern PyObject *Py_BuildValue(const char *, ...);
extern PyObject *PyImport_ImportModule(const char *);
extern PyObject *PySys_GetObject(const char *);
extern void *PyCapsule_Import(const char *, int);

typedef struct {
  PyObject ob_base;
  PyObject *(*m_init)(void);
  Py_ssize_t m_index;
  PyObject *m_copy;
} PyModuleDef_Base;
typedef struct {
  int slot;
  void *value;
} PyModuleDef_Slot;
typedef struct PyModuleDef {
  PyModuleDef_Base m_base;
  const char *m_name, *m_doc;
  Py_ssize_t m_size;
  PyMethodDef *m_methods;
  PyModuleDef_Slot *m_slots;
  traverseproc m_traverse;
  inquiry m_clear;
  freefunc m_free;
} PyModuleDef;
#define PyModuleDef_HEAD_INIT {PyObject_HEAD_INIT(NULL) NULL, 0, NULL}
extern PyObject *PyModule_Create2(PyModuleDef *, int);
/* Refuses an interpreter with other structures than those above, by the sizes that it keeps of its own. */
static inline PyObject *PyModule_Create(PyModuleDef *definition) {
  const struct {
    PyTypeObject *type;
    size_t size;
  } known[] = {
      {&PyBaseObject_Type, sizeof(PyObject)},
      {&PyType_Type, sizeof(PyHeapTypeObject)},
      {&PyLong_Type, offsetof(PyLongObject, long_value.ob_digit)},
      {&PyFloat_Type, sizeof(PyFloatObject)},
      {&PyUnicode_Type, sizeof(PyCompactUnicodeObject) + sizeof(void *)},
      {&PyBytes_Type, offsetof(PyBytesObject, ob_sval) + 1},
      {&PyTuple_Type, offsetof(PyTupleObject, ob_item)},
      {&PyList_Type, sizeof(PyListObject)},
      {&PyMemoryView_Type, sizeof(PyMemoryViewObject) + sizeof(void *)},
  };
  int same = Py_Version >> 16 == PY_VERSION_HEX >> 16;
  for (size_t i = 0; same && i < sizeof known / sizeof *known; i++) same = known[i].type->tp_basicsize == (Py_ssize_t)known[i].size;
  if (same) return PyModule_Create2(definition, 1013);
  PyErr_Format(PyExc_ImportError, "%s was built for another interpreter than this one", definition->m_name);
  return NULL;
}
extern void *PyModule_GetState(PyObject *);
extern int PyModule_AddObjectRef(PyObject *, const char *, PyObject *);
extern int PyModule_AddObject(PyObject *, const char *, PyObject *);
extern int PyModule_AddStringConstant(PyObject *, const char *, const char *);
extern PyObject *PyState_FindModule(PyModuleDef *);
extern int PyState_AddModule(PyObject *, PyModuleDef *);

/* --- One thread --------------------------------------------------------------------------------------------------------- */

typedef struct _ts PyThreadState;
extern PyThreadState *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(PyThreadState *);
#define Py_BEGIN_ALLOW_THREADS { PyThreadState *periapt_thread = PyEval_SaveThread();
#define Py_END_ALLOW_THREADS PyEval_RestoreThread(periapt_thread); }
#define Py_BEGIN_CRITICAL_SECTION(op) {
#define Py_END_CRITICAL_SECTION() }
#define Py_BEGIN_CRITICAL_SECTION2(a, b) {
#define Py_END_CRITICAL_SECTION2() }

#endif
