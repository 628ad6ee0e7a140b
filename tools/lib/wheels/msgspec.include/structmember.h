/* Kinds of members of CPython's objects: see Python.h beside this. */
#ifndef PERIAPT_STRUCTMEMBER_H
#define PERIAPT_STRUCTMEMBER_H

#define T_SHORT 0
#define T_INT 1
#define T_LONG 2
#define T_DOUBLE 4
#define T_STRING 5
#define T_OBJECT 6
#define T_BOOL 14
#define T_OBJECT_EX 16
#define T_PYSSIZET 19
#define READONLY 1

#endif
