# atunner_room(NAME USES room... SOURCES file... [COLD file...|ALL] [TESTS file...] [NVRTC_TESTS ...] [VGPU_TESTS ...]
#              [GPU_TESTS ...] [FUZZ file...] [SEEDS folder...] [LIBS lib...])
#
# SEEDS hold good files, from which the fuzz targets start.
# COLD sources wait for a compiler, a device or a person, so that compiling them at -O1 costs a run nothing and saves a
# third of the time a build spends on them.
# One room = one static library `atunner_<name>`. The rows are the layer order of ARCHITECTURE.md: a room may use only
# rooms of a smaller row, and configuring fails otherwise. `tests/layers_test` checks that includes match USES.
set(ATUNNER_ROW_base 0)
set(ATUNNER_ROW_model 1)
foreach(room graph ptx device compile search store)
  set(ATUNNER_ROW_${room} 2)
endforeach()
set(ATUNNER_ROW_operators 3)
foreach(room intake codegen vgpu verify report replay)
  set(ATUNNER_ROW_${room} 4)
endforeach()
set(ATUNNER_ROW_measure 5)
set(ATUNNER_ROW_judge 6)
set(ATUNNER_ROW_tune 7)

set(ATUNNER_COLD "$<$<CONFIG:Release,RelWithDebInfo>:-O1>")

function(atunner_cold target)
  target_compile_options(${target} PRIVATE ${ATUNNER_COLD})
endfunction()

# The outside headers that most files include are parsed once, for `base`; the others borrow the result. Only the release
# preset and builds without ccache do so: everywhere else each file must include what it uses.
function(atunner_precompiled target)
  if(target STREQUAL atunner_base)
    target_precompile_headers(${target} PRIVATE <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <expected>
      <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <variant> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM atunner_base)
  endif()
endfunction()

function(atunner_room name)
  cmake_parse_arguments(R "" "" "USES;SOURCES;COLD;TESTS;NVRTC_TESTS;VGPU_TESTS;GPU_TESTS;FUZZ;SEEDS;LIBS" ${ARGN})
  if(NOT DEFINED ATUNNER_ROW_${name})
    message(FATAL_ERROR "room '${name}' has no row: add it to cmake/room.cmake and ARCHITECTURE.md")
  endif()
  add_library(atunner_${name} STATIC ${R_SOURCES})
  target_link_libraries(atunner_${name} PUBLIC atunner_flags ${R_LIBS})
  atunner_precompiled(atunner_${name})
  if(R_COLD STREQUAL "ALL")
    atunner_cold(atunner_${name})
  elseif(R_COLD)
    set_source_files_properties(${R_COLD} PROPERTIES COMPILE_OPTIONS "${ATUNNER_COLD}")
  endif()
  foreach(used ${R_USES})
    if(NOT ATUNNER_ROW_${used} LESS ATUNNER_ROW_${name})
      message(FATAL_ERROR "room '${name}' (row ${ATUNNER_ROW_${name}}) must not use '${used}' (row ${ATUNNER_ROW_${used}})")
    endif()
    target_link_libraries(atunner_${name} PUBLIC atunner_${used})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY ATUNNER_ROOMS "${name}=${R_USES}")
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

# atunner_fuzz(room file [seeds...]): one executable, one ctest entry. It goes on from what earlier runs found, and leaves
# what crashes or hangs in the room's build folder.
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
  add_test(NAME ${stem} COMMAND ${stem} -max_total_time=${ATUNNER_FUZZ_SECONDS} -timeout=20 -rss_limit_mb=4096
           -artifact_prefix=${stem}. ${found} ${seeds})
endfunction()

# atunner_test(NAME LABEL null|nvrtc|vgpu|gpu|process USES room... SOURCES file... [ENV k=v...])
# One executable, one ctest entry. An empty source list makes nothing.
function(atunner_test name)
  cmake_parse_arguments(T "" "LABEL;TIMEOUT" "USES;SOURCES;ENV;LIBS" ${ARGN})
  if(NOT T_SOURCES)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 900)
  endif()
  add_executable(${name} ${T_SOURCES})
  atunner_cold(${name})
  list(TRANSFORM T_USES PREPEND atunner_)
  target_link_libraries(${name} PRIVATE ${T_USES} ${T_LIBS} atunner_flags GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ATUNNER_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ATUNNER_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABEL}" TIMEOUT ${T_TIMEOUT} ENVIRONMENT "${T_ENV}"
                       SKIP_REGULAR_EXPRESSION "\\[atunner\\] every test skipped")
  if(T_LABEL STREQUAL "gpu")
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK gpu)  # they time
  endif()
endfunction()
