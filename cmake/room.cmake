# atunner_room(NAME USES room... SOURCES file... [LAYERS folder...] [COLD file...|ALL] [JOINED]
#              [TESTS file...] [NVRTC_TESTS ...] [VGPU_TESTS ...] [GPU_TESTS ...]
#              [FUZZ file...] [SEEDS folder...] [LIBS lib...])
#
# One room is one static library `atunner_<name>`. Rooms are ordered in layers (ARCHITECTURE.md). A
# room may use only rooms with a smaller layer number; configuring stops otherwise. The test
# `layers` checks that includes match USES.
# LAYERS orders the sub-folders of a room in the same way: a sub-folder may include only sub-folders
# that stand before it; "." is the room's own folder, and folders joined by a comma share a layer.
# The test `layers` checks that, too.
# COLD sources wait for a compiler, a device or a person most of the time. They are compiled with
# -O1, which costs a run nothing and saves a third of their build time.
# JOINED says that most of the room's build time goes into headers: builds from nothing
# (ATUNNER_UNITY) then compile eight of its sources as one file. Names in unnamed namespaces of such
# a room differ from each other.
# SEEDS are folders with valid inputs, from which the fuzz targets start.
set(layer 0)
foreach(rooms "base" "model" "graph ptx device compile search store capture trace http"
        "cuda_text shadow importers planning workflow knowledge llm queue nats" "operators"
        "intake codegen vgpu verify report replay" "measure evidence fusion recognition"
        "judge rewrites" "tune" "jobs" "agents platform mcp" "wiring program runtime"
        "recorder serve" "cli")
  string(REPLACE " " ";" rooms "${rooms}")
  foreach(room ${rooms})
    set(ATUNNER_LAYER_${room} ${layer})
  endforeach()
  math(EXPR layer "${layer} + 1")
endforeach()

set(ATUNNER_COLD "$<$<CONFIG:Release,RelWithDebInfo>:-O1>")

function(atunner_cold target)
  target_compile_options(${target} PRIVATE ${ATUNNER_COLD})
endfunction()

# The outside headers that most files include are parsed once, for `base`; other rooms reuse the
# result. Only the release preset and builds without ccache do so: in all other builds each file
# must include the headers that it uses.
function(atunner_precompiled target)
  if(target STREQUAL atunner_base)
    target_precompile_headers(${target} PRIVATE
      <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <expected> <functional> <map> <memory>
      <optional> <set> <span> <string> <string_view> <variant> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM atunner_base)
  endif()
endfunction()

# Links `target` to the rooms in ARGN after checking that each is in a lower layer than `name`.
function(atunner_use target name)
  if(NOT DEFINED ATUNNER_LAYER_${name})
    message(FATAL_ERROR "'${name}' has no layer: add it to cmake/room.cmake and ARCHITECTURE.md")
  endif()
  set(rooms ${ARGN})
  list(REMOVE_ITEM rooms USES)
  foreach(used ${rooms})
    if(NOT ATUNNER_LAYER_${used} LESS ATUNNER_LAYER_${name})
      message(FATAL_ERROR "'${name}' (layer ${ATUNNER_LAYER_${name}}) must not use "
                          "'${used}' (layer ${ATUNNER_LAYER_${used}})")
    endif()
    target_link_libraries(${target} PUBLIC atunner_${used})
  endforeach()
endfunction()

