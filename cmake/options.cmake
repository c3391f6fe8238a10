# Compiler flags every target shares.

# Compilers that nobody has looked at may warn of more: who builds with one is not to stop there.
if(ATUNNER_WERROR AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
  set(werror -Werror)
endif()
add_library(atunner_flags INTERFACE)
target_include_directories(atunner_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(atunner_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Wno-dangling-else ${werror}
  -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these two inside its own library at -O2.
  target_compile_options(atunner_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++'s own stable_sort calls the deprecated get_temporary_buffer, of which clang blames whoever sorts;
  # "GCC ivdep" is for g++.
  target_compile_options(atunner_flags INTERFACE -Wno-deprecated-declarations -Wno-unknown-pragmas)
endif()
target_compile_definitions(atunner_flags INTERFACE ATUNNER_VERSION="${PROJECT_VERSION}")
target_link_options(atunner_flags INTERFACE -Wl,--gc-sections)

if(ATUNNER_SANITIZE)
  target_compile_options(atunner_flags INTERFACE -fsanitize=${ATUNNER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(atunner_flags INTERFACE -fsanitize=${ATUNNER_SANITIZE})
else()
  # One binary that starts on any glibc machine: the C++ library goes in.
  target_link_options(atunner_flags INTERFACE -static-libstdc++ -static-libgcc)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
else()
  # Whoever builds once waits less. With a cache, headers that are parsed apart would spoil its hits.
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS OFF)
endif()
find_program(MOLD mold)
if(MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_options(atunner_flags INTERFACE -fuse-ld=mold)
endif()
