#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A module exports its descriptor, sw_module_NAME, and nothing else: what else it had would collide
# with others, or be called past the API.
#   exports.sh NM MODULE.so...
nm=$1
shift
failed=0
for module in "$@"; do
    name=$(basename "$module" .so)
    # What sanitizers add is theirs.
    exports=$("$nm" -D --defined-only "$module" | awk '{print $3}' | grep -v '^__\(a\|ub\)san\|^__odr_asan' | sort)
    if [ "$exports" != "sw_module_$name" ]; then
        echo "$module exports:" $exports
        failed=1
    fi
done
exit $failed
