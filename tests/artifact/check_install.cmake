# cmake -DBUILD=… -DPREFIX=… -DCXX=… -DEXAMPLE=… -DCUDA_INCLUDE=… -DDRIVER=… -P check_install.cmake:
# installs the runtime's component into an empty folder and compiles the example with the installed
# files, with the shared library and with the static one.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --component runtime --prefix ${PREFIX}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE shared ${PREFIX}/libatunner_runtime.so)
file(GLOB_RECURSE python ${PREFIX}/atunner_runtime.py)
if(NOT shared OR NOT python)
  message(FATAL_ERROR "the shared library or the Python module is not installed")
endif()
get_filename_component(lib ${shared} DIRECTORY)
foreach(link "-latunner_runtime" "-l:libatunner_runtime.a")
  execute_process(COMMAND ${CXX} -std=c++17 ${EXAMPLE} -I${PREFIX}/include -I${CUDA_INCLUDE}
                  -L${lib} ${link} ${DRIVER} -ldl -Wl,-rpath,${lib} -o ${PREFIX}/example
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${PREFIX}/example RESULT_VARIABLE code ERROR_VARIABLE error)
  if(NOT code EQUAL 2 OR NOT error MATCHES "usage: run_artifact")
    message(FATAL_ERROR "the example linked with ${link} does not start: ${code} ${error}")
  endif()
endforeach()
# The Python module finds the library from where it is installed.
find_program(PYTHON NAMES python3 python)
if(PYTHON)
  get_filename_component(folder ${python} DIRECTORY)
  execute_process(COMMAND ${PYTHON} -c "import atunner_runtime; print(atunner_runtime.version())"
                  WORKING_DIRECTORY ${folder} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endif()
