/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of schema/migrations as they were when this was built, in order of
 * version from 1. The definitions are made by cmake/embed_migrations.cmake.
 */
#ifndef DB_DB_MIGRATIONS_H
#define DB_DB_MIGRATIONS_H

#include <stddef.h>

struct db_migration {
    int version;
    const char *name;
    const char *sql; /* Terminated; size does not count that. */
    size_t size;
};

extern const struct db_migration db_migrations[];
extern const int db_migrations_count;

#endif
