# SPDX-License-Identifier: Apache-2.0
#
# Writes a C file with the migrations inside: cmake -DOUTPUT=… -DFILES="a.sql|b.sql" -P embed_migrations.cmake
# Names are <version>_<name>.sql, versions count from 0001 without a gap.
string(REPLACE "|" ";" FILES "${FILES}")
set(bodies "")
set(rows "")
set(expected 0)
foreach(file IN LISTS FILES)
    get_filename_component(base ${file} NAME_WE)
    if(NOT base MATCHES "^([0-9][0-9][0-9][0-9])_([a-z0-9_]+)$")
        message(FATAL_ERROR "${file}: a migration is called like 0001_name.sql")
    endif()
    set(name ${CMAKE_MATCH_2})
    string(REGEX REPLACE "^0+" "" version ${CMAKE_MATCH_1})
    math(EXPR expected "${expected} + 1")
    if(NOT version EQUAL expected)
        message(FATAL_ERROR "${file}: version ${expected} was expected")
    endif()
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    string(APPEND bodies "static const unsigned char BODY_${version}[] = {\n${hex}0x00 };\n")
    string(APPEND rows "    { ${version}, \"${name}\", (const char *)BODY_${version}, sizeof BODY_${version} - 1 },\n")
endforeach()
file(WRITE ${OUTPUT} "/* Made by cmake/embed_migrations.cmake from schema/migrations. */
#include \"db_migrations.h\"
${bodies}
const struct db_migration db_migrations[] = {
${rows}};
const int db_migrations_count = ${expected};
")
