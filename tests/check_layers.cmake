# cmake -DROOT=… -P check_layers.cmake: every include follows the declared direction.
#
# 1. A room or face may include its own headers and those of the rooms that its CMakeLists.txt names
#    after USES.
# 2. Inside a room that declares LAYERS, a sub-folder may include only itself and sub-folders of
#    earlier layers. "." is the room's own folder. Sub-folders that share a layer ("memory,timing")
#    may not include each other.
# 3. Each source is named by its room's CMakeLists.txt: one that a merge lost is not compiled, and a
#    test that is not compiled does not fail.
# 4. Device code in kernels/ includes nothing of the repository. Any room may include its headers
#    (argument structures).
# Tests, fuzz targets and shared test cases may include anything.
cmake_minimum_required(VERSION 3.25)
set(failed FALSE)

# Reads the words after `keyword` in the call of `function` in a CMakeLists.txt.
function(words_after text keyword out)
  set(words "")
  if(text MATCHES "${keyword} ([-a-z_,. \n]+)")
    string(REGEX REPLACE "[ \n]+" ";" words "${CMAKE_MATCH_1}")
    list(REMOVE_ITEM words "")
  endif()
  set(${out} "${words}" PARENT_SCOPE)
endfunction()

# Sets layer_<folder> for each sub-folder, with "." named "root", in the caller.
macro(number_layers layers)
  set(known "")
  set(number 0)
  foreach(layer ${layers})
    string(REPLACE "," ";" folders "${layer}")
    foreach(folder ${folders})
      string(REPLACE "." "root" folder "${folder}")
      set(layer_${folder} ${number})
      list(APPEND known ${folder})
    endforeach()
    math(EXPR number "${number} + 1")
  endforeach()
endmacro()

# The first sub-folder of a path inside a room, or "root".
function(sub_folder path out)
  if(path MATCHES "^([^/]+)/")
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
  else()
    set(${out} root PARENT_SCOPE)
  endif()
endfunction()

macro(complain message)
  message(SEND_ERROR "${message}")
  set(failed TRUE)
endmacro()

macro(check_folder place)
  set(folder ${ROOT}/${place})
  file(READ ${folder}/CMakeLists.txt text)
  words_after("${text}" USES uses)
  words_after("${text}" LAYERS layers)
  number_layers("${layers}")
  file(GLOB_RECURSE sources RELATIVE ${folder}
       ${folder}/*.h ${folder}/*.cpp ${folder}/*.def ${folder}/*.inc)
  foreach(source ${sources})
    check_listed()
    if(source MATCHES "_(test|fuzz|bench|cases)\\.(cpp|h)$"
       OR source MATCHES "(^|/)(testdata|testing|tests)/")
      continue()
    endif()
    sub_folder(${source} from)
    if(layers AND NOT from IN_LIST known)
      complain("${place}/${source}: its folder is not among LAYERS of ${place}/CMakeLists.txt")
    endif()
    file(STRINGS ${folder}/${source} includes
         REGEX "^#include \"(atunner|faces|runtime|tests|kernels)/")
    foreach(line ${includes})
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" path "${line}")
      check_include()
    endforeach()
  endforeach()
endmacro()

# Lists of sources may leave out the ending.
macro(check_listed)
  string(REGEX REPLACE "\\.cpp$" "" stem "${source}")
  string(FIND "${text}" "${stem}" position)
  if(source MATCHES "\\.cpp$" AND position EQUAL -1)
    complain("${place}/${source} is not in ${place}/CMakeLists.txt")
  endif()
endmacro()

macro(check_include)
  if(path MATCHES "^${place}/(.+)$")
    sub_folder(${CMAKE_MATCH_1} to)
    if(layers AND NOT from STREQUAL to AND NOT layer_${to} LESS layer_${from})
      complain("${place}/${source}: ${line}\n  '${to}' is not in an earlier layer than '${from}' \
(LAYERS ${layers})")
    endif()
  else()
    string(REGEX REPLACE "^([a-z]+)/([a-z_]+)/.*" "\\1;\\2" parts "${path}")
    list(GET parts 0 top)
    list(GET parts 1 other)
    if(top STREQUAL "atunner")
      set(allowed_as ${other})
    elseif(top STREQUAL "faces")
      set(allowed_as ${other})
    else()
      set(allowed_as ${top})
    endif()
    if(NOT allowed_as STREQUAL "kernels" AND NOT allowed_as IN_LIST uses)
      complain("${place}/${source}: ${line}\n  '${place}' does not declare it (uses: ${uses})")
    endif()
  endif()
endmacro()

file(GLOB places RELATIVE ${ROOT} ${ROOT}/atunner/*/CMakeLists.txt ${ROOT}/faces/*/CMakeLists.txt
     ${ROOT}/runtime/CMakeLists.txt)
foreach(list_file ${places})
  get_filename_component(place ${list_file} DIRECTORY)
  check_folder(${place})
endforeach()

# Folders that hold sources but declare nothing would escape the check.
file(GLOB folders LIST_DIRECTORIES true RELATIVE ${ROOT} ${ROOT}/atunner/* ${ROOT}/faces/*)
foreach(folder ${folders})
  file(GLOB_RECURSE sources ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.h)
  if(sources AND IS_DIRECTORY ${ROOT}/${folder} AND NOT EXISTS ${ROOT}/${folder}/CMakeLists.txt)
    complain("${folder}: it has sources and no CMakeLists.txt that says what they use")
  endif()
endforeach()

# Device code is text for the run-time compiler: a header of the host cannot be reached from there.
file(GLOB_RECURSE device_code RELATIVE ${ROOT}
     ${ROOT}/kernels/*.cu ${ROOT}/kernels/*.cuh ${ROOT}/kernels/*.h)
# Headers in kernels/headers/programs lie in a folder of nvcc's, beside those that they include.
list(FILTER device_code EXCLUDE REGEX "^kernels/headers/programs/")
foreach(source ${device_code})
  file(STRINGS ${ROOT}/${source} includes REGEX "^ *# *include *\"")
  foreach(line ${includes})
    complain("${source}: ${line}\n  device code includes nothing of the repository: it is joined \
as text")
  endforeach()
endforeach()

if(NOT failed)
  message(STATUS "every include is declared")
endif()
