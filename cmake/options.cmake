# Compiler flags every target shares.
add_library(atunner_flags INTERFACE)
target_include_directories(atunner_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(atunner_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Wno-dangling-else $<$<BOOL:${ATUNNER_WERROR}>:-Werror>
  -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these two inside its own library at -O2.
  target_compile_options(atunner_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
target_compile_definitions(atunner_flags INTERFACE ATUNNER_VERSION="${PROJECT_VERSION}")
target_link_options(atunner_flags INTERFACE -Wl,--gc-sections)

if(ATUNNER_SANITIZE)
  target_compile_options(atunner_flags INTERFACE -fsanitize=${ATUNNER_SANITIZE} -fno-omit-frame-pointer)
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
