# cmake -DSCRIPT=check_layers.cmake -DWORK=folder -P check_layers_test.cmake: the script accepts a
# tree without wrong includes and reports each kind of include that goes against the declared
# direction, and a source that no list names.
cmake_minimum_required(VERSION 3.25)

# Writes a tree of two rooms and a face, with one more include in `file`, and runs the script on it.
function(run_with file include out)
  file(REMOVE_RECURSE ${WORK})
  file(WRITE ${WORK}/atunner/low/CMakeLists.txt "atunner_room(low\n  SOURCES a.cpp)\n")
  file(WRITE ${WORK}/atunner/low/a.h "")
  file(WRITE ${WORK}/atunner/high/CMakeLists.txt
       "atunner_room(high\n  USES low\n  LAYERS . inner,other outer\n  SOURCES inner/b.cpp)\n")
  file(WRITE ${WORK}/atunner/high/door.h "#include \"atunner/low/a.h\"\n")
  file(WRITE ${WORK}/atunner/high/inner/b.h "#include \"atunner/high/door.h\"\n")
  file(WRITE ${WORK}/atunner/high/other/o.h "")
  file(WRITE ${WORK}/atunner/high/outer/c.h "#include \"atunner/high/inner/b.h\"\n")
  file(WRITE ${WORK}/faces/cli/CMakeLists.txt
       "atunner_room(cli\n  USES high\n  SOURCES main.cpp)\n")
  file(WRITE ${WORK}/faces/cli/main.cpp "#include \"atunner/high/door.h\"\n")
  file(WRITE ${WORK}/runtime/CMakeLists.txt "atunner_use(loader runtime USES low)\n")
  file(WRITE ${WORK}/kernels/families/k.cu "#include <cuda_fp16.h>\n")
  if(file)
    file(APPEND ${WORK}/${file} "#include \"${include}\"\n")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK} -P ${SCRIPT}
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  set(${out} ${result} PARENT_SCOPE)
endfunction()

run_with("" "" tidy)
if(NOT tidy EQUAL 0)
  message(FATAL_ERROR "a tree without a wrong include is refused")
endif()
foreach(planted
    "atunner/low/a.h|atunner/high/door.h"              # a room that is not declared
    "atunner/high/outer/c.h|atunner/tune/session.h"    # the same from a sub-folder
    "atunner/high/inner/b.h|atunner/high/outer/c.h"    # upwards inside a room
    "atunner/high/door.h|atunner/high/inner/b.h"       # from the room's own folder upwards
    "atunner/high/inner/b.h|atunner/high/other/o.h"    # between folders that share a layer
    "atunner/high/new/d.h|atunner/low/a.h"             # a folder that no layer names
    "faces/cli/main.cpp|atunner/low/a.h"               # a face that does not declare a room
    "atunner/high/inner/lost.cpp|atunner/low/a.h"      # a source that no list names
    "faces/odd/x.cpp|atunner/low/a.h"                  # a face that declares nothing
    "runtime/loader.cpp|atunner/high/door.h"           # the runtime
    "kernels/families/k.cu|atunner/low/a.h")           # device code
  string(REPLACE "|" ";" parts "${planted}")
  list(GET parts 0 file)
  list(GET parts 1 include)
  run_with(${file} ${include} refused)
  if(refused EQUAL 0)
    message(FATAL_ERROR "${file} may include ${include}, and should not")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
