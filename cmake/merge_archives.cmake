# cmake -DAR=… -DOUT=… -DARCHIVES=a;b;… -P merge_archives.cmake: joins the members of several
# archives in one.
set(script "CREATE ${OUT}\n")
foreach(archive ${ARCHIVES})
  string(APPEND script "ADDLIB ${archive}\n")
endforeach()
string(APPEND script "SAVE\nEND\n")
file(REMOVE ${OUT})
file(WRITE ${OUT}.mri "${script}")
execute_process(COMMAND ${AR} -M INPUT_FILE ${OUT}.mri RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "ar could not make ${OUT}")
endif()
