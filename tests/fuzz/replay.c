/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds every file of the folders it is given to a fuzz target, whole and cut to half, and says so
 * in TAP. Passes if the process lives.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MAX_BYTES = 16 * 1024 * 1024 };

/* In memory of just that size, so that a sanitizer sees the byte too far. */
static void feed(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy) {
        abort();
    }
    memcpy(copy, bytes, len);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static int replay(const char *path, const char *name, int number)
{
    static uint8_t bytes[MAX_BYTES];
    FILE *file = fopen(path, "rbe");
    if (!file) {
        printf("not ok %d - %s: cannot be opened\n", number, name);
        return 1;
    }
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    feed(bytes, len);
    feed(bytes, len / 2);
    printf("ok %d - %s\n", number, name);
    return 0;
}

int main(int argc, char **argv)
{
    int count = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        int found = scandir(argv[i], &entries, NULL, alphasort);
        for (int k = 0; k < found; k++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], entries[k]->d_name);
            if (entries[k]->d_name[0] != '.') {
                failed += replay(path, entries[k]->d_name, ++count);
            }
            free(entries[k]);
        }
        if (found >= 0) {
            free(entries);
        }
    }
    printf("1..%d\n", count);
    return failed || count == 0;
}
