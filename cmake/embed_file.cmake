# SPDX-License-Identifier: Apache-2.0
#
# Writes a C file with one file inside, ended by a NUL: cmake -DOUTPUT=… -DFILE=… -DNAME=… -P embed_file.cmake
# It defines `const char NAME[]` and `const size_t NAME_size`, as NAME.h declares them.
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
get_filename_component(base ${FILE} NAME)
file(WRITE ${OUTPUT} "/* Made by cmake/embed_file.cmake from ${base}. */
#include \"${NAME}.h\"
const char ${NAME}[] = {
${hex}0x00 };
const size_t ${NAME}_size = sizeof ${NAME} - 1;
")
