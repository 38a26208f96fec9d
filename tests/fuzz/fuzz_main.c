/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target on the files of folders, where there is no libFuzzer.
 * Usage: fuzz_x FOLDER...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz_kit.h"

#define FILE_SIZE_MAX (1 << 20)
#define PATH_SIZE 4096

/* The target gets memory of exactly the file's size, so that a byte read too far is seen. */
static bool run_file(const char *path)
{
    FILE *file = fopen(path, "re");
    uint8_t *bytes = malloc(FILE_SIZE_MAX);
    size_t size = file == NULL || bytes == NULL ? 0 : fread(bytes, 1, FILE_SIZE_MAX, file);
    uint8_t *fitting = realloc(bytes, size > 0 ? size : 1);
    bool is_read = file != NULL && fitting != NULL && !ferror(file) && size < FILE_SIZE_MAX;
    if (file != NULL) {
        fclose(file);
    }
    if (is_read) {
        fprintf(stderr, "%s: %zu bytes\n", path, size);
        (void)LLVMFuzzerTestOneInput(fitting, size);
    } else {
        fprintf(stderr, "%s: cannot be read\n", path);
    }
    free(fitting);
    return is_read;
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **entries = NULL;
        int entry_count = scandir(argv[i], &entries, is_file, alphasort);
        for (int k = 0; k < entry_count; k++) {
            char path[PATH_SIZE];
            if (!text_format(path, sizeof path, "%s/%s", argv[i], entries[k]->d_name) || !run_file(path)) {
                return EXIT_FAILURE;
            }
            free(entries[k]);
            count++;
        }
        free(entries);
    }
    printf("%d inputs\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