function(atunner_room name)
  set(lists USES SOURCES LAYERS COLD TESTS NVRTC_TESTS VGPU_TESTS GPU_TESTS FUZZ SEEDS LIBS)
  cmake_parse_arguments(R "JOINED" "" "${lists}" ${ARGN})
  add_library(atunner_${name} STATIC ${R_SOURCES})
  target_link_libraries(atunner_${name} PUBLIC atunner_flags ${R_LIBS})
  atunner_precompiled(atunner_${name})
  if(R_JOINED AND ATUNNER_UNITY)
    set_target_properties(atunner_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  if(R_COLD STREQUAL "ALL")
    atunner_cold(atunner_${name})
  elseif(R_COLD)
    set_source_files_properties(${R_COLD} PROPERTIES COMPILE_OPTIONS "${ATUNNER_COLD}")
  endif()
  atunner_use(atunner_${name} ${name} ${R_USES})
  if(ATUNNER_TESTS)
    atunner_test(${name}_test LABEL null USES ${name} SOURCES ${R_TESTS})
    atunner_test(${name}_nvrtc_test LABEL nvrtc USES ${name} SOURCES ${R_NVRTC_TESTS})
    atunner_test(${name}_vgpu_test LABEL vgpu USES ${name} SOURCES ${R_VGPU_TESTS})
    atunner_test(${name}_gpu_test LABEL gpu USES ${name} SOURCES ${R_GPU_TESTS})
  endif()
  if(ATUNNER_FUZZ)
    foreach(file ${R_FUZZ})
      atunner_fuzz(${name} ${file} ${R_SEEDS})
    endforeach()
  endif()
endfunction()

# atunner_fuzz(room file [seeds...]): one executable, one ctest entry. It continues with the corpus
# of earlier runs, and writes inputs that crash or hang into the room's build folder.
function(atunner_fuzz room file)
  get_filename_component(stem ${file} NAME_WE)
  add_executable(${stem} ${file})
  target_link_libraries(${stem} PRIVATE atunner_${room})
  target_compile_definitions(${stem} PRIVATE ATUNNER_FUZZER=1)
  target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${stem})
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${stem}.corpus)
  file(MAKE_DIRECTORY ${found})
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE seeds)
  add_test(NAME ${stem}
           COMMAND ${stem} -max_total_time=${ATUNNER_FUZZ_SECONDS} -timeout=20 -rss_limit_mb=4096
           -artifact_prefix=${stem}. ${found} ${seeds})
endfunction()

# The test framework's headers are parsed once, for this program, which nothing builds or runs.
function(atunner_test_headers)
  if(TARGET atunner_test_headers)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/generated/test_headers.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  add_executable(atunner_test_headers EXCLUDE_FROM_ALL ${source})
  atunner_cold(atunner_test_headers)
  target_link_libraries(atunner_test_headers PRIVATE atunner_flags GTest::gmock)
  target_precompile_headers(atunner_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>
    <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <expected> <filesystem> <functional> <map>
    <memory> <optional> <random> <set> <span> <string> <string_view> <variant> <vector>)
endfunction()

# atunner_test(NAME LABEL null|nvrtc|vgpu|gpu|process [COST seconds] [TIMEOUT seconds] USES room...
#              SOURCES file... [ENV k=v...] [LIBS lib...])
# One executable, one ctest entry. An empty source list makes nothing. ctest starts tests with the
# highest COST first, so that no long one runs alone at the end.
function(atunner_test name)
  cmake_parse_arguments(T "" "LABEL;TIMEOUT;COST" "USES;SOURCES;ENV;LIBS" ${ARGN})
  if(NOT T_SOURCES)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 900)
  endif()
  add_executable(${name} ${T_SOURCES})
  atunner_cold(${name})
  atunner_test_headers()
  target_precompile_headers(${name} REUSE_FROM atunner_test_headers)
  list(TRANSFORM T_USES PREPEND atunner_)
  target_link_libraries(${name} PRIVATE
    ${T_USES} ${T_LIBS} atunner_flags GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    ATUNNER_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ATUNNER_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABEL}" TIMEOUT ${T_TIMEOUT}
                       ENVIRONMENT "${T_ENV}"
                       SKIP_REGULAR_EXPRESSION "\\[atunner\\] every test skipped")
  if(NOT T_COST AND T_LABEL STREQUAL "vgpu")
    set(T_COST 50)
  endif()
  if(T_COST)
    set_tests_properties(${name} PROPERTIES COST ${T_COST})
  endif()
  if(T_LABEL STREQUAL "gpu")
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK gpu)  # they time
  endif()
endfunction()
