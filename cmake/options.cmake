# Compiler flags every target shares.

# Warnings of g++ 13 and later were not looked at, so they are no errors.
set(newer_gcc FALSE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(newer_gcc TRUE)
endif()
if(ATUNNER_WERROR AND NOT newer_gcc)
  set(werror -Werror)
endif()
add_library(atunner_flags INTERFACE)
target_include_directories(atunner_flags INTERFACE
  ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(atunner_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  -Wno-missing-field-initializers -Wno-dangling-else ${werror}
  -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these inside its own library, of the last one with sanitizers.
  target_compile_options(atunner_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds
    $<$<BOOL:${ATUNNER_SANITIZE}>:-Wno-stringop-overflow>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++'s stable_sort calls the deprecated get_temporary_buffer, and clang reports the caller
  # of stable_sort. "GCC ivdep" is for g++.
  target_compile_options(atunner_flags INTERFACE -Wno-deprecated-declarations -Wno-unknown-pragmas)
endif()
target_compile_definitions(atunner_flags INTERFACE ATUNNER_VERSION="${PROJECT_VERSION}")
target_link_options(atunner_flags INTERFACE -Wl,--gc-sections)

if(ATUNNER_SANITIZE)
  target_compile_options(atunner_flags INTERFACE
    -fsanitize=${ATUNNER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(atunner_flags INTERFACE -fsanitize=${ATUNNER_SANITIZE})
else()
  # The C++ library is linked in, so that the binary starts on any machine with glibc.
  target_link_options(atunner_flags INTERFACE -static-libstdc++ -static-libgcc)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
else()
  # Precompiled headers shorten a single build. With a cache they would prevent its hits.
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS OFF)
endif()
find_program(MOLD mold)
if(MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_options(atunner_flags INTERFACE -fuse-ld=mold)
endif()
