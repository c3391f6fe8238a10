// <cstddef> and <stddef.h>: the types are the compiler's own.
#pragma once
typedef decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr)) ptrdiff_t;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(_T, member) __builtin_offsetof(_T, member)
#endif
namespace std {
using ::size_t, ::ptrdiff_t;
enum class byte : unsigned char {};
}  // namespace std
