/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of kubectl-slipway: which commands and flags there are, what each means, and
 * what was asked for. Help, the man page and completion are made from the same tables, so they
 * cannot tell different stories.
 */
#ifndef KS_OPTIONS_H
#define KS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct sw_buf;
struct sw_error;

/* What the process ends with. */
enum ks_exit {
    KS_DONE = 0,
    KS_FAILED = 1,    /* something could not be done */
    KS_USAGE = 2,     /* the command line is wrong; nothing was done */
    KS_FINDINGS = 3,  /* doctor: something is wrong */
    KS_NOT_FOUND = 4, /* there is no such Deployment, coordination or SteppedRollout */
};

enum ks_flag {
    KS_KUBECONFIG,
    KS_CONTEXT,
    KS_NAMESPACE,
    KS_ALL_NAMESPACES,
    KS_OUTPUT,
    KS_WATCH,
    KS_REASON,
    KS_ALL,
    KS_YES,
    KS_TIME_LIMIT,
    KS_DRY_RUN,
    KS_FULL,
    KS_LET_ROLL,
    KS_TIMEOUT,
    KS_SLIPWAY_NAMESPACE,
    KS_SERVICE_ACCOUNT,
    KS_HELP,
    KS_VERSION,
    KS_FLAG_COUNT,
};

enum ks_command_id {
    KS_STATUS,
    KS_WHY,
    KS_PLAN,
    KS_HOLD,
    KS_RELEASE,
    KS_SKIP,
    KS_SUSPEND,
    KS_RESUME,
    KS_RESTART,
    KS_PROMOTE,
    KS_ABORT,
    KS_RETRY,
    KS_DOCTOR,
    KS_COMPLETION,
    KS_COMMAND_COUNT,
};

/* What the words behind a command name. */
enum ks_names {
    KS_NO_NAMES,
    KS_DEPLOYMENTS,
    KS_COORDINATIONS,
    KS_ROLLOUTS,
    KS_GROUPS,    /* coordinations and SteppedRollouts */
    KS_WORKLOADS, /* Deployments, other targets of SteppedRollouts, and these */
    KS_SHELLS,
};

struct ks_flag_text {
    const char *name;
    char letter;               /* 0: none */
    const char *value;         /* what stands for it in the help; NULL: the flag takes none */
    const char *without_value; /* of a flag whose value may be left out; NULL: it may not */
    bool is_global;
    const char *help[3]; /* lines */
};

struct ks_example {
    const char *what, *line;
};

struct ks_command {
    const char *name;
    const char *usage; /* behind the name */
    const char *summary;
    const char *text[16]; /* lines; an empty one is the end of a paragraph */
    struct ks_example examples[5];
    enum ks_names names;
    size_t least, most; /* names */
    unsigned flags;     /* 1 << enum ks_flag, beside the global ones */
};

extern const struct ks_flag_text ks_flags[KS_FLAG_COUNT];
extern const struct ks_command ks_commands[KS_COMMAND_COUNT];

struct ks_options {
    const struct ks_command *command;  /* NULL: none was named */
    const char *values[KS_FLAG_COUNT]; /* NULL: not given; "true" of one without a value */
    const char **names;                /* "deployment/" in front of them is taken off */
    const char **kinds;                /* what stood in front, as "Deployment"; "": nothing */
    size_t name_count;
};

bool ks_takes(const struct ks_command *command, enum ks_flag flag);
/* NULL: there is none of that name. */
const struct ks_command *ks_command_find(const char *name);
enum ks_command_id ks_command_id(const struct ks_command *command);

/* Flags may stand anywhere; behind "--" is no flag. The strings are argv's. -EINVAL with what is
 * wrong and what was meant; ks_options_done either way. */
int ks_options_parse(int argc, char *const argv[], struct ks_options *ret_options,
                     struct sw_error *error);
void ks_options_done(struct ks_options *options);

/* command NULL: of all. */
void ks_help(const struct ks_command *command, struct sw_buf *out);
/* kubectl-slipway(1), for man -l. */
void ks_man_page(struct sw_buf *out);

#endif
