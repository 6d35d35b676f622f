/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines go into a large buffer and from there into the file, so that what is measured is hardly
 * disturbed by being measured.
 */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/util.h"

enum { BUFFER_BYTES = 1024 * 1024 };

struct sw_sim_trace {
    FILE *file;
    uint64_t last_id;
};

int sw_sim_trace_open(const char *path, struct sw_sim_trace **ret_trace, struct sw_error *error)
{
    FILE *file = fopen(path, "we");

    if (!file)
        return sw_error_set(error, -errno, "cannot make %s: %s", path, strerror(errno));
    setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
    struct sw_sim_trace *trace = SW_NEW(struct sw_sim_trace);
    trace->file = file;
    *ret_trace = trace;
    return 0;
}

int sw_sim_trace_close(struct sw_sim_trace *trace)
{
    if (!trace)
        return 0;
    bool is_bad = ferror(trace->file) != 0;
    int code = fclose(trace->file) || is_bad ? -EIO : 0;
    sw_free(trace);
    return code;
}

uint64_t sw_sim_trace_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t sw_sim_trace_number(struct sw_sim_trace *trace)
{
    return trace ? ++trace->last_id : 0;
}

/* Its line feed last. */
static void put_text(FILE *file, const char *text, size_t len)
{
    while (len) {
        size_t plain = 0;
        while (plain < len && text[plain] != '\n' && text[plain] != '\t')
            plain++;
        fwrite(text, 1, plain, file);
        if (plain == len)
            break;
        fputc(' ', file);
        text += plain + 1;
        len -= plain + 1;
    }
    fputc('\n', file);
}

void sw_sim_trace_request(struct sw_sim_trace *trace, uint64_t ns, uint64_t id,
                          const struct sw_sim_trace_request *request)
{
    if (!trace)
        return;
    fprintf(trace->file, "%" PRIu64 "\t%" PRIu64 "\trequest\t%s\t%s\t%s\t%s%s%s\t", ns, id,
            request->user ? request->user : "", request->peer, request->method, request->path,
            request->query[0] ? "?" : "", request->query);
    put_text(trace->file, request->body, request->body_len);
}

void sw_sim_trace_answer(struct sw_sim_trace *trace, uint64_t ns, uint64_t id, int status,
                         size_t bytes)
{
    if (trace)
        fprintf(trace->file, "%" PRIu64 "\t%" PRIu64 "\tanswer\t%d\t%zu\n", ns, id, status, bytes);
}

void sw_sim_trace_piece(struct sw_sim_trace *trace, uint64_t ns, uint64_t id, const char *text,
                        size_t len)
{
    if (!trace)
        return;
    fprintf(trace->file, "%" PRIu64 "\t%" PRIu64 "\tpiece\t", ns, id);
    put_text(trace->file, text, len);
}
