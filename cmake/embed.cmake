# atunner_embed(TARGET NAME FILES file...): device code as data. Generates generated/embed/<NAME>.h
# with an `inline constexpr std::string_view` for each file, named after it (`softmax.cu` is
# `kSoftmaxCu`).
function(atunner_embed target name)
  set(out ${CMAKE_BINARY_DIR}/generated/embed/${name}.h)
  set(files "")
  foreach(file ${ARGN})
    get_filename_component(path ${file} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND files ${path})
  endforeach()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DNAME=${name}" "-DFILES=${files}"
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake VERBATIM)
  add_custom_target(embed_${name} DEPENDS ${out})
  add_dependencies(${target} embed_${name})
endfunction()
