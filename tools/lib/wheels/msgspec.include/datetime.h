/* CPython's dates and times: see Python.h beside this. */
#ifndef PERIAPT_DATETIME_H
#define PERIAPT_DATETIME_H

#define PERIAPT_TZINFO_HEAD \
  PyObject ob_base;         \
  Py_hash_t hashcode;       \
  char hastzinfo;

typedef struct {
  PERIAPT_TZINFO_HEAD
} _PyDateTime_BaseTZInfo;
typedef struct {
  PERIAPT_TZINFO_HEAD
  unsigned char data[4];
} PyDateTime_Date;
typedef struct {
  PERIAPT_TZINFO_HEAD
  unsigned char data[6], fold;
  PyObject *tzinfo;
} PyDateTime_Time;
typedef struct {
  PERIAPT_TZINFO_HEAD
  unsigned char data[10], fold;
  PyObject *tzinfo;
} PyDateTime_DateTime;
typedef struct {
  PyObject ob_base;
  Py_hash_t hashcode;
  int days, seconds, microseconds;
} PyDateTime_Delta;

typedef struct {
  PyTypeObject *DateType, *DateTimeType, *TimeType, *DeltaType, *TZInfoType;
  PyObject *TimeZone_UTC;
  PyObject *(*Date_FromDate)(int, int, int, PyTypeObject *);
  PyObject *(*DateTime_FromDateAndTime)(int, int, int, int, int, int, int, PyObject *, PyTypeObject *);
  PyObject *(*Time_FromTime)(int, int, int, int, PyObject *, PyTypeObject *);
  PyObject *(*Delta_FromDelta)(int, int, int, int, PyTypeObject *);
  PyObject *(*TimeZone_FromTimeZone)(PyObject *, PyObject *);
  PyObject *(*DateTime_FromTimestamp)(PyObject *, PyObject *, PyObject *);
  PyObject *(*Date_FromTimestamp)(PyObject *, PyObject *);
  PyObject *(*DateTime_FromDateAndTimeAndFold)(int, int, int, int, int, int, int, PyObject *, int, PyTypeObject *);
  PyObject *(*Time_FromTimeAndFold)(int, int, int, int, PyObject *, int, PyTypeObject *);
} PyDateTime_CAPI;

static PyDateTime_CAPI *PyDateTimeAPI = NULL;
#define PyDateTime_IMPORT PyDateTimeAPI = (PyDateTime_CAPI *)PyCapsule_Import("datetime.datetime_CAPI", 0)
#define PyDateTime_TimeZone_UTC PyDateTimeAPI->TimeZone_UTC
#define PyDelta_FromDSU(days, seconds, micros) PyDateTimeAPI->Delta_FromDelta(days, seconds, micros, 1, PyDateTimeAPI->DeltaType)
#define PyTimeZone_FromOffset(offset) PyDateTimeAPI->TimeZone_FromTimeZone(offset, NULL)
#define PyDelta_Check(op) PyObject_TypeCheck(op, PyDateTimeAPI->DeltaType)

#define PERIAPT_DATE(op, i) (((PyDateTime_Date *)(op))->data[i])
#define PyDateTime_GET_YEAR(op) ((PERIAPT_DATE(op, 0) << 8) | PERIAPT_DATE(op, 1))
#define PyDateTime_GET_MONTH(op) PERIAPT_DATE(op, 2)
#define PyDateTime_GET_DAY(op) PERIAPT_DATE(op, 3)
#define PERIAPT_MICROSECONDS(data, i) (((data)[i] << 16) | ((data)[(i) + 1] << 8) | (data)[(i) + 2])
#define PyDateTime_DATE_GET_HOUR(op) (((PyDateTime_DateTime *)(op))->data[4])
#define PyDateTime_DATE_GET_MINUTE(op) (((PyDateTime_DateTime *)(op))->data[5])
#define PyDateTime_DATE_GET_SECOND(op) (((PyDateTime_DateTime *)(op))->data[6])
#define PyDateTime_DATE_GET_MICROSECOND(op) PERIAPT_MICROSECONDS(((PyDateTime_DateTime *)(op))->data, 7)
#define PyDateTime_DATE_GET_TZINFO(op) (((PyDateTime_DateTime *)(op))->hastzinfo ? ((PyDateTime_DateTime *)(op))->tzinfo : Py_None)
#define PyDateTime_TIME_GET_HOUR(op) (((PyDateTime_Time *)(op))->data[0])
#define PyDateTime_TIME_GET_MINUTE(op) (((PyDateTime_Time *)(op))->data[1])
#define PyDateTime_TIME_GET_SECOND(op) (((PyDateTime_Time *)(op))->data[2])
#define PyDateTime_TIME_GET_MICROSECOND(op) PERIAPT_MICROSECONDS(((PyDateTime_Time *)(op))->data, 3)
#define PyDateTime_TIME_GET_TZINFO(op) (((PyDateTime_Time *)(op))->hastzinfo ? ((PyDateTime_Time *)(op))->tzinfo : Py_None)
#define PyDateTime_DELTA_GET_DAYS(op) (((PyDateTime_Delta *)(op))->days)
#define PyDateTime_DELTA_GET_SECONDS(op) (((PyDateTime_Delta *)(op))->seconds)
#define PyDateTime_DELTA_GET_MICROSECONDS(op) (((PyDateTime_Delta *)(op))->microseconds)

#endif
